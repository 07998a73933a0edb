"""Named tuples as `typing.NamedTuple` writes them, without the price of importing `typing` at a start.

In: a class body of annotated fields, some with defaults. Out: the named tuple. Type checkers see `typing.NamedTuple`.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Made(type):
        """Turns the body of a class below `NamedTuple` into a named tuple with its methods."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024 - the point
            for key, value in body.items():
                if key not in {"__annotations__", "__module__", "__qualname__"}:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Made):
        """The parent that such a class names."""

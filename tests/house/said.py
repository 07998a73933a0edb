"""Every name that a Python text says, however it is said: what a house rule on who may say a name looks at.

In: a text. Out: words. `.x`: an attribute that is read, set or matched. `x`: a name, an import, an attribute, or a string that is one,
also between the dots of a longer one. `import x`: what an import names. And the two that have a name below.
"""

import ast
from collections.abc import Iterator
from typing import Final

UNKNOWN: Final = "getattr(…)"
"""An attribute whose name is worked out, and what does so when it is handed on."""
FOREIGN: Final = "._"
"""Something private of somebody else."""

_WORK_OUT: Final = {"getattr", "setattr", "delattr"}
_PUBLIC: Final = {"_replace", "_asdict", "_fields"}
"""Of named tuples: public, whatever they are called."""


def said(text: str) -> set[str]:
    """The words of a text. Raises SyntaxError."""
    tree = ast.parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {word for node in ast.walk(tree) for word in _words(node, called)}


def _words(node: ast.AST, called: set[int]) -> Iterator[str]:
    match node:
        case ast.Attribute(value=holder, attr=name):
            yield from _attribute(name)
            own = isinstance(holder, ast.Name) and holder.id in ("self", "cls")
            yield from (FOREIGN,) if _private(name) and not own else ()
            yield from (UNKNOWN,) if name in _WORK_OUT else ()
        case ast.MatchClass(kwd_attrs=names):
            yield from (word for name in names for word in _attribute(name))
        case ast.Name(id=name):
            yield from (name, UNKNOWN) if name in _WORK_OUT and id(node) not in called else (name,)
        case ast.Import(names=aliases):
            yield from (word for alias in aliases for word in (f"import {alias.name}", *alias.name.split(".")))
        case ast.ImportFrom(module=module, names=aliases):
            yield from (module or "").split(".")[:1]
            yield from (word for alias in aliases for word in _imported(alias.name))
        case ast.Constant(value=str() as string):
            yield from (part for part in string.split(".") if part.isidentifier())
        case ast.Call(func=ast.Name(id=name), args=given) if name in _WORK_OUT:
            yield from _worked_out(given)
        case _:
            pass


def _imported(name: str) -> Iterator[str]:
    yield from (name, f"import {name}")
    yield from (FOREIGN,) if _private(name) else ()
    yield from (UNKNOWN,) if name in _WORK_OUT else ()


def _attribute(name: str) -> tuple[str, str]:
    return (name, f".{name}")


def _worked_out(given: list[ast.expr]) -> Iterator[str]:
    match given:
        case [_, ast.Constant(value=str() as name), *_]:
            yield from _attribute(name)
        case _:
            yield UNKNOWN


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in _PUBLIC

"""Whether a tool keeps state of its own, told from its text when it registers.

In: a factory, the type of what it made, the functions of its tools. Out: `Finding`s, with file and line, and what to write instead.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from types import MethodType, ModuleType
from typing import Any, Final, NamedTuple

from zcpolicy.state.patterns import places

MAX_INSPECTED: Final = 2_000_000
"""Characters of a module that are inspected; a longer one cannot be told."""


class Finding(NamedTuple):
    """`what` is wrong at `file:line`, and what to write `instead`."""

    file: str
    line: int
    what: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}; {self.instead}"


def inspected(*objects: Callable[..., Any] | type) -> tuple[Finding, ...]:
    """What is found in the modules of functions and classes, each module once; those of this package are left out.

    A module that has no text to be read is a finding.
    """
    living: dict[str, set[str]] = {}
    modules: dict[str, ModuleType | None] = {}
    for one in map(_plain, objects):
        module = inspect.getmodule(one)
        name = str(getattr(one, "__module__", None)) if module is None else module.__name__
        if not name.startswith("zcpolicy."):
            modules[name] = module
            living.setdefault(name, set()).update(_living(one))
    return tuple(finding for name in sorted(modules) for finding in _of_module(name, modules[name], living[name]))


def _of_module(name: str, module: ModuleType | None, living: Iterable[str]) -> list[Finding]:
    try:
        text = "" if module is None else inspect.getsource(module)
    except (OSError, TypeError, SyntaxError):
        text = ""
    file = name if module is None else getattr(module, "__file__", None) or name
    if not text or len(text) > MAX_INSPECTED:
        return [Finding(file, 1, "has no text that could be inspected", _VOUCH)]
    try:
        return [Finding(file, *place) for place in places(text, living)]
    except (SyntaxError, RecursionError):
        return [Finding(file, 1, "cannot be read as Python", _VOUCH)]


_VOUCH: Final = "read it, and say why it is sound with `vouched`"


def _plain(one: Any) -> Any:
    """The function or class behind partial objects, methods and decorations."""
    while isinstance(one, partial):
        one = one.func
    if isinstance(one, MethodType):
        one = one.__func__
    found: Any = inspect.unwrap(one)
    return found if inspect.isfunction(found) or inspect.isclass(found) else found.__class__


def _living(one: Any) -> Iterable[str]:
    """The class whose object lives as long as the tool: what was made, or what a tool's function is a method of."""
    if inspect.isclass(one):
        return {one.__name__}
    owner = one.__qualname__.rpartition(".")[0].rpartition(".")[2]
    return {owner} if owner and owner != "<locals>" else ()

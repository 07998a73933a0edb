"""Path patterns as a policy writes them: the operands of `under`, `glob` and of comparison.

In: text. Out: what is wrong with it, or an `Operand`.
"""

from __future__ import annotations

from collections.abc import Callable

from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

MAX_OPERAND_CHARACTERS: Final = 4096
"""Characters of one operand: no path of an operating system is longer."""

DEEP: Final = "**"
"""Any number of components, also none."""


class Operand(NamedTuple):
    """A path pattern in normal form: literal components from the root, then patterns, `**` for any number of components."""

    head: tuple[str, ...]
    tail: tuple[str, ...] = ()

    def mapped(self, change: Callable[[str], str]) -> Operand:
        """The operand with every component changed."""
        return Operand(tuple(map(change, self.head)), tuple(map(change, self.tail)))


def is_wild(component: str) -> bool:
    """Whether a component of a `glob` is more than text."""
    return "*" in component or "?" in component


def _literally(_component: str) -> bool:
    return False


def _normal(text: str, wild: Callable[[str], bool]) -> list[str] | None:
    """The components without `.`, `..` and empty ones; `None` where `..` has nothing to leave, or a pattern."""
    components: list[str] = []
    for component in text.split("/"):
        if component == "..":
            if not components or wild(components[-1]):
                return None
            components.pop()
        elif component not in {"", "."}:
            components.append(component)
    return components


# --- what is wrong ---------------------------------------------------------------------------------------------------


def check_prefix(text: str) -> str | None:
    """Why an operand of `under` is unusable, or `None`."""
    if text.startswith("/") and is_wild(text):
        return f"`under` takes a directory, not a pattern: use `glob` for `{text}`"
    return _check_start(text, ("/",), "`/`") or check_path(text)


def check_path(text: str) -> str | None:
    """Why a path to compare with is unusable, or `None`. A relative one starts where the other side does."""
    wrong = _check_text(text)
    if wrong is None and text.startswith("/") and _normal(text, _literally) is None:
        return f"`..` leads above the root in `{text}`"
    return wrong


def check_glob(text: str) -> str | None:
    """Why an operand of `glob` is unusable, or `None`."""
    wrong = _check_start(text, ("/", "**/"), "`/` or `**/`") or _check_text(text)
    if wrong is None and "\\" in text:
        return f"a path pattern has no escapes: `\\` in `{text}`"
    if wrong is None and any(DEEP in component and component != DEEP for component in text.split("/")):
        return f"`**` stands for whole components: write it between `/` in `{text}`"
    if wrong is None and _normal(text, is_wild) is None:
        return f"`..` leads nowhere certain in `{text}`"
    return wrong


def _check_start(text: str, starts: tuple[str, ...], said: str) -> str | None:
    return None if text.startswith(starts) else f"`{text}` does not start with {said}"


def _check_text(text: str) -> str | None:
    if "\0" in text:
        return "no path holds a NUL"
    if len(text) > MAX_OPERAND_CHARACTERS:
        return f"a path is at most {MAX_OPERAND_CHARACTERS:_} characters long"
    return None


# --- operands: each raises `ValueError` with what is wrong -----------------------------------------------------------


def _components(text: str, wrong: str | None, wild: Callable[[str], bool] = _literally) -> tuple[str, ...]:
    components = _normal(text, wild)
    if wrong is not None or components is None:
        raise ValueError(wrong)
    return tuple(components)


def prefix_operand(text: str) -> Operand:
    """The operand of `under`: the directory itself and all below it."""
    return Operand(_components(text, check_prefix(text)), (DEEP,))


def path_operand(text: str) -> Operand:
    """An absolute operand of a comparison; no character is special."""
    return Operand(_components(text, _check_start(text, ("/",), "`/`") or check_path(text)))


def file_operand(text: str) -> Operand:
    """A file, and all below it should it be a directory; no character is special."""
    return Operand(path_operand(text).head, (DEEP,))


def glob_operand(text: str) -> Operand:
    """The operand of `glob`."""
    components = _components(text, check_glob(text), is_wild)
    wild = next((i for i, component in enumerate(components) if is_wild(component)), len(components))
    tail: list[str] = []
    for component in components[wild:]:
        if component != DEEP or tail[-1:] != [DEEP]:
            tail.append(component)
    return Operand(components[:wild], tuple(tail))

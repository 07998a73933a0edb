"""Path patterns as a policy writes them: the operands of `under`, `glob` and of comparison.

In: text. Out: what is wrong with it, or an `Operand`.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

MAX_OPERAND_CHARACTERS: Final = 4096
"""Characters of one operand: no path of an operating system is longer."""

DEEP: Final = "**"
"""Any number of components, also none."""


class Operand(NamedTuple):
    """A path pattern in normal form: literal components from the root, then patterns, `**` for any number of components."""

    head: tuple[str, ...]
    tail: tuple[str, ...] = ()

    def mapped(self, change: Callable[[str], str]) -> "Operand":
        """The operand with every component changed."""
        return Operand(tuple(map(change, self.head)), tuple(map(change, self.tail)))


def is_wild(component: str) -> bool:
    return "*" in component or "?" in component


def _normal(text: str) -> list[str] | None:
    """The components without `.`, `..` and empty ones; `None` where `..` has nothing certain to leave."""
    components: list[str] = []
    for component in text.split("/"):
        if component == "..":
            if not components or is_wild(components[-1]):
                return None
            components.pop()
        elif component not in {"", "."}:
            components.append(component)
    return components


def _check(text: str, starts: tuple[str, ...], said: str) -> str | None:
    if "\0" in text:
        return "no path holds a NUL"
    if len(text) > MAX_OPERAND_CHARACTERS:
        return f"a path is at most {MAX_OPERAND_CHARACTERS:_} characters long"
    if not text.startswith(starts):
        return f"`{text}` does not start with {said}"
    return f"`..` leads nowhere certain in `{text}`" if _normal(text) is None else None


def check_prefix(text: str) -> str | None:
    """Why an operand of `under` is unusable, or `None`."""
    if text.startswith("/") and is_wild(text):
        return f"`under` takes a directory, not a pattern: use `glob` for `{text}`"
    return _check(text, ("/",), "`/`")


def check_glob(text: str) -> str | None:
    """Why an operand of `glob` is unusable, or `None`."""
    wrong = _check(text, ("/", "**/"), "`/` or `**/`")
    if wrong is None and "\\" in text:
        return f"a path pattern has no escapes: `\\` in `{text}`"
    if wrong is None and any(DEEP in component and component != DEEP for component in text.split("/")):
        return f"`**` stands for whole components: write it between `/` in `{text}`"
    return wrong


def check_path(text: str) -> str | None:
    """Why a path to compare with is unusable, or `None`. A relative one starts where the other side does."""
    return _check(text, ("",), "")


def prefix_operand(text: str) -> Operand:
    """The operand of `under`: the directory itself and all below it."""
    return Operand(tuple(_normal(text) or ()), (DEEP,))


def path_operand(text: str) -> Operand:
    """The operand of a comparison."""
    return Operand(tuple(_normal(text) or ()))


def glob_operand(text: str) -> Operand:
    """The operand of `glob`."""
    components = _normal(text) or []
    wild = next((i for i, component in enumerate(components) if is_wild(component)), len(components))
    tail: list[str] = []
    for component in components[wild:]:
        if component != DEEP or tail[-1:] != [DEEP]:
            tail.append(component)
    return Operand(tuple(components[:wild]), tuple(tail))

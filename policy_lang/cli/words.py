"""Options of a command that must start fast: read by hand, without click.

In: the words after the command's name, and a table of its options. Out: values by option.
"""

from __future__ import annotations

from policy_lang.cli.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal, NamedTuple

    class Option(NamedTuple):
        """An option: how often it may stand (`flag` has no value), what its value is called, what it does."""

        kind: Literal["flag", "one", "many"]
        value: str
        help: str

    OptionTable = Mapping[str, tuple[Literal["flag", "one", "many"], str, str]]


class Words:
    """What was written: `arguments` in order, the values of each option, in order."""

    __slots__ = ("arguments", "values")

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.values: dict[str, list[str]] = {}

    def one(self, option: str) -> str | None:
        """The value of an option that stands at most once."""
        found = self.values.get(option)
        return found[0] if found else None

    def many(self, option: str) -> list[str]:
        """Every value of an option."""
        return self.values.get(option, [])

    def has(self, flag: str) -> bool:
        """Whether a flag is set."""
        return flag in self.values


def read_words(words: Sequence[str], options: OptionTable) -> Words:
    """Options and arguments in any order; `--x V` and `--x=V`; all after `--` are arguments.

    Raises:
        CommandError: an unknown option, one twice, a value missing or too many.
    """
    read = Words()
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            read.arguments += left
            break
        if word == "-" or not word.startswith("-"):
            read.arguments.append(word)
        else:
            _option(word, left, read, options)
    return read


def _option(word: str, left: list[str], read: Words, options: OptionTable) -> None:
    name, has_value, value = word.partition("=")
    if name not in options:
        raise CommandError(_unknown(name, options))
    kind = options[name][0]
    if kind == "flag":
        if has_value:
            raise CommandError(f"`{name}` takes no value")
        value = ""
    elif not has_value:
        if not left:
            raise CommandError(f"`{name}` needs a value: `{name} {options[name][1]}`")
        value = left.pop(0)
    if kind != "many" and name in read.values:
        raise CommandError(f"`{name}` stands twice")
    read.values.setdefault(name, []).append(value)


def _unknown(name: str, options: OptionTable) -> str:
    near = nearest(name, options)
    return f"there is no option `{name}`" + (f"; did you mean `{near}`?" if near else "")


def nearest(word: str, known: object) -> str | None:
    """The known word that was perhaps meant."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1)  # type: ignore[call-overload]  # any iterable of words
    return str(found[0]) if found else None


def help_text(usage: str, about: str, options: OptionTable, example: str) -> str:
    """What `--help` prints."""
    rows = [(f"{name} {value}".rstrip(), text) for name, (_, value, text) in options.items()]
    width = max(len(left) for left, _ in rows)
    listed = "\n".join(f"  {left:<{width}}  {text}" for left, text in rows)
    return f"Usage: {usage}\n\n  {about}\n\nOptions:\n{listed}\n\n  Example: {example}\n"

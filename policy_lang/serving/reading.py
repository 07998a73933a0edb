"""One table of the settings: what is asked of it by name and kind, and what is wrong with it.

In: a `Document` and a path. Out: values of the kinds that were asked for; `Diagnostic`s for those that are not, and for keys that
nobody asks for. A value that is wrong is reported once, and read as if it were not there.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeGuard

from policy_lang import codes
from policy_lang.codes import Code
from policy_lang.diagnostics import Diagnostic
from policy_lang.nearest import nearest, or_list
from policy_lang.serving.toml import Document
from policy_lang.serving.toml import Path as Place
from policy_lang.source import Span
from zcpolicy.exact import is_list, is_object

_DURATION: Final = re.compile(r"(\d{1,9})(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_SIZE: Final = re.compile(r"(\d{1,9}) ?(kB|KB|MB|GB|B)?")
_BYTES: Final = {None: 1, "B": 1, "kB": 1_000, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
MOST_SHOWN: Final = 12
"""Known names that help lists; of more only the nearest is told."""


@dataclass(slots=True)
class Table:
    """A table. `found`: what is wrong, shared by all tables of one reading."""

    document: Document
    path: Place
    values: dict[str, Any]
    found: list[Diagnostic]
    folder: Path
    asked: dict[str, None] = field(default_factory=dict[str, None])

    # --- what is said ----------------------------------------------------------------------------------------------

    def say(self, code: Code, message: str, place: Place, *, help: str | None = None, on_key: bool = False) -> None:
        """Reports what is wrong at a path below this table."""
        whole = (*self.path, *place)
        span = self.document.key(whole) if on_key else self.document.value(whole)
        self.found.append(Diagnostic(code, message, self.document.source, span, help=help))

    def span(self, name: str) -> Span:
        """Where a value of this table stands."""
        return self.document.value((*self.path, name))

    @property
    def name(self) -> str:
        """As it is written in brackets."""
        return ".".join(str(part) for part in self.path if type(part) is str)

    def done(self) -> None:
        """Reports the keys that nobody has asked for."""
        for name in self.values:
            if name not in self.asked:
                near = nearest(name, self.asked)
                inside = f" in `[{self.name}]`" if self.path else ""
                self.say(
                    codes.UNKNOWN_SETTING,
                    f"there is no setting `{name}`{inside}",
                    (name,),
                    help=f"did you mean `{near}`?" if near else f"known here: {or_list(sorted(self.asked))}",
                    on_key=True,
                )

    def missing(self, name: str, help: str) -> None:
        """Reports that a setting has to be there."""
        inside = f"`[{self.name}]` has no `{name}`" if self.path else f"there is no `{name}`"
        self.say(codes.MISSING_SETTING, inside, (), help=help, on_key=True)

    def wrong(self, name: str, wanted: str, place: Place = ()) -> None:
        """Reports a value of another kind."""
        self.say(codes.BAD_SETTING, f"`{name}` is not {wanted}", (name, *place))

    # --- values ----------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """The value as it is; None: it is not there."""
        self.asked[name] = None
        return self.values.get(name)

    def text(self, name: str) -> str | None:
        """Text that is not empty."""
        found = self.get(name)
        if found is None:
            return None
        if type(found) is str and found.strip() and "\x00" not in found:
            return found
        self.wrong(name, "text in quotes")
        return None

    def flag(self, name: str, otherwise: bool) -> bool:
        """True or false."""
        found = self.get(name)
        if found is None or type(found) is bool:
            return otherwise if found is None else found
        self.wrong(name, "`true` or `false`")
        return otherwise

    def number(self, name: str, otherwise: int, low: int, high: int) -> int:
        """A whole number within bounds, both included."""
        found = self.get(name)
        if found is None:
            return otherwise
        if type(found) is int and low <= found <= high:
            return found
        self.wrong(name, f"a whole number from {low} to {high}")
        return otherwise

    def seconds(self, name: str, otherwise: float | None, low: float, high: float) -> float | None:
        """A duration: `"90s"`, `"10m"`, or a number of seconds where the name says so."""
        found = self.get(name)
        if found is None:
            return otherwise
        length: float | None = None
        if type(found) is str and (matched := _DURATION.fullmatch(found)) is not None:
            length = int(matched[1]) * _SECONDS[matched[2]]
        elif name == "seconds" and is_number(found):
            length = float(found)
        if length is not None and low <= length <= high:
            return length
        example = "a number of seconds" if name == "seconds" else 'a duration such as `"90s"`, `"10m"` or `"1d"`'
        self.wrong(name, f"{example}, from {_told(low)} to {_told(high)}")
        return otherwise

    def size(self, name: str, otherwise: int, low: int, high: int) -> int:
        """A number of bytes: `"100 MB"`, or a whole number."""
        found = self.get(name)
        if found is None:
            return otherwise
        matched = _SIZE.fullmatch(found) if type(found) is str else None
        amount = int(matched[1]) * _BYTES[matched[2]] if matched else found if type(found) is int else -1
        if low <= amount <= high:
            return amount
        self.wrong(name, f'a size such as `"100 MB"`, from {low} to {high} bytes')
        return otherwise

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, none of them empty."""
        found = self.get(name)
        if found is None:
            return ()
        if not is_list(found):
            self.wrong(name, 'a list of texts such as `["one", "two"]`')
            return ()
        sound: list[str] = []
        for number, one in enumerate(found):
            if type(one) is str and one.strip() and "\x00" not in one:
                sound.append(one)
            else:
                self.say(codes.BAD_SETTING, f"an item of `{name}` is not text in quotes", (name, number))
        return tuple(sound)

    def word(self, word: str, known: Sequence[str], what: str, place: Place) -> bool:
        """Whether a word is a known one; one that is not is reported."""
        if word in known:
            return True
        near = nearest(word, known)
        shown = f"known: {or_list(known)}" if 0 < len(known) <= MOST_SHOWN else None
        self.say(
            codes.BAD_SETTING, f"there is no {what} `{word}`", place, help=f"did you mean `{near}`?" if near else shown
        )
        return False

    # --- tables ----------------------------------------------------------------------------------------------------

    def table(self, name: str) -> "Table | None":
        """A table inside this one."""
        found = self.get(name)
        if found is None:
            return None
        if is_object(found):
            return self._inside((name,), found)
        self.wrong(name, f"a table: write `[{'.'.join(filter(None, (self.name, name)))}]`")
        return None

    def named(self, name: str) -> dict[str, "Table"]:
        """Tables by name: `[name.first]`, `[name.second]`."""
        above = self.table(name)
        found: dict[str, Table] = {}
        for each in above.values if above is not None else ():
            assert above is not None
            inside = above.table(each)
            if inside is not None:
                found[each] = inside
        return found

    def several(self, name: str) -> list["Table"]:
        """A list of tables: `[[name]]`."""
        found = self.get(name)
        if found is None:
            return []
        if is_list(found) and all(map(is_object, found)):
            return [self._inside((name, number), one) for number, one in enumerate(found)]
        self.wrong(name, f"a list of tables: write `[[{name}]]`")
        return []

    def _inside(self, place: Place, values: dict[str, Any]) -> "Table":
        return Table(self.document, (*self.path, *place), values, self.found, self.folder)

    # --- files -----------------------------------------------------------------------------------------------------

    def where(self, written: str) -> Path:
        """A path as written, from the folder of the settings."""
        return Path(self.folder, written)

    def no_file(self, message: str, place: Place, written: str, known: Iterable[str]) -> None:
        """Reports a file that cannot be used, with the name that was perhaps meant."""
        near = nearest(Path(written).name, known)
        self.say(codes.UNUSABLE_FILE, message, place, help=f"did you mean `{near}`?" if near else None)


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number, and no flag. No setting is infinite, since bounds are compared."""
    return type(value) in (int, float)


def _told(seconds: float) -> str:
    for unit in ("d", "h", "m", "s"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds // _SECONDS[unit])}{unit}"
    return f"{seconds:g}s"

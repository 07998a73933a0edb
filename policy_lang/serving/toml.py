"""Where in a TOML text each key and each value stands: `tomllib` tells what they are, not where.

In: a `Source`. Out: a `Document`: the values, and their places by path (`("agents", "helper", "model")`, numbers for items of
arrays). The scan trusts that `tomllib` has accepted the text, so that it need not refuse anything.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.source import Source, Span
from zcpolicy.exact import is_list, is_object

MAX_NESTING: Final = 50
"""Arrays and tables inside each other in settings."""
MAX_SETTINGS_BYTES: Final = 1_048_576
"""Bytes of a file of settings."""

Path = tuple[str | int, ...]

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'", re.DOTALL
)
_SCALAR: Final = re.compile(r"[^\s,#\]}]+(?: \d[^\s,#\]}]*)?")
_AT: Final = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Document:
    """`values`: as `tomllib` reads them. `keys`, `spans`: where the key, and the value, of a path stands."""

    source: Source
    values: Mapping[str, Any]
    keys: Mapping[Path, Span]
    spans: Mapping[Path, Span]

    def key(self, path: Path) -> Span:
        """The place of a key; of a table that is only implied, that of the nearest one above it."""
        while path and path not in self.keys:
            path = path[:-1]
        return self.keys.get(path, Span(0, 0))

    def value(self, path: Path) -> Span:
        """The place of a value; where it has none of its own, that of its key."""
        return self.spans.get(path) or self.key(path)


def read_toml(source: Source) -> Document | Diagnostic:
    """The document of a text, or what is wrong with its syntax."""
    try:
        values = tomllib.loads(source.text)
        if _depth(values) > MAX_NESTING:
            return _broken(source, "nested too deep", len(source.text))
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        at = len(source.text)
        if found is not None and found[1]:
            at = source.line_span(int(found[1])).start + int(found[2]) - 1
        return _broken(source, _AT.sub("", str(error)), at)
    except RecursionError:
        return _broken(source, "nested too deep", 0)
    scan = _Scan(source.text)
    scan.document()
    return Document(source, values, scan.keys, scan.spans)


def _broken(source: Source, why: str, at: int) -> Diagnostic:
    at = min(at, len(source.text))
    return Diagnostic(
        codes.BAD_TOML,
        f"this is no TOML: {why[:1].lower()}{why[1:]}",
        source,
        Span(at, min(at + 1, len(source.text))),
        help="text stands in quotes, a table's name in brackets: `[http]`, then `port = 8765`",
    )


def _depth(value: Any) -> int:
    deepest = 0
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        deepest = max(deepest, depth)
        inside = list(one.values()) if is_object(one) else one if is_list(one) else []
        waiting.extend((each, depth + 1) for each in inside)
    return deepest


@dataclass(slots=True)
class _Scan:
    """One walk over an accepted text. `at`: how far; `above`: the path of the table that is open."""

    text: str
    at: int = 0
    above: Path = ()
    keys: dict[Path, Span] = field(default_factory=dict[Path, Span])
    spans: dict[Path, Span] = field(default_factory=dict[Path, Span])
    lengths: dict[Path, int] = field(default_factory=dict[Path, int])

    def document(self) -> None:
        """Statements to the end."""
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                self._header()
            else:
                self._pair(self.above)
            self._skip(_BLANK)

    def _header(self) -> None:
        """`[a.b]`, `[[a.b]]`."""
        start = self.at
        several = self.text.startswith("[[", start)
        self.at += 2 if several else 1
        names = self._names()
        self.at = self.text.index("]", self.at) + (2 if several else 1)
        span = Span(start, self.at)
        path = self._newest(names[:-1])
        path = (*path, names[-1][0])
        self.keys.setdefault(path, span)
        if several:
            number = self.lengths.get(path, 0)
            self.lengths[path] = number + 1
            path = (*path, number)
            self.keys[path] = span
        self.above = path

    def _newest(self, names: list[tuple[str, Span]]) -> Path:
        """A path of a header, in which an array of tables stands for its newest table."""
        path: Path = ()
        for name, _ in names:
            path = (*path, name)
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
        return path

    def _pair(self, above: Path) -> None:
        """`a.b = value`."""
        path = above
        for name, span in self._names():
            path = (*path, name)
            self.keys.setdefault(path, span)
        self.at = self.text.index("=", self.at) + 1
        self._skip(_SPACE)
        self._value(path)

    def _names(self) -> list[tuple[str, Span]]:
        """A dotted key, and where each part of it stands."""
        found: list[tuple[str, Span]] = []
        while True:
            self._skip(_SPACE)
            quoted = _STRING.match(self.text, self.at)
            part = quoted or _BARE.match(self.text, self.at)
            assert part is not None, "tomllib has accepted the text"
            name = str(tomllib.loads(f"a = {part[0]}")["a"]) if quoted else part[0]
            found.append((name, Span(part.start(), part.end())))
            self.at = part.end()
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return found
            self.at += 1

    def _value(self, path: Path) -> None:
        start = self.at
        if self.text[start] == "[":
            self._array(path)
        elif self.text[start] == "{":
            self._table(path)
        else:
            found = _STRING.match(self.text, start) or _SCALAR.match(self.text, start)
            assert found is not None, "tomllib has accepted the text"
            self.at = found.end()
        self.spans[path] = Span(start, self.at)

    def _array(self, path: Path) -> None:
        self.at += 1
        number = 0
        while not self._closes("]"):
            self._value((*path, number))
            number += 1

    def _table(self, path: Path) -> None:
        self.at += 1
        while not self._closes("}"):
            self._pair(path)

    def _closes(self, end: str) -> bool:
        """Passes over blanks and a comma; whether the array or table ends here."""
        self._skip(_BLANK)
        if self.text.startswith(",", self.at):
            self.at += 1
            self._skip(_BLANK)
        if self.text.startswith(end, self.at):
            self.at += 1
            return True
        return False

    def _skip(self, what: re.Pattern[str]) -> None:
        found = what.match(self.text, self.at)
        self.at = found.end() if found else self.at

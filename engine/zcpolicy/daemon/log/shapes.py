"""What a secret can be told by inside any text. Every search is linear: RE2, and one pass over the letters of a run.

In: a text's bytes, the shapes to look for. Out: where secrets stand. A secret that looks like a word, a path or a digest cannot be
told by its shape; its key, or the name before it, has to say so.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, cast

from zcpolicy.daemon.log.names import is_count, named, secret_names
from zcpolicy.daemon.log.settings import Shape

MAX_RUN_JUDGED: Final = 256
"""Letters of a run without blanks that are looked at to tell whether it has a pattern."""
_SHORTEST: Final = 6  # bytes of a text that is looked at
_RUN: Final = 20


class Span(NamedTuple):
    """Bytes from `start` to `end` of a text, and what they were told by."""

    start: int
    end: int
    shape: Shape


class _Match(Protocol):
    def span(self, group: int = 0, /) -> tuple[int, int]: ...


class _Regex(Protocol):
    def search(self, text: bytes, pos: int = 0, /) -> _Match | None: ...


class _Look(NamedTuple):
    """One search; its only group is the secret, after that of the name before it if it is `named`. `sound`: what else has to hold
    of the two.
    """

    shape: Shape
    regex: _Regex
    named: bool
    sound: Callable[[str, bytes], bool]


Finder = Callable[[bytes], list[Span]]

_SCHEME: Final = r"(?:(?i:bearer|basic|digest|token|negotiate)[ \t]+)?"
_QUOTED: Final = r"""(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`[^`]*`)"""
_WORD: Final = (
    rf"""(?s:\\+["'][^"']*|{_QUOTED}[^\s"',;&:)}}\]]*|(?:[^\s"'\\&;]|\\.)(?:[^\s"'\\&;]|\\.|"[^\s"]*"|'[^\s']*')*)"""
)
_EDGE: Final = r"(?:^|[^A-Za-z0-9])"
_KNOWN: Final = (
    r"gh[pousr]_[A-Za-z0-9]{10,}", r"github_pat_\w{10,}", r"gl(?:pat|rt|ft|dt|soat|ptt|cbt|imt|agent)-[\w\-]{10,}", r"x(?:ox[a-z]|app)-[\w\-]{8,}", r"sk-[\w\-]{12,}",
    r"[rs]k_(?:live|test)_\w{8,}", r"AIza[\w\-]{20,}", r"ya29\.[\w\-.]{10,}", r"GOCSPX-[\w\-]{10,}", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}",
    r"npm_[A-Za-z0-9]{20,}", r"pypi-[\w\-]{50,}", r"hf_[A-Za-z0-9]{16,}", r"do[opr]_v1_\w{16,}", r"dckr_pat_[\w\-]{10,}",
    r"shp[a-z]{2}_\w{16,}", r"SG\.[\w\-]{10,}\.[\w\-]{10,}", r"AGE-SECRET-KEY-1\w{16,}", r"zcp_[\w\-]{20,}", r"(?:bot)?[0-9]{8,10}:AA[\w\-]{30,}",
    r"hv[sb]\.[\w\-]{16,}", r"(?:gsk|r8|ntn|lin_api|glsa|sq0[a-z]{3}|rubygems)[_\-][\w\-]{16,}", r"(?:pplx|xai|nvapi|tskey|sntrys)[_\-][\w\-]{32,}",
)  # fmt: skip
"""How issuers begin their tokens."""
_NO_SECRET: Final = frozenset({b"", b"none", b"null", b"true", b"false", b"undefined"})


def _any(name: str, value: bytes) -> bool:
    return True


def _odd(name: str, value: bytes) -> bool:
    """A token has a digit or a capital somewhere; a word does not."""
    return not value.islower() or any(48 <= one <= 57 for one in value)


def _odd_or_long(name: str, value: bytes) -> bool:
    return len(value) >= _RUN or _odd(name, value)


def _pair(name: str, value: bytes) -> bool:
    """Whether it is `user:password` in base64."""
    try:
        return b":" in b64decode(value + b"=" * (-len(value) % 4))
    except ValueError:
        return False


def _no_ids(name: str, value: bytes) -> bool:
    return not value.isdigit() and not value.startswith(b"/")  # `docker run -u 1000:1000`, `rsync -u host:/data`


_HEADER: Final = r"(?i:(?:proxy-)?authorization|(?:set-)?cookie)"
_PATTERNS: Final[tuple[tuple[Shape, str, Callable[[str, bytes], bool] | None], ...]] = (
    (
        "assignment",
        rf"""<NAME>(?:\\*["'])?\s*(?:=>|:=|:[ \t]*(?:string|str|String)[ \t]*=|[:=])\s*{_SCHEME}({_WORD})""",
        None,
    ),
    ("assignment", rf"""(?:^|[\s"'\[,(])-<NAME>\s+{_SCHEME}({_WORD})""", None),
    ("assignment", rf"""({_HEADER})\\*["']?[ \t]*[:=][ \t]*\\*["']?{_SCHEME}((?:[^\r\n"'\\]|\\.)+)""", None),
    ("assignment", r"""(?:^|\s)(?:-u|--user|--proxy-user)[ =]*["']?[^\s:"']*:([^\s"']+)""", _no_ids),
    ("assignment", rf"(?:sshpass|(?:docker|podman) login)\s(?:[^|;&\r\n]*\s)?-p\s*({_WORD})", _any),
    (
        "assignment",
        rf"(?:redis-cli\s(?:[^|;&\r\n]*\s)?-a\s*|(?:mysql|mariadb)[\w\-]*\s(?:[^|;&\r\n]*\s)?-p)({_WORD})",
        _any,
    ),
    ("assignment", r"""(?i:identified\s+by|login\s+\S+\s+password|password)\s+'([^']*)'""", _any),
    ("assignment", r"""(?i:login\s+\S+\s+password)\s+([^\s'"]+)""", _any),
    ("assignment", r"""<NAME>["']?:[ \t]*[|>][+\-]?[ \t]*\r?\n[ \t]+([^\r\n]+)""", None),
    ("assignment", r"<(?:\w+:)?<NAME>(?:\s[^<>]*)?>\s*([^<\s][^<]*)", None),
    ("assignment", r"""(?:key|name)=["']<NAME>["'][^<>]*\svalue=["']([^"']*)""", None),
    ("bearer", _EDGE + r"(?i:bearer)\s+([\w.~+/\-]{6,}=*)", _odd_or_long),
    ("basic", _EDGE + r"(?i:basic)\s+([A-Za-z0-9+/]{6,}={0,2})", _pair),
    ("jwt", r"(eyJ[\w\-]{5,}\.[\w\-]+(?:\.[\w\-]*)*)", _any),
    ("pem", r"(?s)(-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\z))", _any),
    ("known", rf"{_EDGE}({'|'.join(_KNOWN)})", _odd),
    ("url", r"(?:hooks\.slack\.com/\w+|/api/webhooks/[0-9]+)/([\w\-/]+)", _any),
    ("url", r"""[?&](?i:x-(?:amz|goog)-)?(?i:sig(?:nature)?)=([^&\s"']+)""", _any),
    ("url", r"""[A-Za-z][A-Za-z0-9+.\-]*://[^\s/?#"'@:]*:([^\s/?#"']+)@""", _any),
)
"""None: the first group is a name, and has to be that of a secret."""
_HINTS: Final = (
    r"eyJ[\w\-]{5,}\.", "-----BEGIN ", "(?i:bearer|basic|authorization|cookie|sshpass)\\b", r"://[^\s/]*@", r"(?:-u|-user)[ =]*[^\s:]*:",
    r"(?:docker|podman) login|redis-cli|mysql|mariadb", r"(?i:identified\s+by|password)\s+'|(?i:login\s+\S+\s+password)\s",
    r"hooks\.slack\.com/|/api/webhooks/", r"(?i:[?&](?:x-\w+-)?sig(?:nature)?=)",
    *(_EDGE + one for one in _KNOWN),
)  # fmt: skip
"""What a text has in it that any of the patterns fits; with the names of secrets before `:`, `=` or a blank."""


def finder(without: Iterable[Shape] = (), keys: Iterable[str] = ()) -> Finder:
    """Finds the secrets of a text, in order, none over another. `keys`: more names that say that a secret follows."""
    off = frozenset(without)
    own = tuple(keys)
    is_secret, names = secret_names(own), f"(?i:{named(own)})"

    def has_name(name: str, value: bytes) -> bool:
        bare = value.strip(b"\"'\\,").lower()
        return is_secret(name) and bare not in _NO_SECRET and not (bare.isdigit() and is_count(name, 0))

    looks = [
        _Look(
            shape, _compiled(pattern.replace("<NAME>", rf"([\w.\-]*{names}[\w.\-]*)")), sound is None, sound or has_name
        )
        for shape, pattern, sound in _PATTERNS
        if shape not in off
    ]
    hint = _compiled(
        "|".join(
            (
                *_HINTS,
                rf"""{names}[\w.\-]*(?:\\*["'])?\s*[:=]""",
                rf"-[\w.\-]*{names}[\w.\-]*\s",
                rf"""[<"'][\w:.\-]*{names}[\w.\-]*(?:>|\s[^<>]*>|["'][^<>]*\svalue=)""",
            )
        )
    )

    def find(text: bytes) -> list[Span]:
        if len(text) < _SHORTEST:
            return []
        found = [span for look in looks for span in _seen(look, text)] if looks and hint.search(text) else []
        if len(text) >= _RUN and "entropy" not in off:
            found += _without_pattern(text)
        return _apart(found)

    return find


@cache
def _compiled(pattern: str) -> _Regex:
    """RE2, of bytes: letters beyond ASCII are bytes of no class, which no pattern splits."""
    re2: Any = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    return cast("_Regex", re2.compile(pattern.encode(), options))


def _seen(look: _Look, text: bytes) -> Iterator[Span]:
    at = 0
    while (found := look.regex.search(text, at)) is not None:
        start, end = found.span(2 if look.named else 1)
        first, after = found.span(1) if look.named else (start, start)
        if look.sound(text[first:after].decode("latin-1"), text[start:end]):
            yield Span(start, end, look.shape)
            at = end
        else:
            at = max(after, at + 1)


def _apart(found: list[Span]) -> list[Span]:
    """In order; those that overlap are one, told by what told the first."""
    made: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if made and span.start < made[-1].end:
            made[-1] = made[-1]._replace(end=max(made[-1].end, span.end))
        else:
            made.append(span)
    return made


_RUNS: Final = r"[A-Za-z0-9+/_\-]{20,}={0,2}"
_CLASS: Final = bytes(
    ord("d") if 48 <= one <= 57 else ord("U") if 65 <= one <= 90 else ord("l") if 97 <= one <= 122 else ord("-")
    for one in range(256)
)
_HEX: Final = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_NAME_OF_FOLDER: Final = re.compile(rb"[A-Z]?[a-z]{3,}")
_PARTS: Final = (re.compile(rb"/"), re.compile(rb"[-_+=]"))
_WEIGHT: Final = {
    b"ll": -0.74, b"lU": 1.54, b"ld": 1.68, b"Ul": -0.54, b"UU": 0.52, b"Ud": 1.68, b"dd": -1.4, b"dl": 1.03, b"dU": 0.74,
}  # fmt: skip
"""How much sooner a random text has these two classes of letters side by side than names that people make; logarithms."""
_LONG_RUN: Final = 32
_CHANGES: Final = (b"ld", b"dl", b"Ud", b"dU")
_OFTEN: Final = 6


def _without_pattern(text: bytes) -> Iterator[Span]:
    """Long runs of letters and digits in which capitals, small letters and digits follow each other as if by chance."""
    runs, at = _compiled(_RUNS), 0
    while (found := runs.search(text, at)) is not None:
        start, at = found.span()
        yield from (Span(first, end, "entropy") for first, end in _random(text[start:at], start, _PARTS))


def _random(run: bytes, start: int, separators: tuple[re.Pattern[bytes], ...]) -> Iterator[tuple[int, int]]:
    """Where it is random: the whole run, or else parts of it."""
    if not _is_path(run) and _is_random(run):
        yield start, start + len(run)
    elif separators:
        at = 0
        for part in separators[0].split(run):
            if len(part) >= _RUN:
                yield from _random(part, start + at, separators[1:])
            at += len(part) + 1


def _is_path(run: bytes) -> bool:
    """Whether words stand between its slashes: then only one of its parts may be without pattern."""
    return b"/" in run and any(map(_NAME_OF_FOLDER.fullmatch, run[:MAX_RUN_JUDGED].split(b"/")))


def _is_random(run: bytes) -> bool:
    if b"d" not in run[:MAX_RUN_JUDGED].translate(_CLASS):
        return False
    parts = [one for one in re.split(rb"[-_+/=]", run[:MAX_RUN_JUDGED]) if one and _HEX.fullmatch(one) is None]
    if sum(map(len, parts)) < _RUN:
        return False  # digests, UUIDs, numbers
    classes = [one.translate(_CLASS) for one in parts]
    if {*b"".join(classes)} >= {*b"Uld"}:
        return sum(_WEIGHT[pair[at : at + 2]] for pair in classes for at in range(len(pair) - 1)) > 0
    return any(len(one) >= _LONG_RUN and sum(map(one.count, _CHANGES)) >= _OFTEN for one in classes)

"""Secrets in settings: they are named, never written.

In: values of settings. Out: `Secret`s that say where one is found; findings for those that are written in plain, and for
places that hold none; findings that repeat no secret.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic, in_order
from policy_lang.serving import files
from policy_lang.serving.reading import Table
from policy_lang.serving.toml import Path as Place
from policy_lang.source import Source, Span
from zcpolicy.daemon.settings import Secret
from zcpolicy.extras import missing

HOW: Final = "name where it is found: `env:NAME`, a variable of the daemon's environment, or `file:PATH`"

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEDGERS: Final = ("sqlite", "memory")
_LOOKS_SECRET: Final = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abpr]-|AKIA|AIza|ya29\.|eyJ)[A-Za-z0-9_\-.]{8,}"
    r"|(?i:(?:token|secret|password|passwd|api[-_]?key)[=:][^\s]{4,})|(?i:bearer\s+\S{8,})"
)
_NAMED_SECRET: Final = re.compile(  # a value under such a key, in quotes or, by mistake, without
    r"(?i:token|secret|password|passwd|api[-_]?key|authorization)[\"']?[ \t]*=[ \t]*"
    r"([\"']?(?![\"']?(?:env|file):)[^\"'\s\[{#][^\"'\n]{3,})"
)
_URL_PASSWORD: Final = re.compile(r"://[^\s/@:\"']*:([^\s/@\"']+)@")
_UNQUOTED: Final = re.compile(r"[^\s\"']")
_STARS: Final = re.compile(r"\*{4,}")


def secret(table: Table, written: str, place: Place) -> Secret | None:
    """Where a secret is found; text that is no such place is taken for the secret itself, and not repeated."""
    kind, _, name = written.partition(":")
    if kind == "env" and _VARIABLE.fullmatch(name) is not None:
        if not os.environ.get(name):
            table.say(
                codes.ABSENT_SECRET, f"the variable `{name}` is not set here", place,
                help="set it in the environment that the daemon is started in",
            )  # fmt: skip
        return Secret("env", name)
    if kind == "file" and name:
        return Secret("file", str(table.where(name))) if files.readable(table, place, name) else None
    table.say(codes.PLAIN_SECRET, "a secret does not stand in settings", place, help=HOW)
    return None


def secrets_in(table: Table, name: str) -> dict[str, Secret]:
    """A table of secrets."""
    inside = table.table(name)
    found: dict[str, Secret] = {}
    for each in inside.values if inside is not None else ():
        assert inside is not None
        written = inside.text(each)
        here = secret(inside, written, (each,)) if written is not None else None
        if here is not None:
            found[each] = here
    return found


def no_secret(table: Table, written: str, place: Place) -> None:
    """Reports text that looks like a secret where none belongs."""
    if _LOOKS_SECRET.search(written) is not None or _password_in(written):
        table.say(codes.PLAIN_SECRET, "this looks like a secret, which does not stand in settings", place, help=HOW)


def ledger_url(table: Table, written: str) -> str | Secret:
    """`sqlite`, `memory`, the URL of a server, or where the URL is found."""
    if written in _LEDGERS:
        return written
    if _password_in(written):
        table.say(codes.PLAIN_SECRET, "the URL holds a password", ("ledger",), help=HOW.replace("it is", "the URL is"))
        return written
    kind = written.partition(":")[0]
    if kind in ("env", "file"):
        return secret(table, written, ("ledger",)) or "memory"
    if kind not in ("redis", "rediss", "valkey", "valkeys", "unix") or "://" not in written:
        table.word(written, (*_LEDGERS, "redis://HOST"), "ledger", ("ledger",))
    elif find_spec("redis") is None:
        table.say(codes.ABSENT_LIBRARY, str(missing("a ledger on Redis", "redis")), ("ledger",))
    return written


def concealed(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings in order, without the secrets that stand in the settings: they are rendered with the text around them, on
    terminals and in the logs of builds. Places stay where they are.
    """
    found = in_order(found)
    by_text: dict[str, list[Diagnostic]] = {}
    for one in found:
        by_text.setdefault(one.source.text, []).append(one)
    return tuple(one for text, here in by_text.items() for one in _without(text, here))


def _without(text: str, found: list[Diagnostic]) -> Iterator[Diagnostic]:
    shown = list(text)
    for start, end in (*_secret_places(text), *(one.span for one in found if one.code == codes.PLAIN_SECRET)):
        shown[start:end] = _UNQUOTED.sub("*", text[start:end])
    hidden = "".join(shown)
    for one in found:
        message, help = one.message, one.help
        here = hidden[one.span.start : one.span.end]
        for run in _STARS.finditer(here):  # what a message quotes stands at its place
            word = text[one.span.start + run.start() : one.span.start + run.end()]
            message, help = message.replace(word, "***"), help and help.replace(word, "***")
        yield replace(one, message=message, help=help, source=Source(one.source.name, hidden))


def _secret_places(text: str) -> Iterator[Span]:
    """Where text looks like a secret, whatever it was found fault with."""
    for match in _LOOKS_SECRET.finditer(text):
        yield Span(*match.span())
    for pattern in (_NAMED_SECRET, _URL_PASSWORD):
        for match in pattern.finditer(text):
            yield Span(*match.span(1))


def _password_in(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.scheme and parts.password)
    except ValueError:
        return False

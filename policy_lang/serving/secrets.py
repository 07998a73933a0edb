"""Secrets in settings: they are named, never written.

In: values of settings. Out: `Secret`s that say where one is found; findings for those that are written in plain, and for
places that hold none.
"""

import os
import re
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from policy_lang import codes
from policy_lang.serving import files
from policy_lang.serving.reading import Table
from policy_lang.serving.toml import Path as Place
from zcpolicy.daemon.settings import Secret
from zcpolicy.extras import missing

HOW: Final = "name where it is found: `env:NAME`, a variable of the daemon's environment, or `file:PATH`"

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEDGERS: Final = ("sqlite", "memory")
_LOOKS_SECRET: Final = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abpr]-|AKIA|AIza|ya29\.|eyJ)[A-Za-z0-9_\-.]{8,}"
    r"|(?i:(?:token|secret|password|passwd|api[-_]?key)[=:][^\s]{4,})|(?i:bearer\s+\S{8,})"
)


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
    kind = written.partition(":")[0]
    if kind in ("env", "file"):
        return secret(table, written, ("ledger",)) or "memory"
    if kind not in ("redis", "rediss", "valkey", "valkeys", "unix") or "://" not in written:
        table.word(written, (*_LEDGERS, "redis://HOST"), "ledger", ("ledger",))
    elif _password_in(written):
        table.say(codes.PLAIN_SECRET, "the URL holds a password", ("ledger",), help=HOW.replace("it is", "the URL is"))
    elif find_spec("redis") is None:
        table.say(codes.ABSENT_LIBRARY, str(missing("a ledger on Redis", "redis")), ("ledger",))
    return written


def _password_in(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.scheme and parts.password)
    except ValueError:
        return False

"""A daemon, as an operator's command talks to it: where it is, and with which token.

In: settings, a URL, a file with a token. Out: JSON that it answers. The token goes to that one place, in the clear to this machine
alone; no redirect and no proxy is followed.
"""

import json
import os
import stat
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from policy_lang.cli.errors import CommandError
from policy_lang.cli.loading import complain, existing
from policy_lang.render.visible import visible
from zcpolicy.exact import is_object

TOKEN_VARIABLE: Final = "ZCPOLICY_TOKEN"  # noqa: S105 - its name
"""The variable that holds a token where no file is named."""
MAX_ANSWER_BYTES: Final = 64_000_000
"""Bytes of an answer of the daemon."""
MAX_TOKEN_BYTES: Final = 1_000
"""Bytes of a file with a token."""
SECONDS: Final = 20.0
"""For the daemon to answer, besides what it was asked to wait."""


class Told(NamedTuple):
    """What the daemon answers."""

    status: int
    body: dict[str, Any]

    @property
    def error(self) -> str:
        """What is wrong, in its words."""
        return visible(str(self.body.get("error", f"it answers with status {self.status}")))


class DaemonAt:
    """The daemon at a URL. Every call raises CommandError where it cannot be reached, or does not let the token in."""

    def __init__(self, url: str, token: str) -> None:
        self._secure, self._host, self._port, self._path = _place(url)
        self._token = token
        self._shown = visible(url)

    def get(self, path: str, *, wait: int = 0, **asked: int) -> Told:
        """`wait`: seconds for which it may think about it."""
        query = "&".join(f"{name}={value}" for name, value in {**({"wait": wait} if wait else {}), **asked}.items())
        return self._asked("GET", f"{path}?{query}" if query else path, None, SECONDS + wait)

    def post(self, path: str, body: dict[str, Any]) -> Told:
        """Sends a JSON object."""
        return self._asked("POST", path, json.dumps(body), SECONDS)

    def _asked(self, method: str, path: str, body: str | None, seconds: float) -> Told:
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=seconds)
        headers = {"authorization": f"Bearer {self._token}", "accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            connection.request(method, self._path + path, body, headers)
            answer = connection.getresponse()
            status, data = answer.status, answer.read(MAX_ANSWER_BYTES + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise CommandError(f"`{self._shown}` cannot be reached: {_why(error)}") from None
        finally:
            connection.close()
        return self._told(status, data)

    def _told(self, status: int, data: bytes) -> Told:
        try:
            found = json.loads(data) if len(data) <= MAX_ANSWER_BYTES else None
        except (ValueError, RecursionError):
            found = None
        if not is_object(found):
            raise CommandError(f"`{self._shown}` answers with status {status}, and not as a daemon does")
        told = Told(status, found)
        if status in (401, 421) or (status == 403 and "token of an operator" in told.error):
            raise CommandError(f"`{self._shown}` does not let you in: {told.error}")
        return told


def daemon_at(settings: Path, url: str | None, token_file: Path | None) -> DaemonAt:
    """The daemon that a person means. Raises CommandError."""
    where = url if url is not None else _url_of(settings)
    return DaemonAt(where, _token(token_file))


def path_to(*parts: str) -> str:
    """A path of names that may hold anything."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _url_of(path: Path) -> str:
    """Where the daemon of these settings listens."""
    from policy_lang.serving.settings import read_settings

    read = read_settings(existing(path))
    if read.settings is None:
        complain(read.diagnostics, "human")
        raise CommandError(f"`{path}` has errors")
    http = read.settings.http
    if http is None:
        raise CommandError(f"the daemon of `{path}` does not listen over HTTP")
    if http.port == 0:
        raise CommandError(f"the daemon of `{path}` takes any free port: say where it is with --url")
    address = http.address
    if not http.is_loopback:
        if not ip_address(address).is_unspecified:
            raise CommandError(
                f"the daemon of `{path}` listens on `{address}`: say how to reach it with --url https://…"
            )
        address = "::1" if ":" in address else "127.0.0.1"
    return f"http://[{address}]:{http.port}" if ":" in address else f"http://{address}:{http.port}"


def _place(url: str) -> tuple[bool, str, int | None, str]:
    """Whether it is HTTPS; host, port, path. Raises CommandError."""
    from zcpolicy.daemon.settings import is_loopback

    shown = visible(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise CommandError(f"`{shown}` is no URL") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username is not None:
        raise CommandError(f"`{shown}` is no URL of a daemon: write http://127.0.0.1:8765 or https://HOST")
    if parts.scheme == "http" and not is_loopback(host):
        raise CommandError(f"a token goes over http to this machine only, and `{visible(host)}` is another: use https")
    return parts.scheme == "https", host, port, parts.path.rstrip("/")


def _token(file: Path | None) -> str:
    """Raises CommandError, which quotes nothing of it."""
    if file is None:
        token, where = os.environ.get(TOKEN_VARIABLE, ""), f"the variable {TOKEN_VARIABLE}"
        if not token:
            raise CommandError(
                f"a token of an operator is needed: --token-file FILE, or the variable {TOKEN_VARIABLE}; "
                "`zcpolicy token add NAME --operator --output FILE` gives one out"
            )
    else:
        token, where = _token_in(file), f"`{visible(str(file))}`"
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError(f"{where} holds no token")
    return token


def _token_in(file: Path) -> str:
    shown = visible(str(file))
    try:
        with file.open("rb") as opened:
            found = os.fstat(opened.fileno())
            if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
                raise CommandError(f"`{shown}` is open to others: chmod 600 it, and change the token")
            return opened.read(MAX_TOKEN_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise CommandError(f"`{shown}` cannot be read: {(error.strerror or str(error)).lower()}") from None


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return visible(" ".join(str(said).split())[:200]).lower()

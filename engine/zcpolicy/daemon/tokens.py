"""Who may talk to the daemon: bearer tokens, of which only digests are kept.

In: names, tokens that clients send. Out: `Holder`s; a new token, told once. The file is read again when it has changed, so that
a token that is revoked by another process is worth nothing at the next request. What cannot be read lets nobody in.
"""

import os
import re
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from fcntl import LOCK_EX, flock
from hashlib import sha256
from hmac import compare_digest
from json import dumps
from secrets import token_urlsafe
from threading import Lock
from time import time
from typing import Any, Final, Literal

from zcpolicy.call import Malformed, read_json
from zcpolicy.exact import is_list, is_object

MAX_TOKENS: Final = 1_000
"""Tokens that one file holds, revoked ones among them."""
MAX_TOKEN_CHARACTERS: Final = 200
"""Characters of a token that is looked at."""
MAX_FILE_BYTES: Final = 1_000_000
"""Bytes of a file of tokens."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FIELDS: Final = {"name", "role", "digest", "made", "revoked"}
_PREFIX: Final = "zcp_"

Role = Literal["client", "operator"]


class TokensError(Exception):
    """A file of tokens that cannot be used, or a name that cannot be given one. The message says why."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who a token was given to. `made`, `revoked`: seconds since the epoch; None: it is good."""

    name: str
    role: Role
    made: float
    revoked: float | None = None

    @property
    def is_operator(self) -> bool:
        """Whether it may see and change how the daemon runs."""
        return self.role == "operator"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A line of the file. 256 random bits need no slow hash: nobody guesses what a digest is of."""

    name: str
    role: Role
    digest: str
    made: float
    revoked: float | None = None

    def holder(self) -> Holder:
        return Holder(self.name, self.role, self.made, self.revoked)


class Tokens:
    """The tokens of one file, which is made with the first token. `file`: absolute; `files`: all that is written, for the
    resolver's protected files. Safe to use from many threads and processes.
    """

    def __init__(self, file: str) -> None:
        self._file = os.path.abspath(file)
        self.files = (self._file, f"{self._file}.lock", f"{self._file}.new")
        self.folder = os.path.dirname(self._file)
        self._reading = Lock()
        self._seen: tuple[int, ...] | None = None
        self._kept: tuple[_Kept, ...] = ()
        self._ever = False
        self._known: frozenset[_Kept] | None = None

    def needed(self) -> bool:
        """Whether nobody comes in without a token: there is a file, or once was one."""
        with self._reading:
            self._ever = self._ever or self._was_there()
            return self._ever

    def _was_there(self) -> bool:
        """Whether tokens were given out, by this process or another: the lock outlives a file that is taken away."""
        return any(map(os.path.lexists, self.files[:2]))

    def holder_of(self, token: str) -> Holder | None:
        """Whose token it is; None for one that is none, or was revoked. Raises TokensError for a file that cannot be used."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            return None
        digest = _digest(token)
        found: _Kept | None = None
        for one in self._current():  # all of them: how long it takes tells nothing
            if compare_digest(one.digest, digest) and one.revoked is None:
                found = one
        return None if found is None else found.holder()

    def holders(self) -> tuple[Holder, ...]:
        """Everybody who was ever given one, in the order of it. Raises TokensError."""
        return tuple(one.holder() for one in self._current())

    def news(self) -> tuple[Holder, ...]:
        """Whom others have given a token, or taken one back from, since this was asked last; nobody the first time. Raises TokensError."""
        now = self._current()
        with self._reading:
            known, self._known = self._known, frozenset(now)
        return () if known is None else tuple(one.holder() for one in now if one not in known)

    def add(self, name: str, role: Role = "client") -> str:
        """A new token, told here and never again. Raises TokensError for a name that has one, or is none."""
        if _NAME.fullmatch(name) is None:
            raise TokensError(
                "a name is letters, digits and `_ . @ -`, at most 64, and begins with a letter, a digit or `_`"
            )
        token = f"{_PREFIX}{token_urlsafe(32)}"

        def added(kept: tuple[_Kept, ...]) -> tuple[_Kept, ...]:
            if any(one.name == name and one.revoked is None for one in kept):
                raise TokensError(f"`{name}` has a token already: revoke it first")
            if len(kept) >= MAX_TOKENS:
                kept = tuple(one for one in kept if one.revoked is None)
            if len(kept) >= MAX_TOKENS:
                raise TokensError(f"there are {MAX_TOKENS} tokens already")
            return (*kept, _Kept(name, role, _digest(token), time()))

        self._change(added)
        return token

    def revoke(self, name: str) -> None:
        """The token of this name lets nobody in any more. Raises TokensError where there is none."""
        if not self.needed():
            raise TokensError("nobody has a token yet")

        def without(kept: tuple[_Kept, ...]) -> tuple[_Kept, ...]:
            if not any(one.name == name and one.revoked is None for one in kept):
                raise TokensError(f"nobody has a token under the name `{name[:64]}`")
            return tuple(
                _Kept(one.name, one.role, one.digest, one.made, time())
                if one.name == name and one.revoked is None
                else one
                for one in kept
            )

        self._change(without)

    # --- the file ------------------------------------------------------------------------------------------------

    def _current(self) -> tuple[_Kept, ...]:
        """What the file holds by now. Raises TokensError."""
        with self._reading:
            try:
                here = _looks(os.stat(self._file))
            except FileNotFoundError:
                if self._ever or self._was_there():
                    raise TokensError(
                        f"the file of tokens `{self._file}` is gone: `zcpolicy token add NAME` begins a new one"
                    ) from None
                return ()
            except OSError as error:
                raise TokensError(f"the file of tokens cannot be read: {error.strerror}") from None
            if here != self._seen:
                self._ever, self._seen = True, None
                self._seen, self._kept = _read(self._file)
            return self._kept

    def _change(self, changed: Callable[[tuple[_Kept, ...]], tuple[_Kept, ...]]) -> None:
        """Whole, or not at all, and one after the other of all processes. Raises TokensError."""
        try:
            with _alone(self.files[1]):
                kept = _read(self._file)[1] if os.path.lexists(self._file) else ()
                new = changed(kept)
                with self._reading:
                    if self._known is not None:
                        self._known = self._known.union(set(new).difference(kept))
                _write(self._file, new)
        except OSError as error:
            raise TokensError(f"the file of tokens cannot be written: {error.strerror}") from None


@contextmanager
def _alone(lock: str) -> Generator[None]:
    """Raises OSError."""
    held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        flock(held, LOCK_EX)
        yield
    finally:
        os.close(held)


def _looks(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


def _read(file: str) -> tuple[tuple[int, ...], tuple[_Kept, ...]]:
    """What the file holds, and how it looked then. Raises TokensError."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as opened:
            found = os.fstat(opened.fileno())
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077 or not stat.S_ISREG(found.st_mode):
                raise TokensError(f"the file of tokens `{file}` is open to others: it must be yours, with mode 600")
            data = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TokensError(f"the file of tokens `{file}` cannot be read: {error.strerror}") from None
    return _looks(found), _parsed(data, file)


def _parsed(data: bytes, file: str) -> tuple[_Kept, ...]:
    try:
        held = read_json(data) if len(data) <= MAX_FILE_BYTES else None
    except Malformed:
        held = None
    lines = held["tokens"] if is_object(held) and held.keys() == {"tokens"} else None
    if not is_list(lines) or len(lines) > MAX_TOKENS or not all(map(_is_kept, lines)):
        raise TokensError(f"the file of tokens `{file}` is damaged, or none")
    return tuple(
        _Kept(one["name"], one["role"], one["digest"], float(one["made"]), one["revoked"] and float(one["revoked"]))
        for one in lines
    )


def _is_kept(line: Any) -> bool:
    if not is_object(line) or line.keys() != _FIELDS:
        return False
    texts = all(type(line[name]) is str for name in ("name", "role", "digest"))
    times = not any(isinstance(line[name], (str, bool, list, dict)) for name in ("made", "revoked"))
    return (
        texts
        and times
        and line["made"] is not None
        and line["role"] in ("client", "operator")
        and _NAME.fullmatch(line["name"]) is not None
        and _DIGEST.fullmatch(line["digest"]) is not None
    )


def _write(file: str, kept: tuple[_Kept, ...]) -> None:
    """Raises OSError."""
    new = f"{file}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as opened:
        opened.write(dumps({"tokens": [asdict(one) for one in kept]}, indent=1))
        opened.flush()
        os.fsync(descriptor)
    os.replace(new, file)


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

"""How a daemon names its clients: ids that nobody can work out from where a client comes from, or make up.

In: a key that only the daemon has; a surface, and what its path vouches for. Out: `Minting`, whose ids are the same as long as
the key is.
"""

import os
import stat
from hmac import new
from json import dumps
from secrets import token_bytes
from typing import Final, Protocol

from zcpolicy.state.secret import Secret, secret

KEY_BYTES: Final = 32
_REDIS_KEY: Final = "zcpolicy:minting"


class MintingError(Exception):
    """There is no key that could be used. The message says what is wrong with it, and shows nothing of it."""


class Store(Protocol):
    """What of a Redis client is used."""

    def set(self, name: str, value: str, *, nx: bool) -> object: ...

    def get(self, name: str) -> object: ...


class Minting:
    """Makes ids of clients. `key`: 32 random bytes, as hexadecimal digits; None: a random one, for this process alone."""

    __slots__ = ("_key",)

    def __init__(self, key: Secret | None = None) -> None:
        made = secret(token_bytes(KEY_BYTES).hex()) if key is None else key
        if not _is_key(made.reveal()):
            raise MintingError(f"a key is {KEY_BYTES} bytes as hexadecimal digits")
        self._key = made

    def client(self, surface: str, key: str) -> str:
        """The id of whoever a path vouches for under this key: 32 hexadecimal digits, always the same under one minting key."""
        told = dumps(["client", surface, key]).encode()
        return new(bytes.fromhex(self._key.reveal()), told, "sha256").hexdigest()[:32]

    def __repr__(self) -> str:
        return "<Minting>"

    @classmethod
    def from_file(cls, path: str) -> "Minting":
        """With the key of a file, which is made, for its owner alone, where there is none. Raises MintingError.

        Processes that begin at once take the same key.
        """
        try:
            return cls(secret(_read(path)))
        except FileNotFoundError:
            pass
        try:
            _written(path, token_bytes(KEY_BYTES).hex())
            return cls(secret(_read(path)))
        except OSError as error:
            raise MintingError(f"the key file `{path}` cannot be made: {error.strerror}") from None

    @classmethod
    def from_redis(cls, store: Store) -> "Minting":
        """With the key that all daemons on one Redis or Valkey share. Raises MintingError, and what the client raises."""
        store.set(_REDIS_KEY, token_bytes(KEY_BYTES).hex(), nx=True)
        found = store.get(_REDIS_KEY)
        text = found.decode("ascii", "replace") if isinstance(found, bytes) else found
        if not isinstance(text, str) or not _is_key(text):
            raise MintingError(f"the store has no sound key under `{_REDIS_KEY}`")
        return cls(secret(text))


def _is_key(text: str) -> bool:
    return len(text) == 2 * KEY_BYTES and all(one in "0123456789abcdef" for one in text)


def _read(path: str) -> str:
    """Raises FileNotFoundError, MintingError."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise MintingError(f"the key file `{path}` cannot be read: {error.strerror}") from None
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(opened.fileno())
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise MintingError(f"the key file `{path}` is not its owner's alone: `chmod 600` it, as whoever runs this")
        if not stat.S_ISREG(status.st_mode):
            raise MintingError(f"the key file `{path}` is no regular file")
        text = opened.read(2 * KEY_BYTES + 2).decode("ascii", "replace").removesuffix("\n")
    if not _is_key(text):
        raise MintingError(
            f"the key file `{path}` holds no key: clients named by another key would lose what is theirs"
        )
    return text


def _written(path: str, text: str) -> None:
    """The file of a key, whole at once, unless somebody has made it meanwhile. Raises OSError."""
    beside = f"{path}.{token_bytes(8).hex()}"
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "w") as opened:
            opened.write(f"{text}\n")
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(beside, path)
        except FileExistsError:
            return
        _synced(os.path.dirname(path) or ".")
    finally:
        os.unlink(beside)


def _synced(folder: str) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


OF_PROCESS: Final = Minting()
"""For hosts that bring no key: what they keep under a client's id is lost to it when the process ends."""

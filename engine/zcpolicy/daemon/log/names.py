"""Whether a name says that its value is a secret: `password`, `X-Api-Key`, `githubToken`, `AWS_SECRET_ACCESS_KEY`.

In: a key of an object, a word of a command, in any spelling. Out: yes or no.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

MAX_SECRET_NAME: Final = 200
"""Characters of a name that is looked at; a longer one is taken for text."""

STEMS: Final = (
    "password", "passwd", "passphrase", "passcode", "secret", "credential", "apikey", "accesskey", "privatekey", "signingkey",
    "encryptionkey", "masterkey", "accountkey", "sharedkey", "authkey", "servicekey", "storagekey", "deploykey", "sessionkey",
    "sshkey", "authorization", "cookie", "bearer", "connectionstring",
)  # fmt: skip
"""A name has one of these in it, whatever its capitals and separators."""
WORDS: Final = frozenset({
    "token", "tokens", "pass", "pwd", "pw", "auth", "otp", "totp", "pin", "cvv", "cvc", "ssn", "jwt", "creds", "mnemonic",
})  # fmt: skip
"""A name has one of these as a word of its own, told apart by separators and capitals."""
_ABOUT: Final = frozenset(
    {"file", "path", "stdin", "type", "url", "uri", "endpoint", "expires", "expiry", "ttl", "policy", "length", "name"}
)
"""A name that ends in one of these words tells something about a secret, and is none."""
_DIRECTORIES: Final = frozenset({"PWD", "OLDPWD"})
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OTHER: Final = re.compile(r"[^a-z0-9]")


def secret_names(more: Iterable[str] = ()) -> Callable[[str], bool]:
    """The question, for these names and an operator's own, whose spelling matters as little."""
    own = _own(more)

    @lru_cache(4_096)
    def is_secret(name: str) -> bool:
        if name in _DIRECTORIES or len(name) > MAX_SECRET_NAME:
            return False
        whole = _letters(name)
        if any(one in whole for one in own):
            return True
        words = [word.lower() for word in _WORD.findall(name)]
        if words and words[-1] in _ABOUT:
            return False
        return whole.endswith("token") or any(stem in whole for stem in STEMS) or not WORDS.isdisjoint(words)

    return is_secret


def is_count(name: str, value: object) -> bool:
    """Whether it is a number of tokens, as models count them, and no token: `max_tokens`, `tokensUsed`."""
    return "tokens" in name.lower() and isinstance(value, int | float)


def named(more: Iterable[str] = ()) -> str:
    """A regular expression, for letters of any case, of what may be a secret's name; `is_secret` has the last word."""
    parts = ("[ _.\\-]?".join(map(re.escape, one)) for one in (*STEMS, *_own(more)))
    return "|".join((*parts, *sorted(WORDS)))


def _own(more: Iterable[str]) -> list[str]:
    return [letters for one in more if (letters := _letters(one))]


def _letters(name: str) -> str:
    return _OTHER.sub("", name.lower())

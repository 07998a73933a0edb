"""What is put on record of values that may hold secrets: the same values, without them, and not too long.

In: JSON values as events hold them. Out: JSON values fit for a line. What stood for a secret is `[masked SHAPE FINGERPRINT]`: equal
secrets have equal fingerprints within one log, and whoever has not the log's key cannot try guesses.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, Final, cast

from zcpolicy.call import read_json
from zcpolicy.daemon.log.line import number
from zcpolicy.daemon.log.names import is_count, secret_names
from zcpolicy.daemon.log.settings import MASKING, Masking
from zcpolicy.daemon.log.shapes import finder
from zcpolicy.exact import canonical

MAX_TEXT: Final = 2_000
"""Characters of one text on record; a longer one is cut, with its length and a fingerprint of the whole."""
MAX_ITEMS: Final = 500
"""Items of one list or object on record."""
MAX_DEPTH: Final = 60
"""Levels of lists and objects on record."""
MAX_PARSED: Final = 100_000
"""Characters of a text that is looked into as JSON; a longer one is looked at as text."""
MAX_DATA_BYTES: Final = 60_000
"""Bytes of all that an event tells: beyond, texts and lists are cut shorter, and then left out."""

_BEYOND: Final = 4_096  # characters after a cut that are looked at, so that a secret across it is seen
_SHORTER: Final = ((MAX_TEXT, MAX_ITEMS), (200, 30))
_SCHEMES: Final = ("bearer ", "basic ", "digest ", "token ", "negotiate ")
_NAME: Final = 200  # characters of a name
_NAMES_KEPT: Final = 1_024  # they are mostly the same
_PLAIN: Final = 20  # characters of a word that no shape fits
_NAMING: Final = ("name", "key", "header")  # how names end that tell the name of a value, in any spelling
_USERS: Final = ("-u", "--user", "--proxy-user")


class Masker:
    """Masks and cuts for one log. `key`: of its fingerprints."""

    def __init__(self, key: bytes, masking: Masking = MASKING) -> None:
        self._key = key
        self._secret = secret_names(masking.keys)
        self._find = finder(masking.without, masking.keys)
        self.name = lru_cache(_NAMES_KEPT)(self._name)

    def fit(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """An event's data as its line has them."""
        found, whole = dict[str, Any](), ""
        for text, items in _SHORTER:
            found = _Walk(self, text, items).object(data, secret=False, depth=0)
            whole = canonical(found)
            if len(whole.encode()) <= MAX_DATA_BYTES:
                return found
        short = {name: one for name, one in found.items() if not isinstance(one, dict | list) and len(str(one)) <= 100}
        return {**dict(list(short.items())[:30]), "cut": f"{len(whole)} characters, {self.fingerprint(whole)}"}

    def fingerprint(self, text: str) -> str:
        """Tells equal texts, within one log; twelve hexadecimal digits."""
        return hmac.digest(self._key, text.encode(errors="surrogatepass"), "sha256").hex()[:12]

    def is_secret(self, name: str) -> bool:
        """Whether a name says that its value is a secret."""
        return self._secret(name)

    def hidden(self, secret: str, shape: str = "key") -> str:
        """What stands for a secret."""
        lower = secret[:12].lower()
        scheme = next((len(one) for one in _SCHEMES if lower.startswith(one)), 0)
        return f"[masked {shape} {self.fingerprint(secret[scheme:].strip())}]"

    def text(self, text: str, limit: int = MAX_TEXT) -> str:
        """A text without what looks like a secret, cut to `limit` characters."""
        if len(text) < _PLAIN and text.isalpha() and text.isascii():
            return text
        head = text if len(text) <= limit + _BEYOND else text[: limit + _BEYOND]
        raw = head.encode(errors="surrogatepass")
        spans = self._find(raw)
        made, at = "", 0
        for start, end, shape in spans:
            secret = raw[start:end].decode(errors="surrogatepass")
            made += raw[at:start].decode(errors="surrogatepass") + self.hidden(secret.strip("\"'"), shape)
            at = end
        return self.cut(made + raw[at:].decode(errors="surrogatepass") if spans else head, text, limit)

    def _name(self, name: str) -> str:
        """A name of an object, as its value's."""
        return self.text(name, _NAME)

    def cut(self, masked: str, text: str, limit: int) -> str:
        """What is left of a text without its secrets, where `limit` characters are shown."""
        if len(masked) > limit or len(text) > limit + _BEYOND:
            masked = f"{masked[:limit]}… [cut: {len(text)} characters, {self.fingerprint(text)}]"
        return masked if masked.isascii() else masked.encode(errors="backslashreplace").decode()


class _Walk:
    """One pass over a value, with the bounds of this pass."""

    def __init__(self, masker: Masker, text: int, items: int) -> None:
        self._masker, self._text, self._items = masker, text, items

    def value(self, value: Any, *, secret: bool, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._string(value, secret, depth)
        if isinstance(value, int | float | Decimal):
            return self._masker.hidden(str(number(value))) if secret else number(value)
        if depth >= MAX_DEPTH:
            return "[cut: too deep]"
        if isinstance(value, Mapping):
            return self.object(cast("Any", value), secret=secret, depth=depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._list([*value], secret, depth)
        return f"<{type(value).__name__}>"

    def _string(self, text: str, secret: bool, depth: int) -> str:
        if secret:
            return self._masker.hidden(text) if text else ""
        edges = text.lstrip()[:1] + text.rstrip()[-1:]
        if edges in ("{}", "[]", '""') and len(text) <= MAX_PARSED:
            masked = self._inside(text, depth)
            if masked is not None:
                return masked
        return self._masker.text(text, self._text)

    def _inside(self, text: str, depth: int) -> str | None:
        """JSON text without the secrets in it; None where it is none, or none can be told this way."""
        try:
            found = canonical(
                _Walk(self._masker, MAX_PARSED, MAX_PARSED).value(read_json(text), secret=False, depth=depth + 1)
            )
        except (ValueError, RecursionError):
            return None
        return self._masker.cut(found, text, self._text) if "[masked " in found else None

    def object(self, found: Mapping[Any, Any], *, secret: bool, depth: int) -> dict[str, Any]:
        named = any(  # {"name": "Authorization", "value": "…"}, {"ParameterKey": "Password", "ParameterValue": "…"}
            isinstance(one, str)
            and isinstance(name, str)
            and name[-6:].lower().endswith(_NAMING)
            and self._masker.is_secret(one)
            for name, one in islice(found.items(), self._items)
        )
        made: dict[str, Any] = {}
        for name, value in islice(found.items(), self._items):
            told = (
                name
                if isinstance(name, str)
                else str(name)
                if isinstance(name, int | float)
                else f"<{type(name).__name__}>"
            )
            hides = (
                secret
                or (named and told[-5:].lower() == "value")
                or (self._masker.is_secret(told) and not is_count(told, value))
            )
            made[self._masker.name(told) if len(told) <= _NAME else self._masker.text(told, _NAME)] = self.value(
                value, secret=hides, depth=depth + 1
            )
        if len(found) > self._items:
            made["…"] = f"[cut: {len(found) - self._items} more]"
        return made

    def _list(self, found: list[Any], secret: bool, depth: int) -> list[Any]:
        made: list[Any] = []
        for place, value in enumerate(found[: self._items]):
            before = found[place - 1] if place else None
            flag = isinstance(before, str) and self._follows(before, value, place, len(found))
            made.append(self.value(value, secret=secret or flag, depth=depth + 1))
        if len(found) > self._items:
            made.append(f"[cut: {len(found) - self._items} more]")
        return made

    def _follows(self, before: str, value: Any, place: int, size: int) -> bool:
        """Whether a word of a list is a secret by the one before it: an option's, the second of two, a header's in a flat list of them."""
        if before in _USERS and isinstance(value, str):
            return not value.partition(":")[2].isdigit() and value.find(":") >= 0
        headers = size % 2 == 0 and place % 2 == 1 and ("-" in before or before.lower() in ("authorization", "cookie"))
        return (before.startswith("-") or size == 2 or headers) and self._masker.is_secret(before)

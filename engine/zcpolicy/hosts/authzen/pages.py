"""Pages of a search: tokens that say where the next one begins, good for the search that they came from and for no other.

In: a key, a query. Out: `Page`, tokens. Nothing is kept between two requests.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from typing import Any, Final

from zcpolicy.daemon.wire import BadInput, text_in
from zcpolicy.exact import is_object

MAX_RESULTS: Final = 100
"""Results of one page of a search."""
MAX_TOKEN_CHARACTERS: Final = 200
"""Characters of a token of a page."""

_SEAL_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Page:
    """`start`: how many candidates come before it. `limit`: how many results it may have."""

    start: int
    limit: int


@dataclass(frozen=True, slots=True)
class Pages:
    """`key`: what tokens are sealed with; processes that have the same one take each other's."""

    key: bytes

    def asked(self, told: object, query: bytes) -> Page:
        """The page that a request asks for. `told`: its `page`. `query`: of `query_of`. Raises BadInput."""
        if not is_object(told):
            raise BadInput("`page` is no object")
        limit = told.get("limit")
        if limit is not None and (type(limit) is not int or limit < 0):
            raise BadInput("`limit` of `page` is no whole number, or below 0")
        token = text_in(told, "token", "")
        if not token:
            return Page(0, MAX_RESULTS if limit is None else min(limit, MAX_RESULTS))
        page = self._opened(token, query)
        if limit is not None and min(limit, MAX_RESULTS) != page.limit:
            raise BadInput("`limit` of `page` is another one than that of the first page")
        return page

    def token(self, page: Page, query: bytes) -> str:
        """The token of a page."""
        plain = f"{page.start}.{page.limit}".encode()
        return urlsafe_b64encode(self._seal(plain, query) + plain).decode()

    def _opened(self, token: str, query: bytes) -> Page:
        try:
            whole = urlsafe_b64decode(token) if len(token) <= MAX_TOKEN_CHARACTERS else b""
        except ValueError:
            whole = b""
        seal, plain = whole[:_SEAL_BYTES], whole[_SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._seal(plain, query)):
            raise BadInput("`token` of `page` is of another search, or the policy has changed: begin again without it")
        start, _, limit = plain.decode().partition(".")
        return Page(int(start), int(limit))

    def _seal(self, plain: bytes, query: bytes) -> bytes:
        return hmac.digest(self.key, query + plain, "sha256")


def query_of(kind: str, members: Mapping[str, Any], digest: str) -> bytes:
    """What a search asks, its page aside, under which policy: 32 bytes."""
    asked = {name: one for name, one in members.items() if name != "page"}
    return sha256(dumps([kind, digest, asked], sort_keys=True, default=str).encode()).digest()

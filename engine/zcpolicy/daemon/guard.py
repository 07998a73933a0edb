"""What every request passes before an application sees it: whose it is, where it comes from, how large and how slow it is.

In: an ASGI application, the tokens, bounds. Out: an ASGI application that answers without credentials for health alone, and that
is given whole, bounded bodies with `state["holder"]`: who asks, None where nobody needs a token. What is not known to be for
clients is for operators.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from json import dumps
from typing import Any, Final
from urllib.parse import urlsplit

from zcpolicy.daemon.settings import HttpSettings, is_loopback
from zcpolicy.daemon.tokens import Holder, Tokens, TokensError

MAX_HEADERS: Final = 64
"""Headers of one request."""
MAX_REQUEST_TARGET: Final = 8_192
"""Bytes of the path and the query of a request."""

HEALTH: Final = ("/healthz", "/readyz")
"""Answered to everybody: they say yes or no."""
CLIENTS: Final = ("/turn", "/tools")
"""For whoever has a token."""

_WITH_BODY: Final = ("POST", "PUT", "PATCH", "DELETE")

_NOT_KEPT: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Answer(Exception):
    """A request that is answered with this status."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Guard:
    """`settings`: where it listens, and its bounds. `port`: on which it does."""

    application: Application
    tokens: Tokens
    settings: HttpSettings
    port: Callable[[], int]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Everything but a request over HTTP is turned away by not being answered."""
        if scope["type"] != "http":
            return
        try:
            headers = _headers(scope)
            holder = await self._admitted(scope, headers)
            body = await self._body(headers, receive)
            if (body or "content-type" in headers) and scope["method"] in _WITH_BODY and not _is_json(headers):
                raise Answer(415, "the body has to be `application/json`")
        except Answer as answer:
            await _say(send, answer)
            return
        scope["state"] = {**scope.get("state", {}), "holder": holder}
        await self.application(scope, _again(body, receive), self._in_time(send))

    # --- who ---------------------------------------------------------------------------------------------------------

    async def _admitted(self, scope: Scope, headers: Mapping[str, str]) -> Holder | None:
        """Who asks. Raises Answer."""
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > MAX_REQUEST_TARGET:
            raise Answer(414, "the address is too long")
        path = scope["path"]
        is_health = path in HEALTH and scope["method"] in ("GET", "HEAD")
        self._from_here(headers, named=not is_health)
        if is_health and "authorization" not in headers:
            return None  # takes no thread: those may all wait for something
        holder = await asyncio.to_thread(self._holder, headers, needed=not is_health)
        if not is_health and path not in CLIENTS and (holder is None or not holder.is_operator):
            raise Answer(403, "this takes the token of an operator")
        return holder

    def _holder(self, headers: Mapping[str, str], *, needed: bool) -> Holder | None:
        """Raises Answer. A file that cannot be read lets nobody in, and health is told without it."""
        if not self.tokens.needed() and self.settings.is_loopback:
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        try:
            holder = self.tokens.holder_of(token.strip()) if scheme.lower() == "bearer" else None
        except TokensError:
            if needed:
                raise Answer(503, "it cannot be told who this is") from None
            return None
        if holder is None and needed:
            raise Answer(401, "a token of this host is needed", **{"www-authenticate": "Bearer"})
        return holder

    def _from_here(self, headers: Mapping[str, str], *, named: bool) -> None:
        """Browsers must not be sent here by a page of somebody else's. Raises Answer."""
        host = headers.get("host", "")
        if named and self._checks_host() and not self._is_ours(host):
            raise Answer(421, "this host is not known under that name")
        origin = headers.get("origin")
        if origin is not None and not self._same(origin, host):
            raise Answer(403, "requests from other sites are not taken")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Answer(403, "requests from other sites are not taken")

    def _checks_host(self) -> bool:
        """Where a token is needed and no names are set, whatever leads here is a name: pages do not have the token."""
        return self.settings.is_loopback or bool(self.settings.hosts)

    def _is_ours(self, host: str) -> bool:
        name, port = _split(host)
        if name in self.settings.hosts:
            return True
        ours = is_loopback(name) if self.settings.is_loopback else name == self.settings.address
        return ours and port in (None, self.port())

    def _same(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
            named = parts.netloc.lower() == host.lower() and parts.scheme in ("http", "https")
        except ValueError:
            return False
        return named and self._is_ours(host)

    # --- how large, how slow -----------------------------------------------------------------------------------------

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The whole body. Raises Answer."""
        told = headers.get("content-length", "0")
        if not told.isascii() or not told.isdecimal() or len(told) > 12 or int(told) > self.settings.body:
            raise Answer(413, "the request is too large")
        body = bytearray()
        try:
            async with asyncio.timeout(self.settings.seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Answer(400, "the request ended early")
                    body += message.get("body", b"")
                    if len(body) > self.settings.body:
                        raise Answer(413, "the request is too large")
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise Answer(408, "the request takes too long") from None

    def _in_time(self, send: Send) -> Send:
        """What goes out has to be taken in time: a client that does not read is cut off. Nothing of it is kept on the way."""

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_NOT_KEPT]}
            async with asyncio.timeout(self.settings.seconds):
                await send(message)

        return timed


def _again(body: bytes, receive: Receive) -> Receive:
    """The body, once; then what else comes."""
    told = False

    async def given() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given


def _headers(scope: Scope) -> dict[str, str]:
    """By name. Raises Answer for more than there may be, and for one that decides and stands there twice."""
    given: list[tuple[bytes, bytes]] = list(scope["headers"])
    if len(given) > MAX_HEADERS:
        raise Answer(431, "there are too many headers")
    found: dict[str, str] = {}
    for name, value in given:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization", "content-type", "content-length"):
            raise Answer(400, "a header stands there twice")
        found[key] = value.decode("latin-1")
    if "transfer-encoding" in found and "content-length" in found:  # whoever stands in between may go by the other one
        raise Answer(400, "a request has one length")
    return found


def _is_json(headers: Mapping[str, str]) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json"


def _split(host: str) -> tuple[str, int | None]:
    """A name, without brackets, and a port. What is none has no name."""
    try:
        parts = urlsplit(f"//{host.lower()}")
        if parts.netloc != host.lower() or parts.username is not None:
            return "", None
        return (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return "", None


async def _say(send: Send, answer: Answer) -> None:
    body = dumps({"error": str(answer)}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *_NOT_KEPT,
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

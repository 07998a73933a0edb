"""The Authorization API over HTTP, as an application of Starlette.

In: a resolver, bearer tokens, the address. Out: the five endpoints and the metadata. Without a token nothing is told but the metadata;
what is wrong with a request is a status and `{"error"}`; every answer has the `X-Request-ID` that was sent.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from zcpolicy.daemon.settings import is_loopback
from zcpolicy.daemon.wire import MAX_REQUEST_BYTES, BadInput
from zcpolicy.extras import missing
from zcpolicy.faults import described, log_fault
from zcpolicy.hosts.authzen.answers import evaluation, evaluations
from zcpolicy.hosts.authzen.pages import Pages
from zcpolicy.hosts.authzen.questions import request_of
from zcpolicy.hosts.authzen.search import search
from zcpolicy.resolver import Resolver
from zcpolicy.texts import json_text

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError:
    raise missing("the Authorization API", "gateway") from None

MAX_BODY_SECONDS: Final = 10.0
"""Seconds in which the body of a request has to come."""
MAX_REQUEST_ID_CHARACTERS: Final = 1_000
"""Characters of an `X-Request-ID`."""
LEAST_TOKEN_CHARACTERS: Final = 32
"""Characters that a token has at least, so that none is guessed."""

Json = dict[str, Any]
Answer = Callable[[Json, Resolver], Json]
"""Raises BadInput."""

_NOT_KEPT: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_KEPT_AN_HOUR: Final = {"cache-control": "max-age=3600", "x-content-type-options": "nosniff"}


class _Status(Exception):
    """A request that is answered with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def application(resolver: Resolver | Callable[[], Resolver], *, tokens: Collection[str], url: str) -> Starlette:
    """Answers for one policy, and for what is published after it.

    `resolver`: or what gives it; its newest generation decides. `tokens`: of the hosts that may ask, each of at least 32 characters;
    whoever has one may ask anything, and vouches for the facts. `url`: under which they reach it, `https://…`, or `http://` on this
    machine: what the metadata names. Raises ValueError.
    """
    door = _Door(tokens)
    base = _base(url)
    newest = _newest(resolver)
    pages = Pages(door.key)
    answers: dict[str, Answer] = {
        "evaluation": evaluation,
        "evaluations": evaluations,
        **{f"search/{kind}": partial(_searched, kind, pages) for kind in ("subject", "resource", "action")},
    }
    routes = [
        Route(f"/access/v1/{path}", _answered(answer, newest, door), methods=["POST"])
        for path, answer in answers.items()
    ]
    known = Route(f"/.well-known/authzen-configuration{urlsplit(base).path}", _told(_metadata(base)), methods=["GET"])
    return Starlette(routes=[*routes, known], exception_handlers={HTTPException: _plain})


class _Door:
    """Who is let in. `key`: what only they could make, the same in every process with the same tokens."""

    def __init__(self, tokens: Collection[str]) -> None:
        if isinstance(tokens, str) or not tokens:
            raise ValueError("tokens are needed, as a list: without one everybody could ask")
        if not all(one.isascii() and one.isprintable() and " " not in one for one in tokens):
            raise ValueError("a token is of letters, digits and signs, without spaces")
        if min(map(len, tokens)) < LEAST_TOKEN_CHARACTERS:
            raise ValueError(f"a token has at least {LEAST_TOKEN_CHARACTERS} characters")
        self._known = tuple(sorted(sha256(one.encode()).digest() for one in tokens))
        self.key = sha256(b"pages of zcpolicy " + b"".join(self._known)).digest()

    def must_admit(self, request: Request) -> None:
        """Raises _Status. How long it takes tells nothing of the tokens."""
        sent = request.headers.getlist("authorization")
        scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
        digest = sha256(token.strip().encode("utf-8", "surrogatepass")).digest()
        same = [hmac.compare_digest(digest, one) for one in self._known]
        if scheme.lower() != "bearer" or not any(same):
            raise _Status(401, "a token of this decision point is needed")


def _newest(resolver: Resolver | Callable[[], Resolver]) -> Callable[[], Resolver]:
    given: Callable[[], Resolver] = (lambda: resolver) if isinstance(resolver, Resolver) else resolver
    return lambda: given().newest


def _searched(kind: Any, pages: Pages, members: Json, resolver: Resolver) -> Json:
    return search(kind, members, resolver, pages)


# --- requests --------------------------------------------------------------------------------------------------------


def _answered(answer: Answer, newest: Callable[[], Resolver], door: _Door) -> Callable[[Request], Awaitable[Response]]:
    def answer_now(body: bytes) -> Json:
        return answer(request_of(body), newest())

    async def handle(request: Request) -> Response:
        try:
            door.must_admit(request)
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise _Status(400, "the body has to be `application/json`")
            body = await _body(request)
            return _said(request, await asyncio.to_thread(answer_now, body))  # a decision may wait for a ledger
        except _Status as wrong:
            return _wrong(request, wrong.status, str(wrong))
        except BadInput as wrong:
            return _wrong(request, 400, str(wrong))
        except Exception as fault:  # noqa: BLE001 - a fault is told as one, with nothing of its insides; it permits nothing
            log_fault("the Authorization API", described(fault), fault)
            return _wrong(request, 500, "the decision point failed")

    return handle


async def _body(request: Request) -> bytes:
    """Raises _Status where it is longer than may be, or does not come: it is not read to its end then."""
    body = bytearray()
    try:
        async with asyncio.timeout(MAX_BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_REQUEST_BYTES:
                    raise _Status(413, f"a request has at most {MAX_REQUEST_BYTES} bytes")
    except TimeoutError:
        raise _Status(408, "the request takes too long") from None
    except ClientDisconnect:
        raise _Status(400, "the request ended early") from None
    return bytes(body)


# --- answers ---------------------------------------------------------------------------------------------------------


def _said(request: Request, body: Json, status: int = 200, headers: Mapping[str, str] = _NOT_KEPT) -> Response:
    """Numbers are written as exactly as they came."""
    sent = request.headers.get("x-request-id")
    echo = {} if sent is None else {"x-request-id": sent}
    if sent is not None and not _is_id(sent):
        echo, body, status = {}, {"error": "the `X-Request-ID` is too long, or holds controls"}, 400
    return Response(json_text(body), status, {**headers, **echo}, "application/json")


def _is_id(sent: str) -> bool:
    return len(sent) <= MAX_REQUEST_ID_CHARACTERS and not any(one < " " or one == "\x7f" for one in sent)


def _wrong(request: Request, status: int, message: str) -> Response:
    more = {"www-authenticate": "Bearer"} if status == 401 else {}
    return _said(request, {"error": message}, status, {**_NOT_KEPT, **more})


async def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _said(request, {"error": error.detail.lower()}, error.status_code, {**_NOT_KEPT, **(error.headers or {})})


# --- metadata --------------------------------------------------------------------------------------------------------


def _base(url: str) -> str:
    """Raises ValueError."""
    parts = urlsplit(url)
    here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not parts.hostname or not (parts.scheme == "https" or here) or parts.username is not None:
        raise ValueError("`url` is `https://…`; on this machine it may be `http://127.0.0.1:…`")
    if parts.query or parts.fragment or "{" in parts.path:
        raise ValueError("`url` has neither a query nor a fragment")
    return url.rstrip("/")


def _metadata(base: str) -> Json:
    return {
        "policy_decision_point": base,
        "access_evaluation_endpoint": f"{base}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{base}/access/v1/evaluations",
        "search_subject_endpoint": f"{base}/access/v1/search/subject",
        "search_resource_endpoint": f"{base}/access/v1/search/resource",
        "search_action_endpoint": f"{base}/access/v1/search/action",
    }


def _told(metadata: Json) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        return _said(request, metadata, headers=_KEPT_AN_HOUR)

    return handle

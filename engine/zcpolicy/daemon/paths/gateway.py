"""HTTP: `POST /turn`, `GET /tools`, `GET /healthz`, as an application of Starlette.

In: requests with a bearer token that the host has issued. Out: JSON. Particular: the token says who it is, and nothing
else of the request does; a session goes on when its client names it, and nobody else can. The listing connects no server
and touches no hardware. Nobody waits at the other end to be asked: what asks is answered by a route, or by whom the host
has put there.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil
from typing import Final

from zcpolicy.daemon.doors import NotNow
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.sessions import Full, Seat
from zcpolicy.daemon.wire import MAX_REQUEST_BYTES, BadInput, flag_in, listed, only, read_object, text_in, told
from zcpolicy.extras import missing
from zcpolicy.facts import Narrowing
from zcpolicy.registry.site import OPEN, Site

try:
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError:
    raise missing("the gateway", "gateway") from None

Handle = Callable[[Request, str], Awaitable[Response]]
Client = Callable[[Request], str]
"""Whose request it is: an id of the host's."""


UNRECORDED: Final = "it cannot be put on record, and is not done"


class _Status(Exception):
    """A request that is answered with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def application(
    host: Host,
    agents: Collection[str],
    tokens: Iterable[str],
    *,
    narrowing: Narrowing | None = None,
    site: Site = OPEN,
) -> Starlette:
    """`agents`: those that clients may talk to. `tokens`: one for each client. `narrowing`, `site`: what is withheld here.

    Raises ValueError for an empty token.
    """
    given = tuple(tokens)
    if not all(map(str.strip, given)):
        raise ValueError("an empty token would let in whoever sends none")
    known = frozenset(map(_digest, given))

    def client(request: Request) -> str:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        digest = _digest(token)
        if scheme.lower() != "bearer" or digest not in known:
            raise _Status(401, "a token of this host is needed")
        return host.sessions.client("gateway", digest)

    async def health(_request: Request) -> Response:
        return JSONResponse({"generation": host.resolver.newest.generation})

    served = routes(host, agents, client, narrowing=narrowing, site=site)
    return Starlette(routes=[*served, Route("/healthz", health, methods=["GET"])])


def routes(
    host: Host, agents: Collection[str], client: Client, *, narrowing: Narrowing | None = None, site: Site = OPEN
) -> list[Route]:
    """`POST /turn` and `GET /tools`, for an application that knows itself whose a request is."""
    gateway = _Gateway(host, frozenset(agents), client, narrowing, site)
    return gateway.routes()


@dataclass(frozen=True, slots=True)
class _Gateway:
    host: Host
    agents: frozenset[str]
    client: Client
    narrowing: Narrowing | None
    site: Site

    def routes(self) -> list[Route]:
        return [
            Route("/turn", self._answered(self._turn), methods=["POST"]),
            Route("/tools", self._answered(self._tools), methods=["GET"]),
        ]

    def _answered(self, handle: Handle) -> Callable[[Request], Awaitable[Response]]:
        """A handler that is given the client, and whose failures are statuses."""

        async def answer(request: Request) -> Response:
            try:
                return await handle(request, self.client(request))
            except _Status as wrong:
                return _said(wrong.status, str(wrong))
            except BadInput as wrong:
                return _said(400, str(wrong))
            except NotNow as wrong:
                return _said(503 if wrong.for_all else 429, str(wrong), wrong.retry_after)
            except TurnRefused as wrong:
                return _said(403, str(wrong))
            except Full as wrong:
                return _said(429, str(wrong))
            except LogError:
                return _said(503, UNRECORDED)
            except ClientDisconnect:
                return _said(400, "the request ended early")
            except Exception:  # noqa: BLE001 - a fault of the host is told as one, with nothing of its insides
                return _said(500, "the host failed")

        return answer

    async def _turn(self, request: Request, client: str) -> Response:
        members = read_object(await _body(request))
        only(members, "agent", "text", "session", "resume")
        resume = flag_in(members, "resume")
        agent, text = text_in(members, "agent"), text_in(members, "text", "" if resume else None)
        session = text_in(members, "session", "")
        self._serves(agent)
        seat = self._named(client, session) if session else self._opened(client)
        try:
            result = await self.host.turn(replace(self._order(agent, text, seat), resume=resume))
        except BaseException:  # a session that its client does not hear of is closed, whatever the reason
            if not session:
                self.host.sessions.close(seat)
            raise
        return JSONResponse({**told(result), "session": seat.session.id})

    async def _tools(self, request: Request, client: str) -> Response:
        agent = request.query_params.get("agent", "")
        self._serves(agent)
        seat = self._opened(client)
        try:
            order = self._order(agent, "", seat)
            found = listed(await self.host.tools(order), self.host.left_out(order))
        finally:
            self.host.sessions.close(seat)
        return JSONResponse(found)

    def _serves(self, agent: str) -> None:
        """Raises TurnRefused, before anything is opened."""
        if agent not in self.agents:
            raise TurnRefused("this agent is not served here")

    def _order(self, agent: str, text: str, seat: Seat) -> Order:
        return Order(
            agent, text, "gateway", seat, narrowing=self.narrowing, site=self.site,
            approvers=self.host.asked_on("gateway"),
        )  # fmt: skip

    def _opened(self, client: str) -> Seat:
        """A new session, in place of the client's oldest where it has as many as it may. Raises Full."""
        self.host.sessions.forget(client)
        return self.host.sessions.open(client, interactive=self.host.asked_on("gateway").person is not None)

    def _named(self, client: str, session: str) -> Seat:
        """The session that the client names. Raises _Status: one that is not there is not begun anew."""
        seat = self.host.sessions.seat(session)
        if seat is None or seat.session.client != client or seat.session.ancestry:
            raise _Status(404, "there is no such session")
        return seat


async def _body(request: Request) -> bytes:
    """Raises _Status where it is longer than may be; it is not read to its end then."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_REQUEST_BYTES:
            raise _Status(413, f"a request has at most {MAX_REQUEST_BYTES} bytes")
    return bytes(body)


def _said(status: int, message: str, retry_after: float | None = None) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if retry_after is not None:
        headers["retry-after"] = str(ceil(retry_after))
    return JSONResponse({"error": message}, status_code=status, headers=headers)


def _digest(token: str) -> str:
    """Tokens are compared by their digest: how long that takes tells nothing of them."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

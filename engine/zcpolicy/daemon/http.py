"""The daemon over HTTP: the gateway's routes for clients, health for everybody, and how it runs for operators.

In: a host, tokens, what operators see. Out: one ASGI application behind a `Guard`. Every route of an operator's is in `operator_routes`, or given
by whoever has more to show; the guard has them take an operator's token because they are none of the clients'.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from zcpolicy.daemon.clients import LOCAL, ids_of, key_of
from zcpolicy.daemon.guard import Guard
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.operating import Operating
from zcpolicy.daemon.paths.gateway import UNRECORDED, routes
from zcpolicy.daemon.settings import HttpSettings
from zcpolicy.daemon.tokens import Holder, Tokens, TokensError
from zcpolicy.daemon.wire import BadInput, only, read_object, text_in
from zcpolicy.extras import missing
from zcpolicy.facts import Narrowing
from zcpolicy.registry.site import OPEN, Site

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError:
    raise missing("the gateway", "gateway") from None

MAX_READY_SECONDS: Final = 5.0
"""Seconds in which it has to be told whether the daemon is ready."""

Json = dict[str, Any]


def application(
    host: Host,
    agents: Collection[str],
    tokens: Tokens,
    settings: HttpSettings,
    shown: Operating,
    port: Callable[[], int],
    *,
    operator_routes: Sequence[Route] = (),
    narrowing: Narrowing | None = None,
    site: Site = OPEN,
) -> Guard:
    """`agents`: those whose surface is the gateway. `port`: on which it is served. `operator_routes`: what others show.
    `narrowing`, `site`: what is withheld from its clients.
    """

    def client(request: Request) -> str:
        holder: Holder | None = request.state.holder
        return host.sessions.client("gateway", LOCAL if holder is None else key_of(holder))

    clients = routes(host, agents, client, narrowing=narrowing, site=site) if agents else []
    operators = _Operators(host, tokens, shown)
    served = Starlette(
        routes=[*_health(shown), *clients, *operators.routes(), *operator_routes],
        exception_handlers={
            HTTPException: _plain,
            BadInput: _bad,
            TokensError: _bad,
            LogError: _unrecorded,
            Exception: _fault,
        },
    )
    return Guard(served, tokens, settings, port)


def _health(shown: Operating) -> list[Route]:
    looking: list[asyncio.Task[list[str]]] = []

    def looked() -> asyncio.Task[list[str]]:
        """One look at a time, for all who ask: without credentials nobody takes more than one thread for as long as a ledger takes."""
        if not looking or looking[0].done():
            looking[:] = [asyncio.create_task(shown.unready())]
        return looking[0]

    async def alive(_request: Request) -> Response:
        return JSONResponse({"alive": True})

    async def ready(request: Request) -> Response:
        holder: Holder | None = request.state.holder
        done, _ = await asyncio.wait((looked(),), timeout=MAX_READY_SECONDS)
        why = [reason for one in done for reason in one.result()] if done else ["it takes too long to tell"]
        told: Json = {"ready": not why}
        if holder is not None and holder.is_operator:
            absent = shown.absent()
            told |= ({"reasons": why} if why else {}) | ({"servers": absent} if absent else {})
        return JSONResponse(told, status_code=503 if why else 200)

    return [Route("/healthz", alive, methods=["GET"]), Route("/readyz", ready, methods=["GET"])]


@dataclass(frozen=True, slots=True)
class _Operators:
    """Routes for those who run the daemon."""

    host: Host
    tokens: Tokens
    shown: Operating

    def routes(self) -> list[Route]:
        return [
            Route("/status", self._status, methods=["GET"]),
            Route("/reload", self._reload, methods=["POST"]),
            Route("/handles", self._handles, methods=["GET"]),
            Route("/tokens", self._listed, methods=["GET"]),
            Route("/tokens", self._added, methods=["POST"]),
            Route("/tokens/{name}", self._revoked, methods=["DELETE"]),
        ]

    async def _status(self, _request: Request) -> Response:
        return JSONResponse(self.shown.status())

    async def _reload(self, request: Request) -> Response:
        if await request.body():
            only(read_object(await request.body()))
        self._note(request, "reload")
        holder: Holder = request.state.holder
        return JSONResponse(await self.shown.reload(holder.name))

    async def _handles(self, request: Request) -> Response:
        asked = dict(request.query_params)
        only(asked, "client", "agent", "channel", "session")
        if "client" in asked:
            asked["client"] = (await self._ids()).get(asked["client"], asked["client"])
        return JSONResponse(await asyncio.to_thread(self.shown.handles.to_json, **asked))

    async def _ids(self) -> dict[str, str]:
        """The ids of clients by name. Raises TokensError."""
        return ids_of(self.shown.kept.minting, await asyncio.to_thread(self.tokens.holders))

    async def _listed(self, _request: Request) -> Response:
        holders = await asyncio.to_thread(self.tokens.holders)
        told = [{**told_holder(one), "client": self.host.sessions.client("gateway", key_of(one))} for one in holders]
        return JSONResponse({"tokens": told})

    async def _added(self, request: Request) -> Response:
        members = read_object(await request.body())
        only(members, "name", "role")
        name, role = text_in(members, "name"), role_in(text_in(members, "role", "client"))
        self._note(request, f"token of {role}", name)
        token = await asyncio.to_thread(self.tokens.add, name, role)
        return JSONResponse({"name": name, "role": role, "token": token}, status_code=201)

    async def _revoked(self, request: Request) -> Response:
        name: str = request.path_params["name"]
        self._note(request, "token revoked", name)
        await asyncio.to_thread(self.tokens.revoke, name)
        return JSONResponse({"revoked": name})

    def _note(self, request: Request, did: str, what: str = "") -> None:
        holder: Holder = request.state.holder  # the guard lets nobody else in here
        self.shown.note(did, what, holder.name)


def role_in(word: str) -> Literal["client", "operator"]:
    """Raises BadInput."""
    if word == "client":
        return "client"
    if word == "operator":
        return "operator"
    raise BadInput("`role` is `client` or `operator`")


def told_holder(holder: Holder) -> Mapping[str, Any]:
    """A holder as operators are told."""
    return {"name": holder.name, "role": holder.role, "made": holder.made, "revoked": holder.revoked}


# --- failures, told with nothing of the insides ----------------------------------------------------------------------


async def _plain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail.lower()}, status_code=error.status_code, headers=error.headers)


async def _bad(_request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)


async def _unrecorded(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": UNRECORDED}, status_code=503)


async def _fault(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "the host failed"}, status_code=500)

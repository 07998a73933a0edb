"""JSON-RPC 2.0 on a Unix socket, one object a line.

In: requests `turn`, `tools`, `approve`, `cancel`. Out: responses; notifications `question`, which that same connection
answers with `approve`. Particular: a connection has a session with each agent; whose it is says the kernel, never the
peer. Nobody else can answer its questions, and when it goes its turn is cancelled. What is malformed is answered with an
error of JSON-RPC.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from json import dumps
from os import chmod, getuid, unlink
from secrets import token_hex
from struct import unpack
from typing import Any, Final, Self

from zcpolicy.approvals.question import Answer, Approve, Question, Reject
from zcpolicy.daemon.clients import user_key
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.sessions import Full, Seat
from zcpolicy.daemon.wire import MAX_REQUEST_BYTES, BadInput, NotJson, flag_in, listed, only, read_object, text_in, told
from zcpolicy.exact import is_object
from zcpolicy.facts import Narrowing
from zcpolicy.registry.site import OPEN, Site

MAX_CONNECTIONS: Final = 100
"""Connections at a time; more are closed at once."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REFUSED: Final = -32000
BUSY: Final = -32001
CANCELLED: Final = -32002


class _Fault(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Rpc:
    """`agents`: those that peers may talk to. `narrowing`, `site`: what this path withholds."""

    host: Host
    agents: Collection[str]
    narrowing: Narrowing | None = None
    site: Site = OPEN
    connections: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def serve(self, path: str) -> "RpcServer":
        """Listens on a new socket that only this user can open. Raises OSError where something is there already.

        The resolver has to protect `path`: a tool that could open it could answer questions in a session of its own.
        """
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(path)
            chmod(path, 0o600)  # nobody can connect before it listens
            server = await asyncio.start_unix_server(self._connected, sock=listening, limit=MAX_REQUEST_BYTES)
        except BaseException:
            listening.close()
            raise
        return RpcServer(self, server, path)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self.connections) < MAX_CONNECTIONS:
                self.connections.add(task)
                await self._serve(reader, writer)
        except (Full, ConnectionError, asyncio.CancelledError):
            pass  # the peer sees that the connection ends
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.connections.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self, self.host.sessions.client("rpc", _peer(writer)), writer)
        try:
            await connection.serve(reader)
        finally:
            for seat in connection.seats.values():
                self.host.sessions.close(seat)


@dataclass(frozen=True, slots=True)
class RpcServer:
    """A socket that is listened on. `async with` closes it."""

    rpc: Rpc
    server: asyncio.Server
    path: str

    async def close(self) -> None:
        """Takes no more connections, and ends those that there are."""
        self.server.close()
        ending = tuple(self.rpc.connections)
        for connection in ending:
            connection.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        with suppress(FileNotFoundError):
            unlink(self.path)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.close()


@dataclass(eq=False, slots=True)
class _Connection:
    """One peer. `seats`: its session with each agent. `running`: its turn, one at a time. `asked`: questions that it has
    not answered yet.
    """

    rpc: Rpc
    client: str
    writer: asyncio.StreamWriter
    seats: dict[str, Seat] = field(default_factory=dict[str, Seat])
    running: asyncio.Task[None] | None = None
    asked: dict[str, asyncio.Future[Answer]] = field(default_factory=dict[str, asyncio.Future[Answer]])

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Answers line by line until the peer goes, or sends a line that is too long."""
        try:
            while line := await self._line(reader):
                if line.strip():
                    await self._take(line)
        finally:
            if self.running is not None:
                self.running.cancel()
                await asyncio.wait([self.running])

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readline()
        except ValueError:
            too_long = f"a line has more than {MAX_REQUEST_BYTES} bytes"
            await self._send(id=None, error={"code": INVALID_REQUEST, "message": too_long})
            return b""

    async def _take(self, line: bytes) -> None:
        """One request: `turn` goes on beside those that follow it, everything else is answered at once."""
        try:
            name, method, params = _request(line)
        except _Fault as fault:
            await self._send(id=None, error={"code": fault.code, "message": str(fault)})
            return
        try:
            found = await self._handler(method)(_members(params), name)
        except Exception as error:  # noqa: BLE001 - whatever it is, the peer is told that it failed
            await self._fail(name, error)
        else:
            if found is not None:
                await self._reply(name, found)

    def _handler(self, method: str) -> Callable[[dict[str, Any], Any], Awaitable[Any]]:
        known = {"turn": self._turn, "tools": self._tools, "approve": self._approve, "cancel": self._cancel}
        if method not in known:
            raise _Fault(METHOD_NOT_FOUND, "there is no such method")
        return known[method]

    # --- the methods ---------------------------------------------------------------------------------------------

    async def _turn(self, params: dict[str, Any], name: Any) -> None:
        only(params, "agent", "text", "resume")
        resume = flag_in(params, "resume")
        order = replace(self._order(params, text_in(params, "text", "" if resume else None)), resume=resume)
        if self.running is not None and not self.running.done():
            raise _Fault(BUSY, "a turn is running")
        self.running = asyncio.create_task(self._work(order, name))

    async def _tools(self, params: dict[str, Any], _name: Any) -> dict[str, Any]:
        only(params, "agent")
        order = self._order(params, "")
        return listed(await self.rpc.host.tools(order), self.rpc.host.left_out(order))

    async def _approve(self, params: dict[str, Any], _name: Any) -> dict[str, Any]:
        only(params, "question", "answer", "scope")
        answer = _answer(params)
        waiting = self.asked.pop(text_in(params, "question"), None)
        if waiting is None or waiting.done():
            raise _Fault(INVALID_PARAMS, "no such question is open here")
        waiting.set_result(answer)
        return {"taken": True}

    async def _cancel(self, params: dict[str, Any], _name: Any) -> dict[str, Any]:
        only(params)
        await asyncio.sleep(0)  # a turn that has not begun would end without a word
        running = self.running is not None and self.running.cancel()
        return {"cancelled": running}

    def _order(self, params: dict[str, Any], text: str) -> Order:
        agent = text_in(params, "agent")
        if agent not in self.rpc.agents:
            raise TurnRefused("this agent is not served here")
        if agent not in self.seats:
            self.seats[agent] = self.rpc.host.sessions.open(self.client, interactive=True)
        return Order(
            agent, text, "rpc", self.seats[agent], narrowing=self.rpc.narrowing, site=self.rpc.site,
            approvers=replace(self.rpc.host.asked_on("rpc"), person=self._ask),
        )  # fmt: skip

    async def _work(self, order: Order, name: Any) -> None:
        """The turn, beside the connection's other requests."""
        try:
            result = await self.rpc.host.turn(order)
        except asyncio.CancelledError:
            await self._fail(name, _Fault(CANCELLED, "the turn was cancelled"))
        except Exception as error:  # noqa: BLE001 - whatever it is, the peer is told that it failed
            await self._fail(name, error)
        else:
            await self._reply(name, told(result))

    async def _ask(self, question: Question) -> Answer:
        """Asks this peer, and waits for its `approve`."""
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        number = token_hex(8)
        self.asked[number] = waiting
        try:
            await self._send(
                method="question",
                params={
                    "question": number,
                    "text": question.text,
                    "scopes": list(question.scopes),
                    "due": question.due,
                },
            )
            return await waiting
        finally:
            self.asked.pop(number, None)

    # --- what goes out -------------------------------------------------------------------------------------------

    async def _reply(self, name: Any, result: Any) -> None:
        if name is not None:
            await self._send(id=name, result=result)

    async def _fail(self, name: Any, error: Exception) -> None:
        if name is not None:
            await self._send(id=name, error=_told(error))

    async def _send(self, **members: Any) -> None:
        with suppress(ConnectionError):
            self.writer.write(f"{dumps({'jsonrpc': '2.0', **members})}\n".encode())
            await self.writer.drain()


def _members(params: Any) -> dict[str, Any]:
    """Parameters by name. Raises BadInput."""
    if not is_object(params):
        raise BadInput("`params` is not an object")
    return params


def _request(line: bytes) -> tuple[Any, str, Any]:
    """Id, method and parameters. A request without an id gets no answer. Raises _Fault."""
    try:
        message = read_object(line)
    except NotJson as bad:
        raise _Fault(PARSE_ERROR, str(bad)) from None
    except BadInput as bad:
        raise _Fault(INVALID_REQUEST, str(bad)) from None
    name, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if message.get("jsonrpc") != "2.0" or type(method) is not str or type(name) not in (str, int, type(None)):
        raise _Fault(INVALID_REQUEST, "the object is no request of JSON-RPC 2.0")
    return name, method, params


def _told(error: Exception) -> dict[str, Any]:
    """An error of JSON-RPC; of what went wrong inside the host it tells nothing."""
    match error:
        case _Fault():
            return {"code": error.code, "message": str(error)}
        case BadInput():
            return {"code": INVALID_PARAMS, "message": str(error)}
        case TurnRefused() | Full():
            return {"code": REFUSED, "message": str(error)}
        case _:
            return {"code": INTERNAL_ERROR, "message": "the host failed"}


def _answer(params: dict[str, Any]) -> Answer:
    """`yes` or `no`, and how far a yes reaches. Raises BadInput."""
    said, scope = text_in(params, "answer"), text_in(params, "scope", "once")
    if said == "no":
        return Reject()
    if said != "yes" or scope not in ("once", "exact", "tool"):
        raise BadInput("`answer` is `yes` or `no`, `scope` is `once`, `exact` or `tool`")
    return Approve("once" if scope == "once" else "exact" if scope == "exact" else "tool")


def _peer(writer: asyncio.StreamWriter) -> str:
    """Who is at the other end: the user that the kernel vouches for. Where it does not say, this one: nobody else can open
    the socket.
    """
    user, credentials = getuid(), getattr(socket, "SO_PEERCRED", None)
    if credentials is not None:
        connected: socket.socket = writer.get_extra_info("socket")
        _pid, user, _group = unpack("3i", connected.getsockopt(socket.SOL_SOCKET, credentials, 12))
    return user_key(user)

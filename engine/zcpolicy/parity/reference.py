"""The paths of the reference host, each driven the way its callers do it: with chat messages, over its socket, by HTTP.

In: a `Probe`, a host that has what the probe gives. Out: `PATHS`, on a host by itself; `paths`, on any: `daemon` has them on the
host of a daemon. Nothing here gives a path anything but what the probe has.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from json import dumps, loads
from re import search
from tempfile import TemporaryDirectory
from typing import Any, Final

from zcpolicy.approvals.question import Answer, Approve
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order
from zcpolicy.daemon.paths.channel import Channel
from zcpolicy.daemon.paths.rpc import Rpc
from zcpolicy.daemon.paths.run import later, run_due, run_once
from zcpolicy.daemon.paths.step import Workflow, WorkflowStep, run_workflow
from zcpolicy.daemon.schedule import Schedule
from zcpolicy.daemon.wire import answer_of
from zcpolicy.facts import Narrowing
from zcpolicy.parity.probe import ParityPath, Probe
from zcpolicy.parity.world import FRONT
from zcpolicy.registry.site import Site

HAND_OVER: Final = "hand_over"
"""The tool with which `front` hands its task on: what is taken away from its run must leave it that."""

Message = MutableMapping[str, Any]


def host_of(probe: Probe) -> Host:
    """A reference host that has what the probe gives, and nothing else."""
    return Host(
        probe.resolver, probe.sources, probe.access,
        approvers={"": probe.approvers}, record=probe.record, place=probe.place,
    )  # fmt: skip


@asynccontextmanager
async def by_itself(probe: Probe) -> AsyncGenerator[Host]:
    """The host alone."""
    yield host_of(probe)


async def gateway_by_itself(probe: Probe, host: Host) -> Any:
    """The application of the gateway, for one token."""
    from zcpolicy.daemon.paths.gateway import application

    return application(host, (probe.agent,), ("a token",), narrowing=probe.narrowing, site=_site(probe))


HostOf = Callable[[Probe], AbstractAsyncContextManager[Host]]
"""A host that has what the probe gives, and nothing else."""
Gateway = Callable[[Probe, Host], Awaitable[Any]]
"""What answers over HTTP for a host: an ASGI application that knows `Bearer a token`."""


def _site(probe: Probe) -> Site:
    return Site(**probe.site)


async def channel(probe: Probe, host: Host) -> list[str]:
    """A chat: one sender, who answers questions with further messages."""
    told: list[str] = []
    answers: list[asyncio.Task[None]] = []

    async def answer(sender: str, code: str) -> None:
        yes, scope = _words(await probe.asked())
        await chat.receive(sender, " ".join((yes, code, *scope)))

    async def send(sender: str, text: str) -> None:
        question = search(r"Say `yes (\w+)`", text)
        if question is None:
            told.append(text)
        elif "" in probe.given.replies:
            answers.append(asyncio.create_task(answer(sender, question[1])))

    chat = Channel(host, probe.agent, send, narrowing=probe.narrowing, site=_site(probe))
    for task in probe.tasks:
        await chat.receive("ann", task)
    await asyncio.gather(*answers)
    return told


async def rpc(probe: Probe, host: Host) -> list[str]:
    """A connection to the Unix socket, which answers the questions that come to it."""
    told: list[str] = []
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "rpc")
        served = Rpc(host, (probe.agent,), probe.narrowing, _site(probe))
        async with await served.serve(path):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                for task in probe.tasks:
                    _say(writer, "turn", {"agent": probe.agent, "text": task}, "turn")
                    told.append(await _answered(probe, reader, writer))
            finally:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
    return told


async def _answered(probe: Probe, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """What the turn came to, questions answered on the way."""
    while True:
        message = loads(await reader.readline())
        if message.get("method") == "question" and "" in probe.given.replies:
            yes, scope = _words(await probe.asked())
            answer = {
                "question": message["params"]["question"],
                "answer": yes,
                **({"scope": scope[0]} if scope else {}),
            }
            _say(writer, "approve", answer, "approve")
        elif message.get("id") == "turn":
            return str(message["result"]["text"])


def _say(writer: asyncio.StreamWriter, method: str, params: Mapping[str, Any], name: str) -> None:
    writer.write(f"{dumps({'jsonrpc': '2.0', 'id': name, 'method': method, 'params': params})}\n".encode())


def _words(answer: Answer) -> tuple[str, tuple[str, ...]]:
    """An answer as people write it: yes or no, and the scope of a yes that reaches beyond this call."""
    if isinstance(answer, Approve):
        return "yes", () if answer.scope == "once" else (answer.scope,)
    return "no", ()


async def gateway(probe: Probe, host: Host, application: Gateway) -> list[str]:
    """Requests to the HTTP application, in the session that the first was answered with."""
    served = await application(probe, host)
    told: list[str] = []
    session: dict[str, str] = {}
    for task in probe.tasks:
        answer = await _post(served, {"agent": probe.agent, "text": task, **session})
        session = {"session": answer["session"]}
        told.append(answer["text"])
    return told


async def _post(application: Any, members: Mapping[str, str]) -> dict[str, Any]:
    """`POST /turn`, as a server hands it to an ASGI application."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/turn",
        "raw_path": b"/turn", "query_string": b"", "root_path": "", "scheme": "http",
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer a token"), (b"content-type", b"application/json")],
    }  # fmt: skip
    sent: list[Message] = []
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()  # the client stays until it is answered
        asked = True
        return {"type": "http.request", "body": dumps(members).encode(), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await application(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    if sent[0]["status"] != 200:
        raise RuntimeError(f"the gateway answered {sent[0]['status']}: {body.decode()}")
    found: dict[str, Any] = loads(body)
    return found


async def run(probe: Probe, host: Host) -> list[str]:
    """One run after the other, which nobody attends."""
    return [
        (await run_once(host, probe.agent, task, narrowing=probe.narrowing, site=_site(probe))).text
        for task in probe.tasks
    ]


async def scheduled(probe: Probe, host: Host) -> list[str]:
    """Jobs that a call of `front` leaves behind, which run when its session is over and nobody attends."""
    told: list[str] = []
    with TemporaryDirectory() as folder:
        schedule = Schedule(os.path.join(folder, "jobs"))
        probe.hands_over_later(lambda ticket, task: later(host, schedule, ticket, task, 0.0))
        for task in probe.tasks:
            order = _of_front(host, probe)
            result = await host.turn(replace(order, text=task))
            host.sessions.close(order.seat)
            due = await run_due(host, schedule, 1.0)
            told += [answer_of(one.result) if one.result is not None else one.refused for one in due] or [
                answer_of(result)
            ]
    return told


async def delegate(probe: Probe, host: Host) -> list[str]:
    """`front` hands each task to the agent, bounded by itself."""
    order = _of_front(host, probe)
    return [(await host.turn(replace(order, text=task))).text for task in probe.tasks]


async def independent(probe: Probe, host: Host) -> list[str]:
    """`front` hands each task to the agent, which is free of what bounds `front`."""
    probe.hands_over_freely()
    return await delegate(probe, host)


async def step(probe: Probe, host: Host) -> list[str]:
    """A workflow of `front`, each of whose steps names the agent."""
    order = _of_front(host, probe)
    told: list[str] = []
    for task in probe.tasks:
        steps = await run_workflow(host, Workflow(FRONT, (WorkflowStep(task, probe.agent),)), order)
        told.append(steps[-1].text)
    return told


def _of_front(host: Host, probe: Probe) -> Order:
    """A turn of the delegator, on the terms of the probe; it may hand over, whatever else is taken away from it."""
    seat = host.sessions.open(host.sessions.client("front", "ann"), interactive=True)
    site = _site(probe)
    if site.caller_allowed is not None:
        site = replace(site, caller_allowed=site.caller_allowed | {HAND_OVER})
    narrowing = probe.narrowing
    if narrowing is not None and narrowing.only is not None:
        narrowing = Narrowing(
            only=(*narrowing.only, HAND_OVER), deny=narrowing.deny, ask=narrowing.ask, autonomy=narrowing.autonomy,
            limits=narrowing.limits, exclude_memory=narrowing.exclude_memory,
        )  # fmt: skip
    return Order(FRONT, "", FRONT, seat, narrowing=narrowing, site=site, approvers=host.asked_on(FRONT))


def paths(host_of: HostOf, application: Gateway) -> tuple[ParityPath, ...]:
    """All of them, each on a host of its own."""

    def on(drive: Callable[[Probe, Host], Awaitable[list[str]]]) -> Callable[[Probe], Awaitable[list[str]]]:
        async def driven(probe: Probe) -> list[str]:
            async with host_of(probe) as host:
                return await drive(probe, host)

        return driven

    async def over_http(probe: Probe, host: Host) -> list[str]:
        return await gateway(probe, host, application)

    return (
        ParityPath("channel", on(channel)),
        ParityPath("rpc", on(rpc)),
        ParityPath("gateway", on(over_http)),
        ParityPath("run", on(run), attended=False, session="each"),
        ParityPath("scheduled", on(scheduled), attended=False, session="each"),
        ParityPath("delegate", on(delegate), session="below one"),
        ParityPath("independent", on(independent), session="below one"),
        ParityPath("step", on(step), session="below one"),
    )


PATHS: Final = paths(by_itself, gateway_by_itself)

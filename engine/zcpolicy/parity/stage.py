"""The outside of a probe: tools, servers, models and approvers that do what a script says, and record that they did.

In: a `Seen` to record in, scripts, replies. Out: `Stage`: `ToolSources`, models, `Approvers`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from decimal import Decimal
from json import dumps
from typing import TYPE_CHECKING, Any, Final

from zcpolicy.approvals.question import Answer, Approver, Approvers, Question
from zcpolicy.authority import executions_of
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.messages import ModelRequest, ModelResponse, ToolCall, Usage
from zcpolicy.parity.fields import resolved
from zcpolicy.parity.seen import Seen
from zcpolicy.parity.tools import sources
from zcpolicy.parity.world import AGENT, DONE, FRONT, TASK
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.wire import wire_name
from zcpolicy.resolver import Resolver
from zcpolicy.tickets import Ticket

if TYPE_CHECKING:
    from zcpolicy.parity.probe import Reply, Turn

TOKENS: Final = Usage(5_000, 5_000)
"""What one response of a scripted model uses."""
MAX_OUTPUT: Final = 100
"""Tokens of one response, as the host says: what is reserved for each request where tokens or money are limited."""
REQUEST_PRICE: Final = {"usd": Decimal("0.10")}
"""What one request costs, however long it is."""


class FixedPrices:
    """Every request costs the same."""

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal]:
        return REQUEST_PRICE


class Stage:
    """All that a host would own. Made by `Probe`."""

    def __init__(
        self,
        seen: Seen,
        resolver: Resolver,
        scripts: "Mapping[str, Sequence[Turn]]",
        replies: "Mapping[str, Reply]",
        agent: str,
    ) -> None:
        self._seen = seen
        self._resolver = resolver
        self._scripts = scripts
        self._replies = replies
        self._agent = agent
        self.free = False
        self.later: Callable[[Ticket, str], object] | None = None
        self.sources = sources(seen, self._acting, lambda: self.later)
        self.approvers = Approvers(
            self._approver("") if "" in replies else None,
            {route: self._approver(route) for route in replies if route},
        )

    async def asked(self, route: str) -> Answer:
        """Records that a route was asked, and answers as it was told to. LookupError for one that is not there."""
        reply = self._replies[route]
        self._seen.asked.append(route or "person")
        await asyncio.sleep(reply.seconds)
        return reply.answer

    def _approver(self, route: str) -> Approver:
        async def answer(_question: Question) -> Answer:
            return await self.asked(route)

        return answer

    def access(self, agent: str) -> ResolvedModelAccess:
        """The model of an agent. LookupError for one that has no script."""
        if agent == FRONT:
            model = _Scripted(agent, self._front, lambda _request: None)
        elif agent == self._agent:
            model = _Scripted(agent, _steps(self._scripts[AGENT]), self._request)
        else:
            model = _Scripted(agent, _steps(self._scripts[agent]), lambda _request: None)
        return ResolvedModelAccess(model, FixedPrices(), MAX_OUTPUT)

    def _front(self, task: str, number: int) -> "Calls | None":
        """The delegator hands over what it was told, once, and repeats the answer."""
        return None if number else [("hand_over", {"to": self._agent, "task": task, "free": self.free})]

    def _acting(self) -> str:
        """Whose tools are put together: the agent of the newest execution."""
        made = executions_of(self._resolver)
        return made[-1].agent if made else ""

    def _request(self, request: ModelRequest) -> None:
        """A request of the probed agent: with it goes what its loop has got."""
        self._seen.requests.append(request)
        for run in reversed(executions_of(self._resolver)):
            if run.agent == self._agent:
                try:
                    self._seen.fields = resolved(run)
                except ResolveError:  # one that has no registry is not at work
                    continue
                return


Calls = Sequence[tuple[Any, Mapping[str, Any]]]


def _steps(turns: "Sequence[Turn]") -> Callable[[str, int], Calls | None]:
    def wanted(task: str, number: int) -> Calls | None:
        turn = turns[min(_number(task), len(turns)) - 1]
        return [(call.tool, call.arguments) for call in turn[number]] if number < len(turn) else None

    return wanted


def _number(task: str) -> int:
    return int(task.rsplit(" ", 1)[-1]) if task else 1


class _Scripted:
    """A model that follows a script by turns. It knows its turn by the text of its task."""

    def __init__(
        self,
        name: str,
        wanted: Callable[[str, int], Calls | None],
        heard: Callable[[ModelRequest], None],
    ) -> None:
        self.name = name
        self._wanted = wanted
        self._heard = heard
        self._task = ""
        self._step = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        self._heard(request)
        self._keep_up(request)
        wanted = self._wanted(self._task, self._step)
        self._step += 1
        if wanted is None:
            last = request.messages[-1].text if self.name == FRONT else DONE
            yield last
            yield ModelResponse(last, (), TOKENS)
            return
        wires = {spec.name: spec.wire for spec in request.tools}
        calls = tuple(
            ToolCall(f"call-{self._step}-{place}", wires.get(tool, wire_name(tool)), dumps(arguments))
            for place, (tool, arguments) in enumerate(wanted, 1)
        )
        yield ModelResponse("", calls, TOKENS)

    def _keep_up(self, request: ModelRequest) -> None:
        """A new turn begins where the newest task is another."""
        tasks = [message.text for message in request.messages if message.role == "user" and TASK in message.text]
        newest = tasks[-1][tasks[-1].index(TASK) :].splitlines()[0].strip() if tasks else self._task
        if newest != self._task:
            self._task, self._step = newest, 0

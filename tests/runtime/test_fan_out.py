"""Fan-out, scenario 17: many children, at once, on each ledger, by the reference host's own way to delegate."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from policy_lang import loads
from zcpolicy import Resolver, Session
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.paths.run import run_once
from zcpolicy.events import Event
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.messages import ModelRequest, ModelResponse, Usage
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.registry.sources import HostTool, ToolContext, ToolResult, ToolSources

POLICY = """zcpolicy 1
tool hand_over(agent: string, task: string) risk low
tool look(at: string) risk read

agent root {
    allow any
    delegate to %(to)s
    delegate depth 2
    limit 10.00 usd
    limit 12 calls to look
    runtime { parallel_tools on }
}
agent child { allow look; limit 4.00 usd; delegate to grandchild; allow hand_over }
agent grandchild { allow look }
"""
TASK = ("hand_over", {"agent": "child", "task": "as much as you can"})


class Greedy:
    """A model that goes on as long as it is let. Each request costs 0.70 usd; 1.00 is reserved for it."""

    name = "child"

    async def stream(self, _request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        await asyncio.sleep(0)
        yield ModelResponse("", calls(("look", {"at": "x"})).calls, Usage(1, 7))


class Price:
    """In tenths of a usd for each token that comes out."""

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> dict[str, Decimal]:
        return {"usd": Decimal(output_tokens) / 10 if model == "child" else Decimal()}


@pytest.mark.parametrize("to", ["child", 'child independent because "it is trusted"'])
@pytest.mark.parametrize("many", [5, 9])
def test_17_children_at_once_never_spend_more_than_their_root(to: str, many: int, ledger: Ledger) -> None:
    """Fan-out: five bounded children under a root of 10.00 usd never spend more than 10.00 together."""
    looked: list[str] = []
    events: list[Event] = []

    async def look(_arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        looked.append(context.identity.session)
        return ToolResult("seen")

    async def hand_over(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await context.delegate(arguments["agent"], arguments["task"])

    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    models = {
        "root": ResolvedModelAccess(ScriptedModel(calls(*[TASK] * many), "done", name="root"), Price(), 10),
        "child": ResolvedModelAccess(Greedy(), Price(), 10),
    }
    policy = POLICY % {"to": to}
    host = Host(
        Resolver(loads(policy.replace("12 calls", "1_000 calls")), ledger=ledger),
        ToolSources((HostTool("look", "", nothing, look), HostTool("hand_over", "", nothing, hand_over))),
        models,
        record=events.append,
        place=_place,
    )
    result = asyncio.run(run_once(host, "root", "have it done"))
    assert (result.status, result.text) == ("done", "done")
    spent = [one for one in ledger.entries() if one.charge.currency == "usd" and one.state != "released"]
    total = sum(Decimal(one.charge.amount) for one in spent)
    by_child: dict[str, Decimal] = {}
    for one in spent:
        by_child[one.spender.line[0].session] = by_child.get(one.spender.line[0].session, Decimal()) + one.charge.amount
    assert Decimal("9.00") < total <= Decimal("10.00")  # no more, and as much as there is room for
    assert len([one for one in by_child.values() if one]) == min(many, len(set(looked)))
    assert max(by_child.values()) <= Decimal("4.00")  # each has a limit of its own besides
    assert {one.state for one in spent} == {"settled"}


def test_17_calls_too(ledger: Ledger) -> None:
    """Fan-out: five bounded children under a root of 10.00 usd never spend more than 10.00 together."""
    looked: list[str] = []

    async def look(_arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        looked.append(context.identity.session)
        return ToolResult("seen")

    async def hand_over(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await context.delegate(arguments["agent"], arguments["task"])

    def model(agent: str) -> ResolvedModelAccess:
        if agent == "root":
            return ResolvedModelAccess(ScriptedModel(calls(*[TASK] * 5), "done", name="root"), Price(), 10)
        return ResolvedModelAccess(ScriptedModel(calls(*[("look", {"at": "x"})] * 4), "done", name="free"), Price(), 10)

    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    host = Host(
        Resolver(loads(POLICY % {"to": "child"}), ledger=ledger),
        ToolSources((HostTool("look", "", nothing, look), HostTool("hand_over", "", nothing, hand_over))),
        model,
        place=_place,
    )
    asyncio.run(run_once(host, "root", "have it done"))
    assert len(looked) == 12


def _place(session: Session) -> None:
    session.cwd = "/w"

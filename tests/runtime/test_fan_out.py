"""Fan-out, scenario 17: many children at once, on each ledger, by the reference host's own way to delegate."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

from policy_lang import loads
from zcpolicy import Resolver
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.paths.run import run_once
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
    delegate to %s
    %s
    runtime { parallel_tools on }
}
agent child { allow look; limit 4.00 usd }
"""
WAYS = ["child", 'child independent because "it is trusted"']
TASK = ("hand_over", {"agent": "child", "task": "as much as you can"})
LOOK = ("look", {"at": "x"})


class Greedy:
    """A model that goes on as long as it is let. Each request costs 0.70 usd; 1.00 is reserved for it."""

    name = "child"

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        await asyncio.sleep(0)
        yield ModelResponse("", calls(LOOK).calls, Usage(len(request.messages), 7))


class Price:
    """A tenth of a usd for each token that comes out of a child's model."""

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal]:
        price = Decimal("0.1") if model == "child" else Decimal()
        return {"usd": price * output_tokens + 0 * input_tokens}


def fan_out(many: int, policy: str, child: Any, ledger: Ledger) -> list[str]:
    """`root` hands a task to as many children at once; the sessions that looked, once for each look."""
    looked: list[str] = []

    async def look(_arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        looked.append(context.identity.session)
        return ToolResult("seen")

    async def hand_over(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await context.delegate(arguments["agent"], arguments["task"], independent="independent" in policy)

    def model(agent: str) -> ResolvedModelAccess:
        root = ScriptedModel(calls(*[TASK] * many), "done", name="root")
        return ResolvedModelAccess(root if agent == "root" else child(), Price(), 10)

    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    tools = (HostTool("look", "Looks.", nothing, look), HostTool("hand_over", "Hands over.", nothing, hand_over))
    host = Host(Resolver(loads(policy), ledger=ledger), ToolSources(tools), model)
    result = asyncio.run(run_once(host, "root", "have it done"))
    assert (result.status, result.text) == ("done", "done")
    return looked


@pytest.mark.parametrize("to", WAYS)
@pytest.mark.parametrize("many", [5, 9])
def test_17_children_at_once_never_spend_more_than_their_root(to: str, many: int, ledger: Ledger) -> None:
    """Fan-out: five bounded children under a root of 10.00 usd never spend more than 10.00 together."""
    looked = fan_out(many, POLICY % (to, "limit 10.00 usd"), Greedy, ledger)
    spent = [one for one in ledger.entries() if one.charge.currency == "usd" and one.state != "released"]
    by_session: Counter[str] = Counter()
    for one in spent:
        by_session[one.spender.line[0].session] += one.charge.amount  # type: ignore[assignment]  # a Decimal
    total = sum(by_session.values())
    assert Decimal("7.00") < total <= Decimal("10.00")  # no more, and about as much as there is room for
    assert len(set(looked)) > 2  # it was not one of them alone
    assert max(by_session.values()) <= Decimal("4.00")  # and none more than its own limit
    assert {one.state for one in spent} == {"settled"}


@pytest.mark.parametrize("to", WAYS)
def test_17_nor_do_they_make_more_calls(to: str, ledger: Ledger) -> None:
    """Fan-out: five bounded children under a root of 10.00 usd never spend more than 10.00 together."""

    def child() -> ScriptedModel:
        return ScriptedModel(calls(*[LOOK] * 4), "done", name="free")

    assert len(fan_out(5, POLICY % (to, "limit 12 calls to look"), child, ledger)) == 12

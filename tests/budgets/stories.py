"""Policies, clocks and models for the tests of budgets."""

from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import Any

from policy_lang import loads
from tests.clock import Clock
from zcpolicy import Narrowing, ResolvedAgentExecution, Resolver, Session
from zcpolicy.combine import Verdict
from zcpolicy.ledgers.contract import Ledger, Reserved
from zcpolicy.loop.access import Prices, ResolvedModelAccess
from zcpolicy.loop.messages import ModelRequest, ModelResponse

TOOLS = """zcpolicy 1
tool ping() risk read
tool pong() risk read
tool pay(amount: number, to?: list<string>) risk low
"""


class Story:
    """A policy in force, on one ledger and one clock."""

    def __init__(self, text: str, *, ledger: Ledger | None = None, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.resolver = Resolver(loads(TOOLS + text), ledger=ledger)

    def run(
        self,
        agent: str = "a",
        *,
        parent: ResolvedAgentExecution | None = None,
        narrowing: Narrowing | None = None,
        **facts: Any,
    ) -> ResolvedAgentExecution:
        """An execution in a session of its own."""
        session = Session(clock=self.clock, **facts)
        return self.resolver.resolve(agent, parent=parent, session=session, narrowing=narrowing)


def agent(*limits: str, name: str = "a", more: str = "") -> str:
    """An agent that may call everything, within these limits."""
    return f"agent {name} {{ allow ping, pong, pay\n autonomy full\n" + "\n".join([*limits, more]) + "\n}\n"


def reserve(
    run: ResolvedAgentExecution,
    key: str,
    tool: str = "ping",
    cost: Mapping[str, object] | None = None,
    **arguments: Any,
) -> str:
    """The reason of the deny, or the state of the reservation."""
    found = run.budgets.reserve(run.decide(tool, arguments), key, {} if cost is None else cost)
    return found.reason if isinstance(found, Verdict) else found.state


def call(
    run: ResolvedAgentExecution, key: str, tool: str = "ping", *, spent: Mapping[str, object] | None = None, **more: Any
) -> str:
    """A call from its reservation to its end: `ran`, or the reason of the deny."""
    said = reserve(run, key, tool, **more)
    if said != "reserved":
        return said
    if not run.budgets.dispatch(key):
        return "lost"
    run.budgets.settle(key, cost=spent)
    return "ran"


def usd(amount: str) -> dict[str, object]:
    return {"usd": Decimal(amount)}


class Silent:
    """A model that is never asked."""

    name = "large"

    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        raise AssertionError(request)


class Fixed:
    """A price list: whatever it is given."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal] | None:
        if isinstance(self.said, Exception):
            raise self.said
        found: Mapping[str, Decimal] | None = self.said
        return found


def access(prices: Prices | None = None, output: int = 100) -> ResolvedModelAccess:
    return ResolvedModelAccess(Silent(), prices, output)


def reserved(found: Reserved | Verdict) -> Reserved:
    assert isinstance(found, Reserved)
    return found

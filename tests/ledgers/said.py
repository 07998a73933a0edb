"""Short words for what the tests charge and ask."""

from __future__ import annotations

from typing import Any

from zcpolicy.ledgers.contract import Charge, Exhausted, Pot, Reserved, Spender, Who
from zcpolicy.shapes import Window

SESSION: Window = {"kind": "session"}
TURN: Window = {"kind": "turn"}
ALICE = Who("alice", "s1", "t1", "coder")
BOB = Who("bob", "s2", "t1", "tester")


def rolling(seconds: int) -> Window:
    return {"kind": "rolling", "seconds": str(seconds)}


def calendar(part: Any, zone: str = "UTC") -> Window:
    return {"kind": "calendar", "calendar": part, "zone": zone}


def spender(
    *line: Who, tool: Any = "shell", skills: tuple[str, ...] = (), chains: tuple[str, ...] = (), **values: str
) -> Spender:
    line = line or (ALICE,)
    return Spender(
        tool,
        line,
        frozenset([*chains, *(who.agent for who in line)]),
        frozenset(skills),
        {(name,): frozenset([value]) for name, value in values.items()},
    )


def pot(limit: Any, unit: str = "calls", *, who: Who = ALICE, **other: Any) -> Pot:
    blank: dict[str, Any] = {
        "currency": "usd" if unit == "money" else "",
        "argument": (),
        "tools": None,
        "owner": "ceiling",
        "window": rolling(60),
        "each": (),
        "value": None,
        "need": 1 if unit in ("calls", "concurrent calls") else 0,
    }
    return Pot(unit=unit, who=who, limit=limit, **{**blank, **other})


CALL = (Charge("calls", 1), Charge("concurrent calls", 1))


def usd(amount: Any) -> Charge:
    return Charge("money", amount, "usd")


def run(ledger: Any, key: str, at: float, *, by: Spender | None = None, charges: Any = CALL) -> None:
    """A call that ran, whatever the limits."""
    assert isinstance(ledger.reserve(key, by or spender(), charges, (), at), Reserved)
    assert ledger.dispatch(key, at)
    ledger.settle(key, (), at)


def got(outcome: Reserved | Exhausted) -> bool:
    return isinstance(outcome, Reserved) and outcome.fresh

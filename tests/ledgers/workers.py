"""What other processes do in the tests, on a store that all of them open: `python -m tests.ledgers.workers WHAT STORE …`."""

from __future__ import annotations

import sys
from typing import Any

from tests.clock import SLOW_SECONDS
from zcpolicy.ledgers.contract import Reserved
from zcpolicy.ledgers.sqlite import SqliteLedger

from .said import CALL, SESSION, got, pot, rolling, spender


def opened(store: str) -> Any:
    """`NAME redis://…`, or the path of a file."""
    name, _, url = store.rpartition(" ")
    if not url.startswith("redis:"):
        return SqliteLedger(store)
    from zcpolicy.ledgers.redis import RedisLedger

    return RedisLedger(url, name=name, timeout=SLOW_SECONDS)


def together() -> None:
    """Waits until all are there."""
    print("ready", flush=True)
    sys.stdin.readline()


def take(ledger: Any, name: str, limit: int) -> None:
    """Runs calls until there is no more room; gives every fourth back, settles the others. Says which ran."""
    pots = (
        pot(limit, window=SESSION),
        pot(limit + 1, window=rolling(3600)),
        pot(8, "concurrent calls", window=SESSION),
    )
    together()
    for n in range(100_000):
        key = f"{name}-{n}"
        outcome = ledger.reserve(key, spender(), CALL, pots, 1000.0)
        if not isinstance(outcome, Reserved):
            assert outcome.spent[2].total <= 8
            if not outcome.spent[0].room:
                break
        elif n % 4 == 3:
            ledger.release(key)
        else:
            assert ledger.dispatch(key, 1000.0)
            ledger.settle(key, (), 1000.0)
            print(key, flush=True)


def write(ledger: Any, name: str) -> None:
    """Writes until it is killed. Says what is done, once it is done."""
    for n in range(1_000_000):
        key = f"{name}-{n}"
        assert got(ledger.reserve(key, spender(), CALL, (pot(10**9, window=SESSION),), 1000.0 + n))
        print("reserved", key, flush=True)
        assert ledger.dispatch(key, 1000.0 + n)
        print("dispatched", key, flush=True)
        ledger.settle(key, (), 1000.0 + n)
        print("settled", key, flush=True)


if __name__ == "__main__":
    what, store, name, *rest = sys.argv[1:]
    if what == "take":
        take(opened(store), name, int(rest[0]))
    else:
        write(opened(store), name)

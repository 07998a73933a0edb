"""The three ledgers beside each other: reserve, dispatch and settle of one call under three limits, in one run.

    python bench/ledgers.py [CALLS]

Starts a Redis server of its own. Prints Markdown; ratios are to the ledger in memory. Rounds are interleaved, medians told.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "engine")]

import redis  # noqa: E402 - below the path, as all that follow

from zcpolicy.ledgers.contract import Charge, LedgerUnavailable, Pot, Spender, Who  # noqa: E402
from zcpolicy.ledgers.memory import MemoryLedger  # noqa: E402
from zcpolicy.ledgers.redis import RedisLedger  # noqa: E402
from zcpolicy.ledgers.sqlite import SqliteLedger  # noqa: E402

ROUNDS = 5
CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
MANY = 10**9
WHO = Who("client", "session", "turn", "coder")
BY = Spender("shell", (WHO,), frozenset({"coder"}), frozenset(), {})
CHARGES = (Charge("calls", 1), Charge("concurrent calls", 1))
POTS = tuple(
    Pot(unit, "", (), frozenset({"shell"}), owner, window, (), WHO, None, MANY, 1)
    for unit, owner, window in (
        ("calls", "agent:coder", {"kind": "rolling", "seconds": "3600"}),
        ("calls", "ceiling", {"kind": "calendar", "calendar": "day", "zone": "Europe/Berlin"}),
        ("concurrent calls", "agent:coder", {"kind": "session"}),
    )
)


def start_redis(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--dir", folder, "--save", "", "--appendonly", "yes"],
        stdout=subprocess.DEVNULL,
    )
    url = f"redis://127.0.0.1:{port}/0"
    while True:
        try:
            RedisLedger(url).now(0.0)
        except LedgerUnavailable:
            time.sleep(0.02)
        else:
            return process, url


def measured(ledger, label, calls):
    """Seconds of each of the three steps together, one by one."""
    took = []
    for n in range(calls):
        began = time.perf_counter()
        key = f"{label}-{n}"
        ledger.reserve(key, BY, CHARGES, POTS, time.time())
        ledger.dispatch(key, time.time())
        ledger.settle(key, (), time.time())
        took.append(time.perf_counter() - began)
    return took


def round_trip(url, calls):
    """Seconds of one bare answer of the same server: what no ledger on it can beat."""
    client, took = redis.Redis.from_url(url), []
    for _ in range(calls):
        began = time.perf_counter()
        client.ping()
        took.append(time.perf_counter() - began)
    return median(took)


def main():
    with tempfile.TemporaryDirectory() as folder:
        process, url = start_redis(folder)
        ledgers = {
            "memory": MemoryLedger(),
            "sqlite": SqliteLedger(f"{folder}/plain.db"),
            "sqlite, synced": SqliteLedger(f"{folder}/synced.db", synced=True),
            "redis": RedisLedger(url),
        }
        found = {name: [] for name in ledgers}
        for number in range(ROUNDS):
            for name, ledger in ledgers.items():
                found[name].append(measured(ledger, number, CALLS))
        bare = round_trip(url, CALLS)
        colds = {"sqlite": lambda: SqliteLedger(f"{folder}/plain.db"), "redis": lambda: RedisLedger(url)}
        cold = {}
        for name, opened in colds.items():
            began = time.perf_counter()
            opened().look(POTS, time.time())
            cold[name] = time.perf_counter() - began
        process.terminate()
        process.wait()
    report(found, bare, cold)


def report(found, bare, cold):
    base = median(median(one) for one in found["memory"])
    print(f"### Ledgers: reserve, dispatch and settle of one call under three limits, {ROUNDS} rounds of {CALLS:,}\n")
    print("| ledger | p50 µs | p99 µs | calls/s | x memory | first look of a process, ms |\n|---|---|---|---|---|---|")
    for name, rounds in found.items():
        p50 = median(median(one) for one in rounds)
        p99 = median(quantiles(one, n=100)[98] for one in rounds)
        rate = median(len(one) / sum(one) for one in rounds)
        first = f"{1e3 * cold[name]:.1f}" if name in cold else ""
        print(f"| {name} | {1e6 * p50:.0f} | {1e6 * p99:.0f} | {rate:,.0f} | {p50 / base:.1f} | {first} |")
    print(
        f"\nOne bare answer of the same Redis server takes {1e6 * bare:.0f} µs; a call needs three. The first look reads all"
    )
    print(f"{ROUNDS * CALLS:,} calls, since all are in its windows; later ones read what is new.")


if __name__ == "__main__":
    main()

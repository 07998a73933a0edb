"""What the gate costs beside a bare decision: microseconds per call and the ratio, in one run.

Each row is one call of one tool under one condition: `decide`; `permit`, which also charges and records; the gate, which
also asks whom it has to, and is async; the gate with a limit to look at. The ledger is the one in memory. Prints Markdown.
"""

import asyncio
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import policy_lang
from zcpolicy import ResolvedAgentExecution, Resolver, Session
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.gate import Admitted, admit

POLICY = """zcpolicy 1
tool look(where: string) risk read
agent a {{ autonomy full; allow look when args.where like "r/*"{more} }}
"""
CALLS, ROUNDS = 1_000, 7
ARGUMENTS = {"where": "r/a"}


def execution(more: str = "") -> ResolvedAgentExecution:
    return Resolver(policy_lang.loads(POLICY.format(more=more))).resolve("a", session=Session())


async def through_the_gate(run: ResolvedAgentExecution, io: ResolvedIo) -> None:
    call = await admit(run, "look", ARGUMENTS, io)
    assert isinstance(call, Admitted)
    async with call:
        await call.start()
        await call.finish(ok=True)


def per_call(once: Callable[[], Any]) -> float:
    """Microseconds, the median of rounds."""

    def round_() -> float:
        began = perf_counter()
        for _ in range(CALLS):
            once()
        return (perf_counter() - began) / CALLS * 1e6

    return median(round_() for _ in range(ROUNDS))


async def gated(more: str) -> float:
    run, io = execution(more), ResolvedIo()

    async def round_() -> float:
        began = perf_counter()
        for _ in range(CALLS):
            await through_the_gate(run, io)
        return (perf_counter() - began) / CALLS * 1e6

    return median([await round_() for _ in range(ROUNDS)])


def main() -> None:
    plain, limited = execution(), execution("; limit 1_000_000 calls per day")
    base = per_call(lambda: plain.decide("look", ARGUMENTS))
    rows = {
        "decide": base,
        "decide and permit": per_call(lambda: plain.permit(plain.decide("look", ARGUMENTS))),
        "decide and permit, under a limit": per_call(lambda: limited.permit(limited.decide("look", ARGUMENTS))),
        "gate": asyncio.run(gated("")),
        "gate, under a limit": asyncio.run(gated("; limit 1_000_000 calls per day")),
    }
    print(f"### The gate beside a bare decision: medians of {ROUNDS} rounds of {CALLS:,} calls\n")
    print("| one call | µs | x decide |\n|---|---|---|")
    for name, micros in rows.items():
        print(f"| {name} | {micros:.1f} | {micros / base:.0f} |")


if __name__ == "__main__":
    main()

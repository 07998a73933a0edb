"""The decision log: one event on record, with and without a sync before the call goes on; what masking costs; verifying.

    python bench/log.py [EVENTS]

Prints Markdown; ratios are to a bare write of the same bytes. Rounds are interleaved, medians told.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "engine")]

from zcpolicy.daemon.log.chain import DecisionLog  # noqa: E402 - below the path, as all that follow
from zcpolicy.daemon.log.settings import SHAPES, Masking  # noqa: E402
from zcpolicy.daemon.log.verify import verify  # noqa: E402
from zcpolicy.events import Event  # noqa: E402
from zcpolicy.identity import Identity  # noqa: E402

ROUNDS = 5
EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
WHO = Identity("coder", "c" * 64, "s" * 32, "t" * 32, "rpc", 0, ())


def event(arguments):
    decision = {
        "effect": "allow", "reason": "allowed", "agent": "coder", "tool": "shell", "client": WHO.client, "session": WHO.session,
        "arguments": arguments, "rules": ["team.zcpolicy:31"], "digest": "ab" * 32,
    }  # fmt: skip
    return Event("call", time.time(), WHO, {"phase": "admitted", "key": "k" * 32, "decision": json.dumps(decision)})


SMALL = event({"command": "git log --oneline -5 engine/zcpolicy/daemon/log/mask.py"})
SECRET = event(
    {
        "command": "curl -H 'Authorization: Bearer abc123def456' https://ann:hunter2@example.org/x",
        "api_key": "sk-abc123",
    }
)
LARGE = event({"path": "notes.md", "text": "All that a person would write of a day, line by line.\n" * 400})


def measured(record, what, events):
    took = []
    for _ in range(events):
        began = time.perf_counter()
        record(what)
        took.append(time.perf_counter() - began)
    return took


def bare(path):
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    return lambda raw: os.write(descriptor, raw)


def main():
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        plain = DecisionLog(f"{folder}/plain")
        unmasked = DecisionLog(f"{folder}/unmasked", masking=Masking(without=frozenset(SHAPES)))
        synced = DecisionLog(f"{folder}/synced", sync="every")
        cases = {
            "a bare write of 700 bytes": (bare(f"{folder}/bare"), b"x" * 700, EVENTS),
            "a small call": (plain, SMALL, EVENTS),
            "a small call, no shapes": (unmasked, SMALL, EVENTS),
            "a call with secrets": (plain, SECRET, EVENTS),
            "a call with a text of 21,600 characters": (plain, LARGE, EVENTS),
            "a small call, synced before it goes on": (synced, SMALL, max(20, EVENTS // 20)),
        }
        found = {name: [] for name in cases}
        for _ in range(ROUNDS):
            for name, (record, what, events) in cases.items():
                found[name].append(measured(record, what, events))
        for log in (plain, unmasked, synced):
            log.close()
        began = time.perf_counter()
        checked = verify(f"{folder}/plain")
        seconds = time.perf_counter() - began
    assert checked.is_sound
    report(found, checked.lines / seconds)


def report(found, rate):
    base = median(median(one) for one in next(iter(found.values())))
    print(f"### The decision log: one event on record, {ROUNDS} rounds of {EVENTS:,}\n")
    print("| what | p50 µs | p99 µs | events/s | x bare write |\n|---|---|---|---|---|")
    for name, rounds in found.items():
        p50 = median(median(one) for one in rounds)
        p99 = median(quantiles(one, n=100)[98] for one in rounds)
        events = median(len(one) / sum(one) for one in rounds)
        print(f"| {name} | {1e6 * p50:.0f} | {1e6 * p99:.0f} | {events:,.0f} | {p50 / base:.1f} |")
    print(f"\n`zcpolicy log verify` reads {rate:,.0f} such lines a second.")


if __name__ == "__main__":
    main()

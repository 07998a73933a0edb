"""Processes that share one file: one place, one call; what was sent counts, whoever dies."""

import os
import subprocess
import sys
from pathlib import Path

from tests.budgets.stories import Story, agent, reserve
from tests.clock import Clock
from zcpolicy.ledgers.contract import LEASE_SECONDS
from zcpolicy.ledgers.sqlite import SqliteLedger

ROOT = Path(__file__).resolve().parents[2]
POLICY = agent("limit 1 calls to ping per hour")

PLAYER = f"""
import sys
from tests.budgets.stories import Story, reserve
from zcpolicy.ledgers.sqlite import SqliteLedger
file, key = sys.argv[1:]
run = Story({POLICY!r}, ledger=SqliteLedger(file)).run()
print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    print(reserve(run, key) if word == "reserve" else run.budgets.dispatch(key), flush=True)
"""


class Player:
    """A process that reserves and dispatches one call when it is told."""

    def __init__(self, file: Path, key: str) -> None:
        path = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
        self.process = subprocess.Popen(
            [sys.executable, "-c", PLAYER, str(file), key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self.heard() == "ready"

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def said(self, word: str) -> str:
        self.tell(word)
        return self.heard()

    def killed(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_of_two_callers_in_two_processes_exactly_one_runs(tmp_path: Path) -> None:
    players = [Player(tmp_path / "ledger.db", key) for key in ("one", "two")]
    for player in players:
        player.tell("reserve")
    assert sorted(player.heard() for player in players) == ["budget", "reserved"]
    for player in players:
        player.killed()


def test_what_was_sent_counts_and_what_was_not_comes_back_whoever_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    story = Story(POLICY, ledger=SqliteLedger(file), clock=Clock())
    before = Player(file, "before")
    assert before.said("reserve") == "reserved"
    before.killed()
    assert reserve(story.run(), "mine") == "budget"
    story.clock.now += LEASE_SECONDS + 1
    assert reserve(story.run(), "mine") == "reserved"
    story.run().budgets.release("mine")
    story.resolver.ledger.close()

    story = Story(POLICY, ledger=SqliteLedger(file), clock=story.clock)  # the store is opened anew
    sent = Player(file, "sent")
    assert [sent.said("reserve"), sent.said("dispatch")] == ["reserved", "True"]
    sent.killed()
    story.clock.now += 10 * LEASE_SECONDS
    assert reserve(story.run(), "mine") == "budget"
    story.resolver.ledger.close()

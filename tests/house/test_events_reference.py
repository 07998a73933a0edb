"""The page on events names every kind, and every part of its data, that turns put on record."""

import asyncio
import re
from pathlib import Path

import policy_lang
from zcpolicy import Event
from zcpolicy.parity.direct import DIRECT
from zcpolicy.parity.probe import Probe
from zcpolicy.parity.settings import SETTINGS

from .python_reference import ENGINE

PAGE = Path(__file__).parents[2] / "docs/reference/events.md"
(LISTED,) = re.findall(r"Kind = Literal\[(.*?)\]", (ENGINE / "zcpolicy/events.py").read_text("utf-8"))
KINDS = set(re.findall(r'"(\w+)"', LISTED))
ROWS = {
    kind: set(re.findall(r"`(\w+)`", data))
    for kind, data in re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
}
SHOWN = (
    "ask", "with approval", "approval route", "delegate to", "delegate none", "skills", "memory read", "memory write",
    "limit iterations", "turn_timeout", "call_timeout", "parallel_tools on", "limit calls", "runs tools", "limit money of tools",
)  # fmt: skip


def seen() -> list[Event]:
    """What turns of all of these settings put on record, with the setting and without."""
    found: list[Event] = []
    for setting in SETTINGS:
        if setting.name in SHOWN:
            for dropped in (False, True):
                probe = setting.probe(policy_lang.loads, dropped=dropped)
                asyncio.run(_driven(probe))
                found += probe.seen.events
    return found


async def _driven(probe: Probe) -> None:
    await DIRECT.drive(probe)


def test_every_kind_has_a_row() -> None:
    assert set(ROWS) == KINDS


def test_what_turns_put_on_record_is_on_the_page() -> None:
    told = seen()
    untold = {(event.kind, name) for event in told for name in event.data if name not in ROWS[event.kind]}
    assert untold == set()
    assert {event.kind for event in told} == KINDS - {"failed"}  # nothing fails in these

"""What a path may do wrong, and what is told of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import policy_lang
from zcpolicy.events import nowhere
from zcpolicy.loop.messages import Message, ModelRequest, ModelResponse
from zcpolicy.parity import drive as driving
from zcpolicy.parity.direct import drive, drive_apart
from zcpolicy.parity.matrix import Cell, matrix
from zcpolicy.parity.probe import Drive, ParityPath, Probe
from zcpolicy.parity.settings import SETTINGS, Setting
from zcpolicy.parity.suite import Checked
from zcpolicy.resolver import Resolver

COMPILED = cache(policy_lang.loads)
NO_TEXTS = "TypeError: a path returns the texts that its caller was told, as a list"
DENY = next(setting for setting in SETTINGS if setting.name == "deny")


def cell(path: Drive) -> Cell:
    """`deny` on a path."""
    return asyncio.run(matrix([ParityPath("path", path)], COMPILED, [DENY])).cells[0]


async def raises(_probe: Probe) -> Sequence[str]:
    raise ValueError("the socket is closed")


async def returns_nothing(probe: Probe) -> Any:
    await drive(probe)


async def returns_a_text(probe: Probe) -> Sequence[str]:
    return "".join(await drive(probe))


async def hangs(_probe: Probe) -> Sequence[str]:
    await asyncio.Event().wait()
    return []


async def does_nothing(probe: Probe) -> Sequence[str]:
    return ["parity done" for _ in probe.tasks]


async def resolves_elsewhere(probe: Probe) -> Sequence[str]:
    """A resolver of the path's own: no generation, ledger or protected file of the host reaches it."""
    probe.resolver = Resolver(probe.resolver.program)
    return await drive(probe)


async def asks_twice(probe: Probe) -> Sequence[str]:
    told = await drive(probe)
    access = probe.access(probe.agent)
    async for piece in access.model.stream(ModelRequest("", (Message("user", "x"),), ())):
        assert isinstance(piece, (str, ModelResponse))
    return told


async def tells_too_little(probe: Probe) -> Sequence[str]:
    await drive(probe)
    return []


SAID: dict[str, tuple[Drive, str]] = {
    "it is not over": (hangs, "it was not at its end after 0 seconds"),
    "it does nothing": (does_nothing, "neither as with it nor as without it"),
    "it resolves elsewhere": (resolves_elsewhere, "otherwise than the seam alone: fields"),
    "it asks the model beside the loop": (asks_twice, "otherwise than the seam alone: requests, fields"),
    "its caller hears nothing": (tells_too_little, "otherwise than the seam alone: done"),
}


@pytest.mark.parametrize("name", SAID)
def test_nothing_that_a_path_does_passes_for_enforced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, note = SAID[name]
    if path is hangs:
        monkeypatch.setattr(driving, "MAX_DRIVE_SECONDS", 0.2)
    found = cell(path)
    assert (found.status, found.note) == ("partly", note)


BROKEN: dict[str, tuple[Drive, str]] = {
    "it raises": (raises, "ValueError: the socket is closed"),
    "it returns nothing": (returns_nothing, NO_TEXTS),
    "it returns one text": (returns_a_text, NO_TEXTS),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_path_that_is_broken_has_crashed(name: str) -> None:
    path, note = BROKEN[name]
    found = cell(path)
    assert (found.status, found.note) == ("crashed", note)
    assert found.crash.startswith("Traceback (most recent call last):")
    assert found.crash.endswith(f"{note}\n")
    with pytest.raises(AssertionError, match="setting `deny` on path `path` crashed: ") as told:
        Checked(found, "enforced").check()
    assert found.crash in str(told.value)


# --- what a host with a loop around each message forgets -------------------------------------------------------------

OVER_TURNS = [setting for setting in SETTINGS if setting.area == "sessions"]


async def begins_anew(probe: Probe) -> Sequence[str]:
    """A new session for every message."""
    return await drive_apart(probe)


@pytest.mark.parametrize("setting", OVER_TURNS, ids=lambda setting: setting.name)
def test_a_session_for_every_message_is_noticed(setting: Setting) -> None:
    fresh = ParityPath("chat", begins_anew)
    found = asyncio.run(matrix([fresh], COMPILED, [setting])).cells[0]
    assert (found.status, found.note) == ("partly", "as if each turn had a session of its own")
    meant = replace(fresh, session="each")
    assert asyncio.run(matrix([meant], COMPILED, [setting])).enforced


async def keeps_no_record(probe: Probe) -> Sequence[str]:
    probe.record = nowhere  # type: ignore[method-assign]  # as a host that does not hand it on
    return await drive(probe)


def test_a_path_that_puts_nothing_on_record_is_noticed_once() -> None:
    settings = [setting for setting in SETTINGS if setting.name in ("deny", "record")]
    cells = asyncio.run(matrix([ParityPath("silent", keeps_no_record)], COMPILED, settings)).cells
    assert {cell.setting: cell.status for cell in cells} == {"deny": "enforced", "record": "not applied"}


def test_the_seam_alone_is_enforced() -> None:
    assert cell(drive) == Cell("path", "deny", "tools", "enforced", DENY.expect, DENY.expect)

"""What crosses between clients is found by running a tool as two of them; a sound tool passes."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.state import leaking, sound
from tests.state.stage import Notes, SessionNotes, SharedNotes, acting, tool
from zcpolicy.registry.sources import ToolContext
from zcpolicy.state.audit import Handles
from zcpolicy.state.contract import Handle
from zcpolicy.state.given import Given
from zcpolicy.state.lifecycle import Factory
from zcpolicy.state.toolset import Unfit
from zcpolicy.state.two_clients import Call, Crossing, crossings

WRITES: list[Call] = [("note", {"text": "{marker}"}), ("notes", {})]
AGENTS = ("one", "two")


def found(
    factory: Factory, calls: Sequence[Any], handle: Callable[[], Handle[Any]] = Notes, **more: Any
) -> tuple[Crossing, ...]:
    return asyncio.run(crossings(factory, lambda: Handles(notes=handle()), acting, calls, agents=AGENTS, **more))


def told(crossed: tuple[Crossing, ...]) -> list[tuple[str, str, str]]:
    return [(one.tool, one.how, one.boundary) for one in crossed]


def test_r04_r14_a_sound_tool_lets_nothing_across() -> None:
    assert found(sound.make, [*WRITES, ("upper", {"text": "a {marker}"})]) == ()


def test_r04_r14_what_one_client_wrote_is_found_where_another_reads_it() -> None:
    crossed = found(leaking.make, WRITES)
    assert ("notes", "read", "client") in told(crossed)
    assert str(crossed[0]).startswith("`notes` tells one client what another wrote: ")


def test_r14_a_quota_that_others_use_up_is_found() -> None:
    assert told(found(leaking.make_quota, [("search", {})])) == [("search", "changed", "client")]


def test_r14_what_others_overwrite_is_found() -> None:
    calls: list[Call] = [("load", {}), ("save", {"text": "{marker}"})]
    assert told(found(leaking.make_slot, calls)) == [("load", "changed", "client")]


def session_notes(given: Given) -> sound.Sound:
    return sound.Sound(given.handle(SessionNotes))


def shared_notes(given: Given) -> sound.Sound:
    return sound.Sound(given.handle(SharedNotes))


def test_sessions_are_kept_apart_where_the_contract_says_so() -> None:
    assert found(session_notes, WRITES, SessionNotes) == ()
    assert told(found(shared_notes, WRITES, SharedNotes)) == [("notes", "read", "client")]


def test_agents_are_kept_apart_where_the_contract_says_so() -> None:
    """A handle whose contract promises more than it does."""

    class Careless(SessionNotes):
        def _view(self, scope: Any) -> Any:
            who = scope.who
            return super()._view(SimpleNamespace(key=(who.client,), who=who))  # type: ignore[arg-type]

    def careless(given: Given) -> sound.Sound:
        return sound.Sound(given.handle(Careless))

    assert told(found(careless, WRITES, Careless)) == [("notes", "read", "agent"), ("notes", "read", "session")]


def test_what_differs_by_itself_is_told_unless_it_is_known() -> None:
    count: list[int] = []

    async def clock(_arguments: dict[str, Any], _context: ToolContext) -> str:
        count.append(1)
        return str(len(count))

    def make(_given: Given) -> Any:
        return SimpleNamespace(tools=lambda: [tool("clock", clock)])

    assert told(found(make, [("clock", {})])) == [("clock", "unsteady", "client")]
    assert found(make, [("clock", {})], unsteady=["clock"]) == ()


def test_what_cannot_register_is_not_tested() -> None:
    async def register(_owned: object) -> None:
        raise OSError("no network")

    def make(_given: Given) -> Any:
        return SimpleNamespace(tools=list[Any], register=register)

    with pytest.raises(Unfit, match="`tested`: OSError: no network"):
        found(make, [])


def test_a_tool_has_its_call_and_no_longer() -> None:
    kept: list[ToolContext] = []

    async def note(_arguments: dict[str, Any], context: ToolContext) -> str:
        kept.append(context)
        context.load_skill("x")
        return ""

    def make(_given: Given) -> Any:
        return SimpleNamespace(tools=lambda: [tool("note", note)])

    assert found(make, [("note", {})]) == ()
    with pytest.raises(Exception, match="the call is over"):
        _ = kept[0].caller

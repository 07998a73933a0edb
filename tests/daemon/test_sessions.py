"""Who is who: ids that the host makes, bounds that nobody gets past, sessions that outlive a process."""

import asyncio
from pathlib import Path

import pytest

from tests.daemon.world import World, turn
from zcpolicy import FactsError, Session
from zcpolicy.daemon import sessions
from zcpolicy.daemon.order import Order, bounds
from zcpolicy.daemon.sessions import MAX_KEPT_ENTRIES, MAX_TRANSCRIPT_MESSAGES, Full, Seat, Sessions, kept
from zcpolicy.facts import Entry, Narrowing, ToolName
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.loop.messages import Message, ToolCall
from zcpolicy.loop.scripted import calls
from zcpolicy.loop.turn import TurnResult, TurnState
from zcpolicy.registry.site import Site


def test_a_key_is_always_the_same_client_and_never_its_name() -> None:
    store = Sessions()
    ann = store.client("channel chat", "ann")
    assert store.client("channel chat", "ann") == ann
    assert (
        len(
            {ann, store.client("channel chat", "Ann"), store.client("channel other", "ann"), store.client("rpc", "ann")}
        )
        == 4
    )
    assert "ann" not in ann


def test_ids_are_the_hosts_own() -> None:
    store = Sessions()
    seats = [store.open("client") for _ in range(3)]
    assert len({seat.session.id for seat in seats}) == 3
    assert {seat.session.client for seat in seats} == {"client"}
    assert all(seat.session.origin == seat.session.id for seat in seats)


def test_one_client_does_not_take_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SEATS_OF_CLIENT", 2)
    monkeypatch.setattr(sessions, "MAX_SEATS", 3)
    store = Sessions()
    first = store.open("ann")
    store.open("ann")
    with pytest.raises(Full):
        store.open("ann")
    store.open("ben")
    with pytest.raises(Full):
        store.open("zoe")
    store.close(first)
    store.close(first)  # once is enough, and does not count twice
    store.open("ann")
    with pytest.raises(Full):
        store.open("ann")


def test_old_conversations_make_room_for_what_turns_start_below_themselves() -> None:
    store = Sessions()
    store.conversations = 3
    seats: list[Seat] = []
    for _ in range(5):
        store.forget("ann")
        seats.append(store.open("ann"))
    assert [store.seat(one.session.id) is one for one in seats] == [False, False, True, True, True]
    seats[2].paused = TurnState("worker", "ann", "session", "turn", "batch", 1, 0.0, ())
    store.forget("ann")
    assert [store.seat(one.session.id) is one for one in seats[2:]] == [True, False, True]  # it waits for an answer


def test_19_a_client_is_the_same_when_the_host_has_started_anew(tmp_path: Path) -> None:
    async def story() -> None:
        for _ in range(3):
            world = World(
                "agent worker { allow shell; limit 1 calls to shell per day for each client }\nagent free { allow any }",
                tmp_path,
                ledger=SqliteLedger(str(tmp_path / "spent")),
            )
            world.script("worker", calls(("shell", {"command": "ls"})), "done")
            await turn("channel", world)
            ran.extend(world.ran)

    ran: list[object] = []
    asyncio.run(story())
    assert ran == [("worker", "shell")]


def test_a_transcript_keeps_what_is_newest() -> None:
    seat = Seat(Session())
    long = tuple(
        Message("user" if number % 2 == 0 else "assistant", str(number))
        for number in range(MAX_TRANSCRIPT_MESSAGES + 10)
    )
    seat.keep(TurnResult("done", "x", "answered", long))
    assert len(seat.messages) == MAX_TRANSCRIPT_MESSAGES
    assert seat.messages[-1] is long[-1]
    assert seat.messages[0].role == "user"


def test_calls_and_their_results_go_together() -> None:
    seat = Seat(Session())
    call = ToolCall("1", "t", "{}")
    group = (Message("user", "x"), Message("assistant", "", (call,)), Message("tool", "y", call_id="1"))
    seat.keep(TurnResult("done", "x", "answered", group * MAX_TRANSCRIPT_MESSAGES))
    assert seat.messages[0].role == "user"
    assert len(seat.messages) % 3 == 0


def test_a_session_is_saved_with_what_bounds_it_and_the_newest_of_its_history() -> None:
    store = Sessions(lambda session: setattr(session, "clock", lambda: 7.0))
    seat = store.open("ann", interactive=True)
    seat.session.mark(["untrusted"])
    for number in range(MAX_KEPT_ENTRIES + 5):
        seat.session.record(Entry("t", {"n": number}))
    saved = kept(seat.session)
    (again,) = Sessions(lambda session: setattr(session, "clock", lambda: 8.0)).restored([saved]).values()
    assert (again.id, again.client, again.labels) == (seat.session.id, "ann", {"untrusted"})
    assert again.history is not None
    assert [one.arguments["n"] for one in again.history] == [*range(5, MAX_KEPT_ENTRIES + 5)]
    assert again.clock() == 8.0
    with pytest.raises(FactsError):
        Sessions().restored([{"id": "x"}])


def test_a_session_that_is_open_is_what_it_is_by_now() -> None:
    store = Sessions()
    seat = store.open("ann")
    saved = kept(seat.session)
    seat.session.mark(["untrusted"])
    assert store.restored([saved]) == {seat.session.id: seat.session}


NARROWED: dict[str, tuple[Narrowing | None, Site, frozenset[ToolName] | None]] = {
    "nothing is taken away": (None, Site(), None),
    "by the site": (None, Site(caller_allowed=frozenset({"a"})), frozenset({"a"})),
    "by the site, all of it": (None, Site(caller_allowed=frozenset()), frozenset()),
    "by the run": (Narrowing(only=["a", "b"]), Site(), frozenset({"a", "b"})),
    "by both": (Narrowing(only=["a", "b"]), Site(caller_allowed=frozenset({"b", "c"})), frozenset({"b"})),
    "by both, nothing in common": (Narrowing(only=["a"]), Site(caller_allowed=frozenset({"c"})), frozenset()),
    "by the run in another way": (Narrowing(deny=["a"]), Site(caller_allowed=frozenset({"a", "b"})), frozenset({"a", "b"})),
}  # fmt: skip


@pytest.mark.parametrize("case", NARROWED)
def test_what_a_site_withholds_only_narrows(case: str) -> None:
    narrowing, site, only = NARROWED[case]
    found = bounds(Order("a", "x", "run", Seat(Session()), narrowing=narrowing, site=site))
    assert (found.only if found is not None else None) == only
    if narrowing is not None and found is not None:
        assert found.deny == narrowing.deny


def test_a_site_without_memory_is_a_run_without_memory() -> None:
    found = bounds(Order("a", "x", "run", Seat(Session()), site=Site(exclude_memory=True)))
    assert found is not None
    assert found.exclude_memory
    assert found.only is None


def test_a_host_fills_in_the_facts_of_its_sessions(tmp_path: Path) -> None:
    world = World("agent worker { allow file_read }\nagent free { allow file_read }", tmp_path)
    assert world.host.sessions.open("client").session.cwd == "/w"

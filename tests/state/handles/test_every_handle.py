"""What holds of every handle: it does what its contract says, word by word."""

import asyncio
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.state.handles.cast import ANN, BEN, KINDS, Call, Kind, Wires, called
from zcpolicy import PermitError
from zcpolicy.state.audit import Handles
from zcpolicy.state.guard import constructed
from zcpolicy.state.handles import shipped
from zcpolicy.state.sources import SOURCES
from zcpolicy.state.versions import SourceVersions

SAME_AGENT = ("ann", "one", "another")
SAME_CLIENT = ("ann", "two", "first")

every = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
SHOWING = {name: kind for name, kind in KINDS.items() if name not in {"parent tools", "credentials"}}
"""Those that show what was put there for somebody."""
REACH = {"client": {ANN, SAME_AGENT, SAME_CLIENT}, "agent": {ANN, SAME_AGENT}, "session": {ANN}}
"""Who sees what is Ann's in her first session with agent one, by the word of the contract."""


def in_loop(work: Callable[[], Any]) -> Any:
    """Hosts fill channels in their event loop."""

    async def story() -> Any:
        return work()

    return asyncio.run(story())


def fill(kind: Kind, handle: Any, whose: tuple[str, str, str], mark: str) -> None:
    if handle.contract.reload == "replaced" and hasattr(handle, "open"):
        in_loop(lambda: kind.fill(handle, whose, mark))
    else:
        kind.fill(handle, whose, mark)


@pytest.mark.parametrize("reader", [ANN, SAME_AGENT, SAME_CLIENT, BEN], ids=" ".join)
@pytest.mark.parametrize("kind", SHOWING.values(), ids=SHOWING)
def test_r14_what_is_one_s_is_seen_by_those_whom_the_contract_names(kind: Kind, reader: tuple[str, str, str]) -> None:
    handle = kind.make(SourceVersions())
    fill(kind, handle, ANN, "m")
    assert bool(kind.seen(handle.scoped(called(*reader)))) is (reader in REACH[handle.contract.isolation])


@every
def test_r08_constructing_one_touches_nothing(kind: Kind) -> None:
    constructed(lambda: kind.make(SourceVersions()))


@every
def test_a_view_is_worth_nothing_once_its_call_is_over(kind: Kind) -> None:
    handle = kind.make(SourceVersions())
    fill(kind, handle, ANN, "m")
    call = Call()
    view = handle.scoped(call.caller)
    call.end()
    for use in kind.uses:
        with pytest.raises(PermitError, match="the call is over"):
            use(view)


@every
def test_clones_and_what_is_lent_show_the_same_state(kind: Kind) -> None:
    handle = kind.make(SourceVersions())
    clone, lent = handle.clone(), handle.lent()
    fill(kind, clone, ANN, "m")
    assert kind.seen(lent.scoped(called())) == kind.seen(handle.scoped(called()))
    assert [one.name for one in handle.held()] == [one.name for one in clone.held()] != []


@every
def test_what_is_its_owner_s_is_refused_where_it_is_lent(kind: Kind) -> None:
    lent = kind.make(SourceVersions()).lent()
    everybodys = {"clone", "contract", "lent", "scoped"}
    owned = [name for name in dir(type(lent)) if not name.startswith("_") and name not in everybodys]
    for name in owned:
        with pytest.raises(PermitError, match="is its owner's: it is lent to a tool"):
            getattr(lent, name)()


@every
def test_r16_an_operator_sees_names_and_whose_they_are_and_no_values(kind: Kind) -> None:
    handle = kind.make(SourceVersions())
    fill(kind, handle, ANN, "m")
    fill(kind, handle, BEN, "secret-of-ben")
    told = Handles(it=handle).to_json(client="ann")["it"]
    assert {entry["client"] for entry in told["entries"]} <= {"ann"}
    everything = Handles(it=handle).to_json()["it"]
    if handle.contract.isolation != "shared":
        assert told["count"] == 1
        assert everything["entries"][0] | {"name": ""} == {
            "name": "", "client": "ann", "agent": "one", "session": "first", "channel": "chat",
        }  # fmt: skip
    if not hasattr(handle, "open"):  # a channel's name is what it was opened as
        kept = [entry["name"] for entry in everything["entries"]]
        assert kept
        assert ("secret-of-ben" in kept) is (type(handle).__name__ == "Credentials")


@every
def test_nothing_of_it_stands_in_a_repr_or_a_pickle(kind: Kind) -> None:
    handle = kind.make(SourceVersions())
    fill(kind, handle, ANN, "mark-of-ann")
    assert repr(handle) == f"<{type(handle).__name__}>"
    assert "mark-of-ann" not in repr(handle.scoped(called()))
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(handle)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["tool channels", "channel map", "canvas", "session cache"])
def test_r12_r13_what_a_contract_depends_on_and_nothing_else_makes_it_invalid(name: str, source: Any) -> None:
    kind, versions = KINDS[name], SourceVersions()
    handle = kind.make(versions)
    fill(kind, handle, ANN, "m")
    view = handle.scoped(called())
    assert kind.seen(view)
    versions.bump(source)
    assert bool(kind.seen(view)) is (source not in handle.contract.depends)
    fill(kind, handle, ANN, "fresh")
    assert [*kind.seen(view)][-1] == "fresh"
    assert (handle.contract.reload == "kept") is (name == "canvas")


@every
def test_whoever_writes_is_not_kept_waiting_by_readers(kind: Kind) -> None:
    handle = kind.make(SourceVersions())
    fill(kind, handle, BEN, "m")
    over = threading.Event()

    def reads() -> None:
        view = handle.scoped(called(*BEN))
        while not over.is_set():
            kind.seen(view)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(reads) for _ in range(4)]
        began = time.monotonic()
        for number in range(3):
            fill(kind, handle, ANN, f"m{number}")
        took = time.monotonic() - began
        over.set()
    assert took < 5
    assert all(reader.exception() is None for reader in readers)


@pytest.mark.parametrize("name", [name for name in KINDS if "rate" not in name and name != "parent tools"])
def test_threads_and_tasks_at_once_see_their_own(name: str) -> None:
    """The rate limiter and the list of tools have tests of their own."""
    kind = KINDS[name]
    handle = kind.make(SourceVersions())

    def one(number: int) -> list[tuple[str, str]]:
        whose = (ANN, BEN)[number % 2]
        view = handle.scoped(called(*whose))
        fill(kind, handle, whose, whose[0])
        return [(whose[0], shown) for _ in range(20) for shown in kind.seen(view)]

    async def story() -> list[list[tuple[str, str]]]:
        return await asyncio.gather(*(asyncio.to_thread(one, number) for number in range(8)))

    shown = {one for found in asyncio.run(story()) for one in found}
    assert {whose for whose, _ in shown} == {"ann", "ben"}
    assert all(text.startswith(whose) for whose, text in shown)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 86_401.0])
def test_what_is_no_time_is_not_waited_for(seconds: float) -> None:
    def view(name: str) -> Any:
        return KINDS[name].make(SourceVersions()).scoped(called())

    def waits() -> Iterator[Callable[[], object]]:
        yield lambda: view("pool").connection("db", seconds)
        yield lambda: view("canvas").subscribe("plan").next_in_thread(seconds)
        yield lambda: asyncio.run(view("canvas").subscribe("plan").next(seconds))
        yield lambda: view("rate limiter").wait_in_thread("r", seconds)

    for wait in waits():
        with pytest.raises(ValueError, match="one waits from 0 to 86,400 seconds"):
            wait()


def test_the_shipped_ones_have_a_name_each() -> None:
    versions = SourceVersions()
    made = constructed(lambda: shipped(versions, sending=("send_via",)))
    assert [name for name, _ in made] == [
        "parent_tools", "channel_map", "canvas", "session_cache", "send_via channels",
    ]  # fmt: skip
    whole = shipped(versions, rates=dict, load=lambda _client, _name: "s", connector=Wires())
    assert {type(handle) for _, handle in whole} == {
        type(kind.make(versions)) for name, kind in KINDS.items() if " by " not in name and name != "tool channels"
    }
    assert {one["contract"]["isolation"] for one in whole.to_json().values()} == {"shared", "session", "client"}

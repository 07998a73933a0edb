"""A session's cache: bounded, never out of date, gone with the session."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.state.handles.cast import ANN, BEN, Call, called, who
from zcpolicy import PermitError
from zcpolicy.state.handles import apart
from zcpolicy.state.handles import session_cache as module
from zcpolicy.state.handles.session_cache import SessionCache
from zcpolicy.state.secret import secret
from zcpolicy.state.sources import SOURCES
from zcpolicy.state.versions import SourceVersions


def test_what_was_found_out_is_not_found_out_again_in_this_session() -> None:
    async def story() -> None:
        made, numbers = SessionCache(SourceVersions()), count(1)

        async def find_out() -> str:
            return f"page {next(numbers)}"

        ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
        assert [await ann.get("p", find_out) for _ in range(3)] == ["page 1"] * 3
        assert await ben.get("p", find_out) == "page 2"
        assert await asyncio.to_thread(ann.get_in_thread, "p", lambda: "another") == "page 1"
        assert made.scoped(called("ann", "one", "another")).find("p") is None

    asyncio.run(story())


@pytest.mark.parametrize("source", SOURCES)
def test_r12_after_any_change_it_is_found_out_again(source: Any) -> None:
    versions = SourceVersions()
    view = SessionCache(versions).scoped(called())
    assert view.get_in_thread("p", lambda: "old") == "old"
    versions.bump(source)
    assert view.find("p") is None
    assert view.get_in_thread("p", lambda: b"new") == b"new"


def test_what_changes_while_it_is_found_out_is_found_out_again_and_what_fails_is_not_kept() -> None:
    async def story() -> None:
        versions = SourceVersions()
        view = SessionCache(versions).scoped(called())
        pages = iter(["old", "new"])

        async def find_out() -> str:
            found = next(pages)
            if found == "old":
                versions.bump("workspace")
            return found

        assert await view.get("p", find_out) == "new"
        with pytest.raises(ZeroDivisionError):
            view.get_in_thread("q", lambda: str(1 // 0))
        assert view.find("q") is None

    asyncio.run(story())


def test_it_is_gone_when_the_session_has_ended() -> None:
    made = SessionCache(SourceVersions())
    ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
    for view in (ann, ben):
        view.get_in_thread("p", lambda: "page")
    made.end(who(*ANN))
    assert (ann.find("p"), ben.find("p")) == (None, "page")
    assert [one.who for one in made.held()] == [who(*BEN)]


def test_the_entries_that_were_not_asked_for_longest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENTRIES", 3)
    monkeypatch.setattr(module, "MAX_ENTRY_SIZE", 10)
    monkeypatch.setattr(module, "MAX_SESSION_SIZE", 20)
    made = SessionCache(SourceVersions())
    ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
    ben.get_in_thread("a", lambda: "ben's")
    for name in "abc":
        ann.get_in_thread(name, name.upper)
    ann.find("a")
    ann.get_in_thread("d", lambda: "d")
    assert {name for name in "abcd" if ann.find(name)} == {"a", "c", "d"}
    assert ann.get_in_thread("e", lambda: "x" * 11) == "x" * 11
    assert ann.find("e") is None
    ann.get_in_thread("f", lambda: b"x" * 10)
    ann.get_in_thread("g", lambda: b"y" * 10)
    assert {name for name in "acdfg" if ann.find(name)} == {"f", "g"}
    assert ben.find("a") == "ben's"


def test_all_sessions_of_a_client_are_bounded_and_those_that_rest_longest_are_emptied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_CLIENT_SIZE", 10)
    made = SessionCache(SourceVersions())
    views = [made.scoped(called("ann", "one", str(number))) for number in range(3)]
    ben = made.scoped(called(*BEN))
    ben.get_in_thread("p", lambda: "y" * 9)
    for view in (views[0], views[1], views[0]):
        view.get_in_thread("p" if view.find("p") is None else "q", lambda: "x" * 3)
    views[2].get_in_thread("p", lambda: "x" * 3)
    assert [view.find("p") for view in views] == ["xxx", None, "xxx"]
    assert ben.find("p") == "y" * 9


def test_where_there_is_no_room_for_another_session_nothing_is_kept_and_nobody_loses_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "MAX_CLIENTS", 1)
    made = SessionCache(SourceVersions())
    ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
    ann.get_in_thread("p", lambda: "page")
    assert ben.get_in_thread("p", lambda: "other") == "other"
    assert (ann.find("p"), ben.find("p")) == ("page", None)


@pytest.mark.parametrize("value", [None, 7, ["list"], secret("s")])
def test_only_what_nobody_can_change_is_kept(value: Any) -> None:
    with pytest.raises(TypeError, match="what is kept is text or bytes"):
        SessionCache(SourceVersions()).scoped(called()).get_in_thread("p", lambda: value)


def test_a_call_that_ends_while_it_finds_out_keeps_nothing() -> None:
    made, call = SessionCache(SourceVersions()), Call()

    def find_out() -> str:
        call.end()
        return "late"

    with pytest.raises(PermitError, match="the call is over"):
        made.scoped(call.caller).get_in_thread("p", find_out)
    assert made.held() == ()


def test_threads_never_see_what_was_found_out_before_a_change() -> None:
    versions = SourceVersions()
    made, now = SessionCache(versions), [0]

    def reads(_number: int) -> None:
        view = made.scoped(called())
        for _ in range(300):
            before = now[0] - 1  # the bump of the newest may be under way
            assert int(view.get_in_thread("p", lambda: str(now[0]))) >= before

    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(reads, number) for number in range(4)]
        for number in range(200):
            now[0] = number
            versions.bump("workspace")
        for one in reading:
            one.result()

"""All shared state is listed by name, and told by client, agent, channel and session."""

import asyncio
import json
from typing import Any

import pytest

from tests.state.stage import Notes, SessionNotes, acting
from zcpolicy.state.audit import HandleError, Handles
from zcpolicy.state.caller import caller_of
from zcpolicy.state.secret import secret


def handles() -> Handles:
    made = Handles(notes=Notes(), drafts=SessionNotes())
    for name, who in (
        ("notes", ("ann", "one", "s1")),
        ("notes", ("ben", "two", "s2")),
        ("drafts", ("ann", "two", "s3")),
    ):
        _, handle = made.find(Notes, name)
        handle.scoped(caller_of(acting(*who))).write(f"{who[0]} writes")
    return made


FILTERS: dict[str, tuple[dict[str, str], list[str]]] = {
    "everything": ({}, ["s1", "s2", "s3"]),
    "a client": ({"client": "ann"}, ["s1", "s3"]),
    "an agent": ({"agent": "two"}, ["s2", "s3"]),
    "a session": ({"session": "s2"}, ["s2"]),
    "a channel": ({"channel": "chat"}, ["s1", "s2", "s3"]),
    "another channel": ({"channel": "rpc"}, []),
    "two things at once": ({"client": "ann", "agent": "two"}, ["s3"]),
}


@pytest.mark.parametrize("case", FILTERS)
def test_r16_an_operator_filters_by_client_agent_channel_and_session(case: str) -> None:
    asked, sessions = FILTERS[case]
    listed = handles().to_json(**asked)
    assert sorted(one["session"] for told in listed.values() for one in told["entries"]) == sessions


def test_every_handle_is_told_with_its_contract() -> None:
    listed = handles().to_json()
    told: dict[str, Any] = listed["drafts"]
    assert told == {
        "type": "SessionNotes",
        "contract": SessionNotes.contract.to_json(),
        "entries": [{"name": "ann writes", "client": "ann", "agent": "two", "session": "s3", "channel": "chat"}],
        "count": 1,
    }
    assert json.loads(json.dumps(listed)) == listed


def test_a_secret_is_listed_without_its_text() -> None:
    made = Handles(notes=Notes())
    made.find(Notes)[1].scoped(caller_of(acting())).write(secret("hunter2"))
    assert "hunter2" not in json.dumps(made.to_json())


def test_r01_what_is_no_handle_is_not_declared() -> None:
    with pytest.raises(
        TypeError, match="`cache` is no handle: shared state stands in a type below `Handle`, with a contract"
    ):
        Handles(cache={})  # type: ignore[arg-type]


def test_a_name_is_given_once() -> None:
    made = Handles(notes=Notes())
    with pytest.raises(TypeError, match="there is a handle `notes` already"):
        made.declare("notes", Notes())
    with pytest.raises(TypeError, match="a handle has a name"):
        made.declare("", Notes())


def test_r11_handles_that_own_something_release_it_once_the_last_first() -> None:
    class Owning(Notes):
        """Notes that hold something of the outside."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        async def shut_down(self) -> None:
            log.append(self.name)
            raise OSError("it is stuck")

    async def story() -> None:
        made = Handles(a=Owning("a"), plain=Notes(), b=Owning("b"))
        wrong = ["handle `b`: OSError: it is stuck", "handle `a`: OSError: it is stuck"]
        assert await asyncio.gather(made.shut_down(1), made.shut_down(1)) == [wrong, wrong]

    log: list[str] = []
    asyncio.run(story())
    assert log == ["b", "a"]


MISSED: dict[str, tuple[type[Notes], str, str]] = {
    "by type": (SessionNotes, "", "the host has no handle of type `SessionNotes`; there is `notes`, `more`"),
    "by name": (Notes, "lost", "the host has no handle `lost` of type `Notes`; there is `notes`, `more`"),
    "two of them": (Notes, "", "the host has more than one handle of type `Notes`; there is `notes`, `more`"),
}


@pytest.mark.parametrize("case", MISSED)
def test_a_handle_that_is_not_there_is_told(case: str) -> None:
    kind, name, said = MISSED[case]
    with pytest.raises(HandleError, match=said):
        Handles(notes=Notes(), more=Notes()).find(kind, name)

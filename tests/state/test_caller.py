"""Who a call is for: nobody makes it up, nobody keeps it; text of a transport is for people."""

import asyncio
import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import World, turn
from tests.state.stage import Notes, NotesView, acting
from zcpolicy import PermitError, SealError
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import HostTool, ToolContext
from zcpolicy.state.caller import Caller, Shown, Who, caller_of, shown, whose

FORGED: dict[str, Callable[[], object]] = {
    "an identity": lambda: acting().identity,
    "an identity that somebody wrote": lambda: acting().identity._replace(client="ben"),
    "ids": lambda: Who("ben", "one", "first", "chat"),
    "the id of a client": lambda: "ben",
    "an execution": acting,
    "a session": lambda: acting().session,
    "text of a transport": lambda: shown("ben"),
    "an empty shell": lambda: object.__new__(Caller),
    "nothing": lambda: None,
}


@pytest.mark.parametrize("case", FORGED)
def test_r06_a_view_is_opened_by_a_caller_and_by_nothing_else(case: str) -> None:
    given: Any = FORGED[case]()
    with pytest.raises(SealError, match=r"is no caller: take `context\.caller` while the call runs"):
        Notes().scoped(given)


UNMADE: dict[str, Callable[[Any], object]] = {
    "made": lambda caller: type(caller)(),
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": pickle.dumps,
    "inherited from": lambda caller: type("Mine", (caller.__class__,), {}),
    "hashed": hash,
    "a key": lambda caller: {caller: 1},
    "made JSON of": json.dumps,
}


@pytest.mark.parametrize("how", UNMADE)
@pytest.mark.parametrize("make", [lambda: caller_of(acting()), lambda: shown("ann")], ids=["caller", "shown"])
def test_r05_nothing_durable_is_made_of_it(make: Callable[[], object], how: str) -> None:
    with pytest.raises(TypeError):
        UNMADE[how](make())


def test_nothing_stands_on_a_caller() -> None:
    run = acting("ann", session="secret session")
    caller = caller_of(run)
    assert repr(caller) == str(caller) == "<Caller>"
    assert caller == caller  # noqa: PLR0124 - equality is what is asked
    assert caller != caller_of(run)
    with pytest.raises(AttributeError):
        setattr(caller, "client", "ben")  # noqa: B010 - what is not there has no name to type-check


def test_the_host_acts_for_a_genuine_execution_only() -> None:
    assert whose(caller_of(acting("ann", "two", "s"))) == Who("ann", "two", "s", "chat")
    with pytest.raises(SealError):
        caller_of(object())  # type: ignore[arg-type]


def test_a_caller_that_was_kept_opens_nothing_after_its_call(tmp_path: Path) -> None:
    kept: list[tuple[Caller, NotesView, ToolContext]] = []
    read: list[list[object]] = []
    notes = Notes()

    async def fetch(arguments: dict[str, Any], context: ToolContext) -> str:
        view = notes.scoped(context.caller)
        view.write(arguments["url"])
        read.append(view.read())
        kept.append((context.caller, view, context))
        return "noted"

    async def story() -> None:
        world = World("agent worker { allow fetch }\nagent free { allow fetch }", tmp_path)
        own = next(one for one in world.host.sources.builtins if one.name == "fetch")
        mine = HostTool("fetch", own.description, own.parameters, fetch)
        others = tuple(one for one in world.host.sources.builtins if one.name != "fetch")
        world.host.sources = type(world.host.sources)(builtins=(*others, mine))
        world.script("worker", calls(("fetch", {"url": "x"})), "done")
        await turn("channel", world)

    asyncio.run(story())
    assert read == [["x"]]
    ((caller, view, context),) = kept
    for use in (lambda: notes.scoped(caller), view.read, lambda: view.write("y"), lambda: context.caller):
        with pytest.raises(PermitError, match="the call is over"):
            use()


SHOWN: dict[str, tuple[str, str]] = {
    "a name": ("ann", "‹ann›"),
    "controls are spelt": ("a\nb\x1b[2J", "‹a\\nb\\u{1b}[2J›"),
    "direction is spelt": ("a\u202eb", "‹a\\u{202e}b›"),
    "the marks are ours": ("‹ann›", "‹<ann>›"),
    "a long one is cut": ("x" * 300, f"‹{'x' * 199}…›"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_what_a_transport_said_is_marked_where_it_is_shown(case: str) -> None:
    text, seen = SHOWN[case]
    assert str(shown(text))[:-4] == seen


def test_r05_text_that_is_shown_is_no_key() -> None:
    """Two of the same text are spelt differently, are not equal, and are not equal to text."""
    one, other = shown("ann"), shown("ann")
    assert str(one) != str(other)
    assert one != other
    assert one != "ann"
    assert not isinstance(one, str)
    assert repr(one) == "<Shown>"
    assert isinstance(one, Shown)
    with pytest.raises(TypeError):
        shown(b"ann")  # type: ignore[arg-type]

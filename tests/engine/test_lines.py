"""A ticket is resumed only in the line in which its sessions know that it was made."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import policy_lang
from zcpolicy import Narrowing, ResolvedAgentExecution, ResolveError, Resolver, Session
from zcpolicy.lineage import MAX_SESSION_LINES
from zcpolicy.sealed import put
from zcpolicy.sessions import fork, restore, save

POLICY = """zcpolicy 1
tool look() risk read
tool act() risk high
skill careful { deny act }
agent a { autonomy full; allow look; skills careful; delegate to b, c; delegate depth 2; delegate to d independent because "a job of its own" }
agent b { autonomy full; allow look, act; skills careful; delegate to c }
agent c { autonomy full; allow look, act; skills careful }
agent d { autonomy full; allow look, act }
"""
RESOLVER = Resolver(policy_lang.loads(POLICY))
Sessions = Mapping[str, Session]


def shared() -> Sessions:
    """All of a line in one session, as where a host gives children none."""
    return dict.fromkeys("abcd", Session(id="s"))


def apart() -> Sessions:
    return {name: Session(id=name) for name in "abcd"}


HOW: dict[str, Callable[[], Sessions]] = {"one session": shared, "a session each": apart}


def line(sessions: Sessions, *names: str, **more: Any) -> ResolvedAgentExecution:
    """The last of them, below those before it. `more`: for the last."""
    run: ResolvedAgentExecution | None = None
    for name in names:
        last = more if name == names[-1] else {}
        run = RESOLVER.resolve(name, session=sessions[name], parent=run, **last)
    assert run is not None
    return run


def resumed(ticket: dict[str, Any], sessions: Sessions) -> ResolvedAgentExecution:
    return RESOLVER.resume(ticket, {one.id: one for one in sessions.values()}.get)


@pytest.fixture(params=HOW)
def sessions(request: pytest.FixtureRequest) -> Sessions:
    return HOW[request.param]()


CUT: dict[str, slice] = {"its head": slice(1), "its middle": slice(1, 2), "all above": slice(2)}


@pytest.mark.parametrize("what", CUT)
def test_a_ticket_without_some_of_those_above_is_refused(what: str, sessions: Sessions) -> None:
    ticket = line(sessions, "a", "b", "c").ticket()
    assert resumed(ticket, sessions).decide("act", {}).reason == "not-granted"
    del ticket["line"][CUT[what]]
    with pytest.raises(ResolveError, match="was never at work in its session as this ticket tells"):
        resumed(ticket, sessions)


def test_a_ticket_of_those_above_is_theirs(sessions: Sessions) -> None:
    ticket = line(sessions, "a", "b", "c").ticket()
    del ticket["line"][-1]
    assert resumed(ticket, sessions).decide("act", {}).effect == "deny"


def test_who_was_bounded_is_not_made_independent(sessions: Sessions) -> None:
    ticket = line(sessions, "a", "d", independent=False).ticket()
    ticket["line"][-1]["independent"] = True
    with pytest.raises(ResolveError, match="as this ticket tells"):
        resumed(ticket, sessions)


def test_who_was_independent_still_is(sessions: Sessions) -> None:
    run = line(sessions, "a", "d")
    assert resumed(run.ticket(), sessions).decide("act", {}).effect == "allow"


def test_a_skill_that_a_ticket_leaves_out_holds_all_the_same(sessions: Sessions) -> None:
    root = line(sessions, "b", skills=["careful"])
    ticket = root.ticket()
    ticket["line"][0]["skills"] = []
    assert resumed(ticket, sessions).decide("act", {}).reason == "denied"


def test_a_session_of_those_above_stays_theirs_when_a_child_has_it_too() -> None:
    outer, inner = Session(id="s"), Session(id="t")
    sessions = {"a": outer, "b": inner, "c": outer}
    run = line(sessions, "a", "b", "c")
    assert (outer.ancestry, inner.ancestry) == ((), (("a", "s"),))
    assert resumed(run.ticket(), sessions).decide("act", {}).effect == "deny"
    assert line(sessions, "a").decide("look", {}).effect == "allow"
    with pytest.raises(ResolveError, match="never at work"):
        resumed({"line": run.ticket()["line"][2:]}, sessions)


def test_another_agent_in_the_place_of_one_is_refused(sessions: Sessions) -> None:
    ticket = line(sessions, "a", "c").ticket()
    ticket["line"][0]["agent"] = "b"
    with pytest.raises(ResolveError, match="agent `b` was never at work"):
        resumed(ticket, sessions)


def test_what_was_only_asked_about_was_not_made() -> None:
    session = Session(id="s")
    assert RESOLVER.decide("c", "act", {}, session=session).effect == "allow"
    assert session.lines == frozenset()


def test_a_refused_ticket_leaves_nothing_behind(sessions: Sessions) -> None:
    ticket = line(sessions, "a", "b").ticket()
    known = [one.lines for one in sessions.values()]
    with pytest.raises(ResolveError):
        resumed({"line": ticket["line"][1:]}, sessions)
    assert [one.lines for one in sessions.values()] == known


def test_lines_are_nobodys_to_set() -> None:
    session: Any = Session()
    with pytest.raises(AttributeError, match="`lines` of a session cannot be set"):
        session.lines = frozenset({("c", False, ())})


LATER: dict[str, dict[str, Any]] = {
    "bounded": {"independent": False},
    "independent": {},
    "of a call, later": {"later": True},
}


@pytest.mark.parametrize("how", LATER)
def test_under_a_newer_generation_all_goes_on(how: str, sessions: Sessions) -> None:
    resolver = Resolver(policy_lang.loads(POLICY))
    above = resolver.resolve("a", session=sessions["a"])
    run = resolver.resolve("d", session=sessions["d"], parent=above, **LATER[how])
    before, said = run.ticket(), run.decide("act", {}).effect
    resolver.publish(policy_lang.loads(POLICY))
    assert run.decide("act", {}).effect == said
    for ticket in (before, run.renewed().ticket()):
        assert resolver.resume(ticket, {one.id: one for one in sessions.values()}.get).decide("act", {}).effect == said


def saved(sessions: Sessions) -> Sessions:
    """As another process has them."""
    found: dict[str, Session] = {}
    for one in sessions.values():
        found[one.id] = found.get(one.id) or restore(save(one))
    return found


def test_a_restored_session_knows_its_lines(sessions: Sessions) -> None:
    ticket = line(sessions, "a", "b", "c").ticket()
    again = saved(sessions)
    assert resumed(ticket, again).depth == 2
    with pytest.raises(ResolveError):
        resumed({"line": ticket["line"][1:]}, again)


def test_a_fork_begins_without_lines() -> None:
    first = Session(id="s")
    ticket = line({"a": first}, "a").ticket()
    second = fork(first, id="s2")
    ticket["line"][0]["session"] = "s2"
    with pytest.raises(ResolveError, match="never at work"):
        RESOLVER.resume(ticket, {"s2": second}.get)
    assert line({"a": second}, "a").agent == "a"


def test_a_session_remembers_so_many_lines() -> None:
    session = Session(id="s")
    put(session, "lines", frozenset((f"x{n}", False, ()) for n in range(MAX_SESSION_LINES)))
    run = line({"a": session}, "a", narrowing=Narrowing(only=["look"]))
    assert run.decide("look", {}).effect == "allow"
    assert len(session.lines) == MAX_SESSION_LINES
    with pytest.raises(ResolveError, match="never at work"):
        resumed(run.ticket(), {"a": session})


@pytest.mark.parametrize("client", ["", "ann"])
def test_a_session_below_another_one_is_no_childs(client: str) -> None:
    """What it is marked with goes to the session above it, and drift is looked up there: that has to be the delegator's."""
    run = line({"a": Session(id="s")}, "a")
    elsewhere = Session(id="k", above=Session(id="o", client=client))
    with pytest.raises(ResolveError, match="stands below another"):
        RESOLVER.resolve("b", session=elsewhere, parent=run)
    below = Session(id="k2", above=run.session)
    assert RESOLVER.resolve("b", session=below, parent=run).depth == 1

"""What a host may report, and what it may not."""

from typing import Any, Final

import pytest

from policy_lang import loads
from zcpolicy import FactsError, Narrowing, ResolveError, Resolver, Session
from zcpolicy.facts import MAX_HISTORY, Entry, ToolName

SESSIONS: dict[str, dict[str, Any]] = {
    "cwd": {"cwd": 7},
    "interactive": {"interactive": "yes"},
    "platform": {"platform": "plan9"},
    "supplies_defaults": {"supplies_defaults": 1},
    "client": {"client": None},
    "env": {"env": {"HOME": 7}},
    "server_cwd": {"server_cwd": {7: "/"}},
    "labels": {"labels": "private"},
    "labels in it": {"labels": [7]},
    "names of the context": {"context": {7: "x"}},
    "never": {"never": "cwd"},
}
NARROWINGS: dict[str, dict[str, Any]] = {
    "only": {"only": "file_read"},
    "only in it": {"only": [7]},
    "a name of three": {"deny": [("a", "b", "c")]},
    "a name of one": {"deny": [["a"]]},
    "autonomy": {"autonomy": "free"},
    "autonomy of some classes": {"autonomy": {"read": "allow"}},
    "autonomy of another answer": {"autonomy": {"read": "yes", "low": "ask", "medium": "ask", "high": "ask"}},
    "limits": {"limits": ["many calls"]},
    "exclude_memory": {"exclude_memory": 1},
}


@pytest.mark.parametrize("what", SESSIONS)
def test_a_session_of_another_shape(what: str) -> None:
    with pytest.raises(FactsError):
        Session(**SESSIONS[what])


@pytest.mark.parametrize("what", NARROWINGS)
def test_a_narrowing_of_another_shape(what: str) -> None:
    with pytest.raises(FactsError):
        Narrowing(**NARROWINGS[what])


def test_a_tool_may_come_as_json_writes_it() -> None:
    listed: Any = [["gh", "get"], "read"]
    assert Narrowing(only=listed).only == frozenset[ToolName]([("gh", "get"), "read"])


def test_labels_only_grow() -> None:
    session = Session(labels=["a"])
    session.mark(["b"])
    session.mark([])
    assert session.labels == {"a", "b"}
    assert Session(above=session).labels == {"a", "b"}


def test_sessions_without_an_id_are_different_ones() -> None:
    assert Session().id != Session().id


def test_a_history_keeps_the_newest() -> None:
    session = Session(history=[Entry("old", {})] * MAX_HISTORY)
    session.record(Entry("new", {}))
    assert session.history is not None
    assert len(session.history) < MAX_HISTORY
    assert session.history[-1].tool == "new"
    unreadable = Session(history=None)
    unreadable.record(Entry("new", {}))
    assert unreadable.history is None


# --- directories ---------------------------------------------------------------------------------------------------

DIRECTORIES: dict[str, tuple[dict[str, Any], str]] = {
    "relative": ({"cwd": "repo"}, "`cwd` is an absolute path"),
    "empty": ({"cwd": ""}, "`cwd` is an absolute path"),
    "a home": ({"cwd": "~/repo"}, "`cwd` is an absolute path"),
    "a windows path elsewhere": ({"cwd": "C:\\repo"}, "`cwd` is an absolute path"),
    "relative on windows": ({"cwd": "repo", "platform": "windows"}, "`cwd` is an absolute path"),
    "of a drive on windows": ({"cwd": "C:repo", "platform": "windows"}, "`cwd` is an absolute path"),
    "of a server": ({"server_cwd": {"hub": "srv"}}, "`server_cwd` holds absolute paths"),
}


@pytest.mark.parametrize("what", DIRECTORIES)
def test_a_directory_that_is_no_absolute_path(what: str) -> None:
    facts, message = DIRECTORIES[what]
    with pytest.raises(FactsError) as raised:
        Session(**facts)
    assert str(raised.value) == message


def test_a_directory_that_is_set_later_is_looked_at_as_well() -> None:
    session = Session(cwd="/repo")
    with pytest.raises(FactsError, match="`cwd` is an absolute path"):
        session.cwd = "repo"
    session.cwd = None
    assert session.cwd is None


@pytest.mark.parametrize("cwd", ["C:\\repo", "c:/repo", "\\\\server\\share", "/repo"])
def test_directories_of_windows(cwd: str) -> None:
    assert Session(cwd=cwd, platform="windows").cwd == cwd


# --- labels and the context, held against a policy -------------------------------------------------------------------

POLICY: Final = loads("""zcpolicy 1
tool shell(command: shell) risk high
label untrusted, dev
context { tenant: string, tier: integer, home: path }
agent a {
    autonomy full
    allow shell
    deny shell when marked untrusted
}
agent b { autonomy full; allow shell }
""")
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "a label with a slip": ({"labels": ["untrustd"]}, "label `untrustd` is not one of this policy: did it mean `untrusted`?"),
    "two letters changed places": ({"labels": ["untursted"]}, "label `untursted` is not one of this policy: did it mean `untrusted`?"),
    "a label in other case": ({"labels": ["DEV"]}, "label `DEV` is not one of this policy: did it mean `dev`?"),
    "a fact with a slip": ({"context": {"tennant": "x"}}, "`tennant` is no fact of this policy's context: did it mean `tenant`?"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNFIT)
def test_a_session_that_does_not_fit_the_policy(what: str) -> None:
    facts, message = UNFIT[what]
    resolver = Resolver(POLICY)
    with pytest.raises(ResolveError) as raised:
        resolver.resolve("a", session=Session(**facts))
    assert str(raised.value) == message
    decision = resolver.decide("a", "shell", {"command": "ls"}, session=Session(**facts))
    assert (decision.effect, decision.reason, decision.note) == ("deny", "stale-policy", message)


FIT: dict[str, dict[str, Any]] = {
    "a label of another policy": {"labels": ["tainted"]},
    "a short label that is near": {"labels": ["dex"]},
    "a former spelling beside the present one": {"labels": ["untrustd", "untrusted"]},
    "a fact of another policy": {"context": {"region": "eu"}},
    "a fact beside the one that it is near to": {"context": {"tennant": 1, "tenant": "x"}},
    "a fact that is not there": {"context": {"home": None}},
    "a fact of another kind": {"context": {"tier": "2"}},
    "facts as declared": {"context": {"tenant": "x", "tier": 2}},
}


@pytest.mark.parametrize("what", FIT)
def test_a_session_that_fits_the_policy(what: str) -> None:
    assert (
        Resolver(POLICY).resolve("b", session=Session(**FIT[what])).decide("shell", {"command": "ls"}).effect == "allow"
    )


def test_a_label_that_is_put_on_later_is_looked_at_with_the_next_turn() -> None:
    session, resolver = Session(), Resolver(POLICY)
    run = resolver.resolve("a", session=session)
    session.mark(["untrustd"])
    assert run.decide("shell", {"command": "ls"}).effect == "allow"
    with pytest.raises(ResolveError, match="did it mean `untrusted`"):
        resolver.resolve("a", session=session)
    session.mark(["untrusted"])  # what the host does about it: it only makes the session stricter
    assert resolver.resolve("a", session=session).decide("shell", {"command": "ls"}).effect == "deny"


def test_a_run_that_stands_goes_on_under_a_policy_that_spells_a_label_otherwise() -> None:
    resolver = Resolver(loads("zcpolicy 1\ntool t() risk low\nlabel seen\nagent a { autonomy full; allow t }"))
    run = resolver.resolve("a", session=Session(labels=["seen"]))
    resolver.publish(loads("zcpolicy 1\ntool t() risk low\nlabel sean\nagent a { autonomy full; allow t }"))
    assert run.decide("t", {}).effect == "allow"

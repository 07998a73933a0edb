"""Sessions that outlive a process: what is saved comes back as it was, and nothing else comes back at all."""

import copy
import json
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest

from policy_lang import loads
from zcpolicy import Entry, FactsError, ResolveError, Resolver, Session
from zcpolicy.facts import MAX_HISTORY
from zcpolicy.lineage import MAX_SESSION_LINES
from zcpolicy.sealed import put
from zcpolicy.sessions import FORMAT, MAX_SAVED_DEPTH, MAX_SAVED_SECONDS, fork, restore, save

POLICY = """zcpolicy 1
tool look(path: path) risk read
tool send(to: string, n?: number) risk medium
label dirty
skill careful { deny send }
agent a {
    allow look, send; autonomy full; skills careful; delegate to b
    mark dirty on look
    require look before send within 1h
    deny send when marked dirty and args.to != "me" because "nothing leaves after a look"
    limit 2 calls to send per session
}
agent b { allow look; autonomy full }
"""
RESOLVER = Resolver(loads(POLICY))


def session(**more: Any) -> Session:
    """One in which every part has something to say."""
    facts: dict[str, Any] = {
        "cwd": "/w", "interactive": True, "platform": "windows", "env": {"HOME": "/home/u"}, "server_cwd": {"hub": "/srv"},
        "supplies_defaults": False, "context": {"role": "ops", "tier": Decimal("1.50"), "deep": [{"x": [1, None, True]}]},
        "labels": ["dirty", "private"], "clock": lambda: 100.25, "client": "x", "id": "s", "turn": "t", "never": ["cwd"],
        "drift": {"look": "schema", ("hub", "get"): "launch"}, "ledger": False,
        "history": [
            Entry("look", {"path": "/a"}, at=7.125, agent="a"),
            Entry(("hub", "get"), {"n": 10**30, "m": 0.1, "l": ["é", ""]}, ok=False, at=-1),
        ],
    }  # fmt: skip
    made = Session(**{**facts, **more})
    put(made, "skills", frozenset({"careful"}))
    put(made, "ancestry", (("a", "above"), ("root", "top")))
    put(made, "lines", frozenset({("b", True, made.ancestry), ("c", False, (("b", "s"), *made.ancestry))}))
    return made


PARTS = [name for name in Session.__slots__ if name not in ("above", "clock", "history", "resolve_link")]


def entries(of: Session) -> Any:
    return of.history and [(one.tool, dict(one.arguments), one.ok, one.at, one.agent) for one in of.history]


def test_every_part_of_a_session_comes_back() -> None:
    before = session()
    text = json.dumps(save(before))
    after = restore(json.loads(text), clock=before.clock)
    assert after.clock() == 100.25
    assert json.dumps(save(after)) == text
    assert after.context["tier"] == Decimal("1.5")
    assert entries(after)[1] == (("hub", "get"), {"n": 10**30, "m": Decimal("0.1"), "l": ["é", ""]}, False, -1.0, "")
    assert [getattr(after, name) for name in PARTS] == [getattr(before, name) for name in PARTS]


def test_a_plain_session_comes_back() -> None:
    for plain in (Session(), Session(history=None)):
        after = restore(save(plain))
        assert [getattr(after, name) for name in PARTS] == [getattr(plain, name) for name in PARTS]
        assert (after.history, after.above, after.resolve_link) == (plain.history, None, None)


def test_saving_changes_nothing_and_shares_nothing() -> None:
    one = session()
    saved = save(one)
    as_saved = copy.deepcopy(saved)
    two = restore(saved)
    two.context["role"], two.env["HOME"] = "dev", "/"
    two.record(Entry("look", {}))
    assert (save(one), saved) == (as_saved, as_saved)


def test_what_is_saved_is_json_with_exact_numbers() -> None:
    assert save(session())["history"][1] == [
        ["hub", "get"],
        {"n": {"n": "1000000000000000000000000000000"}, "m": {"n": "0.1"}, "l": {"list": ["é", ""]}},
        False,
        "-1",
        "",
    ]


# --- decisions ----------------------------------------------------------------------------------------------------


def test_a_restored_session_goes_on_where_it_was() -> None:
    clock = lambda: 1_000.0  # noqa: E731 - a clock that stands still
    first = RESOLVER.resolve("a", session=Session(clock=clock, cwd="/w"))
    first.permit(first.decide("look", {"path": "x"}))
    again = RESOLVER.resolve("a", session=restore(save(first.session), clock=clock))
    assert again.session.labels == {"dirty"}
    assert again.decide("send", {"to": "you"}).reason == "denied"
    assert again.decide("send", {"to": "me"}).effect == "allow"
    late = RESOLVER.resolve("a", session=restore(save(first.session), clock=lambda: 5_000.0))
    assert late.decide("send", {"to": "me"}).reason == "precondition"


def test_a_loaded_skill_lasts() -> None:
    run = RESOLVER.resolve("a")
    run.load_skill("careful")
    assert RESOLVER.resolve("a", session=restore(save(run.session))).tools() == ("look",)
    assert RESOLVER.resolve("a", session=fork(run.session)).tools() == ("look",)


def test_a_childs_session_stays_one() -> None:
    above = RESOLVER.resolve("a")
    child = RESOLVER.resolve("b", session=Session(), parent=above)
    assert child.session.ancestry == (("a", above.session.id),)
    for kept in (restore(save(child.session)), fork(child.session)):
        assert kept.ancestry == child.session.ancestry
        with pytest.raises(ResolveError, match="this session is of a child of agent `a`: resolve it below that one"):
            RESOLVER.resolve("b", session=kept)
        with pytest.raises(ResolveError, match="of other executions"):
            RESOLVER.resolve("b", session=kept, parent=RESOLVER.resolve("a"))
        assert RESOLVER.resolve("b", session=kept, parent=above).depth == 1


def test_the_session_above_is_the_one_that_it_was_under() -> None:
    above = Session(id="above", labels=["private"])
    child = session(labels=[])
    saved = save(child)
    assert restore(saved, above=above).labels == {"private"}
    assert restore(saved, above=above).above is above
    assert fork(restore(saved, above=above)).above is above
    with pytest.raises(FactsError, match="the session above is not the one that the saved session was under"):
        restore(saved, above=Session(id="another"))


# --- forks --------------------------------------------------------------------------------------------------------


def test_a_fork_goes_on_beside_the_first() -> None:
    first = session()
    second = fork(first, id="s2")
    assert save(second) == {**save(first), "id": "s2", "lines": []}
    assert (second.origin, second.clock) == ("s", first.clock)
    assert fork(second).origin == "s"
    assert fork(second).id not in ("s", "s2", fork(second).id)
    assert restore(save(second)).origin == "s"
    second.mark(["more"])
    second.record(Entry("send", {}))
    assert ("more" in first.labels, len(entries(first))) == (False, 2)


def test_a_fork_spends_from_the_pots_of_the_first() -> None:
    policy = Resolver(loads(POLICY))

    def sends(facts: Session) -> str:
        run = policy.resolve("a", session=facts)
        decision = run.decide("send", {"to": "me"})
        if decision.effect == "allow":
            run.permit(decision)
        return decision.reason

    first = Session()
    run = policy.resolve("a", session=first)
    run.permit(run.decide("look", {"path": "/x"}))
    assert sends(first) == "allowed"
    second = fork(first)
    assert [sends(second), sends(second), sends(first), sends(fork(second)), sends(restore(save(second)))] == [
        "allowed", "budget", "budget", "budget", "budget",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["s", 7, None])
def test_a_fork_has_an_id_of_its_own(name: Any) -> None:
    with pytest.raises(FactsError, match="a fork has an id of its own"):
        fork(session(), id=name)
    with pytest.raises(FactsError, match="a fork has an id of its own"):
        fork(fork(session(), id="s2"), id=name)


# --- what is not saved --------------------------------------------------------------------------------------------


class Role(StrEnum):
    OPS = "ops"


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


UNSAVABLE: dict[str, Any] = {
    "a tuple, which would come back as a list": ("x",),
    "an enum, which would come back as a text": Role.OPS,
    "bytes": b"x",
    "not a number": float("nan"),
    "infinite": Decimal("-Infinity"),
    "a number of a million digits": Decimal("1E+1000000"),
    "a whole number of two thousand digits": 10**2000,
    "a name that is no text": {1: "x"},
    "too deep": nested(MAX_SAVED_DEPTH + 1),
    "a set": {1},
}


@pytest.mark.parametrize("name", UNSAVABLE)
def test_values_that_would_not_come_back_as_they_went_are_refused(name: str) -> None:
    value = UNSAVABLE[name]
    with pytest.raises(FactsError, match="`context` of the session holds what cannot be saved"):
        save(session(context={"role": value}))
    with pytest.raises(FactsError, match="`history` of the session holds what cannot be saved"):
        save(session(history=[Entry("t", {"x": value})]))


def test_times_that_would_not_come_back_as_they_went_are_refused() -> None:
    for at in (float("nan"), float("inf"), MAX_SAVED_SECONDS, -(10**400)):
        with pytest.raises(FactsError, match="`history` of the session"):
            save(session(history=[Entry("t", {}, at=at)]))
    odd: Any = Entry("t", {})
    odd.agent = None
    with pytest.raises(FactsError, match="`history` of the session"):
        save(session(history=[odd]))


# --- what is not restored -----------------------------------------------------------------------------------------

ODD: dict[str, tuple[str, list[Any]]] = {
    "texts": ("client", [None, 1, True, [], {}]),
    "an id": ("id", ["", None, 1]),
    "the id it spends under": ("origin", ["", None, 1]),
    "a turn": ("turn", [None, 1]),
    "a directory": ("cwd", [1, [], False]),
    "switches": ("interactive", [1, 0, "true", None]),
    "whether the ledger is there": ("ledger", [1, None]),
    "who writes defaults": ("supplies_defaults", [None, "yes"]),
    "a platform": ("platform", ["beos", None, ["posix"]]),
    "the environment": ("env", [None, [], {"HOME": None}, {"HOME": 1}]),
    "servers' directories": ("server_cwd", [None, {"hub": []}]),
    "labels": ("labels", [None, "dirty", {"dirty": 1}, [1], [["dirty"]]]),
    "skills": ("skills", [None, "careful", [None]]),
    "facts that are never told": ("never", [None, "cwd", [1]]),
    "ancestry": ("ancestry", [None, "ab", [["a"]], [["a", "s", "t"]], [["a", 1]], ["as"], {"a": "s"}]),
    "what was made in it": ("lines", [None, {}, ["a"], [["a", False]], [["a", 0, []]], [[1, False, []]], [["a", False, [["a"]]]],
                                      [["a", False, None]], [["a", False, []]] * (MAX_SESSION_LINES + 1)]),
    "drift": ("drift", [None, {}, [["t"]], [["t", "odd"]], [[["s"], "schema"]], [[["s", 1], "schema"]], [[None, "schema"]]]),
    "context": ("context", [None, [], {"x": 1}, {"x": [1]}, {"x": {}}, {"x": {"n": 1}}, {"x": {"n": "x"}}, {"x": {"n": "nan"}},
                            {"x": {"n": "1", "list": []}}, {"x": {"list": {}}}, {"x": {"object": []}}, {"x": {"odd": []}}]),
    "history": ("history", [{}, "x", [None], [["t", {}, True, "1"]], [["t", {}, True, 1, ""]], [["t", {}, 1, "1", ""]],
                            [["t", [], True, "1", ""]], [["t", {}, True, "x", ""]], [["t", {}, True, "1e400", ""]],
                            [["t", {}, True, "9007199254740992", ""]], [["t", {}, True, "1", None]], [[1, {}, True, "1", ""]],
                            [["t", {"x": 1}, True, "1", ""]]]),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_was_never_saved_is_not_restored(name: str) -> None:
    part, values = ODD[name]
    for value in values:
        with pytest.raises(FactsError, match=f"`{part}` of a saved session is not what was saved"):
            restore({**save(session()), part: value})


def test_a_longer_history_than_a_session_keeps_is_not_restored() -> None:
    entry = save(session())["history"][0]
    with pytest.raises(FactsError, match="`history` of a saved session"):
        restore({**save(session()), "history": [entry] * (MAX_HISTORY + 1)})


@pytest.mark.parametrize("part", sorted(save(Session())))
def test_a_part_that_is_missing_is_not_guessed(part: str) -> None:
    saved = save(session())
    del saved[part]
    with pytest.raises(FactsError):
        restore(saved)


def test_other_things_are_no_saved_sessions() -> None:
    with pytest.raises(FactsError, match="has other parts than were saved"):
        restore({**save(session()), "approved": True})
    others: list[Any] = [None, [], "x", {}, {"format": "zcpolicy session 2"}, {**save(session()), "format": None}]
    for other in others:
        with pytest.raises(FactsError, match=f"this is no `{FORMAT}`"):
            restore(other)

"""SPEC 4, 7, 10: which memory an execution may read and write, what its entries carry, and what a key to it is worth."""

import asyncio
import copy
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from policy_lang import loads
from tests.engine.programs import body, program, rule, tool
from zcpolicy import Narrowing, ResolvedAgentExecution, Resolver, Session
from zcpolicy.authority import SealError
from zcpolicy.events import Event
from zcpolicy.memory import (
    MAX_MEMORY_CHARACTERS,
    MemoryAccess,
    MemoryEntry,
    MemoryRefused,
    MemoryScope,
    Shelf,
    genuine_scope,
)
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.sealed import put

HEAD = """zcpolicy 1
tool look() risk read
label dirty, private
scope team, plans
"""


def resolver(text: str) -> Resolver:
    return Resolver(loads(HEAD + text))


def names(scopes: Sequence[MemoryScope]) -> str:
    return " ".join(scope.name for scope in scopes)


def may(run: ResolvedAgentExecution) -> tuple[str, str]:
    """What may be read and written."""
    return names(run.memory.read), names(run.memory.write)


def texts(entries: Sequence[MemoryEntry]) -> list[str]:
    return [entry.text for entry in entries]


# --- which scopes -------------------------------------------------------------------------------------------------

BODIES: dict[str, tuple[str, tuple[str, str]]] = {
    "nothing said is none": ("agent a { allow look }", ("", "")),
    "none": ("agent a { allow look; memory none }", ("", "")),
    "reading is not writing": ("agent a { allow look; memory read own, team }", ("own team", "")),
    "writing is not reading": ("agent a { allow look; memory write own }", ("", "own")),
    "an agent's name": ("agent a { allow look; memory read b write own } agent b { allow look }", ("b", "own")),
    "a ceiling that says nothing": ("agent a { allow look; memory read own } ceiling { deny look }", ("own", "")),
    "a ceiling takes away": (
        "agent a { allow look; memory read own, team write own, plans } ceiling { memory read own, plans write own }",
        ("own", "own"),
    ),
    "a ceiling gives nothing": ("agent a { allow look } ceiling { memory read own write own }", ("", "")),
    "a ceiling's own is each agent's own": (
        "agent a { allow look; memory read b, own } agent b { allow look } ceiling { memory read own }",
        ("own", ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_scopes_are_what_the_granting_body_names_and_no_body_withholds(name: str) -> None:
    text, expected = BODIES[name]
    assert may(resolver(text).resolve("a", session=Session(client="x"))) == expected


def test_an_agent_that_narrows_has_a_memory_of_its_own() -> None:
    policy = resolver(
        "agent a { allow look; memory read own, team write own } agent n narrows a { memory read own } agent m narrows a {}"
    )
    assert may(policy.resolve("n", session=Session(client="x"))) == ("own", "")
    assert may(policy.resolve("m", session=Session(client="x"))) == ("own team", "own")

    async def story() -> None:
        store = InMemoryStore()
        await policy.resolve("a", session=Session(client="x")).memory.remember(store, "of a")
        assert await policy.resolve("m", session=Session(client="x")).memory.recall(store, "") == ()

    asyncio.run(story())


def test_a_narrowing_without_memory_leaves_none_to_children_of_any_kind() -> None:
    policy = resolver(
        'agent a { allow look; memory read own; delegate to b, c independent because "x" }'
        " agent b { allow look; memory read own write own } agent c { allow look; memory read own write own }"
    )
    run = policy.resolve("a", narrowing=Narrowing(exclude_memory=True))
    assert may(run) == ("", "")
    assert may(policy.resolve("b", parent=run)) == ("", "")
    assert may(policy.resolve("c", parent=run)) == ("", "")
    assert may(policy.resolve("c", parent=policy.resolve("a", session=Session(client="x")))) == ("own", "own")


CHILDREN: dict[str, tuple[str, str, tuple[str, str]]] = {
    "own stays each one's own": ("read own write own", "read own write own", ("own", "own")),
    "the delegator has none": ("none", "read own, team write own", ("", "")),
    "the delegator may not write": ("read own, team", "read own, team write own, team", ("own team", "")),
    "another's, which the delegator may not read": ("read own", "read c", ("", "")),
    "another's, which it may": ("read c", "read c, own", ("c", "")),
    "the delegator's own, by its name": ("read own", "read a", ("a", "")),
    "the child's own, by its name": ("read own, b", "read own, b", ("b own", "")),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_a_bounded_child_has_what_every_execution_above_has(name: str) -> None:
    above, below, expected = CHILDREN[name]
    policy = resolver(
        f"agent a {{ allow look; memory {above}; delegate to b }} agent b {{ allow look; memory {below} }} agent c {{ allow look }}"
    )
    assert may(policy.resolve("b", parent=policy.resolve("a", session=Session(client="x")))) == expected


def test_grandchildren_are_bounded_by_the_first() -> None:
    policy = resolver(
        "agent a { allow look; memory read own; delegate to b; delegate to c; delegate depth 2 }"
        " agent b { allow look; memory read own, team write own; delegate to c }"
        " agent c { allow look; memory read own, team write own }"
    )
    child = policy.resolve("b", parent=policy.resolve("a", session=Session(client="x")))
    assert may(policy.resolve("c", parent=child)) == ("own", "")


def test_a_skill_takes_away_from_the_moment_it_is_loaded() -> None:
    policy = resolver(
        "skill s { memory read own } agent a { allow look; skills s; memory read own, team write own }"
        " agent b { allow look; skills s; memory read team }"
    )
    session = Session(client="x")
    run, other = policy.resolve("a", session=session), policy.resolve("b", session=session)
    memory, key = run.memory, run.memory.write[0]
    run.load_skill("s")
    assert (names(memory.read), names(memory.write)) == ("own", "")
    assert may(other) == ("", ""), "another run of the session has loaded it too"
    with pytest.raises(MemoryRefused, match="agent `a` may not write memory `own`"):
        genuine_scope(key, "write")


def test_a_name_that_nobody_declared_is_no_scope() -> None:
    odd = program([tool("t")], body("a", rule("allow", "0"), memory={"read": ["gone", "own"], "write": ["gone"]}))
    assert may(Resolver(odd).resolve("a", session=Session(client="x"))) == ("own", "")


def test_a_scope_and_an_agent_of_one_name_are_two() -> None:
    """The declared scope is what the name means; the agent's memory is reached as its own."""
    odd = program(
        [tool("t")],
        body("team", rule("allow", "0"), memory={"read": ["own"], "write": ["own"]}),
        body("a", rule("allow", "0"), memory={"read": ["team"], "write": []}),
        scopes=["team"],
    )

    async def story() -> None:
        store, policy = InMemoryStore(), Resolver(odd)
        await policy.resolve("team", session=Session(client="x")).memory.remember(store, "of the agent")
        assert await policy.resolve("a", session=Session(client="x")).memory.recall(store, "") == ()

    asyncio.run(story())


def test_a_scope_above_lets_no_agent_of_its_name_use_its_own() -> None:
    odd = program(
        [tool("t")],
        body("a", rule("allow", "0"), memory={"read": ["team"], "write": []}, delegate={"to": {"team": {}}}),
        body("team", rule("allow", "0"), memory={"read": ["own", "team"], "write": []}),
        scopes=["team"],
    )
    policy = Resolver(odd)
    assert may(policy.resolve("team", session=Session(client="x"))) == ("own team", "")
    assert may(policy.resolve("team", parent=policy.resolve("a", session=Session(client="x")))) == ("team", "")


def test_a_newer_policy_reaches_keys_and_accesses_that_were_handed_out() -> None:
    old = resolver("agent a { allow look; memory read own write own }")
    run = old.resolve("a", session=Session(client="x"))
    memory, key = run.memory, run.memory.write[0]
    old.publish(loads(HEAD + "agent a { allow look; memory read own, team }"))
    assert (names(memory.read), names(memory.write)) == ("own team", "")
    with pytest.raises(MemoryRefused):
        genuine_scope(key, "write")
    old.newest.publish(loads(HEAD + "agent b { allow look }"))
    assert (memory.read, memory.write) == ((), ())


# --- labels, limits, records --------------------------------------------------------------------------------------

ONE = "agent a { allow look; memory read own, team write own; runtime { recall 2 } }"


def test_entries_carry_the_labels_of_their_writer_to_every_reader() -> None:
    async def story() -> None:
        store, policy = InMemoryStore(), resolver(ONE)
        await policy.resolve("a", session=Session(client="x", labels=["dirty"])).memory.remember(
            store, "a fetched page"
        )
        await policy.resolve("a", session=Session(client="x")).memory.remember(store, "a plain note")

        reader = policy.resolve("a", session=Session(client="x", labels=["private"]))
        assert texts(await reader.memory.recall(store, "note")) == ["a plain note"]
        assert reader.session.labels == {"private"}
        assert texts(await reader.memory.recall(store, "fetched")) == ["a fetched page"]
        assert reader.session.labels == {"private", "dirty"}

        await reader.memory.remember(store, "a copy")
        again = policy.resolve("a", session=Session(client="x"))
        (entry,) = await again.memory.recall(store, "copy")
        assert (entry.labels, entry.agent, entry.client, entry.session) == (
            {"private", "dirty"}, "a", "x", reader.session.id,
        )  # fmt: skip
        assert again.session.labels == {"private", "dirty"}

    asyncio.run(story())


def test_what_a_child_recalls_marks_its_delegator_at_once() -> None:
    policy = resolver(
        "agent a { allow look; memory read own, team write team; delegate to b } agent b { allow look; memory read team }"
    )

    async def story() -> None:
        store = InMemoryStore()
        await policy.resolve("a", session=Session(client="x", labels=["dirty"])).memory.remember(store, "note", "team")
        above = policy.resolve("a", session=Session(client="x"))
        child = policy.resolve("b", parent=above, session=Session(client="x"))
        await child.memory.recall(store, "note")
        assert (child.session.labels, above.session.labels) == ({"dirty"}, {"dirty"})

    asyncio.run(story())


def test_a_recall_gives_no_more_than_the_policy_lets_it() -> None:
    async def story() -> None:
        store, run = InMemoryStore(), resolver(ONE).resolve("a", session=Session(client="x"))
        for number in range(4):
            await run.memory.remember(store, f"note {number}")
        assert texts(await run.memory.recall(store, "note")) == ["note 3", "note 2"]
        assert texts(await store.search(run.memory.read, "note", 100)) == ["note 3", "note 2"], (
            "nor to who asks the store"
        )

    asyncio.run(story())


def test_where_nothing_may_be_read_nothing_is_asked() -> None:
    class Unasked(InMemoryStore):
        async def search(self, scopes: Sequence[MemoryScope], query: str, limit: int) -> Sequence[MemoryEntry]:
            raise AssertionError("a store was asked")

    run = resolver("agent a { allow look }").resolve("a", session=Session(client="x"))
    assert asyncio.run(run.memory.recall(Unasked(), "note")) == ()


def test_a_store_that_gives_too_much_is_cut_down() -> None:
    """A host's own store: other shelves, other clients, things that are no entries, more than was asked for."""

    async def story() -> None:
        run = resolver(ONE).resolve("a", session=Session(client="x"))
        own = Shelf("x", "agent", "a")

        def entry(text: str, shelf: Shelf = own, labels: Any = frozenset()) -> MemoryEntry:
            return MemoryEntry(shelf, text, labels, "a", "s", 0.0)

        class Careless(InMemoryStore):
            async def search(self, scopes: Sequence[MemoryScope], query: str, limit: int) -> Sequence[MemoryEntry]:
                odd: list[Any] = ["text", None, tuple(entry("bare")), entry("labels", labels=["dirty"])]
                return [
                    *odd,
                    entry("client", Shelf("y", "agent", "a"), frozenset({"private"})),
                    entry("agent", Shelf("x", "agent", "b"), frozenset({"private"})),
                    entry("scope", Shelf("x", "scope", "a"), frozenset({"private"})),
                    entry("first", labels=frozenset({"dirty"})), entry("second"), entry("third"),
                ]  # fmt: skip

        assert texts(await run.memory.recall(Careless(), "x")) == ["first", "second"]
        assert run.session.labels == {"dirty"}

    asyncio.run(story())


def test_a_right_that_goes_while_a_store_is_slow_is_gone() -> None:
    policy = resolver(ONE)

    class Slow(InMemoryStore):
        async def search(self, scopes: Sequence[MemoryScope], query: str, limit: int) -> Sequence[MemoryEntry]:
            found = await super().search(scopes, query, limit)
            policy.publish(loads(HEAD + "agent a { allow look }"))
            return found

    with pytest.raises(MemoryRefused, match="agent `a` may not read memory `own`"):
        asyncio.run(policy.resolve("a", session=Session(client="x")).memory.recall(Slow(), "x"))


def test_every_use_is_on_record() -> None:
    async def story() -> None:
        events: list[Event] = []
        session = Session(client="x", id="s", labels=["dirty"], clock=lambda: 7.0)
        store, run = InMemoryStore(), resolver(ONE).resolve("a", session=session, surface="channel")
        memory = MemoryAccess.of(run, events.append)
        await memory.remember(store, "note")
        await memory.recall(store, "note")
        with pytest.raises(MemoryRefused):
            await memory.remember(store, "note", "team")
        assert [event.data for event in events] == [
            {"did": "remember", "scope": "own", "characters": 4},
            {"did": "recall", "scopes": ["own", "team"], "entries": 1, "labels": ["dirty"]},
            {"did": "refused", "scope": "team"},
        ]
        assert {(event.kind, event.at, event.identity) for event in events} == {("memory", 7.0, run.identity)}

    asyncio.run(story())


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "a scope that may only be read": ("note", "team", "agent `a` may not write memory `team`"),
    "another agent's": ("note", "b", "agent `a` may not write memory `b`"),
    "a scope that is none": ("note", None, "agent `a` may not write memory `None`"),
    "no text": (b"note", "own", "memory takes text"),
    "too long": ("x" * (MAX_MEMORY_CHARACTERS + 1), "own", "memory takes texts of up to 20000 characters"),
    "half a character": ("\ud800", "own", "memory takes no text with half a character"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_remembered(name: str) -> None:
    text, scope, message = REFUSED[name]
    run = resolver(ONE + " agent b { allow look }").resolve("a", session=Session(client="x"))
    with pytest.raises(MemoryRefused) as refused:
        asyncio.run(run.memory.remember(InMemoryStore(), text, scope))
    assert str(refused.value) == message


def test_an_odd_query_is_refused() -> None:
    odd: Any = 7
    with pytest.raises(MemoryRefused, match="memory takes text"):
        asyncio.run(resolver(ONE).resolve("a", session=Session(client="x")).memory.recall(InMemoryStore(), odd))


def test_without_a_time_nothing_is_remembered() -> None:
    run = resolver(ONE).resolve("a", session=Session(client="x", clock=lambda: float("nan")))
    with pytest.raises(MemoryRefused, match="does not tell the time"):
        asyncio.run(run.memory.remember(InMemoryStore(), "note"))


# --- what a key is worth ------------------------------------------------------------------------------------------


def test_nobody_else_makes_a_scope() -> None:
    run = resolver(ONE).resolve("a", session=Session(client="x"))
    key = run.memory.read[0]
    forged: MemoryScope = object.__new__(MemoryScope)
    put(forged, "name", "team")
    put(forged, "mode", "write")
    others: list[Any] = [forged, "own", run.memory, None]
    for made in others:
        with pytest.raises(SealError, match="is no scope that an execution made"):
            genuine_scope(made, "read")
    with pytest.raises(TypeError, match="sealed"):
        copy.copy(key)
    with pytest.raises(TypeError, match="sealed"):
        pickle.dumps(key)
    with pytest.raises(AttributeError, match="sealed"):
        key.mode = "write"  # type: ignore[misc]  # what is tested
    maker: Any = MemoryScope
    with pytest.raises(TypeError, match="it is made by `MemoryAccess`"):
        maker("own")


def test_an_altered_scope_opens_what_it_was_made_for() -> None:
    async def story() -> None:
        store, run = InMemoryStore(), resolver(ONE).resolve("a", session=Session(client="x"))
        key = next(scope for scope in run.memory.read if scope.name == "team")
        put(key, "name", "own")
        put(key, "mode", "write")
        assert genuine_scope(key, "read")[1] == Shelf("x", "scope", "team")
        with pytest.raises(MemoryRefused, match="agent `a` may not write memory `team`"):
            await store.add(key, "note")

    asyncio.run(story())


def test_a_scope_for_writing_does_not_read() -> None:
    run = resolver(ONE).resolve("a", session=Session(client="x"))
    with pytest.raises(MemoryRefused, match="agent `a` may not read memory `own`"):
        asyncio.run(InMemoryStore().search(run.memory.write, "", 1))


def test_an_access_is_of_an_execution() -> None:
    run = resolver(ONE).resolve("a", session=Session(client="x"))
    forged: ResolvedAgentExecution = object.__new__(ResolvedAgentExecution)
    with pytest.raises(SealError):
        MemoryAccess.of(forged)
    access: MemoryAccess = object.__new__(MemoryAccess)
    put(access, "_run", forged)
    with pytest.raises(SealError):
        asyncio.run(access.remember(InMemoryStore(), "note"))
    assert repr(run.memory) == "<MemoryAccess of a>"


def test_a_session_of_nobody_has_no_memory() -> None:
    """What sessions without a client wrote would be one memory of all of them."""
    run = resolver(ONE).resolve("a", session=Session())
    assert (run.memory.read, run.memory.write) == ((), ())
    with pytest.raises(MemoryRefused, match="may not write memory `own`"):
        asyncio.run(run.memory.remember(InMemoryStore(), "note"))


def test_a_session_is_given_to_no_other_client() -> None:
    with pytest.raises(AttributeError, match="cannot be set"):
        Session(client="x").client = "y"

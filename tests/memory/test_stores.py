"""The stores of memory, each under the same contract: in the process, SQLite with an index of words, and without."""

import asyncio
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lang import loads
from zcpolicy import ResolvedAgentExecution, Resolver, Session
from zcpolicy.authority import SealError
from zcpolicy.memory import MemoryRefused
from zcpolicy.memory_stores.contract import MAX_QUERY_WORDS, MemoryStore, MemoryUnavailable, words_of
from zcpolicy.memory_stores.in_memory import MAX_SHELF_ENTRIES, InMemoryStore
from zcpolicy.memory_stores.sqlite import SqliteMemory

POLICY = """zcpolicy 1
tool look() risk read
label dirty, private
scope team
agent a { allow look; memory read own, team write own, team; runtime { recall 20 } }
agent b { allow look; memory read own, team, a write own, team; runtime { recall 20 } }
"""
RESOLVER = Resolver(loads(POLICY))
NUMBERS = count()


OPEN: list[SqliteMemory] = []


def in_memory(_folder: Path) -> MemoryStore:
    return InMemoryStore()


def sqlite(folder: Path, name: str = "", *, full_text: bool = True) -> SqliteMemory:
    OPEN.append(SqliteMemory(folder / (name or f"memory{next(NUMBERS)}.db"), full_text=full_text))
    return OPEN[-1]


def sqlite_without_an_index(folder: Path) -> MemoryStore:
    return sqlite(folder, full_text=False)


@contextmanager
def a_folder() -> Generator[Path]:
    """A folder for a while; the stores that were opened meanwhile are closed after it."""
    with TemporaryDirectory() as name:
        yield Path(name)
        while OPEN:
            OPEN.pop().close()


STORES = (in_memory, sqlite, sqlite_without_an_index)
every_store = pytest.mark.parametrize("make", STORES)


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_folder() as made:
        yield made


def run(agent: str = "a", client: str = "x", *labels: str) -> ResolvedAgentExecution:
    return RESOLVER.resolve(agent, session=Session(client=client, labels=labels, id="s", clock=lambda: 5.5))


async def found(store: MemoryStore, query: str, who: ResolvedAgentExecution | None = None) -> list[str]:
    return [entry.text for entry in await (who or run()).memory.recall(store, query)]


# --- the contract -------------------------------------------------------------------------------------------------

LOOKED_FOR: dict[str, tuple[list[str], str, list[str]]] = {
    "any of the words, most of them first": (["red", "blue", "red blue"], "blue red", ["red blue", "blue", "red"]),
    "the newest of equals first": (["one fox", "two fox"], "fox", ["two fox", "one fox"]),
    "whole words": (["foxes"], "fox", []),
    "letter case": (["The FOX", "Straße"], "fox STRASSE", ["Straße", "The FOX"]),
    "compatible spellings": (["ﬁle №5"], "file no5", ["ﬁle №5"]),
    "scripts without blanks": (["我喜欢猫"], "猫", ["我喜欢猫"]),
    "accents count": (["cafe"], "café", []),
    "an empty query: the newest": (["one", "two"], "", ["two", "one"]),
    "a query without words": (["one", "two"], "?! *", ["two", "one"]),
    "what would be syntax": (["a OR b", "words"], 'words : "a" OR NEAR(*) -- \' %', ["a OR b", "words"]),
    "hexadecimal is a word like others": (["61", "a"], "61", ["61"]),
    "nothing": ([], "fox", []),
    "nothing fits": (["one"], "fox", []),
    "kept as it was written": ([" a\x00b\n\t'\"%_ "], "b", [" a\x00b\n\t'\"%_ "]),
}


@every_store
@pytest.mark.parametrize("name", LOOKED_FOR)
def test_what_is_found(name: str, make: Callable[[Path], MemoryStore], folder: Path) -> None:
    texts, query, expected = LOOKED_FOR[name]

    async def story() -> None:
        store = make(folder)
        for text in texts:
            await run().memory.remember(store, text)
        assert await found(store, query) == expected

    asyncio.run(story())


@every_store
def test_an_entry_says_who_wrote_it_when_and_under_which_labels(
    make: Callable[[Path], MemoryStore], folder: Path
) -> None:
    async def story() -> None:
        store = make(folder)
        await run("a", "x", "dirty", "private").memory.remember(store, "note", "team")
        (entry,) = await run("b").memory.recall(store, "")
        assert entry == (("x", "scope", "team"), "note", {"dirty", "private"}, "a", "s", 5.5)
        assert entry.client == "x"

    asyncio.run(story())


@every_store
def test_own_is_what_others_call_by_the_agents_name(make: Callable[[Path], MemoryStore], folder: Path) -> None:
    async def story() -> None:
        store = make(folder)
        await run("a").memory.remember(store, "of a")
        await run("b").memory.remember(store, "of b")
        assert await found(store, "", run("b")) == ["of b", "of a"]
        assert await found(store, "", run("a")) == ["of a"]

    asyncio.run(story())


@every_store
def test_a_store_takes_keys_and_nothing_else(make: Callable[[Path], MemoryStore], folder: Path) -> None:
    async def story() -> None:
        store, who = make(folder), run()
        with pytest.raises(SealError):
            await store.add("own", "note")  # type: ignore[arg-type]  # what is tested
        with pytest.raises(SealError):
            await store.search(["own"], "note", 1)  # type: ignore[list-item]  # what is tested
        with pytest.raises(MemoryRefused):
            await store.add(who.memory.read[0], "note")
        with pytest.raises(MemoryRefused):
            await store.search(who.memory.write, "note", 1)
        assert await store.search((), "", 1) == ()

    asyncio.run(story())


@every_store
def test_who_asks_the_store_itself_is_marked_all_the_same(make: Callable[[Path], MemoryStore], folder: Path) -> None:
    async def story() -> None:
        store, reader = make(folder), run()
        await run("a", "x", "dirty").memory.remember(store, "note")
        assert len(await store.search(reader.memory.read, "note", 5)) == 1
        assert reader.session.labels == {"dirty"}

    asyncio.run(story())


@every_store
def test_many_at_once(make: Callable[[Path], MemoryStore], folder: Path) -> None:
    async def story() -> None:
        store = make(folder)
        await asyncio.gather(*(run().memory.remember(store, f"note {number}") for number in range(20)))
        assert sorted(await found(store, "note")) == sorted(f"note {number}" for number in range(20))

    asyncio.run(story())


ALPHABET = st.text("ab cé1猫.ﬁ%\"'*", max_size=8)
NOTES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from(("own", "team")), ALPHABET), max_size=8
)


@given(NOTES, ALPHABET)
def test_all_stores_find_the_same_and_no_client_what_is_anothers(
    notes: list[tuple[str, str, str, str]], query: str
) -> None:
    async def story(folder: Path) -> None:
        stores = [make(folder) for make in STORES]
        for agent, client, scope, text in notes:
            for store in stores:
                await run(agent, client).memory.remember(store, text, scope)
        for agent in "ab":
            for client in "xyz":
                answers = [await run(agent, client).memory.recall(store, query) for store in stores]
                assert answers[1:] == answers[:-1]
                assert {entry.client for entry in answers[0]} <= {client}
                wanted = set(words_of(query))
                assert all(wanted.intersection(words_of(entry.text)) for entry in answers[0]) or not wanted

    with a_folder() as made:
        asyncio.run(story(made))


CLIENTS = st.text("xy\x00'\",[] ", min_size=1, max_size=3)


@given(CLIENTS, CLIENTS)
def test_clients_whose_names_look_alike_are_two(one: str, other: str) -> None:
    async def story(folder: Path) -> None:
        for make in STORES:
            store = make(folder)
            await run("a", one).memory.remember(store, "note")
            expected = ["note"] if one == other else []
            assert await found(store, "note", run("a", other)) == expected
            assert await found(store, "", run("b", other)) == expected

    with a_folder() as made:
        asyncio.run(story(made))


# --- words --------------------------------------------------------------------------------------------------------


def test_only_the_first_words_of_a_query_are_looked_for(folder: Path) -> None:
    async def story() -> None:
        store = InMemoryStore()
        await run().memory.remember(store, "last")
        filler = " ".join(f"w{number}" for number in range(MAX_QUERY_WORDS - 1))
        assert await found(store, f"{filler} last") == ["last"]
        assert await found(store, f"{filler} more last") == []

    asyncio.run(story())


def test_a_shelf_in_the_process_forgets_the_oldest() -> None:
    async def story() -> None:
        store, memory = InMemoryStore(), run().memory
        key = next(scope for scope in memory.write if scope.name == "own")
        for number in range(MAX_SHELF_ENTRIES + 1):
            await store.add(key, f"n{number}")
        assert await found(store, "n0 n1") == ["n1"]

    asyncio.run(story())


# --- the file -----------------------------------------------------------------------------------------------------


def test_a_file_keeps_what_another_process_wrote(folder: Path) -> None:
    file = folder / "memory.db"
    script = f"""
import asyncio
from policy_lang import loads
from zcpolicy import Resolver, Session
from zcpolicy.memory_stores.sqlite import SqliteMemory
run = Resolver(loads({POLICY!r})).resolve("a", session=Session(client="x", labels=["dirty"]))
store = SqliteMemory({str(file)!r})
asyncio.run(run.memory.remember(store, "from another process"))
import os; os.kill(os.getpid(), 9)
"""
    here = sqlite(folder, file.name)
    environment = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], check=False, env=environment).returncode == -9
    reader = run()
    assert asyncio.run(found(here, "process", reader)) == ["from another process"]
    assert reader.session.labels == {"dirty"}


def test_opening_a_file_twice_leaves_the_first_its_locks(folder: Path) -> None:
    """Without them another process that closes the file would take it for its own, and remove what is written ahead."""
    first, second = sqlite(folder, "memory.db"), sqlite(folder, "memory.db")
    script = f"import sqlite3; c = sqlite3.connect({str(folder / 'memory.db')!r}); c.execute('SELECT * FROM entries'); c.close()"
    subprocess.run([sys.executable, "-c", script], check=True)
    asyncio.run(run().memory.remember(first, "after the other closed"))
    assert asyncio.run(found(sqlite(folder, "memory.db"), "")) == ["after the other closed"]
    assert asyncio.run(found(second, "")) == ["after the other closed"]


def test_an_index_that_is_missing_or_behind_is_made_up(folder: Path) -> None:
    async def story() -> None:
        without = sqlite(folder, "memory.db", full_text=False)
        await run().memory.remember(without, "first note")
        indexed = sqlite(folder, "memory.db")
        await run().memory.remember(indexed, "second note")
        await run().memory.remember(without, "third note")
        assert await found(sqlite(folder, "memory.db"), "note") == ["third note", "second note", "first note"]

    asyncio.run(story())


def test_only_its_owner_reads_the_file_and_its_names_are_told(folder: Path) -> None:
    store = sqlite(folder, "memory.db")
    asyncio.run(run().memory.remember(store, "note"))
    made = {str(file) for file in folder.iterdir()}
    assert made <= set(store.files)
    assert all(stat.S_IMODE(Path(file).stat().st_mode) == 0o600 for file in made)


def test_a_link_to_the_file_names_both(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "link.db").symlink_to(folder / "real" / "memory.db")
    store = sqlite(folder, "link.db")
    assert {str(file) for file in (folder / "real").iterdir()} | {str(folder / "link.db")} <= set(store.files)


BROKEN: dict[str, tuple[str, str]] = {
    "labels that cannot be read": ("UPDATE entries SET labels = '{'", "JSONDecodeError"),
    "labels that are none": ("UPDATE entries SET labels = '\"dirty\"'", "ValueError"),
    "a table that is gone": ("DROP TABLE entries", "OperationalError"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_not_handed_out(name: str, folder: Path) -> None:
    statement, kind = BROKEN[name]
    store = sqlite(folder, "memory.db")
    asyncio.run(run("a", "x", "dirty").memory.remember(store, "secret note"))
    with sqlite3.connect(folder / "memory.db", isolation_level=None) as other:
        other.execute(statement)
    other.close()
    with pytest.raises(MemoryUnavailable) as error:
        asyncio.run(run().memory.recall(store, "note"))
    assert str(error.value) == f"the memory file cannot be used: {kind}"


def test_a_closed_store_says_so(folder: Path) -> None:
    store = sqlite(folder, "memory.db")
    store.close()
    store.close()
    with pytest.raises(MemoryUnavailable):
        asyncio.run(run().memory.recall(store, "note"))
    with pytest.raises(MemoryUnavailable):
        asyncio.run(run().memory.remember(store, "note"))


def test_a_file_that_is_none_is_refused(folder: Path) -> None:
    (folder / "text").write_text("this is no database, but a longer text than a header of one has bytes " * 20)
    with pytest.raises(MemoryUnavailable, match="DatabaseError"):
        SqliteMemory(folder / "text")
    with pytest.raises(MemoryUnavailable, match="FileNotFoundError"):
        SqliteMemory(folder / "gone" / "memory.db")
    with sqlite3.connect(folder / "newer.db", isolation_level=None) as other:
        other.execute("PRAGMA user_version = 2")
    other.close()
    with pytest.raises(MemoryUnavailable, match="of another version"):
        SqliteMemory(folder / "newer.db")

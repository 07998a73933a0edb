"""Stores of memory take sealed scopes, which nobody writes out."""

from collections.abc import Sequence

from zcpolicy import ResolvedAgentExecution
from zcpolicy.memory import MemoryAccess, MemoryEntry, MemoryScope
from zcpolicy.memory_stores.contract import MemoryStore
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.memory_stores.sqlite import SqliteMemory


def those_here() -> list[MemoryStore]:
    return [InMemoryStore(), SqliteMemory("memory.db")]


async def write_where_a_text_says(store: MemoryStore) -> None:
    await store.add("own", "note")  # error: expected "MemoryScope" || "Literal['own']" is not assignable to "MemoryScope"


async def read_what_a_text_says(store: MemoryStore) -> Sequence[MemoryEntry]:
    return await store.search(["own"], "note", 5)  # error: expected "MemoryScope" || "Literal['own']" is not assignable to "MemoryScope"


def make_a_scope() -> MemoryScope:
    return MemoryScope("own")  # error: expected "Never" || is not assignable to type "Never"


class OtherScope(MemoryScope):  # error: Cannot inherit from final class "MemoryScope" || Base class "MemoryScope" is marked final
    pass


def make_an_access(run: ResolvedAgentExecution) -> MemoryAccess:
    return MemoryAccess(run)  # error: expected "Never" || is not assignable to type "Never"


class Careless:
    async def add(self, scope: str, text: str) -> None: ...

    async def search(self, scopes: Sequence[str], query: str, limit: int) -> Sequence[MemoryEntry]:
        return []


async def remember_in_a_store_that_takes_texts(run: ResolvedAgentExecution) -> None:
    await run.memory.remember(Careless(), "note")  # error: expected "MemoryStore" || is incompatible with protocol "MemoryStore"

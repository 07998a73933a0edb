"""What an execution may recall and remember (SPEC 4, 7 and 10): scopes as sealed values, which stores have to be given.

In: an execution, a store. Out: `MemoryAccess`, which hands out `MemoryScope`s, puts the labels of what is recalled on the
session, and those of the session on what is remembered.

A scope is a key to one shelf, and looked at anew each time it is used: one that no execution made, or whose right a
newer policy or a skill has taken away, opens nothing.
"""

from __future__ import annotations

from _weakref import ref

from zcpolicy.authority import SealError, genuine
from zcpolicy.program import has_agent, head_of
from zcpolicy.records import NamedTuple
from zcpolicy.refusals import ResolveError
from zcpolicy.sealed import Sealed, final, put
from zcpolicy.windows import NoTime, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Final, Literal, Never

    from zcpolicy.events import Recorder
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.memory_stores.contract import MemoryStore
    from zcpolicy.stack import BodyRef, Stack

    Mode = Literal["read", "write"]
    Kind = Literal["agent", "scope"]

MAX_MEMORY_CHARACTERS: Final = 20_000
"""Characters of one memory entry, and of one query: a longer one is refused."""


class MemoryRefused(Exception):
    """What may not be recalled or remembered. The message says why, lower case, no full stop."""


class Shelf(NamedTuple):
    """One place in a store, of one client. `kind` `agent`: what the agent of this name remembers; `scope`: a declared
    scope.
    """

    client: str
    kind: Kind
    name: str


class MemoryEntry(NamedTuple):
    """One thing remembered. `labels`: of the session that wrote it. `agent`, `session`: who wrote it, and in which.

    `at`: seconds since the epoch.
    """

    shelf: Shelf
    text: str
    labels: frozenset[str]
    agent: str
    session: str
    at: float

    @property
    def client(self) -> str:
        """Whose it is."""
        return self.shelf.client


@final
class MemoryScope(Sealed):
    """A key to one shelf. `name`: as the policy says it: `own`, an agent, a declared scope. Made by `MemoryAccess`.

    Which shelf that is stands in no slot that could be altered: stores ask `genuine_scope`.
    """

    __slots__ = ("__weakref__", "mode", "name")
    _maker = "`MemoryAccess`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self.name: Final[str] = sealed
            self.mode: Final[Mode] = sealed

    def __repr__(self) -> str:
        return f"<MemoryScope {self.mode} {self.name}>"


@final
class MemoryAccess(Sealed):
    """The memory of one execution: `run.memory`. It follows the session's skills and the newest policy."""

    __slots__ = ("_acting", "_record", "_run")
    _maker = "`run.memory`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self._run: Final[ResolvedAgentExecution] = sealed
            self._record: Final[Recorder | None] = sealed
            self._acting: Final[Callable[[], object] | None] = sealed

    @classmethod
    def of(
        cls,
        run: ResolvedAgentExecution,
        record: Recorder | None = None,
        acting: Callable[[], object] | None = None,
    ) -> MemoryAccess:
        """The access of an execution. `record` is given an event of every use. `acting`: of an access that is given to a
        call; it raises PermitError once that is over, and then the access and its scopes raise MemoryRefused.

        Raises SealError for what no resolver made.
        """
        genuine(run)
        made: MemoryAccess = object.__new__(cls)
        put(made, "_run", run)
        put(made, "_record", record)
        put(made, "_acting", acting)
        return made

    @property
    def read(self) -> tuple[MemoryScope, ...]:
        """What may be recalled now, sorted by name; nothing where the newest policy has no such execution.

        This and the others raise MemoryRefused once the call is over that the access was given to.
        """
        return self._scopes("read")

    @property
    def write(self) -> tuple[MemoryScope, ...]:
        """Where may be remembered now, sorted by name."""
        return self._scopes("write")

    async def recall(self, store: MemoryStore, query: str) -> tuple[MemoryEntry, ...]:
        """The entries that fit best, at most `run.runtime.recall`; an empty query: the newest.

        Their labels are on the session before they are handed out. Where nothing may be read there is nothing. Raises
        MemoryRefused (no text, too long; a right that went away meanwhile), and what the store raises.
        """
        _fits(query)
        scopes = self.read
        found: tuple[MemoryEntry, ...] = ()
        if scopes:
            found = handed(scopes, await store.search(scopes, query, _now(self._run).runtime.recall))
        names = [scope.name for scope in scopes]
        labels = sorted({label for entry in found for label in entry.labels})
        self._tell({"did": "recall", "scopes": names, "entries": len(found), "labels": labels})
        return found

    async def remember(self, store: MemoryStore, text: str, scope: str = "own") -> None:
        """Puts a text on a shelf, under the labels of the session. `scope`: a name of `write`.

        Raises MemoryRefused (no such scope to write to; no text, too long; no time), and what the store raises.
        """
        _fits(text)
        found = next((one for one in self.write if one.name == scope), None)
        if found is None:
            self._tell({"did": "refused", "scope": str(scope)[:60]})
            raise MemoryRefused(f"agent `{self._run.agent}` may not write memory `{str(scope)[:60]}`")
        await store.add(found, text)
        self._tell({"did": "remember", "scope": found.name, "characters": len(text)})

    def _scopes(self, mode: Mode) -> tuple[MemoryScope, ...]:
        genuine(self._run)
        _still(self._acting)
        try:
            shelves = sorted(_shelves(_now(self._run), mode))
        except MemoryRefused:
            return ()
        return tuple(_scope(_Key(self._run, mode, name, shelf, self._acting)) for name, shelf in shelves)

    def _tell(self, data: dict[str, Any]) -> None:
        if self._record is not None:
            from zcpolicy.events import tell

            tell(self._record, "memory", self._run, data)

    def __repr__(self) -> str:
        return f"<MemoryAccess of {self._run.agent}>"


# --- for stores ---------------------------------------------------------------------------------------------------


class _Key(NamedTuple):
    """What a scope opens. `acting`: of the call that it was given to; None: it is the execution's."""

    run: ResolvedAgentExecution
    mode: Mode
    name: str
    shelf: Shelf
    acting: Callable[[], object] | None


_made: dict[int, tuple[ref[MemoryScope], _Key]] = {}
"""What every scope is, whatever may be written on the object."""


def genuine_scope(scope: MemoryScope, mode: Mode) -> tuple[ResolvedAgentExecution, Shelf]:
    """Whose key it is, under the newest policy, and the shelf that it opens.

    Raises SealError for what no execution made; MemoryRefused where it is a key for something else, or its right is gone,
    or the call is over that it was given to.
    """
    entry = _made.get(id(scope))
    if entry is None or entry[0]() is not scope:
        raise SealError(f"{type(scope).__name__[:60]} is no scope that an execution made")
    key = entry[1]
    genuine(key.run)
    _still(key.acting)
    now = _now(key.run)
    if key.mode != mode or (key.name, key.shelf) not in _shelves(now, mode):
        raise MemoryRefused(f"agent `{now.agent}` may not {mode} memory `{key.name}`")
    return now, key.shelf


def handed(scopes: Sequence[MemoryScope], entries: Iterable[MemoryEntry]) -> tuple[MemoryEntry, ...]:
    """What a store may give to the holder of these scopes, in its order; its labels are on the session from here on.

    Entries of other shelves, those that are none, and those beyond `runtime.recall` are left out. Raises as
    `genuine_scope`.
    """
    opened = [genuine_scope(scope, "read") for scope in scopes]
    shelves = {shelf for _, shelf in opened}
    most = min((run.runtime.recall for run, _ in opened), default=0)
    found = tuple(entry for entry in entries if _is_sound(entry) and entry.shelf in shelves)[:most]
    for run, _ in opened:
        for entry in found:
            run.session.mark(entry.labels)
    return found


def written(scope: MemoryScope, text: str) -> MemoryEntry:
    """The entry that a store puts on a shelf: with all labels that the session of the writer has now.

    Raises as `genuine_scope`, and MemoryRefused for what is no text, is too long, or has no time.
    """
    _fits(text)
    run, shelf = genuine_scope(scope, "write")
    return MemoryEntry(shelf, text, run.session.labels, run.agent, run.session.id, _time(run))


# --- what the bodies say ------------------------------------------------------------------------------------------


def _scope(key: _Key) -> MemoryScope:
    made: MemoryScope = object.__new__(MemoryScope)
    put(made, "name", key.name)
    put(made, "mode", key.mode)
    place = id(made)
    _made[place] = (ref(made, lambda _gone: _made.pop(place, None)), key)
    return made


def _still(acting: Callable[[], object] | None) -> None:
    """Raises MemoryRefused where the call is over that something was given to."""
    try:
        if acting is not None:
            acting()
    except ResolveError as error:
        raise MemoryRefused(str(error)) from None


def _now(run: ResolvedAgentExecution) -> ResolvedAgentExecution:
    """The execution under the newest policy and all skills of its session."""
    try:
        newest = run.renewed()
        newest.keep_up()
    except ResolveError as error:
        raise MemoryRefused(str(error)) from None
    return newest


def _shelves(run: ResolvedAgentExecution, mode: Mode) -> Iterator[tuple[str, Shelf]]:
    """The name and the shelf of everything that the granting body names and no body withholds."""
    stack, client = genuine(run).stack, run.session.client
    said = stack.own.root.data.get("memory")
    if not client:  # nobody's memory: what two hosts' sessions without a client wrote would be one
        return
    for name in said[mode] if said is not None else ():
        place = _place(stack, name)
        if place is not None and all(
            _lets(stack, level.agent, body, mode, *place) for level in stack.levels for body in level.bodies
        ):
            yield name, Shelf(client, *place)


def _place(stack: Stack, name: str) -> tuple[Kind, str] | None:
    """What a name means to the acting agent; nothing, if it is neither a declared scope nor an agent."""
    if name == "own":
        return "agent", stack.own.agent
    if name in head_of(stack.program)["scopes"]:
        return "scope", name
    return ("agent", name) if has_agent(stack.program, name) else None


def _lets(stack: Stack, agent: str, body: BodyRef, mode: Mode, kind: Kind, name: str) -> bool:
    """Whether one body lets the acting agent use a shelf. `agent`: at whose level the body stands.

    `own` is its own shelf to each: an agent that may use its own lets those below it use theirs, and its.
    """
    said = body.data.get("memory")
    if said is None:
        return not body.grants
    names = said[mode]
    if kind == "agent" and "own" in names and name in (agent, stack.own.agent):
        return True
    declared = name in head_of(stack.program)["scopes"]
    return name in names and declared == (kind == "scope")


# --- values -------------------------------------------------------------------------------------------------------


def _fits(text: object) -> None:
    if not isinstance(text, str):
        raise MemoryRefused("memory takes text")
    if len(text) > MAX_MEMORY_CHARACTERS:
        raise MemoryRefused(f"memory takes texts of up to {MAX_MEMORY_CHARACTERS} characters")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise MemoryRefused("memory takes no text with half a character")


def _is_sound(entry: Any) -> bool:
    """What a store gives is the host's code: whatever cannot be read is left out."""
    return (
        type(entry) is MemoryEntry
        and type(entry.text) is str
        and type(entry.labels) is frozenset
        and all(type(label) is str for label in entry.labels)
    )


def _time(run: ResolvedAgentExecution) -> float:
    try:
        return told(run.session.clock)
    except NoTime:
        raise MemoryRefused("the session's clock does not tell the time") from None

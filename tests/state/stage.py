"""Executions, a handle and tools, as small as stories about shared state want them."""

from collections.abc import Iterable
from typing import Any

from tests.engine.programs import body, program, rule
from tests.engine.programs import tool as declared
from zcpolicy import ResolvedAgentExecution, Resolver, Session
from zcpolicy.registry.sources import HostTool, Run
from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, owners
from zcpolicy.state.locks import ReadWriteLock

RESOLVER = Resolver(
    program([declared("note"), declared("notes")], body("one", rule("allow", "0-1")), body("two", rule("allow", "0-1")))
)


def acting(client: str = "ann", agent: str = "one", session: str = "first") -> ResolvedAgentExecution:
    return RESOLVER.resolve(agent, session=Session(client=client, id=session), surface="chat")


def contract(**changed: Any) -> Contract:
    """A sound one, changed."""
    given: dict[str, Any] = {
        "holds": "notes", "owner": "daemon", "concurrency": "read-write lock", "isolation": "client", "reload": "re-resolved",
        "depends": frozenset({"config"}),
    }  # fmt: skip
    return Contract(**{**given, **changed})


class NotesView:
    """The notes of one client."""

    def __init__(self, notes: "Notes", scope: Scope) -> None:
        self._notes = notes
        self._scope = scope

    def write(self, text: object) -> None:
        self._notes.contract.admits(text)
        with self._notes.lock.writing():
            self._notes.entries.setdefault(self._scope.key, []).append((text, self._scope.who))

    def read(self) -> list[object]:
        with self._notes.lock.reading():
            return [text for text, _ in self._notes.entries.get(self._scope.key, [])]


class Notes(Handle[NotesView]):
    """Notes, each client's own."""

    contract = contract()

    def __init__(self) -> None:
        self.entries: dict[tuple[str, ...], list[tuple[object, Who]]] = {}
        self.lock = ReadWriteLock()

    @owners
    def clear(self) -> None:
        self.entries.clear()

    def _view(self, scope: Scope) -> NotesView:
        return NotesView(self, scope)

    def _held(self) -> Iterable[Held]:
        return [Held(str(text), who) for entries in self.entries.values() for text, who in entries]


class SessionNotes(Notes):
    """The same, each session's own."""

    contract = contract(isolation="session")


class SharedNotes(Notes):
    """The same, everybody's."""

    contract = contract(isolation="shared")


def tool(name: str, run: Run) -> HostTool:
    return HostTool(name, "Does it.", {"type": "object", "properties": {"text": {"type": "string"}}}, run)

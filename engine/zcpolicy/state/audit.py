"""All the shared state of a host, by name: what an operator lists, and what factories are lent from.

In: handles, declared once each. Out: `Handles`, its entries by client, agent, channel and session, as JSON.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Handle, Held
from zcpolicy.state.releasing import Once, fault

H = TypeVar("H", bound=Handle[Any])

MAX_LISTED: Final = 10_000
"""Entries of one handle that a listing shows; how many there are in all it says as well."""


class HandleError(LookupError):
    """There is no such handle, or two; the message says which there are."""


class Handles:
    """Every handle of a host. The host keeps it; tools are lent single handles at construction, and never see this."""

    def __init__(self, **handles: Handle[Any]) -> None:
        self._handles: dict[str, Handle[Any]] = {}
        self._ending = Once(self._ended)
        self._seconds = 0.0
        for name, handle in handles.items():
            self.declare(name, handle)

    def declare(self, name: str, handle: Handle[Any]) -> None:
        """Puts a handle on the list. Raises TypeError for what is no handle, and for a name that is taken or empty."""
        given: Any = handle
        if not isinstance(given, Handle):
            raise TypeError(f"`{name}` is no handle: shared state stands in a type below `Handle`, with a contract")
        if not name or name in self._handles:
            raise TypeError(f"there is a handle `{name}` already" if name else "a handle has a name")
        self._handles[name] = given

    def find(self, kind: type[H], name: str = "") -> tuple[str, H]:
        """The name and the handle of a type, the only one where no name is given. Raises HandleError."""
        fitting = [(its, one) for its, one in self._handles.items() if isinstance(one, kind) and name in ("", its)]
        if len(fitting) != 1:
            which = f"handle `{name}` of type `{kind.__name__}`" if name else f"handle of type `{kind.__name__}`"
            there = ", ".join(f"`{its}`" for its in self._handles) or "none"
            raise HandleError(f"the host has {'no' if not fitting else 'more than one'} {which}; there is {there}")
        return fitting[0]

    def __iter__(self) -> Iterator[tuple[str, Handle[Any]]]:
        return iter(list(self._handles.items()))

    async def shut_down(self, seconds: float) -> list[str]:
        """Has each handle that owns something of the outside release it (`shut_down`), the last first, within so many seconds,
        once, whatever fails. For the host, when the tools are shut down. What went wrong.
        """
        self._seconds = seconds
        return await self._ending.asked()

    async def _ended(self) -> list[str]:
        wrong: list[str] = []
        for name, handle in reversed(self._handles.items()):
            shut_down = getattr(handle, "shut_down", None)
            why = "" if shut_down is None else await fault(shut_down, self._seconds)
            wrong += [f"handle `{name}`: {why}"] if why else []
        return wrong

    def to_json(
        self,
        *,
        client: str | None = None,
        agent: str | None = None,
        channel: str | None = None,
        session: str | None = None,
    ) -> dict[str, Any]:
        """Name to `{type, contract, entries, count}`; an entry is `{name, client, agent, channel, session}`, never a value.

        What is given filters: entries of others, and those of nobody, are left out.
        """
        wanted = {"client": client, "agent": agent, "channel": channel, "session": session}
        asked = {field: value for field, value in wanted.items() if value is not None}
        return {name: _told(handle, asked) for name, handle in self}


def _told(handle: Handle[Any], asked: dict[str, str]) -> dict[str, Any]:
    entries = [
        entry for entry in map(_entry, handle.held()) if all(entry[name] == value for name, value in asked.items())
    ]
    return {
        "type": type(handle).__name__,
        "contract": handle.contract.to_json(),
        "entries": entries[:MAX_LISTED],
        "count": len(entries),
    }


def _entry(held: Held) -> dict[str, str | None]:
    entry: dict[str, str | None] = {"name": held.name, **dict.fromkeys(Who._fields)}
    return entry if held.who is None else {**entry, **held.who.to_json()}

"""Facts of a session as JSON lays them out → what a host would report.

In: a JSON object whose keys are among `SESSION_KEYS`. Out: a `Session`; `FactsError` that names the key.
"""

from __future__ import annotations

from math import inf

from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import Entry, FactsError, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from zcpolicy.facts import ToolName

SESSION_KEYS: Final = (
    "cwd", "interactive", "platform", "env", "server_cwd", "supplies_defaults", "context", "labels", "history", "client",
)  # fmt: skip
"""What may be told of a session."""
ENTRY_KEYS: Final = ("tool", "args", "ok", "at")
"""What may be told of a call that ran."""


def session_of(told: dict[str, Any], *, id: str = "") -> Session:
    """The session. `id`: whose calls count as one session's; by default no other's. Raises FactsError."""
    said = {key: told[key] for key in SESSION_KEYS if key in told}
    if "history" in said:
        said["history"] = [_entry(entry) for entry in list_in(said["history"], "history")]
    for key in ("env", "server_cwd", "context"):
        if key in said and not is_object(said[key]):
            raise misfit(key, "an object")
    if "labels" in said:
        said["labels"] = texts_in(said["labels"], "labels")
    if "client" in said and not (isinstance(said["client"], str) and said["client"]):
        raise misfit("client", "text that is not empty")
    return Session(**said, id=id)


def tool_in(read: Any, key: str, where: str = "") -> ToolName:
    """`"name"` of the host, `["server", "name"]` of an MCP server. Raises FactsError."""
    if isinstance(read, str):
        return read
    if is_list(read) and len(read) == 2 and all(isinstance(part, str) for part in read):
        return (str(read[0]), str(read[1]))
    raise misfit(key, 'a tool: `"name"`, or `["server", "name"]`', where)


def texts_in(read: Any, key: str) -> list[str]:
    """A list of strings. Raises FactsError."""
    found = list_in(read, key)
    if not all(isinstance(one, str) for one in found):
        raise misfit(key, "a list of strings")
    return found


def list_in(read: Any, key: str) -> list[Any]:
    """A list. Raises FactsError."""
    if not is_list(read):
        raise misfit(key, "a list")
    return read


def misfit(key: str, wanted: str, where: str = "") -> FactsError:
    """What is raised for a key whose value is of another kind. `where`: what the message begins with."""
    return FactsError(f"{where}`{key}` must be {wanted}")


def _entry(read: Any) -> Entry:
    if not is_object(read):
        raise misfit("history", "a list of objects")
    if "tool" not in read:
        raise FactsError("an entry of `history` has no `tool`")
    if not read.keys() <= {*ENTRY_KEYS}:
        raise FactsError(f"history: an entry has {', '.join(f'`{key}`' for key in ENTRY_KEYS)}, and nothing else")
    arguments, ok, at = read.get("args", {}), read.get("ok", True), read.get("at", 0)
    if not is_object(arguments):
        raise misfit("args", "an object", "history: ")
    if not isinstance(ok, bool):
        raise misfit("ok", "true or false", "history: ")
    return Entry(tool_in(read["tool"], "tool", "history: "), arguments, ok=ok, at=_seconds(at))


def _seconds(at: Any) -> float:
    try:
        seconds = inf if isinstance(at, bool | str) else float(at)
    except (TypeError, OverflowError):
        seconds = inf
    if abs(seconds) == inf:
        raise misfit("at", "a number of seconds", "history: ")
    return seconds

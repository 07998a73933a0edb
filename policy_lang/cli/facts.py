"""`--session` and `--narrow`: JSON → what a host would report.

In: JSON text. Out: a `Session`, a `Narrowing`. Errors name the key; an unknown key is an error with the nearest one.
"""

from __future__ import annotations

from math import inf

from policy_lang.cli.errors import CommandError
from policy_lang.cli.words import nearest
from zcpolicy.call import Malformed, read_json
from zcpolicy.facts import Entry, FactsError, Narrowing, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.facts import ToolName
    from zcpolicy.program import Program

_SESSION = (
    "cwd", "interactive", "platform", "env", "server_cwd", "supplies_defaults", "context", "labels", "history", "client",
)  # fmt: skip
_NARROWING = ("only", "deny", "ask", "autonomy", "limits", "exclude_memory")
_ENTRY = ("tool", "args", "ok", "at")


def session_from(text: str | None, *, lasting: bool = False, client: str = "") -> Session:
    """The session; here a person can be asked unless it says otherwise.

    `lasting`: what it spends is kept; then it is a session of its own, whose limits no other process uses up. `client`:
    whose it is where it does not say.

    Raises:
        CommandError: not JSON, an unknown key, a value of another kind.
    """
    said = _object(text or "{}", "--session", _SESSION)
    said.setdefault("interactive", True)
    said["id"] = "" if lasting else "one call"  # "": no other's
    if "history" in said:
        said["history"] = [_entry(entry) for entry in _list(said["history"], "--session", "history")]
    for key in ("env", "server_cwd", "context"):
        if key in said and not _is_object(said[key]):
            raise _wrong("--session", key, "an object")
    if "labels" in said:
        said["labels"] = _texts(said["labels"], "--session", "labels")
    if "client" in said and not (isinstance(said["client"], str) and said["client"]):
        raise _wrong("--session", "client", "text that is not empty")
    said.setdefault("client", client)
    try:
        return Session(**said)
    except FactsError as error:
        raise CommandError(f"--session: {error}") from None


def must_fit(session: Session, program: Program) -> None:
    """Holds labels and facts of the context against what the policy declares.

    Raises:
        CommandError: one that is nearly a declared one.
    """
    if session.labels or session.context:
        from zcpolicy.needs import refuse_misfits
        from zcpolicy.refusals import ResolveError

        try:
            refuse_misfits(program, session)
        except ResolveError as error:
            raise CommandError(f"--session: {error}") from None


def narrowing_from(text: str | None, program: Program) -> Narrowing | None:
    """The narrowing, or None where nothing is narrowed; it names tools of the program.

    Raises:
        CommandError: as `session_from`.
    """
    if text is None:
        return None
    said = _object(text, "--narrow", _NARROWING)
    for key in ("only", "deny", "ask"):
        if key in said:
            said[key] = [_tool(one, "--narrow", key) for one in _list(said[key], "--narrow", key)]
    if "limits" in said:
        said["limits"] = _texts(said["limits"], "--narrow", "limits")
    if not isinstance(said.get("autonomy", ""), dict | str):
        raise _wrong("--narrow", "autonomy", "a level or an object")
    from zcpolicy.narrowing import refuse_unknown
    from zcpolicy.refusals import ResolveError

    try:
        found = Narrowing(**said)
        refuse_unknown(found, program.tools)
    except (FactsError, ResolveError) as error:
        raise CommandError(f"--narrow: {error}") from None
    return found


def _object(text: str, option: str, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        read: Any = read_json(text)
    except Malformed as error:
        raise CommandError(
            f"{option}: {str(error).replace('the arguments are', 'the text is').replace('the arguments', 'the text')}"
        ) from None
    if not _is_object(read):
        raise CommandError(f"{option}: the text is not a JSON object")
    return _known(read, option, keys)


def _known(read: dict[str, Any], option: str, keys: tuple[str, ...]) -> dict[str, Any]:
    for key in read:
        if key not in keys:
            near = nearest(key, keys)
            more = f"did you mean `{near}`?" if near else f"there are {', '.join(f'`{one}`' for one in keys)}"
            raise CommandError(f"{option}: there is no key `{_shown(key)}`; {more}")
    return dict(read)


def _entry(read: Any) -> Entry:
    if not _is_object(read):
        raise _wrong("--session", "history", "a list of objects")
    said = _known(read, "--session: history", _ENTRY)
    if "tool" not in said:
        raise CommandError("--session: an entry of `history` has no `tool`")
    arguments, ok, at = said.get("args", {}), said.get("ok", True), said.get("at", 0)
    if not _is_object(arguments):
        raise _wrong("--session: history", "args", "an object")
    if not isinstance(ok, bool):
        raise _wrong("--session: history", "ok", "true or false")
    return Entry(_tool(said["tool"], "--session: history", "tool"), arguments, ok=ok, at=_seconds(at))


def _seconds(at: Any) -> float:
    try:
        seconds = inf if isinstance(at, bool | str) else float(at)
    except (TypeError, OverflowError):
        seconds = inf
    if abs(seconds) == inf:
        raise _wrong("--session: history", "at", "a number of seconds")
    return seconds


def _tool(read: Any, option: str, key: str) -> ToolName:
    """`"name"` of the host, `["server", "name"]` of an MCP server."""
    if isinstance(read, str):
        return read
    if _is_list(read) and len(read) == 2 and all(isinstance(part, str) for part in read):
        return (str(read[0]), str(read[1]))
    raise _wrong(option, key, 'a tool: `"name"`, or `["server", "name"]`')


def _texts(read: Any, option: str, key: str) -> list[str]:
    found = _list(read, option, key)
    if not all(isinstance(one, str) for one in found):
        raise _wrong(option, key, "a list of strings")
    return found


def _list(read: Any, option: str, key: str) -> list[Any]:
    if not _is_list(read):
        raise _wrong(option, key, "a list")
    found: list[Any] = read
    return found


def _wrong(option: str, key: str, wanted: str) -> CommandError:
    return CommandError(f"{option}: `{key}` must be {wanted}")


def _shown(key: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in key[:60])


def _is_object(read: object) -> bool:
    return isinstance(read, dict)


def _is_list(read: object) -> bool:
    return isinstance(read, list)

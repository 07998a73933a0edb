"""`--session` and `--narrow`: JSON → what a host would report.

In: JSON text. Out: a `Session`, a `Narrowing`. Errors name the key; an unknown key is an error with the nearest one.
"""

from __future__ import annotations

from policy_lang.cli.errors import CommandError
from policy_lang.cli.words import nearest
from zcpolicy.call import Malformed, read_json
from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import FactsError, Narrowing, Session
from zcpolicy.facts_json import ENTRY_KEYS, SESSION_KEYS, list_in, misfit, session_of, texts_in, tool_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.program import Program

_NARROWING = ("only", "deny", "ask", "autonomy", "limits", "exclude_memory")


def session_from(text: str | None, *, lasting: bool = False, client: str = "") -> Session:
    """The session; here a person can be asked unless it says otherwise.

    `lasting`: what it spends is kept; then it is a session of its own, whose limits no other process uses up. `client`:
    whose it is where it does not say.

    Raises:
        CommandError: not JSON, an unknown key, a value of another kind.
    """
    said = _object(text or "{}", "--session", SESSION_KEYS)
    said.setdefault("interactive", True)
    if client:
        said.setdefault("client", client)
    for entry in said["history"] if is_list(said.get("history")) else ():
        if is_object(entry):
            _known(entry, "--session: history", ENTRY_KEYS)
    try:
        return session_of(said, id="" if lasting else "one call")  # "": no other's
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
    from zcpolicy.narrowing import refuse_unknown
    from zcpolicy.refusals import ResolveError

    try:
        for key in ("only", "deny", "ask"):
            if key in said:
                said[key] = [tool_in(one, key) for one in list_in(said[key], key)]
        if "limits" in said:
            said["limits"] = texts_in(said["limits"], "limits")
        if not isinstance(said.get("autonomy", ""), dict | str):
            raise misfit("autonomy", "a level or an object")
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
    if not is_object(read):
        raise CommandError(f"{option}: the text is not a JSON object")
    return _known(read, option, keys)


def _known(read: dict[str, Any], option: str, keys: tuple[str, ...]) -> dict[str, Any]:
    for key in read:
        if key not in keys:
            near = nearest(key, keys)
            more = f"did you mean `{near}`?" if near else f"there are {', '.join(f'`{one}`' for one in keys)}"
            raise CommandError(f"{option}: there is no key `{_shown(key)}`; {more}")
    return dict(read)


def _shown(key: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in key[:60])

"""Sessions that outlive a process: saved, restored, forked (SPEC 7 and 10).

In: a `Session`. Out: JSON that holds all of it but what is code (its clock, its link resolver) and the session above it.
In: such JSON. Out: the session again, from which the same calls get the same answers. Labels, loaded skills and ancestry
are kept by all three; nothing here takes one off. What was made in a session (`Session.lines`) a fork does not keep.

What is saved is trusted as the host's own facts are: keep it where no agent writes (see `protected`).
"""

from __future__ import annotations

from decimal import Decimal

from zcpolicy.exact import MAX_NUMBER_DIGITS, exact, is_list, is_object, number_of, number_text
from zcpolicy.facts import MAX_HISTORY, Entry, FactsError, Session
from zcpolicy.lineage import MAX_SESSION_LINES
from zcpolicy.sealed import put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from zcpolicy.facts import ToolName

MAX_SAVED_DEPTH: Final = 200
"""Levels of lists and objects in one value of a saved session."""

MAX_SAVED_SECONDS: Final = 2**53
"""Seconds of a saved session's times, before and after the epoch: below it they are exact."""

FORMAT: Final = "zcpolicy session 1"
"""What a saved session calls itself."""


class _Odd(Exception):
    """A value that is not of the kind that stands there."""


def save(session: Session) -> dict[str, Any]:
    """The session as JSON: objects, lists, texts, true, false, null; numbers are exact, as text.

    Raises FactsError for what JSON cannot hold (the host's own values, in `context` and in `history`).
    """
    saved: dict[str, Any] = {"format": FORMAT}
    for name, (write, _) in _FIELDS.items():
        try:
            saved[name] = write(getattr(session, name))
        except _Odd:
            raise FactsError(f"`{name}` of the session holds what cannot be saved") from None
    return saved


def restore(
    saved: Mapping[str, Any],
    *,
    clock: Callable[[], float] | None = None,
    resolve_link: Callable[[str], str | None] | None = None,
    above: Session | None = None,
) -> Session:
    """The session that was saved. `clock`, `resolve_link`: as of `Session`; `above`: the session of its delegator.

    A session that was a child's stays one: it is resolved below its delegator, or not at all. Raises FactsError for
    anything that `save` does not write, and for an `above` that is not the session it was under.
    """
    given: Any = saved
    if not is_object(given) or given.get("format") != FORMAT:
        raise FactsError(f"this is no `{FORMAT}`")
    if given.keys() != {"format", *_FIELDS}:
        raise FactsError("a saved session has other parts than were saved")
    values: dict[str, Any] = {}
    for name, (_, read) in _FIELDS.items():
        try:
            values[name] = read(given[name])
        except _Odd:
            raise FactsError(f"`{name}` of a saved session is not what was saved") from None
    later = {name: values.pop(name) for name in ("ancestry", "lines", "origin", "skills")}
    if above is not None and later["ancestry"] and later["ancestry"][0][1] != above.id:
        raise FactsError("the session above is not the one that the saved session was under")
    made = Session(clock=clock, resolve_link=resolve_link, above=above, **values)
    for name, value in later.items():
        put(made, name, value)
    return made


def fork(session: Session, *, id: str = "") -> Session:
    """A session that goes on from here beside the first, under another id (a new one if none is given).

    It keeps all that resuming keeps, and spends from the pots of the session that it comes from (`Session.origin`), so
    that no limit begins anew. What was approved in the first is asked again, and no ticket of before tells of it. Raises
    FactsError as `save`, and for the first one's own id.
    """
    if type(id) is not str or id in (session.id, session.origin):
        raise FactsError("a fork has an id of its own")
    saved: dict[str, Any] = {**save(session), "id": id or Session().id, "lines": []}
    return restore(saved, clock=session.clock, resolve_link=session.resolve_link, above=session.above)


# --- values: what may stand where, in both directions --------------------------------------------------------------


def _needs(condition: bool) -> None:
    if not condition:
        raise _Odd


def _text(value: Any) -> str:
    _needs(type(value) is str)
    return str(value)


def _name(value: Any) -> str:
    _needs(value != "")
    return _text(value)


def _path(value: Any) -> str | None:
    return None if value is None else _text(value)


def _switch(value: Any) -> bool:
    _needs(type(value) is bool)
    return bool(value)


def _platform(value: Any) -> str:
    _needs(value in ("posix", "windows"))
    return _text(value)


def _texts(value: Any) -> dict[str, str]:
    _needs(is_object(value))
    return {_text(name): _text(one) for name, one in value.items()}


def _names_out(value: Any) -> list[str]:
    return sorted(map(_text, value))


def _names_in(value: Any) -> frozenset[str]:
    _needs(is_list(value))
    return frozenset(map(_text, value))


def _line_out(value: Any) -> list[list[str]]:
    return [[_text(agent), _text(session)] for agent, session in value]


def _line_in(value: Any) -> tuple[tuple[str, str], ...]:
    _needs(is_list(value) and all(is_list(pair) and len(pair) == 2 for pair in value))
    return tuple((_text(agent), _text(session)) for agent, session in value)


def _lines_out(value: Any) -> list[list[Any]]:
    return sorted([_text(agent), _switch(independent), _line_out(above)] for agent, independent, above in value)


def _lines_in(value: Any) -> frozenset[tuple[str, bool, tuple[tuple[str, str], ...]]]:
    _needs(is_list(value) and len(value) <= MAX_SESSION_LINES and all(is_list(one) and len(one) == 3 for one in value))
    return frozenset((_text(agent), _switch(independent), _line_in(above)) for agent, independent, above in value)


def _tool_out(value: Any) -> str | list[str]:
    return value if type(value) is str else [_text(part) for part in value]


def _tool_in(value: Any) -> ToolName:
    if type(value) is str:
        return value
    _needs(is_list(value) and len(value) == 2)
    return _text(value[0]), _text(value[1])


def _drift_kind(value: Any) -> str:
    _needs(value in ("description", "schema", "launch"))
    return _text(value)


def _drift_out(value: Any) -> list[Any]:
    return [[_tool_out(tool), _drift_kind(kind)] for tool, kind in sorted(value.items(), key=str)]


def _drift_in(value: Any) -> dict[ToolName, str]:
    _needs(is_list(value) and all(is_list(pair) and len(pair) == 2 for pair in value))
    return {_tool_in(tool): _drift_kind(kind) for tool, kind in value}


def _number_out(value: Any) -> str:
    try:
        number: Any = exact(value) if type(value) is float else value
        _needs(type(number) in (int, Decimal) and abs(Decimal(number).adjusted()) <= MAX_NUMBER_DIGITS)
        text = number_text(number)
        number_of(text)
    except ValueError:
        raise _Odd from None
    return text


def _number_in(value: Any) -> int | Decimal:
    try:
        return number_of(_text(value))
    except ValueError:
        raise _Odd from None


def _value_out(value: Any, depth: int = 0) -> Any:
    """A JSON value in the form that compiled policies write values in. Other types would not come back as they went."""
    _needs(depth <= MAX_SAVED_DEPTH)
    if value is None or type(value) in (str, bool):
        return value
    if is_list(value):
        return {"list": [_value_out(one, depth + 1) for one in value]}
    if is_object(value):
        return {"object": {_text(name): _value_out(one, depth + 1) for name, one in value.items()}}
    return {"n": _number_out(value)}


def _value_in(value: Any, depth: int = 0) -> Any:
    _needs(depth <= MAX_SAVED_DEPTH)
    if value is None or type(value) in (str, bool):
        return value
    _needs(is_object(value) and len(value) == 1)
    kind, held = next(iter(value.items()))
    if kind == "n":
        return _number_in(held)
    if kind == "list":
        _needs(is_list(held))
        return [_value_in(one, depth + 1) for one in held]
    _needs(kind == "object" and is_object(held))
    return {_text(name): _value_in(one, depth + 1) for name, one in held.items()}


def _values_out(value: Any) -> dict[str, Any]:
    return {_text(name): _value_out(one) for name, one in value.items()}


def _values_in(value: Any) -> dict[str, Any]:
    _needs(is_object(value))
    return {_text(name): _value_in(one) for name, one in value.items()}


def _time_out(value: Any) -> str:
    _needs(abs(value) < MAX_SAVED_SECONDS)
    return _number_out(value)


def _time_in(value: Any) -> float:
    number = Decimal(_number_in(value))
    _needs(abs(number) < MAX_SAVED_SECONDS)
    return float(number)


def _history_out(value: Any) -> list[Any] | None:
    if value is None:
        return None
    return [
        [_tool_out(one.tool), _values_out(dict(one.arguments)), _switch(one.ok), _time_out(one.at), _text(one.agent)]
        for one in value
    ]


def _history_in(value: Any) -> list[Entry] | None:
    if value is None:
        return None
    _needs(is_list(value) and len(value) <= MAX_HISTORY and all(is_list(one) and len(one) == 5 for one in value))
    return [
        Entry(_tool_in(tool), _values_in(arguments), ok=_switch(ok), at=_time_in(at), agent=_text(agent))
        for tool, arguments, ok, at, agent in value
    ]


_FIELDS: Final[dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "ancestry": (_line_out, _line_in),
    "client": (_text, _text),
    "context": (_values_out, _values_in),
    "cwd": (_path, _path),
    "drift": (_drift_out, _drift_in),
    "env": (_texts, _texts),
    "history": (_history_out, _history_in),
    "id": (_name, _name),
    "interactive": (_switch, _switch),
    "labels": (_names_out, _names_in),
    "ledger": (_switch, _switch),
    "lines": (_lines_out, _lines_in),
    "never": (_names_out, _names_in),
    "origin": (_name, _name),
    "platform": (_platform, _platform),
    "server_cwd": (_texts, _texts),
    "skills": (_names_out, _names_in),
    "supplies_defaults": (_switch, _switch),
    "turn": (_text, _text),
}
"""Every part of a session that is saved: how it is written, and how it is read."""

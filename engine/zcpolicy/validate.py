"""Whether data of a compiled file has the shapes that the resolver relies on.

In: parsed JSON. Out: a yes or no: a digest identifies, it does not vouch for what is in the file.
"""

from __future__ import annotations

from zcpolicy.exact import is_list, is_object, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    Check = Callable[[Any, int], bool]

MAX_DEPTH: Final = 100
"""How deep schemas and values may nest."""
MAX_CONDITION_DEPTH: Final = 200
"""How deep conditions may nest: what 100 levels of the language become."""

_RISKS: Final = ("read", "low", "medium", "high")
_ANSWERS: Final = ("allow", "ask", "deny")


def is_head(value: Any) -> bool:
    """Whether it is everything of a program but the agents."""
    return _HEAD(value, 0)


def are_agents(value: Any) -> bool:
    """Whether it is a map of agents."""
    return _AGENTS(value, 0)


def _text(value: Any, depth: int) -> bool:
    return type(value) is str


def _flag(value: Any, depth: int) -> bool:
    return type(value) is bool


def _number(value: Any, depth: int) -> bool:
    try:
        return type(value) is str and number_of(value) >= 0
    except ValueError:
        return False


def _whole(value: Any, depth: int) -> bool:
    return _number(value, depth) and value.isdecimal()


def _one_of(*choices: str) -> Check:
    return lambda value, depth: type(value) is str and value in choices


def _list(item: Check) -> Check:
    return lambda value, depth: is_list(value) and depth < MAX_DEPTH and all(item(one, depth + 1) for one in value)


def _map(item: Check) -> Check:
    return lambda value, depth: (
        is_object(value) and depth < MAX_DEPTH and all(item(one, depth + 1) for one in value.values())
    )


def _either(*checks: Check) -> Check:
    return lambda value, depth: any(check(value, depth) for check in checks)


def _object(needed: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    known = {**needed, **(optional or {})}

    def check(value: Any, depth: int) -> bool:
        if not is_object(value) or depth >= MAX_DEPTH or not needed.keys() <= value.keys() <= known.keys():
            return False
        return all(known[name](part, depth + 1) for name, part in value.items())

    return check


def _value(value: Any, depth: int) -> bool:
    if value is None or type(value) in (str, bool):
        return True
    return depth < MAX_DEPTH and _COMPOUND(value, depth)


def _schema(value: Any, depth: int) -> bool:
    return _SCHEMA(value, depth)


def _condition(value: Any, depth: int) -> bool:
    """Walks by a list of its own: conditions nest deeper than the checks could call each other."""
    left = [(value, 0)]
    while left:
        one, below = left.pop()
        if not is_object(one) or below > MAX_CONDITION_DEPTH:
            return False
        key = next(iter(one), "")
        parts: Any = one.get(key)
        if len(one) == 1 and key in ("all", "any", "not"):
            if key != "not" and not is_list(parts):
                return False
            left += [(part, below + 1) for part in ([parts] if key == "not" else parts)]
        elif not any(check(one, 0) for check in _TESTED):
            return False
    return True


def _signed(value: Any, depth: int) -> bool:
    return type(value) is str and _number(value.removeprefix("-"), depth)


def _each(value: Any, depth: int) -> bool:
    if not _NAMES(value, depth):
        return False
    return len(value) > 1 if value[0] == "args" else _each_of_whom(value, depth)


def _each_of_whom(value: Any, depth: int) -> bool:
    return value in (["client"], ["session"], ["agent"])


_TEXTS: Final = _list(_text)
_NAMES: Final[Check] = lambda value, depth: _TEXTS(value, depth) and bool(value)  # noqa: E731 - a check like the others
_COMPOUND: Final = _either(_object({"n": _signed}), _object({"list": _list(_value)}), _object({"object": _map(_value)}))
_KINDS: Final = (
    "string", "path", "url", "shell", "command", "integer", "number", "boolean", "list", "object", "any", "null",
)  # fmt: skip
_SCHEMA: Final = _object(
    {"kind": _one_of(*_KINDS)},
    {
        "unreviewed": _flag,
        "nullable": _flag,
        "enum": _list(_value),
        "item": _schema,
        "fields": _map(_schema),
        "required": _TEXTS,
        "extra": _either(_one_of("deny", "allow"), _schema),
        "default": _value,
    },
)
_TESTS: Final = (
    "==", "<", "<=", ">", ">=", "in", "like", "matches", "contains", "under", "glob", "in_domain", "in_net",
    "runs only", "runs any",
)  # fmt: skip
_TESTED: Final = (
    _object(
        {
            "test": _one_of(*_TESTS),
            "left": _NAMES,
            "right": _either(_list(_value), _object({"operand": _NAMES})),
            "grants": _flag,
        },
        {"each": _one_of("some", "every"), "negate": _flag},
    ),
    _object({"has": _NAMES}),
    _object({"marked": _text}),
)
_RULE_MORE: Final[dict[str, Check]] = {
    "if": _condition,
    "because": _text,
    "approval": _flag,
    "unclear": _one_of("ask"),
}
_RULE: Final = _either(
    _object({"effect": _one_of("allow", "ask", "deny", "auto_approve"), "tools": _text}, _RULE_MORE),
    _object({"effect": _one_of("mark"), "tools": _text, "label": _text}, _RULE_MORE),
)
_WINDOW: Final = _either(
    _object({"kind": _one_of("turn", "session")}),
    _object({"kind": _one_of("rolling"), "seconds": lambda value, depth: _number(value, depth) and float(value) > 0}),
    _object({"kind": _one_of("calendar"), "calendar": _one_of("day", "month"), "zone": _text}),
)
_LIMITED: Final[dict[str, Check]] = {"amount": _number, "window": _WINDOW, "pot": _text}
_LIMITED_MORE: Final[dict[str, Check]] = {"tools": _text, "each": _each}
NO_TOOL_SPENDS: Final = ("iterations", "delegations", "tokens")
"""Units of limits that can be of no tool and no argument: they would never be reached."""
LIMIT: Final = _either(
    _object({"unit": _one_of("calls", "concurrent calls", "time"), **_LIMITED}, _LIMITED_MORE),
    _object({"unit": _one_of(*NO_TOOL_SPENDS), **_LIMITED}, {"each": _each_of_whom}),
    _object({"unit": _one_of("money"), "currency": _text, **_LIMITED}, _LIMITED_MORE),
    _object({"unit": _one_of("sum"), "argument": _NAMES, **_LIMITED}, _LIMITED_MORE),
)
"""One limit; also those of a host's narrowing are held against it."""
_BODY: Final = _object(
    {"kind": _one_of("agent", "narrows", "ceiling", "skill", "narrowing"), "name": _text},
    {
        "rules": _list(_RULE),
        "only": _list(_object({"tools": _text}, {"because": _text})),
        "autonomy": _object({risk: _one_of(*_ANSWERS) for risk in _RISKS}),
        "limits": _list(LIMIT),
        "connect": _object({"servers": _TEXTS, "tools": _text}),
        "skills": _TEXTS,
        "memory": _object({"read": _TEXTS, "write": _TEXTS}),
        "delegate": _object(
            {"to": _map(_object({}, {"independent": _flag, "because": _text}))}, {"depth": _whole, "none": _flag}
        ),
        "approval": _object(
            {},
            {
                "none": _flag,
                "routes": _TEXTS,
                "timeout": _number,
                "fallback": _TEXTS,
                "remember": _one_of("never", "exact", "tool"),
                "remember_for": _number,
            },
        ),
        "runtime": _map(_text),
        "require": _list(
            _object(
                {"earlier": _text, "later": _text},
                {"within": _number, "same": _list(_NAMES), "by_any_agent": _flag, "because": _text},
            )
        ),
        "drift": _object({}, {kind: _one_of(*_ANSWERS) for kind in ("description", "schema", "launch")}),
    },
)
_AGENT: Final = _object({"body": _BODY, "narrows": _either(_text, lambda value, depth: value is None)})
_AGENTS: Final = _map(_AGENT)
_TOOL: Final = _object(
    {
        "server": _either(_text, lambda value, depth: value is None),
        "name": _text,
        "class": _one_of(*_RISKS),
        "schema": _schema,
    },
    {
        "hints": _object({}, {"read_only": _flag, "destructive": _flag, "open_world": _flag}),
        "runs_tools": _flag,
    },
)
_HEAD: Final = _object(
    {
        "semantics": _text,
        "tools": _list(_TOOL),
        "servers": _TEXTS,
        "labels": _TEXTS,
        "scopes": _TEXTS,
        "context": _map(_schema),
        "ceiling": _BODY,
        "skills": _map(_BODY),
    }
)

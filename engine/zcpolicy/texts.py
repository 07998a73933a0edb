"""The three texts of a decision: for the model, for a person, for the log.

In: a `Decision`. Out: text. What came from a call is escaped; the model's text quotes no policy.
"""

from __future__ import annotations

from zcpolicy.exact import exact, is_list, is_map, is_object, number_text
from zcpolicy.names import INVISIBLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from zcpolicy.combine import Verdict
    from zcpolicy.decision import Decision
    from zcpolicy.facts import ToolName

MAX_SHOWN: Final = 400
"""Characters of one argument that a person is shown, unless a rule that decided reads it: then all."""

_FOR_MODEL: Final = {
    "unknown-agent": "This agent is not known here. Do not retry.",
    "not-canonical": "The tool's name is not spelled as a tool's name is. Use one of the listed tools.",
    "unknown-tool": "There is no such tool. Use one of the listed tools.",
    "malformed": "The arguments do not fit the tool: {note}. Correct them and call again.",
    "stale-policy": "The rules are being renewed. Try again later.",
    "protected": "This call touches files that no tool may touch. Leave them alone and go on without them.",
    "drift": "This tool has changed and is not approved in its new form. Use another tool.",
    "not-connected": "This tool's server is not available here. Use another tool.",
    "not-granted": "This call is not permitted. Use another tool, or other arguments.",
    "outside-only": "This tool is not part of this task. Use another tool.",
    "denied": "This call is not permitted. Do not try to reach the same end in another way; use other means or tell the user.",
    "precondition": "Something has to be done before this call is permitted. Do that first.",
    "autonomy": "This kind of tool may not be used here. Use a tool that only reads, or tell the user.",
    "no-approver": "This call needs somebody's approval, and nobody can be asked. Go on without it.",
    "ledger-unavailable": "Whether there is room for this call cannot be told now. Try again later.",
    "budget": "A limit is reached. Go on without this call{retry}.",
    "asked": "This call waits for a person's approval.",
    "allowed": "This call is permitted.",
}
"""What to do instead, by reason."""

LACKING: Final = {
    "cwd": "a path is relative, and the session's working directory is unknown: `cwd`",
    "server_cwd": "a path is relative, and this server's working directory is unknown: `server_cwd`",
}
"""Facts that a host did not give, by name."""


def for_model(decision: Decision | Verdict) -> str:
    """One or two sentences; of the call it repeats at most the names of arguments."""
    wait = decision.retry_after
    retry = f", or call again in {int(wait) + 1} seconds" if wait is not None else ""
    return _FOR_MODEL[decision.reason].format(note=decision.note, retry=retry)


def for_person(decision: Decision) -> str:
    """The question, or what was decided, with the call and the reasons that the policy gives."""
    head = {"ask": "Allow", "allow": "Allowed:", "deny": "Denied:"}[decision.effect]
    mark = "?" if decision.effect == "ask" else ""
    read = _read_by_rules(decision)
    shown = ", ".join(
        f"{escaped(name)}: {_shown(value, whole=name in read)}" for name, value in decision.arguments.items()
    )
    lines = [f"{head} {spelled(decision.tool)}({shown}) for agent {escaped(decision.agent)}{mark}"]
    lines += [
        f"because: {escaped(reason)}" for reason in dict.fromkeys(rule.because for rule in decision.rules) if reason
    ]
    if decision.effect != "allow":
        lines.append(f"reason: {decision.reason}" + (f" ({escaped(decision.note)})" if decision.note else ""))
        lines += [f"cannot be told: {LACKING[fact]}" for fact in (decision.lacks,) if fact]
    return "\n".join(lines)


def for_log(decision: Decision) -> str:
    """One line of JSON: who, what, which answer, by which rules."""
    session, lacks = decision.facts, decision.lacks
    because = [*dict.fromkeys(rule.because for rule in decision.rules if rule.because)]
    return json_text(
        {
            "effect": decision.effect,
            "reason": decision.reason,
            "agent": decision.agent,
            "tool": tool_json(decision.tool),
            "client": session["client"],
            "session": session["session"],
            "arguments": decision.arguments,
            "rules": [f"{place[0]}:{place[1]}" for place in (rule.place for rule in decision.rules) if place],
            "digest": decision.digest,
            "generation": decision.generation,
            **({"because": because} if because else {}),
            **({"lacks": lacks} if lacks else {}),
            **({"note": decision.note} if decision.note else {}),
        }
    )


def spelled(tool: ToolName) -> str:
    """A tool's name for people."""
    return "/".join(map(escaped, tool)) if isinstance(tool, tuple) else escaped(str(tool))


def tool_json(tool: ToolName) -> str | list[str]:
    """A tool's name for records, in which a pair is a list."""
    return list(tool) if isinstance(tool, tuple) else tool


def escaped(text: str) -> str:
    """Controls, invisible and direction-changing characters made visible; everything else as it is."""
    return text if _plain(text) else "".join(one if _seen(one) else _escape(one) for one in text)


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _seen(letter: str) -> bool:
    return letter.isprintable() and letter not in INVISIBLE


def _escape(letter: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter, f"\\u{{{ord(letter):x}}}")


def _shown(value: Any, *, whole: bool) -> str:
    text = escaped(json_text(value, safe=False))
    if whole or len(text) <= MAX_SHOWN:
        return text
    half = MAX_SHOWN // 2
    return f"{text[:half]} […{len(text) - MAX_SHOWN} characters…] {text[-half:]}"


def _read_by_rules(decision: Decision) -> set[str]:
    """The arguments that deciding rules read; all of them where one reads `paths` or `urls`."""
    found: set[str] = set()
    for rule in decision.rules:
        data = rule.data
        condition = data.get("if") if is_map(data) else None
        _collect(condition, found)
    return set(decision.arguments) if "" in found else found


def _collect(condition: Any, found: set[str]) -> None:
    if condition is None:
        return
    for key in ("all", "any"):
        for part in condition.get(key, ()):
            _collect(part, found)
    _collect(condition.get("not"), found)
    left = condition.get("left", ["args", *condition.get("has", ())])
    if left[0] == "args" and len(left) > 1:
        found.add(left[1])
    elif left[0] in ("paths", "urls"):
        found.add("")


def json_text(value: Any, *, safe: bool = True) -> str:
    """JSON text on one line; exact numbers as numbers, not as text. `safe`: fit for a terminal as it is."""
    if is_object(value):
        return (
            "{"
            + ", ".join(f"{_quoted(str(name), safe)}: {json_text(one, safe=safe)}" for name, one in value.items())
            + "}"
        )
    if is_list(value):
        return "[" + ", ".join(json_text(one, safe=safe) for one in value) + "]"
    if isinstance(value, str):
        return _quoted(value, safe)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, float) else _number(value)


def _quoted(text: str, safe: bool) -> str:
    """A JSON string; if `safe`, what a terminal acts on, or nobody sees, is written by its number."""
    from json import dumps
    from json.encoder import encode_basestring

    found = encode_basestring(text)
    return found if not safe or _plain(found) else "".join(one if _seen(one) else dumps(one)[1:-1] for one in found)


def _number(value: Any) -> str:
    text = number_text(value)
    return text if len(text) <= 40 else str(exact(value) if isinstance(value, float) else value)

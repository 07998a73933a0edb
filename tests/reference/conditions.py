"""Conditions: TRUE, FALSE or UNKNOWN (None), after Kleene. SPEC 7.

In: a condition of the tree, the call, the circumstances. Out: a `Truth`. Every leaf is asked afresh.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from policy_lang import ast
from tests.reference.arguments import OPEN, Found, Judged, Mentions, Missing, has, is_of, look, paths, urls
from tests.reference.values import CLASSES, Plain
from tests.reference.written import Page, World
from zcpolicy.predicates import net, path, scalar, shell, text, url
from zcpolicy.predicates.refs import PathRef, Truth, UrlRef, Where
from zcpolicy.program import Schema

STRING: Schema = {"kind": "string"}
BUILT_IN: dict[str, Schema] = {"cwd": {"kind": "path"}, "interactive": {"kind": "boolean"}}


@dataclass(frozen=True)
class Circumstances:
    """What a condition may ask about, beside the call. `session`: the facts by name; missing ones are absent."""

    world: World
    call: Judged
    where: Where
    agent: str
    depth: int
    session: Mapping[str, Plain]
    labels: frozenset[str]


@dataclass(frozen=True)
class Stand:
    """Where a test stands: in a rule that grants (`allow`, `auto_approve`); in a place that stands for granting."""

    granting_rule: bool
    grants: bool
    page: Page


def no(truth: Truth) -> Truth:
    """Not."""
    return None if truth is None else not truth


def all_of(truths: Iterable[Truth]) -> Truth:
    """And."""
    seen = list(truths)
    return False if False in seen else None if None in seen else True


def any_of(truths: Iterable[Truth]) -> Truth:
    """Or."""
    seen = list(truths)
    return True if True in seen else None if None in seen else False


def rule_truth(rule: ast.Rule, page: Page, now: Circumstances) -> Truth:
    """Whether a rule's `when` holds and its `unless` does not."""
    granting = rule.effect in ("allow", "auto_approve")
    stand = Stand(granting, granting, page)
    parts: list[Truth] = []
    if rule.when is not None:
        parts.append(truth(rule.when, stand, now))
    if rule.unless is not None:
        parts.append(no(truth(rule.unless, _turned(stand), now)))
    return all_of(parts)


def truth(condition: ast.Condition, stand: Stand, now: Circumstances) -> Truth:
    """What a condition is worth at this place."""
    match condition:
        case ast.And():
            return all_of(truth(item, stand, now) for item in condition.items)
        case ast.Or():
            return any_of(truth(item, stand, now) for item in condition.items)
        case ast.Not():
            return no(truth(condition.inner, _turned(stand), now))
        case ast.Marked():
            return condition.label.text in now.labels
        case ast.Has():
            return has(now.call, condition.operand.path)
        case ast.Bare():
            yes = ast.Boolean(True, condition.span)
            return truth(ast.Test(condition.operand, "==", yes, None, condition.span), stand, now)
        case ast.Test():
            return _test(condition, stand, now)


def _turned(stand: Stand) -> Stand:
    return Stand(stand.granting_rule, not stand.grants, stand.page)


def _test(test: ast.Test, stand: Stand, now: Circumstances) -> Truth:
    """`a != b` is `not a == b`, `a not in b` is `not a in b`; under a quantifier, of each element."""
    negated = test.op in ("!=", "not in")
    op = {"!=": "==", "not in": "in"}.get(test.op, test.op)
    inner = _turned(stand) if negated else stand
    right = _right(test.right, stand, now)

    def one(found: "Subject") -> Truth:
        result = _apply(op, found, right, inner, now)
        return no(result) if negated else result

    if test.each is not None:
        return _quantified(test, one, stand, now)
    found = _left(test.left, now)
    if isinstance(found, str):
        result = _missing(found, stand)
        return no(result) if negated else result
    if isinstance(right, str):  # the operand on the right is missing
        result = _missing(right, stand)
        return no(result) if negated else result
    return one(found)


def _missing(why: Missing, stand: Stand) -> Truth:
    return False if why == "undeclared" and not stand.granting_rule else None


# --- quantifiers ---------------------------------------------------------------------------------------


def _quantified(test: ast.Test, one: "Callable[[Subject], Truth]", stand: Stand, now: Circumstances) -> Truth:
    if test.left.root in ("paths", "urls"):
        return _of_mentions(test, one, stand, now)
    found = _left(test.left, now)
    if isinstance(found, str):
        return _missing(found, stand)
    if not isinstance(found, Found) or not isinstance(found.value, list):
        return None
    item = found.schema.get("item", OPEN)
    answers = [None if value is None else one(_part(Found(value, item, found.part))) for value in found.value]
    return any_of(answers) if test.each == "some" else all_of(answers)


def _of_mentions(test: ast.Test, one: "Callable[[Subject], Truth]", stand: Stand, now: Circumstances) -> Truth:
    mentions: Mentions = paths(now.call) if test.left.root == "paths" else urls(now.call)
    answers: list[Truth] = []
    for ref in mentions.refs:
        if test.left.path:
            assert isinstance(ref, UrlRef)
            part = _url_part(ref, test.left.path[0])
            answers.append(None if part is None else one(part))
        else:
            answers.append(one(ref))
    if mentions.unsupplied:
        answers.append(None)
    if test.each == "some":
        result = any_of(answers)
        hidden = mentions.bounded and stand.granting_rule and not stand.grants
        return None if hidden and result is False else result
    result = all_of([*answers, *([None] if mentions.unsent else [])])
    if mentions.none and stand.granting_rule:
        return None
    return None if mentions.bounded and stand.grants and result is True else result


# --- operands ------------------------------------------------------------------------------------------

Subject = Found | PathRef | UrlRef
"""What a test is about."""


def _left(operand: ast.Operand, now: Circumstances) -> Subject | Missing:
    match operand.root:
        case "args":
            found = look(now.call, operand.path)
            return found if isinstance(found, str) else _part_or_missing(found)
        case "session":
            return _fact(now, operand.path[0])
        case "tool":
            return _tool_fact(now, operand.path[0])
        case "agent":
            return Found(now.agent if operand.path[0] == "name" else now.depth, {"kind": "any"})
        case _:
            raise AssertionError("`paths` and `urls` stand behind a quantifier")


def _part_or_missing(found: Found) -> Subject | Missing:
    if found.part is None or isinstance(found.value, list):
        return found
    part = _url_part(UrlRef((str(found.value),)), found.part)
    return "absent" if part is None else part


def _part(found: Found) -> Subject:
    if found.part is None or not isinstance(found.value, str):
        return found
    part = _url_part(UrlRef((found.value,)), found.part)
    return Found(None, STRING) if part is None else part


def _url_part(ref: UrlRef, part: str) -> Found | None:
    """`host`, `scheme` or `port` of a url that can be read; None: UNKNOWN."""
    read = url.read_url(ref)
    if read is None:
        return None
    value: str | int | None = getattr(read, part)
    return None if value is None else Found(value, {"kind": "integer"} if part == "port" else STRING)


def _fact(now: Circumstances, name: str) -> Found | Missing:
    """A fact that is missing or of another kind than declared is UNKNOWN."""
    value = now.session.get(name)
    kind = BUILT_IN.get(name) or now.world.context_kind(name)
    return "absent" if value is None or kind is None or not is_of(value, kind) else Found(value, kind)


def _tool_fact(now: Circumstances, name: str) -> Found | Missing:
    """What the catalogue says; the host's own tools have the server `""`."""
    tool = now.call.tool
    hint = {"read_only": "readOnlyHint", "destructive": "destructiveHint", "open_world": "openWorldHint"}.get(name)
    value: Plain
    if hint is not None:
        value = tool.hints.get(hint)
    else:
        value = {"name": tool.name[1], "server": tool.name[0] or "", "risk": tool.risk}[name]
    if value is None:
        return "absent"
    return Found(value, {"kind": "any", "enum": list(CLASSES)} if name == "risk" else {"kind": "any"})


def _right(right: ast.Right, stand: Stand, now: Circumstances) -> "list[Plain] | Subject | Missing":
    if isinstance(right, ast.Operand):
        return _left(right, now)
    return now.world.items(right, stand.page)


# --- operators -----------------------------------------------------------------------------------------


def _apply(op: str, left: Subject, right: "list[Plain] | Subject | Missing", stand: Stand, now: Circumstances) -> Truth:
    """One test of one value. A value of another kind than the operator's is UNKNOWN."""
    if isinstance(right, str):
        return None
    if not isinstance(right, list):
        return _against_operand(op, left, right, stand, now)
    words = tuple(item for item in right if isinstance(item, str))
    ref = _as_path(left)
    match op:
        case "under":
            return None if ref is None else path.under(words, stand.grants)(ref, now.where)
        case "glob":
            return None if ref is None else path.glob(words, stand.grants)(ref, now.where)
        case "runs only" | "runs any":
            if not isinstance(left, Found) or left.schema["kind"] != "shell" or not isinstance(left.value, str):
                return None
            return (shell.runs_only if op == "runs only" else shell.runs_any)(words)(left.value)
        case "like" | "matches" | "in_domain" | "in_net":
            plain = _as_string(left)
            return None if plain is None else _of_text(op, words, stand)(plain)
        case "contains":
            if not isinstance(left, Found) or (isinstance(left.value, str) and _as_string(left) is None):
                return None
            return text.contains(tuple(right))(left.value)
        case _:
            return any_of(_compare(op, left, item, stand, now) for item in right)


def _of_text(op: str, words: tuple[str, ...], stand: Stand) -> Callable[[str], Truth]:
    if op == "in_net":
        return net.in_net(words, stand.grants)
    return {"like": text.like, "matches": text.matches, "in_domain": net.in_domain}[op](words)


def _as_string(subject: Subject) -> str | None:
    if not isinstance(subject, Found) or subject.schema["kind"] not in ("string", "any"):
        return None
    return subject.value if isinstance(subject.value, str) else None


def _as_path(subject: Subject) -> PathRef | None:
    if isinstance(subject, PathRef):
        return subject
    if isinstance(subject, Found) and subject.schema["kind"] == "path" and isinstance(subject.value, str):
        return PathRef((subject.value,))
    return None


def _as_url(subject: Subject) -> UrlRef | None:
    if isinstance(subject, UrlRef):
        return subject
    if isinstance(subject, Found) and subject.schema["kind"] == "url" and isinstance(subject.value, str):
        return UrlRef((subject.value,))
    return None


def _compare(op: str, left: Subject, right: Plain, stand: Stand, now: Circumstances) -> Truth:
    """A value against one literal. Paths and urls compare normal forms."""
    equal = op in ("==", "in")
    ref, link = _as_path(left), _as_url(left)
    if ref is not None or link is not None:
        if not equal or not isinstance(right, str):
            return None
        if ref is not None:
            return path.same_path((right,), stand.grants)(ref, now.where)
        return url.same_url((right,), stand.grants)(cast(UrlRef, link))
    assert isinstance(left, Found)
    if left.schema.get("enum") == list(CLASSES) and not equal and op != "!=" and right in CLASSES:
        return scalar.compare(cast("scalar.Operator", op), _rank(left.value), _rank(right))
    return scalar.compare("==" if equal else cast("scalar.Operator", op), left.value, right)


def _rank(risk: Plain) -> int:
    return [str(one) for one in CLASSES].index(str(risk))


def _against_operand(op: str, left: Subject, right: Subject, stand: Stand, now: Circumstances) -> Truth:
    if op == "in":
        if not isinstance(right, Found) or not isinstance(right.value, list):
            return None
        return any_of(None if item is None else _compare("==", left, item, stand, now) for item in right.value)
    if isinstance(right, Found):
        return _compare(op, left, right.value, stand, now)
    return None

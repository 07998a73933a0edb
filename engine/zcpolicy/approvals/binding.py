"""What a yes is bound to, as a digest (SPEC 9): nothing that is joined here can be read as something else.

In: the decision of an `ask`. Out: `Bound`; the names under which the ledger keeps what was said.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from zcpolicy.authority import genuine
from zcpolicy.combine import plan_behind
from zcpolicy.exact import canonical, exact, is_list, is_object, number_text, thawed
from zcpolicy.texts import tool_json

if TYPE_CHECKING:
    from zcpolicy.approvals.question import Question, Scope
    from zcpolicy.decision import Decision


class Bound(NamedTuple):
    """SHA-256 digests. `call`: client, session, agent, tool, its definitions (the policy's, and the live one where a registry
    shows it) and drift, judged arguments, directory, labels, what asked and on which terms. `tool`: the same without arguments.
    """

    call: str
    tool: str


def bound(decision: Decision) -> Bound:
    """What a yes to this question is bound to. The decision is of a tool that the program knows. Raises SealError."""
    plan, session = plan_behind(decision.verdict), decision.run.session
    if plan is None:
        raise ValueError("a decision without a tool asks nothing")
    registry = genuine(decision.run).registry
    live = "" if registry is None else registry.definition(plan.name)  # what its server, or its host, says of it now
    server = plan.tool["server"]
    # the directory that the call's paths start from
    where = session.cwd if server is None else session.server_cwd.get(server)
    terms = [
        session.client, session.id, decision.agent, thawed(plan.tool), live, sorted(session.drift_of(plan.name)),
        where, sorted(decision.labels), decision.approval,
    ]  # fmt: skip
    return Bound(digest(["call", terms, decision.arguments]), digest(["tool", terms]))


def name_of_yes(scope: Scope, question: Question) -> str:
    """Under which the ledger keeps a yes of a scope."""
    return digest([scope, question.route, question.tool_binding if scope == "tool" else question.binding])


def name_of_aside(question: Question) -> str:
    """Under which it keeps a no, or an edit: of this one call, whichever rule asks about it, whoever is asked."""
    return digest(["aside", question.key, *_call(question)])


def name_of_open(question: Question) -> str:
    """Under which it keeps a question whose answer comes later: all of it, so that an altered one is another."""
    return digest(
        [
            "open", question.id, question.key, *_call(question), question.text, question.route, [*question.scopes],
            question.remember_for, [*question.rules], [*question.because], question.binding, question.tool_binding,
        ]
    )  # fmt: skip


def _call(question: Question) -> list[Any]:
    return [question.client, question.session, question.agent, tool_json(question.tool), {**question.arguments}]


def digest(value: Any) -> str:
    """SHA-256 of the canonical text of a JSON value. Raises ValueError for what is none."""
    return sha256(canonical(_told_apart(value)).encode("utf-8", "surrogatepass")).hexdigest()


def _told_apart(value: Any) -> Any:
    """The value without numbers, which canonical text cannot hold exactly: `1` and `"1"` stay two things, `1` and `1.0` one."""
    if value is None or isinstance(value, str | bool):
        return value
    if is_object(value):
        return {name: _told_apart(one) for name, one in value.items()}
    if is_list(value):
        return ["list", *map(_told_apart, value)]
    if isinstance(value, float):
        return ["number", number_text(exact(value))]
    from decimal import Decimal

    if isinstance(value, int | Decimal):
        return ["number", number_text(value)]
    raise ValueError("not a JSON value")

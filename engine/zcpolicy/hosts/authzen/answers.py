"""Evaluations: one decision, or many, as AuthZEN has them told.

In: a request, a resolver. Out: `{"decision", "context"}`, true for `allow` alone. Nothing is charged, marked or remembered by it.
"""

from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

from zcpolicy.daemon.wire import BadInput
from zcpolicy.decision import Decision
from zcpolicy.exact import is_list, is_object
from zcpolicy.hosts.authzen.questions import NotOurs, Question, question_of
from zcpolicy.resolver import Resolver
from zcpolicy.texts import escaped

MAX_EVALUATIONS: Final = 100
"""Evaluations of one request."""
MAX_EVALUATIONS_SECONDS: Final = 10.0
"""Seconds after which the evaluations of a request that are left are denied, unlooked at."""

_STOPS: Final[Mapping[object, bool | None]] = {
    "execute_all": None,
    "deny_on_first_deny": False,
    "permit_on_first_permit": True,
}
"""The semantics, and the decision after which no other is made."""
_MEMBERS: Final = ("subject", "action", "resource", "context")

Json = dict[str, Any]


def evaluation(members: Mapping[str, Any], resolver: Resolver) -> Json:
    """One decision. Raises BadInput."""
    return _decided(question_of(members), resolver)


def evaluations(members: Mapping[str, Any], resolver: Resolver) -> Json:
    """Decisions in the order of the request, each by itself: none sees what another one would spend. Raises BadInput.

    What is wrong with one of them is told in its place; without any, the request is an evaluation.
    """
    asked = members.get("evaluations", [])
    if not is_list(asked):
        raise BadInput("`evaluations` is no list")
    stop = _stop(members.get("options", {}))
    if not asked:
        return evaluation(members, resolver)
    if len(asked) > MAX_EVALUATIONS:
        raise BadInput(f"a request has at most {MAX_EVALUATIONS} evaluations")
    defaults = {name: members[name] for name in _MEMBERS if name in members}
    found: list[Json] = []
    until = monotonic() + MAX_EVALUATIONS_SECONDS
    for one in asked:
        found.append(_late() if monotonic() > until else _in_its_place(defaults, one, resolver))
        if stop is not None and found[-1]["decision"] is stop:
            break
    return {"evaluations": found}


def denied(reason: str, message: str) -> Json:
    """A deny that no policy was asked for."""
    return {"decision": False, "context": {"effect": "deny", "reason": reason, "reason_admin": {"en": message}}}


def _stop(options: object) -> bool | None:
    if not is_object(options):
        raise BadInput("`options` is no object")
    semantic = options.get("evaluations_semantic", "execute_all")
    if type(semantic) is not str or semantic not in _STOPS:
        raise BadInput(f"`evaluations_semantic` is one of {', '.join(f'`{one}`' for one in _STOPS)}")
    return _STOPS[semantic]


def _in_its_place(defaults: Json, one: object, resolver: Resolver) -> Json:
    try:
        if not is_object(one):
            raise BadInput("an evaluation is no object")
        return evaluation({**defaults, **one}, resolver)
    except BadInput as error:
        return _failed("bad-request", 400, str(error))


def _late() -> Json:
    return _failed("too-late", 503, "the evaluations before this one took too long: send fewer")


def _failed(reason: str, status: int, message: str) -> Json:
    found = denied(reason, message)
    found["context"]["error"] = {"status": status, "message": message}
    return found


def _decided(question: Question, resolver: Resolver) -> Json:
    given = question.arguments
    try:
        agent, tool = question.agent, question.tool
    except NotOurs as error:
        return denied(error.reason, str(error))
    decision = resolver.decide(agent, tool, {} if given is None else given, session=question.session)
    return {"decision": decision.effect == "allow", "context": _context(decision)}


def _context(decision: Decision) -> Json:
    """Why. `reason_admin` names places of the policy, and must not reach a user; `reason_user` may."""
    found: Json = {
        "effect": decision.effect,
        "reason": decision.reason,
        "reason_admin": {"en": _for_admin(decision)},
        "reason_user": {"en": decision.for_person},
        "for_model": decision.for_model,
        "generation": decision.generation,
        "digest": decision.digest,
    }
    if decision.effect != "deny":
        found["arguments"] = decision.arguments
    if decision.effect == "ask":
        found["approval"] = {name: one for name, one in (decision.approval or {}).items() if one is not None}
    if decision.lacks:
        found["lacks"] = decision.lacks
    if decision.retry_after is not None:
        found["retry_after"] = decision.retry_after
    return found


def _for_admin(decision: Decision) -> str:
    """The statements that decided, by place, and what was noted; one a line."""
    lines = [decision.reason + (f": {escaped(decision.note)}" if decision.note else "")]
    for rule in decision.rules:
        place = rule.place or (rule.body.kind, "?", rule.body.name)
        lines.append(f"{escaped(place[0])}:{place[1]}: {escaped(place[2])}")
    return "\n".join(lines)

"""What kind of yes a decision wants (SPEC 9).

In: the verdict of an `ask`. Out: routes, times, scope, and the digest of the rules that asked.
"""

from __future__ import annotations

from zcpolicy.exact import canonical, thawed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from zcpolicy.combine import Verdict

SCOPES: Final = ("never", "exact", "tool")
"""How far an approver may let a yes reach, narrowest first."""


def wanted(verdict: Verdict) -> dict[str, Any]:
    """Every asking body's routes; the shortest times and the narrowest scope of all bodies.

    Each of `routes` has to say yes, and with `person` also who is there in the session: an asking body names no route.
    `fallback`: where nobody answers, and only if every asking body names one; else that is a deny.
    """
    every: list[Any] = [one.body.data.get("approval", {}) for one in verdict.said if one.body is not None]
    asking: list[Any] = [
        one.body.data.get("approval", {}) if one.body is not None else {} for one in verdict.said if one.effect == "ask"
    ]
    scopes = [approval["remember"] for approval in every if "remember" in approval]
    if not all("remember" in approval for approval in asking):
        scopes.append("exact")  # what another body says widens no yes to this one
    return {
        "routes": _all(asking, "routes"),
        "person": not all(approval.get("routes") for approval in asking),
        "fallback": _all(asking, "fallback") if all(approval.get("fallback") for approval in asking) else [],
        "timeout": _shortest(every, "timeout"),
        "remember": min(scopes, key=SCOPES.index, default="exact"),
        "remember_for": _shortest(every, "remember_for"),
        "digest": asked_digest(verdict),
    }


def _all(approvals: list[Any], key: str) -> list[str]:
    return sorted({route for approval in approvals for route in approval.get(key, ())})


def _shortest(approvals: list[Any], key: str) -> float | None:
    return min((float(approval[key]) for approval in approvals if key in approval), default=None)


def asked_digest(verdict: Verdict) -> str:
    """SHA-256 of the statements that asked, each with the body it stands in: another rule is another question."""
    from hashlib import sha256

    asked = [
        [one.body.kind, one.name, rule.part, thawed(rule.data)]
        for one in verdict.said
        if one.effect == "ask" and one.body is not None
        for rule in one.rules
    ]
    asked += [["protected"] for one in verdict.said if one.body is None and one.effect == "ask"]
    return sha256("\n".join(sorted(map(canonical, asked))).encode()).hexdigest()

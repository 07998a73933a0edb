"""The answer to one call, and why.

In: a verdict, the arguments as judged, the execution that asked. Out: a `Decision`; everything beyond effect, reason
and rules is worked out when it is first wanted.
"""

from __future__ import annotations

from zcpolicy.combine import plan_behind
from zcpolicy.sealed import NoTruth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.combine import Said, Verdict
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import ToolName
    from zcpolicy.shapes import Answer
    from zcpolicy.stack import RuleRef


class Decision(NoTruth):
    """`effect`: allow, ask or deny. `arguments`: what may run, a fresh copy with defaults; empty if malformed.

    `run`: the execution that asked. `labels`: its session's labels then. `verdict`: what the engine remembers of it.

    A decision is an answer, not a right: `permit` decides again. It is neither true nor false: compare `effect`.
    """

    __slots__ = ("arguments", "effect", "labels", "run", "verdict")
    _ask = 'compare `.effect` with "allow"'

    def __init__(
        self, verdict: Verdict, arguments: dict[str, Any], run: ResolvedAgentExecution, labels: frozenset[str]
    ) -> None:
        self.verdict = verdict
        self.effect: Answer = verdict.effect
        self.arguments = arguments
        self.run = run
        self.labels = labels

    @property
    def reason(self) -> str:
        """Why, as a code (SPEC 5)."""
        return self.verdict.reason

    @property
    def rules(self) -> tuple[RuleRef, ...]:
        """The statements that decided."""
        return self.verdict.rules

    @property
    def tool(self) -> ToolName:
        """The tool that was asked for."""
        return self.verdict.tool

    @property
    def agent(self) -> str:
        """The acting agent."""
        return self.run.agent

    @property
    def said(self) -> tuple[Said, ...]:
        """Every body's own answer, the execution's own bodies first."""
        return self.verdict.said

    @property
    def digest(self) -> str:
        """Of the program that decided."""
        return (self.verdict.resolver or self.run.resolver).program.digest

    @property
    def generation(self) -> int:
        """Of the policy that decided: a reload makes the next one."""
        return (self.verdict.resolver or self.run.resolver).generation

    @property
    def note(self) -> str:
        """What is wrong with a malformed call, or which limit is exhausted."""
        return self.verdict.note

    @property
    def lacks(self) -> str:
        """The fact that the host did not give and the answer hangs on: `cwd`, `server_cwd`; "" if there is none."""
        if self.effect == "allow":
            return ""
        from zcpolicy.trace import lacking

        return lacking(self)

    @property
    def retry_after(self) -> float | None:
        """Seconds until an exhausted limit may have room again; None where there is no such time."""
        return self.verdict.retry_after

    @property
    def charges(self) -> list[dict[str, Any]]:
        """What the call counts in, should it run."""
        plan = plan_behind(self.verdict)
        if plan is None or self.effect == "deny":
            return []
        from zcpolicy.room import charges_json

        return charges_json(plan, self.arguments, self.run)

    @property
    def approval(self) -> dict[str, Any] | None:
        """What kind of yes is wanted: routes, timeout, remember, the digest of the rules that asked."""
        if self.effect != "ask":
            return None
        from zcpolicy.approvals.wanted import wanted

        return wanted(self.verdict)

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that it was decided with."""
        session = self.run.session
        return {
            "agent": self.run.agent, "depth": self.run.depth, "client": session.client, "session": session.id,
            "cwd": session.cwd, "interactive": session.interactive, "platform": session.platform,
            "labels": sorted(self.labels), "supplies_defaults": session.supplies_defaults,
        }  # fmt: skip

    @property
    def for_model(self) -> str:
        """What to tell the model; it quotes no policy."""
        from zcpolicy.texts import for_model

        return for_model(self)

    @property
    def for_person(self) -> str:
        """What to show a person who is asked or told; controls are escaped."""
        from zcpolicy.texts import for_person

        return for_person(self)

    @property
    def for_log(self) -> str:
        """One line for the audit log."""
        from zcpolicy.texts import for_log

        return for_log(self)

    def trace(self) -> list[dict[str, Any]]:
        """Every body, every rule, every test with the value it read; the arguments must be as they were decided."""
        from zcpolicy.trace import trace

        return trace(self.verdict, self.arguments, self.run, self.labels)

    def wire(self) -> str:
        """The arguments as JSON text: what runs is this."""
        from zcpolicy.texts import json_text

        return json_text(self.arguments)

    def to_json(self, *, trace: bool = False) -> dict[str, Any]:
        """As FORMATS lays it out; numbers that are not whole are `Decimal` or float as they came."""
        found: dict[str, Any] = {
            "effect": self.effect,
            "reason": self.reason,
            "rules": [rule.to_json() for rule in self.rules],
            "bodies": [
                {"name": one.name, "effect": one.effect, "rules": [rule.to_json() for rule in one.rules]}
                for one in self.said
            ],
            "arguments": self.arguments,
            "charges": self.charges,
            "approval": self.approval,
            "facts": self.facts,
            "digest": self.digest,
            "generation": self.generation,
            "for_model": self.for_model,
            "for_person": self.for_person,
            "for_log": self.for_log,
        }
        if self.note:
            found["note"] = self.note
        if self.lacks:
            found["lacks"] = self.lacks
        if self.retry_after is not None:
            found["retry_after"] = self.retry_after
        if trace:
            found["trace"] = self.trace()
        return found

    def __repr__(self) -> str:
        return f"<Decision {self.effect} ({self.reason}) {self.agent} → {self.tool}>"

"""Spans of turns: what each was made of, and which turn led to which.

In: events, in the order in which they happened, each with its time. Out: spans of OpenTelemetry, named and described by its
conventions for generative AI. No argument, text or error is in them; names that a model wrote are in them only if the policy has them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from zcpolicy.events import Event
from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import ToolName
from zcpolicy.identity import Identity

MAX_OPEN_TURNS: Final = 10_000
"""Turns whose spans are open; the oldest is ended for a new one, since a turn that was cut off does not say so."""
MAX_OPEN_SPANS: Final = 1_000
"""Spans that are open inside one turn; more calls have none."""

_NANO: Final = 1_000_000_000

Attributes = dict[str, str | int | float | bool]


@dataclass(slots=True)
class _Turn:
    """A turn that is under way. `calls`: by key; `asked`: by the question's id; `below`: sessions of the turns it led to."""

    span: Span
    calls: dict[str, Span] = field(default_factory=dict[str, Span])
    asked: dict[str, Span] = field(default_factory=dict[str, Span])
    below: set[str] = field(default_factory=set[str])


class Spans:
    """For one thread. `known`: whether the policy has a tool of this name."""

    def __init__(self, tracer: Tracer, known: Callable[[ToolName], bool]) -> None:
        self._tracer = tracer
        self._known = known
        self._turns: dict[str, _Turn] = {}

    def take(self, event: Event, at: int) -> None:
        """`at`: nanoseconds since the epoch."""
        data, who = event.data, event.identity
        match event.kind:
            case "turn" if data.get("phase") != "done":
                self._begin(who, data, at)
            case "turn":
                self._end(who.session, at, {"zcpolicy.turn.status": "done"})
            case "stopped":
                self._end(who.session, at, ended(data))
            case "failed" if "refused" not in data:
                self._end(who.session, at, ended(data), str(data.get("fault", "_OTHER")))
            case "model":
                self._model(who, data, at)
            case "call":
                self._call(who, data, at)
            case "approval":
                self._approval(who, data, at)
            case _:
                return

    def close(self, at: int) -> None:
        """Ends what is open."""
        for session in list(self._turns):
            self._end(session, at, {})

    # --- turns -----------------------------------------------------------------------------------------------------------

    def _begin(self, who: Identity, data: Mapping[str, Any], at: int) -> None:
        self._end(who.session, at, {})  # one that was cut off
        if len(self._turns) >= MAX_OPEN_TURNS:
            self._end(next(iter(self._turns)), at, {})
        span = self._tracer.start_span(
            f"invoke_agent {who.agent}", context=self._above(who), kind=SpanKind.INTERNAL, start_time=at,
            attributes={
                "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": who.agent, "gen_ai.conversation.id": who.session,
                "zcpolicy.client": who.client, "zcpolicy.surface": who.surface, "zcpolicy.depth": who.depth,
                "zcpolicy.turn.key": str(data.get("key", "")), "zcpolicy.turn.resumed": data.get("phase") == "resumed",
            },
        )  # fmt: skip
        self._turns[who.session] = _Turn(span)

    def _above(self, who: Identity) -> Context:
        """Below the one call of its delegator that is under way, or where there are several, below the delegator's turn."""
        above = self._turns.get(who.line[0][1]) if who.line else None
        if above is None:
            return Context()
        above.below.add(who.session)
        calls = list(above.calls.values())
        return set_span_in_context(calls[0] if len(calls) == 1 else above.span, Context())

    def _end(self, session: str, at: int, attributes: Attributes, fault: str = "") -> None:
        turn = self._turns.pop(session, None)
        if turn is None:
            return
        for below in turn.below:
            self._end(below, at, {})
        for span in (*turn.asked.values(), *turn.calls.values()):
            span.end(at)
        _finish(turn.span, at, attributes, fault)

    # --- inside a turn ---------------------------------------------------------------------------------------------------

    def _model(self, who: Identity, data: Mapping[str, Any], at: int) -> None:
        turn = self._turns.get(who.session)
        if turn is None:
            return
        name = str(data.get("model", ""))
        start = at - int(float(data.get("seconds", 0.0)) * _NANO)
        span = self._tracer.start_span(
            f"chat {name}", context=set_span_in_context(turn.span, Context()), kind=SpanKind.CLIENT, start_time=start,
            attributes=model_attributes(data, who),
        )  # fmt: skip
        for kind in ("input", "output"):
            if type(data.get(f"{kind}_tokens")) is int:
                span.set_attribute(f"gen_ai.usage.{kind}_tokens", data[f"{kind}_tokens"])
        span.end(at)

    def _call(self, who: Identity, data: Mapping[str, Any], at: int) -> None:
        key, phase = str(data.get("key", "")), str(data.get("phase", ""))
        decision = decision_of(data)
        span = self._span_of(who, key, tool_of(decision.get("tool")), at)
        if span is None:
            return
        span.set_attributes({"zcpolicy.call.phase": phase, **decision_attributes(decision, data)})
        if phase in ("admitted", "started"):
            return
        self._turns[who.session].calls.pop(key, None)
        failed = data.get("ok") is False
        _finish(span, at, {}, str(data.get("fault", "_OTHER")) if failed else "")

    def _span_of(self, who: Identity, key: str, tool: ToolName, at: int) -> Span | None:
        """The span of a call: it begins with the first that is heard of it, so that it holds who was asked about it."""
        turn = self._turns.get(who.session)
        if turn is None or key in turn.calls:
            return None if turn is None else turn.calls[key]
        if len(turn.calls) + len(turn.asked) >= MAX_OPEN_SPANS:
            return None
        outer = next((turn.calls[one] for one in _prefixes(key) if one in turn.calls), turn.span)
        named = self._known(tool)
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.agent.name": who.agent,
            "zcpolicy.call.key": key,
        }
        if named:
            attributes["gen_ai.tool.name"] = tool if isinstance(tool, str) else tool[1]
            attributes["gen_ai.tool.type"] = "function"
            if not isinstance(tool, str):
                attributes["zcpolicy.tool.server"] = tool[0]
        name = f"execute_tool {tool if isinstance(tool, str) else '/'.join(tool)}" if named else "execute_tool"
        span = turn.calls[key] = self._tracer.start_span(
            name,
            context=set_span_in_context(outer, Context()),
            kind=SpanKind.INTERNAL,
            start_time=at,
            attributes=attributes,
        )
        return span

    def _approval(self, who: Identity, data: Mapping[str, Any], at: int) -> None:
        turn, question, outcome = (
            self._turns.get(who.session),
            str(data.get("question", "")),
            str(data.get("outcome", "")),
        )
        span = None if turn is None else turn.asked.pop(question, None)
        if span is None:
            call = self._span_of(who, str(data.get("key", "")), tool_of(data.get("tool")), at)
            if call is None or turn is None:  # an answer to a turn that has paused
                return
            span = self._tracer.start_span(
                "approval", context=set_span_in_context(call, Context()), kind=SpanKind.INTERNAL, start_time=at,
                attributes={"zcpolicy.approval.route": str(data.get("route", "")), "zcpolicy.approval.question": question},
            )  # fmt: skip
        if outcome == "asked" and turn is not None:
            turn.asked[question] = span
            return
        scope = data.get("scope")
        _finish(
            span,
            at,
            {"zcpolicy.approval.outcome": outcome, **({"zcpolicy.approval.scope": str(scope)} if scope else {})},
        )


# --- what is said of an event, here and in metrics --------------------------------------------------------------------------


def ended(data: Mapping[str, Any]) -> Attributes:
    """How a turn ended without being done."""
    reason = str(data.get("reason", ""))
    status = "failed" if reason in ("model-failed", "host-failed") else "paused" if reason == "asked" else "stopped"
    return {"zcpolicy.turn.status": status, "zcpolicy.turn.reason": reason}


def model_attributes(data: Mapping[str, Any], who: Identity) -> Attributes:
    """Of a request to a model."""
    name = str(data.get("model", ""))
    found: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": name, "gen_ai.agent.name": who.agent}
    provider, there, _ = name.partition(":")
    if there:
        found["gen_ai.provider.name"] = provider
    return found


def decision_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The decision that an event of a call has as a line of JSON."""
    found: Any = json.loads(str(data.get("decision", "{}")))
    return found if is_object(found) else {}


def decision_attributes(decision: Mapping[str, Any], data: Mapping[str, Any]) -> Attributes:
    """What was decided, and why. A person's no is a reason of its own."""
    found: Attributes = {
        "zcpolicy.decision.effect": str(decision.get("effect", "")),
        "zcpolicy.decision.reason": str(data.get("reason", decision.get("reason", ""))),
    }
    if type(decision.get("generation")) is int:
        found["zcpolicy.generation"] = decision["generation"]
    return found


def tool_of(said: Any) -> ToolName:
    """A tool's name, as records have it."""
    return (str(said[0]), str(said[1])) if is_list(said) and len(said) == 2 else str(said)


def _prefixes(key: str) -> list[str]:
    """The keys of calls that may have led to this one, nearest first."""
    parts = key.split(".")
    return [".".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]


def _finish(span: Span, at: int, attributes: Attributes, fault: str = "") -> None:
    span.set_attributes(attributes)
    if fault:
        span.set_attribute("error.type", fault)
        span.set_status(Status(StatusCode.ERROR))
    span.end(at)

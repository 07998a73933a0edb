"""Spans and metrics of OpenTelemetry (extra `otel`), from what is put on record.

In: events; numbers that the daemon is asked for. Out: what providers export, which whoever starts the process chooses. Events are
handed to a thread of their own: nothing that happens there fails or slows a turn. What is lost or goes wrong is counted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from queue import Empty, Full, Queue
from threading import Thread
from time import monotonic, time_ns
from typing import Any, Final

from zcpolicy.events import Event
from zcpolicy.extras import missing
from zcpolicy.facts import ToolName

try:
    from opentelemetry import metrics, trace
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import ProxyTracerProvider, TracerProvider

    from zcpolicy.daemon.spans import (
        MAX_OPEN_SPANS,
        Spans,
        decision_attributes,
        decision_of,
        ended,
        model_attributes,
        tool_of,
    )
except ImportError:
    raise missing("telemetry", "otel") from None

MAX_BACKLOG: Final = 10_000
"""Events that wait for the thread; more are lost, and counted."""
CLOSE_SECONDS: Final = 2.0
"""Seconds in which what waits is worked off once the daemon ends."""

_SCOPE: Final = "zcpolicy"
_NANO: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the daemon is asked when metrics are read, from any thread. `failing`: whether the last reload failed. `ledger`: asks the
    ledger something, and raises where it is unavailable. `known`: whether the policy has a tool.
    """

    waiting: Callable[[], int]
    turns: Callable[[], int]
    generation: Callable[[], int]
    failing: Callable[[], bool]
    ledger: Callable[[], object]
    known: Callable[[ToolName], bool]


class Telemetry:
    """A recorder that never fails and never waits. `tracers`, `meters`: by default those of the process."""

    def __init__(
        self, numbers: Numbers, *, tracers: TracerProvider | None = None, meters: MeterProvider | None = None
    ) -> None:
        self.lost = 0
        self._spans = Spans((tracers or trace.get_tracer_provider()).get_tracer(_SCOPE), numbers.known)
        self._metrics = _Metrics((meters or metrics.get_meter_provider()).get_meter(_SCOPE), numbers, lambda: self.lost)
        self._waiting: Queue[tuple[Event, int] | None] = Queue(MAX_BACKLOG)
        self._worker = Thread(target=self._work, name="zcpolicy telemetry", daemon=True)
        self._worker.start()

    def __call__(self, event: Event) -> None:
        """Takes an event."""
        try:
            self._waiting.put_nowait((event, time_ns()))
        except Full:
            self.lost += 1

    def reloaded(self, *, went: bool) -> None:
        """Takes note of a reload that was not like the one before it."""
        self.lost += not self._done(partial(self._metrics.reloaded, went=went))

    def close(self) -> None:
        """Works off what waits, as far as there is time, and ends the spans that are open. Exporting is the providers' affair."""
        ends = monotonic() + CLOSE_SECONDS
        try:
            self._waiting.put(None, timeout=CLOSE_SECONDS)
        except Full:
            self._emptied()
        self._worker.join(max(0.0, ends - monotonic()))

    def _emptied(self) -> None:
        try:
            while True:
                self._waiting.get_nowait()
                self.lost += 1
        except Empty:
            self._waiting.put_nowait(None)

    def _work(self) -> None:
        while (taken := self._waiting.get()) is not None:
            spans, numbers = partial(self._spans.take, *taken), partial(self._metrics.take, *taken)
            sound = [self._done(spans), self._done(numbers)]
            self.lost += not all(sound)
        self.lost += not self._done(partial(self._spans.close, time_ns()))

    def _done(self, work: Callable[[], None]) -> bool:
        """Whether it went well."""
        try:
            work()
        except Exception:  # noqa: BLE001 - of an exporter or the library: no turn is to hear of it
            return False
        return True


def unheard() -> bool:
    """Whether nobody has set up where spans go: then all of this comes to nothing, and an operator wants to know."""
    return isinstance(trace.get_tracer_provider(), ProxyTracerProvider)


class _Metrics:
    """Counters and gauges. Their attributes have few values: words of ours, agents and models; no client, no session."""

    def __init__(self, meter: Any, numbers: Numbers, lost: Callable[[], int]) -> None:
        self._decisions = meter.create_counter("zcpolicy.decisions", "{decision}", "What calls were decided to be")
        self._approvals = meter.create_counter("zcpolicy.approvals", "{outcome}", "What came of questions")
        self._turns = meter.create_counter("zcpolicy.turns", "{turn}", "How turns ended")
        self._reloads = meter.create_counter("zcpolicy.reloads", "{reload}", "Policies published, and failures to")
        self._took = meter.create_histogram("zcpolicy.turn.duration", "s", "How long turns took, pauses not counted")
        self._tools = meter.create_histogram("gen_ai.execute_tool.duration", "s", "How long tools took")
        self._models = meter.create_histogram("gen_ai.client.operation.duration", "s", "How long models took")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "What models were sent, and sent")
        self._began: dict[tuple[str, str], int] = {}
        self._known = numbers.known
        for name, unit, what, read in (
            ("zcpolicy.approvals.waiting", "{question}", "Questions that wait for operators", numbers.waiting),
            ("zcpolicy.turns.active", "{turn}", "Turns that are under way", numbers.turns),
            ("zcpolicy.policy.generation", "{generation}", "The policy in force", numbers.generation),
            ("zcpolicy.policy.failing", "1", "1 as long as the last reload failed", numbers.failing),
            ("zcpolicy.ledger.latency", "s", "How long the ledger takes to answer", lambda: _seconds(numbers.ledger)),
        ):
            meter.create_observable_gauge(name, [_observed(read)], unit, what)
        meter.create_observable_counter(
            "zcpolicy.telemetry.lost", [_observed(lost)], "{event}", "Events that were lost"
        )

    def take(self, event: Event, at: int) -> None:
        """`at`: nanoseconds since the epoch."""
        data, who = event.data, event.identity
        match event.kind:
            case "call":
                self._call(event, at)
            case "approval" if data.get("outcome") != "asked":
                self._approvals.add(1, {"zcpolicy.approval.outcome": str(data.get("outcome"))})
            case "turn" if data.get("phase") != "done":
                self._begin((who.session, ""), at)
            case "turn":
                self._ended(event, at, {"zcpolicy.turn.status": "done"})
            case "stopped":
                self._ended(event, at, ended(data))
            case "failed" if "refused" in data:
                self._turns.add(1, {"zcpolicy.turn.status": "refused", "zcpolicy.surface": who.surface})
            case "failed":
                self._ended(event, at, ended(data))
            case "model":
                self._model(event)
            case _:
                return

    def reloaded(self, *, went: bool) -> None:
        self._reloads.add(1, {"zcpolicy.reload.outcome": "published" if went else "failed"})

    def _begin(self, what: tuple[str, str], at: int) -> None:
        if len(self._began) >= MAX_BACKLOG + MAX_OPEN_SPANS:
            del self._began[next(iter(self._began))]
        self._began[what] = at

    def _took_since(self, what: tuple[str, str], at: int) -> float | None:
        began = self._began.pop(what, None)
        return None if began is None else (at - began) / _NANO

    def _ended(self, event: Event, at: int, how: dict[str, Any]) -> None:
        who = event.identity
        attributes = {**how, "gen_ai.agent.name": who.agent, "zcpolicy.surface": who.surface}
        self._turns.add(1, attributes)
        if (took := self._took_since((who.session, ""), at)) is not None:
            self._took.record(took, attributes)

    def _call(self, event: Event, at: int) -> None:
        data, who = event.data, event.identity
        phase, what = data.get("phase"), (who.session, str(data.get("key")))
        if phase == "started":
            self._begin(what, at)
        elif phase in ("admitted", "refused", "waiting"):
            found = decision_attributes(decision_of(data), data)
            found.pop("zcpolicy.generation", None)
            self._decisions.add(1, {**found, "gen_ai.agent.name": who.agent})
        elif phase == "finished" and (took := self._took_since(what, at)) is not None:
            tool = tool_of(decision_of(data).get("tool"))
            named = {"gen_ai.tool.name": tool if isinstance(tool, str) else tool[1]} if self._known(tool) else {}
            failed = {} if data.get("ok") is True else {"error.type": "_OTHER"}
            self._tools.record(took, {"gen_ai.agent.name": who.agent, **named, **failed})

    def _model(self, event: Event) -> None:
        data = event.data
        attributes = model_attributes(data, event.identity)
        self._models.record(float(data.get("seconds", 0.0)), attributes)
        for kind in ("input", "output"):
            if type(data.get(f"{kind}_tokens")) is int:
                self._tokens.record(data[f"{kind}_tokens"], {**attributes, "gen_ai.token.type": kind})


def _observed(read: Callable[[], float | None]) -> Callable[[CallbackOptions], Iterable[Observation]]:
    """A callback that has nothing to say where the number cannot be read."""

    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        try:
            found = read()
        except Exception:  # noqa: BLE001 - there is no number now
            return []
        return [] if found is None else [Observation(found)]

    return observe


def _seconds(ask: Callable[[], object]) -> float:
    began = monotonic()
    ask()
    return monotonic() - began

"""What leaves the daemon as spans and metrics, and that nothing else does."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Signal
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from zcpolicy.daemon import telemetry
from zcpolicy.daemon.telemetry import Numbers, Telemetry
from zcpolicy.events import Event
from zcpolicy.identity import Identity

from .desk import lay, serving
from .test_approvals import STORE, Desk, at, lay_out

TOOL = "memory_store"
ANN = Identity("helper", "c1", "s1", "t1", "gateway", 0, ())


@dataclass(frozen=True)
class Seen:
    """What was exported."""

    spans: InMemorySpanExporter
    metrics: InMemoryMetricReader

    def tree(self) -> list[str]:
        """Names, each below that of its parent, in the order in which they began."""
        found = sorted(self.spans.get_finished_spans(), key=lambda one: (one.start_time or 0, -(one.end_time or 0)))
        lines: list[str] = []

        def add(parent: int | None, indent: str) -> None:
            for one in found:
                if (one.parent.span_id if one.parent else None) == parent and one.context is not None:
                    lines.append(indent + one.name)
                    add(one.context.span_id, f"{indent}  ")

        add(None, "")
        return lines

    def named(self, name: str) -> list[dict[str, Any]]:
        """The attributes of all spans of a name."""
        return [dict(one.attributes or {}) for one in self.spans.get_finished_spans() if one.name == name]

    def numbers(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and value of each point of a metric; of a histogram how many there were."""
        data = self.metrics.get_metrics_data()
        found: list[tuple[dict[str, Any], Any]] = []
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == name:
                        points: Sequence[Any] = metric.data.data_points
                        found += [
                            (dict(one.attributes or {}), getattr(one, "value", getattr(one, "count", None)))
                            for one in points
                        ]
        return found


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """Providers of this test's own, as `opentelemetry-instrument` sets them up for a process."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider(metric_readers=[reader])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: tracers)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: meters)
    yield Seen(spans, reader)
    tracers.shutdown()
    meters.shutdown()


def observed(folder: Path, **more: Any) -> Path:
    file = lay_out(folder, **more)
    file.write_text(file.read_text() + "\n[telemetry]\nenabled = true\n")
    return file


def test_a_turn_with_a_question_and_a_delegate(tmp_path: Path, seen: Seen) -> None:
    steps = [STORE, {"calls": [{"tool": "delegate", "arguments": {"agent": "aide", "task": "my secret task"}}]}, "both"]

    async def story() -> dict[str, Any]:
        async with at(observed(tmp_path / "desk", steps=steps)) as desk:
            turn = asyncio.create_task(desk.turn())
            await desk.answer((await desk.asked())["id"], scope="exact")
            return await turn

    answer = asyncio.run(story())
    assert seen.tree() == [
        "invoke_agent helper",
        "  chat scripted helper",
        "  execute_tool memory_store",
        "    approval",
        "  chat scripted helper",
        "  execute_tool delegate",
        "    invoke_agent aide",
        "      chat scripted aide",
        "  chat scripted helper",
    ]
    (turn,) = seen.named("invoke_agent helper")
    assert turn["gen_ai.operation.name"] == "invoke_agent"
    assert turn["gen_ai.conversation.id"] == answer["session"]
    assert (turn["zcpolicy.surface"], turn["zcpolicy.turn.status"]) == ("gateway", "done")
    (call,) = seen.named("execute_tool memory_store")
    assert (call["gen_ai.tool.name"], call["zcpolicy.decision.effect"], call["zcpolicy.decision.reason"]) == (
        TOOL,
        "ask",
        "asked",
    )
    assert (call["zcpolicy.generation"], call["zcpolicy.call.phase"]) == (1, "finished")
    (approval,) = seen.named("approval")
    assert (approval["zcpolicy.approval.outcome"], approval["zcpolicy.approval.scope"]) == ("yes", "exact")
    said = json.dumps([dict(one.attributes or {}) for one in seen.spans.get_finished_spans()])
    for secret in ("the sky", "blue", "my secret task", "aide was here", "olga", "ann"):
        assert secret not in said
    assert seen.numbers("zcpolicy.turns") == [
        ({"zcpolicy.turn.status": "done", "gen_ai.agent.name": "aide", "zcpolicy.surface": "delegate"}, 1),
        ({"zcpolicy.turn.status": "done", "gen_ai.agent.name": "helper", "zcpolicy.surface": "gateway"}, 1),
    ]
    assert ({"zcpolicy.approval.outcome": "yes"}, 1) in seen.numbers("zcpolicy.approvals")
    assert sum(value for _, value in seen.numbers("gen_ai.client.token.usage")) == 8
    assert sum(value for _, value in seen.numbers("gen_ai.execute_tool.duration")) == 2


def test_names_that_a_model_wrote_are_not_told(tmp_path: Path, seen: Seen) -> None:
    steps: list[Any] = [{"calls": [{"tool": "my password is hunter2", "arguments": {}}]}, "done"]

    async def story() -> None:
        async with at(observed(tmp_path / "desk", steps=steps)) as desk:
            await desk.turn()

    asyncio.run(story())
    (call,) = seen.named("execute_tool")
    assert (call["zcpolicy.decision.effect"], call["zcpolicy.decision.reason"]) == ("deny", "unknown-tool")
    assert "hunter2" not in json.dumps(call)
    assert "hunter2" not in str(seen.metrics.get_metrics_data())


def test_a_turn_that_pauses_and_goes_on_is_two_spans(tmp_path: Path, seen: Seen) -> None:
    async def story() -> None:
        async with at(observed(tmp_path / "desk", pause="0s")) as desk:
            first = await desk.turn()
            question = await desk.paused()
            assert seen.numbers("zcpolicy.approvals.waiting") == [({}, 1)]
            assert seen.numbers("zcpolicy.policy.generation") == [({}, 1)]
            assert seen.numbers("zcpolicy.policy.failing") == [({}, 0)]
            assert seen.numbers("zcpolicy.ledger.latency")[0][1] < 1
            await desk.answer(question["id"])
            await desk.turn(resume=True, session=first["session"])
            policy = tmp_path / "desk/team.zcpolicy"
            sound = policy.read_text()
            policy.write_text(f"{sound}# changed\nagent other {{ autonomy readonly; allow memory_recall }}\n")
            await desk.client.post("/reload", headers=desk.operator, json={})
            assert seen.numbers("zcpolicy.policy.generation") == [({}, 2)]
            policy.write_text(f"{sound}broken")
            await desk.client.post("/reload", headers=desk.operator, json={})
            assert seen.numbers("zcpolicy.reloads") == [
                ({"zcpolicy.reload.outcome": "published"}, 1),
                ({"zcpolicy.reload.outcome": "failed"}, 1),
            ]
            assert seen.numbers("zcpolicy.policy.failing") == [({}, 1)]

    asyncio.run(story())
    turns = seen.named("invoke_agent helper")
    assert [(one["zcpolicy.turn.status"], one["zcpolicy.turn.resumed"]) for one in turns] == [
        ("paused", False),
        ("done", True),
    ]
    assert len({one["zcpolicy.turn.key"] for one in turns}) == 1


class Slow(SpanExporter):
    """An exporter that hangs, and then fails."""

    def __init__(self) -> None:
        self.go_on = Signal()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.go_on.wait(20)
        raise OSError("the collector is gone")


def test_an_exporter_that_hangs_and_fails_holds_up_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, tracers = Slow(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(slow))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: tracers)

    async def story() -> None:
        file = lay(tmp_path / "desk", more="[telemetry]")
        async with serving(file) as (daemon, client):
            desk = Desk(daemon, client, {}, {})
            began = time.monotonic()
            assert [(await desk.turn())["status"] for _ in range(3)] == ["done"] * 3
            assert time.monotonic() - began < 5
            slow.go_on.set()

    asyncio.run(story())


# --- the recorder itself -----------------------------------------------------------------------------------------------


def numbers() -> Numbers:
    return Numbers(lambda: 0, lambda: 0, lambda: 1, lambda: False, lambda: None, lambda tool: tool == TOOL)


def event(kind: Any, who: Identity = ANN, **data: Any) -> Event:
    return Event(kind, 0.0, who, data)


def decided(effect: str = "allow", reason: str = "allowed") -> str:
    return json.dumps({"effect": effect, "reason": reason, "tool": TOOL, "generation": 1})


def test_what_is_no_event_is_counted_and_passed_over(seen: Seen) -> None:
    recorder = Telemetry(numbers())
    recorder(event("call", phase="admitted", key="k", decision="no JSON"))
    recorder(event("turn", phase="started", key="k"))
    recorder(event("turn", phase="done", key="k"))
    recorder.close()
    assert recorder.lost == 1
    assert seen.tree() == ["invoke_agent helper"]


def test_more_than_the_thread_can_take_is_lost_and_counted(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MAX_BACKLOG", 2)
    hold = Signal()
    recorder = Telemetry(
        Numbers(lambda: 0, lambda: 0, lambda: 1, lambda: False, lambda: None, lambda _tool: hold.wait(10))
    )
    recorder(event("turn", phase="started", key="k"))
    for _ in range(10):
        recorder(event("call", phase="refused", key="k", decision=decided("deny", "denied")))
    assert recorder.lost > 0
    hold.set()
    recorder.close()
    assert seen.numbers("zcpolicy.telemetry.lost") == [({}, recorder.lost)]


def test_turns_that_were_cut_off_and_those_below_them_are_ended(seen: Seen) -> None:
    recorder = Telemetry(numbers())
    below = Identity("aide", "c1", "s2", "t2", "delegate", 1, (("helper", "s1"),))
    recorder(event("turn", phase="started", key="k"))
    recorder(event("call", phase="admitted", key="k.1.1", decision=decided()))
    recorder(event("call", phase="admitted", key="k.1.1.1.1", decision=decided()))
    recorder(event("turn", below, phase="started", key="l"))
    recorder(event("turn", phase="started", key="m"))  # the next turn of the session: the first was cancelled
    recorder.close()
    assert sorted(seen.tree()) == sorted(
        [
            "invoke_agent helper",
            "  execute_tool memory_store",
            "    execute_tool memory_store",
            "  invoke_agent aide",
            "invoke_agent helper",
        ]
    )


def test_a_failure_is_told_by_its_kind_alone(seen: Seen) -> None:
    recorder = Telemetry(numbers())
    recorder(event("turn", phase="started", key="k"))
    recorder(event("call", phase="admitted", key="k.1.1", decision=decided()))
    recorder(event("call", phase="started", key="k.1.1", decision=decided()))
    recorder(
        event("call", phase="finished", key="k.1.1", decision=decided(), ok=False, fault="OSError", error="/home/ann")
    )
    recorder(event("failed", reason="model-failed", fault="TimeoutError", key="k"))
    recorder(event("failed", refused="agent `x` has no model"))
    recorder.close()
    faults = {
        one.name: ((one.attributes or {}).get("error.type"), one.status.is_ok)
        for one in seen.spans.get_finished_spans()
    }
    assert faults == {"execute_tool memory_store": ("OSError", False), "invoke_agent helper": ("TimeoutError", False)}
    assert [one["zcpolicy.turn.status"] for one, _ in seen.numbers("zcpolicy.turns")] == ["failed", "refused"]

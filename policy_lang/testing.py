"""Running the `test` blocks of a policy (SPEC 12).

In: a program and the blocks of its roots. Out: for each block what became of its calls. A block is one session: calls
that are allowed run, succeed, mark and charge in order; calls that ask do not run. The platform is posix, there is no
link resolver, a person can be asked, and the host writes defaults.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, assert_never

from policy_lang import ast
from policy_lang.source import Source
from zcpolicy.decision import Decision
from zcpolicy.facts import FactsError, Session
from zcpolicy.program import Program, head_of
from zcpolicy.resolver import ResolvedAgentExecution, ResolveError, Resolver, UnknownAgent

if TYPE_CHECKING:
    from zcpolicy.facts import ToolName

START: Final = 1_767_268_800.0
"""When a test begins: 2026-01-01 12:00 UTC, far from any border of a day or a month."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """One call. `complaint`: why it is not as the test says, else None. `decision`: None where no execution could be."""

    call: ast.Call
    effect: ast.Answer
    reason: str
    decision: Decision | None
    note: str
    complaint: str | None


@dataclass(frozen=True, slots=True)
class TestResult:
    """One block. `problem`: what kept it from running to its end."""

    __test__ = False  # not a test of ours, whatever its name suggests to pytest

    source: Source
    block: ast.TestBlock
    calls: tuple[CallResult, ...]
    problem: str | None = None

    @property
    def passed(self) -> bool:
        """Whether it ran to its end and every call is as it should be."""
        return self.problem is None and all(call.complaint is None for call in self.calls)


def run_tests(program: Program, tests: Iterable[tuple[Source, ast.TestBlock]]) -> Iterator[TestResult]:
    """The blocks in order, each from a fresh start."""
    for source, block in tests:
        yield _run(program, source, block)


def _run(program: Program, source: Source, block: ast.TestBlock) -> TestResult:
    running = _Running(Resolver(program))
    calls: list[CallResult] = []
    try:
        for step in block.steps:
            result = running.step(step)
            if result is not None:
                calls.append(result)
    except FactsError as error:
        return TestResult(source, block, tuple(calls), str(error))
    return TestResult(source, block, tuple(calls))


@dataclass(slots=True)
class _Running:
    """One session under way."""

    resolver: Resolver
    session: Session = field(default_factory=lambda: Session(interactive=True))
    now: float = START
    agent: ast.TestAgent | None = None
    execution: ResolvedAgentExecution | None = None

    def __post_init__(self) -> None:
        self.session.clock = lambda: self.now

    def step(self, step: ast.TestStep) -> CallResult | None:
        """Do what the step says; of a call its result."""
        match step:
            case ast.TestAgent():
                self.agent, self.execution = step, None
            case ast.Given():
                self._given(step)
            case ast.Wait(duration=duration):
                self.now += duration.seconds
            case ast.Call():
                return self._call(step)
            case _:
                assert_never(step)
        return None

    def _given(self, step: ast.Given) -> None:
        for name, value in step.facts:
            said = plain(value)
            if name.text == "cwd":
                self.session.cwd = said  # the session looks at it
            elif name.text == "interactive":
                _must(isinstance(said, bool), "`interactive` is true or false")
                self.session.interactive = said
            elif name.text == "server_cwd" and "server_cwd" not in head_of(self.resolver.program)["context"]:
                _must(isinstance(said, str) and said.startswith("/"), "`server_cwd` is an absolute path")
                self.session.server_cwd = dict.fromkeys(_servers(self.resolver.program), str(said))
            elif name.text == "home" and "home" not in head_of(self.resolver.program)["context"]:
                _must(isinstance(said, str), "`home` is the text of a path")
                self.session.env = {**self.session.env, "HOME": str(said)}
            else:
                self.session.context[name.text] = said
        self.session.mark(label.text for label in step.marked)
        self.execution = None  # an execution may have looked at the facts when it was made

    def _call(self, step: ast.Call) -> CallResult:
        try:
            execution = self.execution = self.execution or self._resolved()
        except UnknownAgent as error:
            return _refused(step, "unknown-agent", str(error))
        except ResolveError as error:
            return _refused(step, "not-granted", str(error))
        decision = execution.decide(tool_name(step.tool), wire(step.arguments))
        complaint = _complaint(step, decision.effect, decision.reason, decision)
        if decision.effect == "allow":
            execution.permit(decision)
        return CallResult(step, decision.effect, decision.reason, decision, decision.note, complaint)

    def _resolved(self) -> ResolvedAgentExecution:
        _must(self.agent is not None, "no `agent` is named before the first call")
        assert self.agent is not None
        above: ResolvedAgentExecution | None = None
        for parent in reversed(self.agent.parents):
            above = self.resolver.resolve(parent.text, session=self.session, parent=above)
        skills = [skill.text for skill in self.agent.skills]
        return self.resolver.resolve(self.agent.agent.text, session=self.session, parent=above, skills=skills)


def _must(condition: bool, message: str) -> None:
    if not condition:
        raise FactsError(message)


def _servers(program: Program) -> set[str]:
    return {tool["server"] for tool in head_of(program)["tools"] if tool["server"] is not None}


def _refused(call: ast.Call, reason: str, note: str) -> CallResult:
    """No execution, so no call: a deny."""
    return CallResult(call, "deny", reason, None, note, _complaint(call, "deny", reason, None))


def _complaint(call: ast.Call, effect: ast.Answer, reason: str, decision: Decision | None) -> str | None:
    """What is not as expected."""
    if effect != call.effect:
        return f"expected {call.effect}, and it is {effect}"
    if call.reason is not None and call.reason.text != reason:
        return f"expected the reason `{call.reason.text}`, and it is `{reason}`"
    if call.because is not None:
        said = [rule.because for rule in decision.rules if rule.because is not None] if decision is not None else []
        if call.because.value not in said:
            given = " and ".join(json.dumps(text, ensure_ascii=False) for text in said) or "none"
            return f"expected another `because`; it is {given}"
    return None


def tool_name(ref: ast.ToolRef) -> "ToolName":
    """The tool that a call names."""
    return ref.name.text if ref.server is None else (ref.server.text, ref.name.text)


def plain(value: ast.Value) -> Any:
    """A literal as a host would have it: numbers `int` or `Decimal`."""
    match value:
        case ast.String(value=text):
            return text
        case ast.Number(value=number):
            return number
        case ast.Boolean(value=flag):
            return flag
        case ast.Null():
            return None
        case ast.ListValue(items=items):
            return [plain(item) for item in items]
        case ast.ObjectValue(items=members):
            return {key.value: plain(member) for key, member in members}
        case _:
            assert_never(value)


def wire(arguments: Iterable[tuple[str, ast.Value]]) -> str:
    """Arguments as JSON text; what stands twice stays twice, so that it is malformed as in a host's bytes."""
    return "{" + ", ".join(f"{json.dumps(name)}: {_json(value)}" for name, value in arguments) + "}"


def _json(value: ast.Value) -> str:
    match value:
        case ast.Number(value=number):
            return format(number, "f") if isinstance(number, Decimal) else str(number)
        case ast.ListValue(items=items):
            return "[" + ", ".join(_json(item) for item in items) + "]"
        case ast.ObjectValue(items=members):
            return wire((key.value, member) for key, member in members)
        case _:
            return json.dumps(plain(value))

"""The engine and the oracle, asked the same.

In: a `Sketch` or a `Story`. Out: the engine's answers, the oracle's answers, in one shape.
"""

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import assume

from policy_lang import ast
from policy_lang.compile import Compiled, compile_policy, compile_text
from tests.clock import Clock
from tests.reference import Execution, Facts, HostNarrowing, Policy, Ran
from tests.strategies import Session, Sketch, Story
from tests.strategies.calls import Limits
from zcpolicy import Decision, Entry, Narrowing, Program, ResolvedAgentExecution, Resolver
from zcpolicy import Session as HostSession

FOLDER = Path(tempfile.mkdtemp(prefix="zcpolicy-properties-"))
"""Where the files lie that policies name."""
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

START = 1_700_000_000.0
"""The time at which every story begins."""

ORDER = ("deny", "ask", "allow")

JUDGED = ("allow", "ask", "deny", "only", "require")
"""The statements that both name: not limits and `connect`; of several caps the resolver names the first."""


@dataclass(frozen=True)
class Said:
    """One answer. `lines`: where the deciding statements stand, if it was a rule that decided."""

    effect: str
    reason: str
    lines: tuple[int, ...] = ()


def compiled(sketch: Sketch, text: str | None = None) -> Compiled:
    """What the compiler makes of a sketch, or of another text over its catalogue."""
    for name, content in sketch.shelf.files:
        (FOLDER / name).write_text(content, "utf-8")
    return compile_text(sketch.text() if text is None else text, folder=FOLDER)


def program(sketch: Sketch, text: str | None = None) -> Program:
    """The program; an example whose policy does not compile is discarded."""
    made = compiled(sketch, text).program
    assume(made is not None)
    assert made is not None
    return made


def under_a_layer(sketch: Sketch, above: str) -> tuple[Program, Policy]:
    """The sketch as the lower of two layers, compiled and for the oracle; what does not compile is discarded."""
    compiled(sketch)  # writes the catalogue
    high, low = FOLDER / "above.zcpolicy", FOLDER / "below.zcpolicy"
    high.write_text(above, "utf-8")
    declared_above = ("label", "context", "let")
    low.write_text("\n".join(one for one in sketch.text().splitlines() if not one.startswith(declared_above)), "utf-8")
    made = compile_policy(low, layers=[high]).program
    assume(made is not None)
    assert made is not None
    return made, Policy.read(low, [high])


def tool(key: tuple[str | None, str]) -> Any:
    """A tool's identity as the engine has it."""
    return key[1] if key[0] is None else key


# --- the engine ----------------------------------------------------------------------------------------


def host_session(session: Session, clock: Clock) -> HostSession:
    """The facts as the engine takes them."""
    return HostSession(
        cwd=session.cwd,
        interactive=session.interactive,
        env=session.env,
        server_cwd=session.server_cwd,
        supplies_defaults=session.supplies_defaults,
        context=session.context,
        labels=session.labels,
        drift={tool(key): kind for key, kind in session.drift.items()},  # type: ignore[misc]  # the kinds are texts there
        ledger=session.ledger,
        history=[Entry(tool(one.tool), one.arguments, ok=one.ok, at=START - one.ago) for one in session.history],
        clock=clock,
        id="s",
    )


def host_narrowing(limits: Limits | None) -> Narrowing | None:
    """The host's narrowing as the engine takes it."""
    if limits is None:
        return None
    only = None if limits.only is None else [tool(key) for key in limits.only]
    deny, ask = [tool(key) for key in limits.deny], [tool(key) for key in limits.ask]
    return Narrowing(only=only, deny=deny, ask=ask, autonomy=limits.autonomy)


def engine_run(story: Story, policy: Program, clock: Clock, session: Session | None = None) -> ResolvedAgentExecution:
    """The story's agent at work in the engine, under its delegators."""
    facts = host_session(session or story.session, clock)
    resolver, narrowing = Resolver(policy, protected=story.protected), host_narrowing(story.narrowing)
    parent: ResolvedAgentExecution | None = None
    for name in reversed(story.parents):
        parent = resolver.resolve(name, session=facts, narrowing=narrowing, parent=parent)
    return resolver.resolve(story.agent, session=facts, narrowing=narrowing, parent=parent, skills=story.skills)


def said(decision: Decision) -> Said:
    """What the engine said."""
    places = [rule.place for rule in decision.rules if rule.place is not None]
    lines = {int(place[1]) for place in places if place[2].split()[0] in JUDGED}
    return Said(decision.effect, decision.reason, tuple(sorted(lines)))


def by_engine(story: Story, policy: Program) -> list[Said]:
    """The answers of the engine; what is allowed runs."""
    clock = Clock(START)
    run = engine_run(story, policy, clock)
    answers: list[Said] = []
    for call in story.calls:
        clock.now += call.after
        who = run.parent if call.above and run.parent is not None else run
        decision = who.decide(tool(call.tool), call.sent)
        answers.append(said(decision))
        if decision.effect == "allow":
            who.permit(decision)
    return answers


def first(story: Story, policy: Program, session: Session | None = None) -> str:
    """The effect of the story's first call."""
    run = engine_run(story, policy, Clock(START), session)
    call = story.calls[0]
    return run.decide(tool(call.tool), call.sent).effect


def no_wider(narrow: str, wide: str) -> bool:
    """Whether the one effect permits no more than the other."""
    return ORDER.index(narrow) <= ORDER.index(wide)


# --- the oracle ----------------------------------------------------------------------------------------


def oracle_run(story: Story, policy: Policy) -> Execution:
    """The story's agent at work in the oracle."""
    given = story.session
    facts = Facts(
        cwd=given.cwd,
        interactive=given.interactive,
        env=given.env,
        server_cwd=given.server_cwd,
        supplies_defaults=given.supplies_defaults,
        context=given.context,
        labels=set(given.labels),
        drift=given.drift,  # type: ignore[arg-type]  # the kinds are texts there
        ledger=given.ledger,
        history=[Ran(one.tool, one.arguments, one.ok, START - one.ago) for one in given.history],
        now=START,
    )
    taken = story.narrowing
    narrowing = None if taken is None else HostNarrowing(taken.only, taken.deny, taken.ask, taken.autonomy)  # type: ignore[arg-type]  # levels are texts there
    return policy.run(
        story.agent, facts, parents=story.parents, skills=story.skills, narrowing=narrowing, protected=story.protected
    )


def by_oracle(story: Story, policy: Policy | None = None) -> list[Said]:
    """The answers of the oracle; what is allowed runs."""
    run = oracle_run(story, Policy.loads(story.sketch.text(), FOLDER) if policy is None else policy)
    source = run.world.root.tree.source
    answers: list[Said] = []
    for call in story.calls:
        run.facts.now += call.after
        who = run.delegator() if call.above and run.parents else run
        answer = who.decide(call.tool, dict(call.arguments))
        told = [one for one in answer.told if not isinstance(one, ast.Autonomy)]
        lines = sorted({source.position(one.span.start).line for one in told})
        answers.append(Said(answer.effect, answer.reason, tuple(lines)))
        if answer.effect == "allow":
            who.permit(call.tool, dict(call.arguments))
    return answers


def pairs(answers: Sequence[Said]) -> list[tuple[str, str]]:
    """Effects and reasons alone."""
    return [(one.effect, one.reason) for one in answers]

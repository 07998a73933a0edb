"""Resuming and forking, over random policies and stories: the same answers, never wider ones, and no label lost."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from policy_lang import loads
from tests.clock import Clock
from tests.properties.both import START, by_engine, host_narrowing, host_session, no_wider, program, said, tool
from tests.strategies import Story, limited_sketches, sketches, stories
from zcpolicy import ResolvedAgentExecution, Resolver, Session
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.sessions import fork, restore, save


def resumed(session: Session) -> Session:
    """As a host does it: through text, in another process."""
    return restore(json.loads(json.dumps(save(session))), clock=session.clock)


def line_of(story: Story, resolver: Resolver, session: Session) -> ResolvedAgentExecution:
    """The story's agent under its delegators, all in one session."""
    narrowing, run = host_narrowing(story.narrowing), None
    for name in reversed(story.parents):
        run = resolver.resolve(name, session=session, narrowing=narrowing, parent=run)
    return resolver.resolve(story.agent, session=session, narrowing=narrowing, parent=run, skills=story.skills)


@given(stories(sketches() | limited_sketches()), st.data())
def test_a_resumed_session_decides_as_if_nothing_had_been(story: Story, data: st.DataObject) -> None:
    """Before every call the session may be saved and restored; the answers are those of a session that never was."""
    policy, clock = program(story.sketch), Clock(START)
    resolver = Resolver(policy, protected=story.protected)
    run = line_of(story, resolver, host_session(story.session, clock))
    answers: list[object] = []
    for call in story.calls:
        if data.draw(st.booleans()):
            run = line_of(story, resolver, resumed(run.session))
        clock.now += call.after
        who = run.parent if call.above and run.parent is not None else run
        decision = who.decide(tool(call.tool), call.sent)
        answers.append(said(decision))
        if decision.effect == "allow":
            who.permit(decision)
    assert answers == by_engine(story, policy)


@given(stories(sketches() | limited_sketches()), st.data())
def test_a_fork_may_no_more_than_the_session_that_it_comes_from(story: Story, data: st.DataObject) -> None:
    """Calls spread over a session and its forks are permitted no wider than if one session had made them all."""
    policy, clock = program(story.sketch), Clock(START)
    spread = [line_of(story, Resolver(policy, protected=story.protected), host_session(story.session, clock))]
    alone = line_of(story, Resolver(policy, protected=story.protected), host_session(story.session, clock))
    for call in (*story.calls, *story.calls):
        one = data.draw(st.sampled_from(spread))
        if data.draw(st.booleans()):
            one = line_of(story, one.resolver, fork(one.session))
            spread.append(one)
        clock.now += call.after
        answers = [run.decide(tool(call.tool), call.sent) for run in (one, alone)]
        if one.session.labels == alone.session.labels:  # what a sibling marked is not on this one
            assert no_wider(answers[0].effect, answers[1].effect)
        if answers[0].effect != "allow" or answers[1].effect != "allow":
            break  # from here on their pasts differ
        for run, answer in zip((one, alone), answers, strict=True):
            run.permit(answer)


POLICY = loads("""zcpolicy 1
tool look() risk read
label l0, l1, l2, l3
scope team
agent a { allow look; autonomy full; memory read own, team write own, team; delegate to b }
agent b { allow look; autonomy full; memory read own, team write own, team }
""")
LABELS = st.sets(st.sampled_from(("l0", "l1", "l2", "l3")), max_size=2)
PICK = st.integers(0, 9)


class LabelsOnlyGrow(RuleBasedStateMachine):
    """Sessions are marked, saved, restored, forked, delegate, remember and recall, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.resolver = Resolver(POLICY)
        self.store = InMemoryStore()
        self.runs: list[ResolvedAgentExecution] = []
        self.least: list[frozenset[str]] = []  # the labels that each of them had once
        self.written: dict[str, frozenset[str]] = {}  # of what was remembered

    def take(self, pick: int) -> int:
        return pick % len(self.runs)

    def add(self, run: ResolvedAgentExecution, least: frozenset[str]) -> None:
        self.runs.append(run)
        self.least.append(least)

    @initialize(labels=LABELS)
    def begin(self, labels: set[str]) -> None:
        self.add(self.resolver.resolve("a", session=Session(client="x", labels=labels)), frozenset(labels))

    @rule(pick=PICK, labels=LABELS)
    def mark(self, pick: int, labels: set[str]) -> None:
        at = self.take(pick)
        self.runs[at].session.mark(labels)
        self.least[at] |= labels

    @rule(pick=PICK)
    def resume(self, pick: int) -> None:
        at = self.take(pick)
        run = self.runs[at]
        self.runs[at] = self.resolver.resolve(run.agent, session=resumed(run.session), parent=run.parent)

    @rule(pick=PICK)
    def branch(self, pick: int) -> None:
        at = self.take(pick)
        run = self.runs[at]
        self.add(self.resolver.resolve(run.agent, session=fork(run.session), parent=run.parent), self.least[at])

    @rule(pick=PICK)
    def delegate(self, pick: int) -> None:
        at = self.take(pick)
        above = self.runs[at]
        if above.agent == "a":
            child = self.resolver.resolve("b", session=Session(client="x"), parent=above)
            self.add(child, self.least[at])

    @rule(pick=PICK)
    def answer(self, pick: int) -> None:
        at = self.take(pick)
        above = self.runs[at].parent
        self.runs[at].finish()
        if above is not None:
            assert above.session.labels >= self.least[at]

    @rule(pick=PICK, scope=st.sampled_from(("own", "team")))
    def remember(self, pick: int, scope: str) -> None:
        at = self.take(pick)
        text = f"note {len(self.written)}"
        self.written[text] = self.least[at]
        asyncio.run(self.runs[at].memory.remember(self.store, text, scope))

    @rule(pick=PICK)
    def recall(self, pick: int) -> None:
        at = self.take(pick)
        for entry in asyncio.run(self.runs[at].memory.recall(self.store, "note")):
            assert entry.labels >= self.written[entry.text]
            self.least[at] |= entry.labels

    @invariant()
    def no_label_is_lost(self) -> None:
        for run, least in zip(self.runs, self.least, strict=True):
            assert run.session.labels >= least


TestLabelsOnlyGrow = LabelsOnlyGrow.TestCase

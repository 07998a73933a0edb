"""What only withholds never permits more: one restriction more, a narrowing, a layer, a bounded child, a fact less.

Each compares one call from one state of the session. The acting agent's own name and depth are facts like any other,
so policies that test them are left out where two agents are compared. A working directory that is not known is left
out on purpose: a relative path may then miss a withholding rule (SPEC 7, paths).
"""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.properties.both import first, no_wider, program, under_a_layer
from tests.strategies import Story, sketches, stories
from tests.strategies.calls import some_narrowings
from tests.strategies.variations import layers, restricted


@given(stories(sketches(), most=1), st.data())
def test_a_restriction_more_never_widens(story: Story, data: st.DataObject) -> None:
    policy = program(story.sketch)
    restrained = program(data.draw(restricted(story.sketch)))
    assert no_wider(first(story, restrained), first(story, policy))


@given(stories(sketches(), most=1), st.data())
def test_a_layer_never_widens(story: Story, data: st.DataObject) -> None:
    policy = program(story.sketch)
    layered, _ = under_a_layer(story.sketch, data.draw(layers(story.sketch)))
    assert no_wider(first(story, layered), first(story, policy))


@given(stories(sketches("narrows"), most=1))
def test_an_agent_that_narrows_is_no_wider_than_its_parent(story: Story) -> None:
    assume("agent." not in story.sketch.text())
    policy = program(story.sketch)
    under = replace(story, agent="n0", parents=(), skills=())
    assert no_wider(first(under, policy), first(replace(under, agent="a0"), policy))
    if "n1" in story.sketch.agents:
        assert no_wider(first(replace(under, agent="n1"), policy), first(under, policy))


@given(stories(sketches(), most=1), st.data())
def test_a_hosts_narrowing_never_widens(story: Story, data: st.DataObject) -> None:
    policy = program(story.sketch)
    narrowed = replace(story, narrowing=data.draw(some_narrowings(story.sketch)))
    assert no_wider(first(narrowed, policy), first(replace(story, narrowing=None), policy))


@given(stories(sketches("child"), most=1))
def test_a_bounded_child_is_no_wider_than_it_and_its_delegator(story: Story) -> None:
    assume("agent." not in story.sketch.text())
    policy = program(story.sketch)
    child = replace(story, agent="a1", parents=("a0",), skills=())
    alone = replace(child, parents=())
    assert no_wider(first(child, policy), first(alone, policy))
    assert no_wider(first(child, policy), first(replace(alone, agent="a0"), policy))


@given(stories(sketches("skill"), most=1))
def test_a_loaded_skill_never_widens(story: Story) -> None:
    policy = program(story.sketch)
    plain = replace(story, agent="a0", parents=(), skills=())
    assert no_wider(first(replace(plain, skills=("s0",)), policy), first(plain, policy))


@given(stories(sketches(), most=1), st.data())
def test_a_fact_less_never_widens(story: Story, data: st.DataObject) -> None:
    policy = program(story.sketch)
    told = story.session
    less = [
        replace(told, context={name: value for name, value in told.context.items() if name != lost})
        for lost in told.context
    ]
    less += [replace(told, env={}), replace(told, supplies_defaults=False), replace(told, interactive=False)]
    without = data.draw(st.sampled_from(less))
    assume("session.interactive" not in story.sketch.text())  # not told is not interactive: a fact, not an unknown one
    assert no_wider(first(story, policy, without), first(story, policy))


@given(stories(sketches(), most=1), st.sampled_from(("dirty", "private")))
def test_a_label_more_never_widens(story: Story, label: str) -> None:
    policy = program(story.sketch)
    marked = replace(story.session, labels=story.session.labels | {label})
    assert no_wider(first(story, policy, marked), first(story, policy))

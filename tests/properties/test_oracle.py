"""The resolver and the oracle give the same answer, for the same reason, by the same rules."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.both import by_engine, by_oracle, pairs, program, under_a_layer
from tests.strategies import Story, limited_sketches, plain_sketches, sketches, stories
from tests.strategies.variations import layers


@given(stories(sketches()))
def test_the_resolver_decides_as_the_oracle_does(story: Story) -> None:
    policy = program(story.sketch)
    assert pairs(by_engine(story, policy)) == pairs(by_oracle(story))


@given(stories(plain_sketches()))
def test_conditions_mean_the_same(story: Story) -> None:
    policy = program(story.sketch)
    assert pairs(by_engine(story, policy)) == pairs(by_oracle(story))


@given(stories(limited_sketches(), most=8))
def test_limits_count_the_same(story: Story) -> None:
    policy = program(story.sketch)
    assert pairs(by_engine(story, policy)) == pairs(by_oracle(story))


@given(stories(sketches()))
def test_the_same_statements_decide(story: Story) -> None:
    story = replace(story, narrowing=None)  # its statements stand in no file
    policy = program(story.sketch)
    for ours, theirs in zip(by_engine(story, policy), by_oracle(story), strict=True):
        assert set(ours.lines) <= set(theirs.lines)  # of statements that say the same, the resolver names the first
        assert bool(ours.lines) == bool(theirs.lines)


@given(stories(sketches()), st.data())
def test_layers_decide_as_the_oracle_says(story: Story, data: st.DataObject) -> None:
    policy, read = under_a_layer(story.sketch, data.draw(layers(story.sketch)))
    assert pairs(by_engine(story, policy)) == pairs(by_oracle(story, read))

"""The resolver and the oracle give the same answer, for the same reason, by the same rules."""

from hypothesis import given

from tests.properties.both import by_engine, by_oracle, pairs, program
from tests.strategies import Story, sketches, stories

BY_RULES = ("denied", "outside-only", "precondition", "allowed", "asked")


@given(stories(sketches()))
def test_the_resolver_decides_as_the_oracle_does(story: Story) -> None:
    policy = program(story.sketch)
    assert pairs(by_engine(story, policy)) == pairs(by_oracle(story))


@given(stories(sketches()))
def test_the_same_rules_decide(story: Story) -> None:
    policy = program(story.sketch)
    for ours, theirs in zip(by_engine(story, policy), by_oracle(story), strict=True):
        if ours.reason in BY_RULES:
            assert ours.lines  # of statements that say the same, the resolver names the first alone
            assert set(ours.lines) <= set(theirs.lines)

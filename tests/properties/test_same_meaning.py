"""What the digest must not see: order, repetition, formatting, files. One digest, one behaviour."""

from hypothesis import given
from hypothesis import strategies as st

from policy_lang.compile import compile_policy
from tests.properties.both import FOLDER, by_engine, compiled, pairs, program
from tests.strategies import Sketch, Story, sketches, stories
from tests.strategies.variations import reordered, repeated, respelled, split, split_under_a_prefix
from zcpolicy import Program


def in_two_files(sketch: Sketch, files: tuple[str, str]) -> Program:
    """The program of a root that imports a part."""
    compiled(sketch)  # writes the catalogue
    root, part = files
    (FOLDER / "part.zcpolicy").write_text(part, "utf-8")
    (FOLDER / "root.zcpolicy").write_text(root, "utf-8")
    made = compile_policy(FOLDER / "root.zcpolicy")
    assert made.program is not None, [one.message for one in made.diagnostics]
    return made.program


@given(stories(sketches()), st.data())
def test_order_changes_nothing(story: Story, data: st.DataObject) -> None:
    policy = program(story.sketch)
    other = program(data.draw(reordered(story.sketch)))
    assert other.digest == policy.digest
    assert pairs(by_engine(story, other)) == pairs(by_engine(story, policy))


@given(stories(sketches()), st.data())
def test_repetition_changes_nothing(story: Story, data: st.DataObject) -> None:
    policy = program(story.sketch)
    other = program(data.draw(repeated(story.sketch)))
    assert other.digest == policy.digest
    assert pairs(by_engine(story, other)) == pairs(by_engine(story, policy))


@given(sketches(), st.data())
def test_formatting_changes_nothing(sketch: Sketch, data: st.DataObject) -> None:
    policy = program(sketch)
    made = compiled(sketch, data.draw(respelled(sketch)))
    assert made.program is not None, [one.message for one in made.diagnostics]
    assert made.program.digest == policy.digest


@given(stories(sketches()), st.data())
def test_files_change_nothing(story: Story, data: st.DataObject) -> None:
    policy = program(story.sketch)
    other = in_two_files(story.sketch, data.draw(split(story.sketch)))
    assert other.digest == policy.digest
    assert pairs(by_engine(story, other)) == pairs(by_engine(story, policy))


@given(sketches(), st.data())
def test_a_prefix_changes_nothing(sketch: Sketch, data: st.DataObject) -> None:
    policy = program(sketch)
    assert in_two_files(sketch, data.draw(split_under_a_prefix(sketch))).digest == policy.digest

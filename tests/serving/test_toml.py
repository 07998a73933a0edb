"""Where keys and values stand in a TOML text."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lang.serving.toml import Document, read_toml
from policy_lang.source import Source

STORY = '''\
# settings
title."of a" . 'story' = [1, {x = "]", y.z = 2}, # an item
  """three "" lines""",]
when = 1979-05-27 07:32:00
[agents.helper]
model = "a" # = "b"
[[jobs]]
text = 'one'
[[jobs]]
text = \'\'\'two 'quoted\'\'\'
[jobs.more]
deep = true
'''


def document(text: str) -> Document:
    found = read_toml(Source("x.toml", text))
    assert isinstance(found, Document)
    return found


def test_every_value_has_its_place() -> None:
    found = document(STORY)
    assert {path: STORY[slice(*span)] for path, span in found.spans.items() if len(path) < 5} == {
        ("title", "of a", "story", 0): "1",
        ("title", "of a", "story", 1): '{x = "]", y.z = 2}',
        ("title", "of a", "story", 2): '"""three "" lines"""',
        ("title", "of a", "story"): STORY[STORY.index("[1") : STORY.index(",]") + 2],
        ("when",): "1979-05-27 07:32:00",
        ("agents", "helper", "model"): '"a"',
        ("jobs", 0, "text"): "'one'",
        ("jobs", 1, "text"): "'''two 'quoted'''",
        ("jobs", 1, "more", "deep"): "true",
    }
    assert STORY[slice(*found.key(("agents", "helper", "model")))] == "model"
    assert STORY[slice(*found.key(("jobs", 1)))] == "[[jobs]]"


@pytest.mark.parametrize(
    "text", ["a = ", "[a", "a = 1\na = 2", "x = [[[", f"a = {'[' * 60}{']' * 60}", "a = 'x\x00'", "a = {b"]
)
def test_what_is_no_toml_is_said_at_its_place(text: str) -> None:
    found = read_toml(Source("x.toml", text))
    assert not isinstance(found, Document)
    assert found.code.id == "ZC6001"
    assert 0 <= found.span.start <= found.span.end <= len(text)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(st.characters(exclude_categories=["Cs", "Cc"]))),
    lambda inside: st.lists(inside, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.from_regex(r"\A[a-z]{1,3}\Z"), VALUES, max_size=4), st.sampled_from(["", "[a.b]\n", "[[a]]\n"])
)
def test_the_place_of_a_value_holds_that_value(values: dict[str, Any], header: str) -> None:
    text = header + "".join(f"{name} = {_written(value)}\n" for name, value in values.items())
    found = document(text)
    for path, span in found.spans.items():
        here: Any = found.values
        for part in path:
            here = here[part]
        assert tomllib.loads(f"a = {text[slice(*span)]}") == {"a": here}


def _written(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case _:
            return f"[{', '.join(map(_written, value))}]"

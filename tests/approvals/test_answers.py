"""Whatever an approver gives back: nothing but an exact yes is a yes, and a yes is never wider than it was offered."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approvals.people import ask, says, shell, start, word
from zcpolicy.approvals.outcome import Edited
from zcpolicy.approvals.question import Approve, Later, Question, Reject, Scope
from zcpolicy.approvals.weigh import MAX_SAID_CHARACTERS, Nothing, weighed

ARGUMENTS = {"command": "git push"}
SCOPES: tuple[Scope, ...] = ("once", "exact")


class Agreeable(str):
    """A text that is equal to everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("once")


class Bottomless(Mapping[str, Any]):
    """A mapping that raises when it is looked at."""

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True)
class Approved:
    """Looks like a yes from afar."""

    scope: str = "once"
    seconds: None = None
    arguments: None = None
    tool: None = None
    by: str = ""


class Lies(Approve):
    """`isinstance` believes it."""


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3), st.just(object()),
    st.sampled_from(["once", "exact", "tool", "never", "ONCE", "", Agreeable("once")]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.tuples(inner, inner),
        st.just(Bottomless()),
    ),
    max_leaves=6,
)
anything: Any = st.one_of(
    values,
    st.builds(Approved),
    st.builds(Lies),
    st.sampled_from([Approve, Reject, Later, "yes", "y", True, 1, Ellipsis]),
    st.builds(Approve, scope=values, seconds=values, arguments=values, tool=values, by=values),
    st.builds(Reject, note=values, by=values),
)


def question() -> Question:
    return Question(
        id="q", key="k", text="", agent="a", client="c", session="s", tool="shell", arguments=ARGUMENTS, route="",
        scopes=SCOPES, remember_for=None, rules=(), because=(), binding="b", tool_binding="t", due=1.0,
    )  # fmt: skip


@given(anything)
@settings(max_examples=300, deadline=None)
def test_nothing_but_a_yes_is_a_yes(answer: Any) -> None:
    worth = weighed(answer, question(), ARGUMENTS)
    if isinstance(worth, Approve):
        assert type(answer) is Approve
        assert type(worth.scope) is str
        assert worth.scope in SCOPES
        assert worth.scope in ("once", answer.scope)
        assert worth.arguments is None
        assert worth.tool is None
        assert type(worth.by) is str
    elif isinstance(worth, Edited):
        assert type(answer) is Approve
        assert answer.arguments is not None or answer.tool is not None
        assert (worth.tool, worth.arguments) != ("shell", ARGUMENTS)
    elif isinstance(worth, Reject):
        assert type(answer) is Reject
    elif isinstance(worth, Later):
        assert type(answer) is Later
    else:
        assert type(worth) is Nothing


@given(values)
@settings(max_examples=100, deadline=None)
def test_random_objects_never_let_a_call_run(answer: Any) -> None:
    run = start()
    assert word(asyncio.run(ask(run, says(answer), "k1"))) == "no-approver"
    assert word(asyncio.run(ask(run, None, "k1", shell(run)))) == "no-approver"


def test_a_liar_does_not_reach_further_than_a_mistake() -> None:
    assert isinstance(weighed(Lies("once"), question(), ARGUMENTS), Nothing)
    assert isinstance(weighed(Approve(Agreeable("tool")), question(), ARGUMENTS), Nothing)  # type: ignore[arg-type]  # on purpose
    assert isinstance(weighed(Approve(arguments=Bottomless()), question(), ARGUMENTS), Nothing)


def test_what_people_say_is_kept_short() -> None:
    worth = weighed(Reject("x" * 10_000, "y" * 10_000), question(), ARGUMENTS)
    assert isinstance(worth, Reject)
    assert (len(worth.note), len(worth.by)) == (MAX_SAID_CHARACTERS, MAX_SAID_CHARACTERS)


def test_an_edit_may_come_in_any_mapping() -> None:
    from types import MappingProxyType

    worth = weighed(Approve(arguments=MappingProxyType({"command": "ls"})), question(), ARGUMENTS)
    assert isinstance(worth, Edited)
    assert worth.arguments == {"command": "ls"}


@pytest.mark.parametrize(("said", "means"), [("once", "once"), ("exact", "exact"), ("tool", "once")])
def test_a_scope_is_one_of_those_offered(said: Scope, means: Scope) -> None:
    worth = weighed(Approve(said, 60.0), question(), ARGUMENTS)
    assert worth == Approve(means, None if means == "once" else 60.0)

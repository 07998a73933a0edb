"""What a handle promises is data, and is held: who may do what with it, and what it takes."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from tests.state.stage import Notes, SessionNotes, SharedNotes, acting, contract
from zcpolicy import PermitError
from zcpolicy.state.caller import caller_of
from zcpolicy.state.contract import Contract, Handle, Held
from zcpolicy.state.secret import MAX_SECRET_DEPTH, has_secret, secret

UNSOUND: dict[str, tuple[dict[str, Any], str]] = {
    "holds nothing": ({"holds": " "}, "`holds` says what the state is"),
    "an owner of its own": ({"owner": "me"}, "`owner` is one of daemon, host, tool"),
    "no lock": ({"concurrency": ""}, "`concurrency` is one of read-write lock, lock, immutable"),
    "isolation is no word": ({"isolation": None}, "`isolation` is one of client, agent, session, shared"),
    "reload unknown": ({"reload": "ignored"}, "`reload` is one of re-resolved, replaced, kept"),
    "depends on nothing": (
        {"depends": frozenset()},
        "`depends` is a frozenset of at least one of config, credentials, policy, workspace, provider",
    ),
    "depends on what is no source": (
        {"depends": frozenset({"moon"})},
        "`depends` is a frozenset of at least one of config, credentials, policy, workspace, provider",
    ),
    "a list that can change": (
        {"depends": ["config"]},
        "`depends` is a frozenset of at least one of config, credentials, policy, workspace, provider",
    ),
    "security that is kept": ({"reload": "kept"}, "only state that is not `security` is kept over a reload"),
    "security as text": ({"security": "no"}, "`security` and `namespaced` are true or false"),
    "names of a client's own": ({"namespaced": True}, "only shared state is `namespaced`: the rest is scoped anyway"),
}


@pytest.mark.parametrize("case", UNSOUND)
def test_r03_a_contract_is_checked(case: str) -> None:
    changed, said = UNSOUND[case]
    with pytest.raises(TypeError, match=f"^a contract that is none: {said}$"):
        contract(**changed)


def test_r03_a_contract_is_data() -> None:
    made = contract(
        isolation="shared", namespaced=True, reload="kept", security=False, depends=frozenset({"policy", "config"})
    )
    assert made.to_json() == {
        "holds": "notes", "owner": "daemon", "concurrency": "read-write lock", "isolation": "shared", "reload": "kept",
        "depends": ["config", "policy"], "security": False, "namespaced": True,
    }  # fmt: skip
    with pytest.raises(AttributeError):
        made.isolation = "client"  # type: ignore[misc]


def test_r01_a_handle_type_without_a_contract_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match=r"handle type `Bare` has no `contract = Contract\(…\)`"):
        type("Bare", (Handle,), {})
    with pytest.raises(TypeError, match="handle type `Bare` has no `_view`"):
        type("Bare", (Handle,), {"contract": contract()})
    with pytest.raises(TypeError, match="handle type `Bare` has no `_held`"):
        type("Bare", (Handle,), {"contract": contract(), "_view": Notes.scoped})
    assert type(Notes.contract) is Contract


def test_clones_share_the_state() -> None:
    notes = Notes()
    notes.clone().scoped(caller_of(acting())).write("x")
    assert notes.lent().scoped(caller_of(acting())).read() == ["x"]
    with pytest.raises(AttributeError, match="`entries` of a handle is set once"):
        notes.entries = {}


def test_what_is_lent_does_nothing_of_its_owners() -> None:
    notes = Notes()
    notes.scoped(caller_of(acting())).write("x")
    lent = notes.lent()
    for handle in (lent, lent.clone(), lent.lent()):
        with pytest.raises(PermitError, match="`clear` of Notes is its owner's: it is lent to a tool"):
            handle.clear()
        with pytest.raises(PermitError, match="`held` of Notes"):
            handle.held()
    assert [held.name for held in notes.held()] == ["x"]
    notes.clear()
    assert notes.held() == ()


def test_what_is_the_tools_own_is_whole() -> None:
    class Own(Notes):
        contract = contract(owner="tool")

    assert Own().lent().held() == ()


SAME = {"client": "ann", "agent": "one", "session": "first"}
SEEN: dict[str, tuple[type[Notes], dict[str, str], bool]] = {
    "another session of the client": (Notes, {"session": "second"}, True),
    "another agent of the client": (Notes, {"agent": "two"}, True),
    "another client": (Notes, {"client": "ben"}, False),
    "another client with the same session": (SessionNotes, {"client": "ben"}, False),
    "another session": (SessionNotes, {"session": "second"}, False),
    "the same session": (SessionNotes, {}, True),
    "everybody's": (SharedNotes, {"client": "ben", "session": "second", "agent": "two"}, True),
}


@pytest.mark.parametrize("case", SEEN)
def test_r14_a_view_is_as_wide_as_the_contract_says(case: str) -> None:
    kind, changed, is_seen = SEEN[case]
    notes = kind()
    notes.scoped(caller_of(acting(**SAME))).write("x")
    assert notes.scoped(caller_of(acting(**{**SAME, **changed}))).read() == (["x"] if is_seen else [])


NESTED: dict[str, Any] = {
    "itself": secret("token"),
    "in a list": [1, [secret("token")]],
    "as a value": {"a": {"b": (secret("token"),)}},
    "in an object": Held("a", secret("token")),  # type: ignore[arg-type]
    "in a queue": deque([secret("token")]),
    "in a view of a dictionary": {"a": secret("token")}.values(),
    "in an attribute": SimpleNamespace(x=secret("token")),
}


@pytest.mark.parametrize("case", NESTED)
def test_r15_what_everybody_shares_takes_no_secret(case: str) -> None:
    with pytest.raises(PermitError, match="state that all clients share takes no secret"):
        SharedNotes().scoped(caller_of(acting())).write(NESTED[case])
    Notes().scoped(caller_of(acting())).write(NESTED[case])
    contract(isolation="shared", namespaced=True).admits(NESTED[case])


def test_what_is_too_deep_to_be_searched_is_taken_for_a_secret() -> None:
    deep: list[Any] = []
    for _ in range(MAX_SECRET_DEPTH + 1):
        deep = [deep]
    assert has_secret(deep)
    round_and_round: list[Any] = ["plain"]
    round_and_round.append(round_and_round)
    assert not has_secret(round_and_round)


def test_a_secret_is_shown_nowhere() -> None:
    one = secret("hunter2")
    assert "hunter2" not in f"{one} {one!r} {[one]} {ValueError(one)}"
    for attribute in (*dir(one), "_text"):
        assert attribute == "reveal" or "hunter2" not in repr(getattr(one, attribute, None)), attribute
    assert "hunter2" not in repr(object.__getstate__(one))
    with pytest.raises(AttributeError):
        "{._text}".format(one)  # noqa: UP032 - as where a template is another's
    assert one.reveal() == "hunter2"
    assert one == secret("hunter2")
    assert one != secret("hunter3")
    assert one != "hunter2"
    with pytest.raises(TypeError):
        hash(one)
    for wrong in ("", "\ud800"):
        with pytest.raises(ValueError, match="a secret is a text that is not empty, in Unicode"):
            secret(wrong)
    with pytest.raises(TypeError):
        secret(b"x")  # type: ignore[arg-type]


def test_sessions_without_a_client_are_not_one() -> None:
    """All of them would open what is a client's, and see each other's. What is a session's they have."""
    nobody = caller_of(acting("", session="first"))
    with pytest.raises(PermitError, match="the session has none"):
        Notes().scoped(nobody).write("secret")
    with pytest.raises(PermitError, match="the session has none"):
        Notes().scoped(nobody).read()
    SessionNotes().scoped(nobody).write("own")
    SharedNotes().scoped(nobody).write("everybody's")

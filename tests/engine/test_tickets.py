"""Tickets: what a running tool holds of the run that it starts later, which is nothing that could be altered."""

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import policy_lang
from zcpolicy import PermitError, ResolvedAgentExecution, ResolveError, Resolver, Session
from zcpolicy.tickets import Ticket, _made, redeemed, ticket_for

POLICY = "zcpolicy 1\ntool act() risk read\nagent a { allow act }\n"


def started() -> ResolvedAgentExecution:
    return Resolver(policy_lang.loads(POLICY)).resolve("a")


def test_a_ticket_is_for_the_execution_as_it_is_when_it_is_redeemed() -> None:
    run = started()
    ticket = ticket_for(run.renewed, "a")
    run.resolver.publish(policy_lang.loads(POLICY))
    found, agent = redeemed(ticket)
    assert (found, agent) == (run.renewed(), "a")
    assert found is not run


def test_nothing_stands_on_a_ticket() -> None:
    ticket = ticket_for(started, "a")
    public = [name for name in dir(ticket) if not name.startswith("_")]
    assert public == []
    assert not hasattr(ticket, "__dict__")


def renamed(ticket: Any) -> None:
    ticket.agent = "b"


ALTERED: dict[str, Callable[[Any], object]] = {
    "a name set": renamed,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": pickle.dumps,
}


@pytest.mark.parametrize("how", ALTERED)
def test_a_ticket_is_neither_altered_nor_copied(how: str) -> None:
    with pytest.raises((TypeError, AttributeError), match="sealed"):
        ALTERED[how](ticket_for(started, "a"))


FORGED: dict[str, Any] = {
    "the JSON of an execution": {"line": [], "agent": "a"},
    "nothing": None,
    "an object of the type": object.__new__(Ticket),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_no_call_was_given_is_no_ticket(what: str) -> None:
    with pytest.raises(ResolveError, match="no ticket that a call was given"):
        redeemed(FORGED[what])


def test_a_ticket_is_made_by_a_call_alone() -> None:
    with pytest.raises(TypeError, match="sealed"):
        Ticket()  # type: ignore[call-arg]


def test_a_ticket_of_a_call_that_is_over_is_worth_nothing() -> None:
    def over() -> ResolvedAgentExecution:
        raise PermitError("the call is over")

    with pytest.raises(PermitError):
        redeemed(ticket_for(over, "a"))


def test_tickets_that_nobody_holds_are_forgotten() -> None:
    ticket = ticket_for(started, "a")
    key = id(ticket)
    assert key in _made
    del ticket
    gc.collect()
    assert key not in _made


# --- what is resumed ----------------------------------------------------------------------------------------------

LINE = "zcpolicy 1\ntool act() risk read\nagent a { allow act; delegate to b }\nagent b { allow act }\n"


class Forgetful(Session):
    """A session of a host's own kind, which could answer anything."""


WRONG: dict[str, Callable[[str], Any]] = {
    "none": lambda _id: None,
    "another for any id": lambda _id: Session(client="ann"),
    "what is no session": lambda id: {"id": id, "client": "ann"},
    "what is a session only by inheritance": lambda id: Forgetful(id=id, client="ann"),
    "of another client below": lambda id: Session(id=id, client="ann" if id == "s1" else "eve"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_ticket_is_resumed_in_the_sessions_that_it_names_and_in_no_others(what: str) -> None:
    resolver = Resolver(policy_lang.loads(LINE))
    sessions = {id: Session(id=id, client="ann") for id in ("s1", "s2")}
    run = resolver.resolve("b", session=sessions["s2"], parent=resolver.resolve("a", session=sessions["s1"]))
    ticket = run.ticket()
    assert resolver.resume(ticket, sessions.get).identity == run.identity
    with pytest.raises(ResolveError):
        resolver.resume(ticket, WRONG[what])


ODD: dict[str, Any] = {
    "nothing": None,
    "a list": [],
    "a limit that is none": {"only": None, "deny": [], "ask": [], "autonomy": None, "limits": [{"x": 1}], "exclude_memory": False},
    "an autonomy that is none": {"only": None, "deny": [], "ask": [], "autonomy": "free", "limits": [], "exclude_memory": False},
    "an allow list that is none": {"only": "act", "deny": [], "ask": [], "autonomy": None, "limits": [], "exclude_memory": False},
    "names that are none": {"only": None, "deny": [1], "ask": [], "autonomy": None, "limits": [], "exclude_memory": False},
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
def test_what_is_no_ticket_is_refused_in_words(what: str) -> None:
    resolver = Resolver(policy_lang.loads(LINE))
    session = Session(id="s")
    entry = resolver.resolve("a", session=session).ticket()["line"][0]
    ticket = {"line": [{**entry, "narrowing": ODD[what]}]} if isinstance(ODD[what], dict) else ODD[what]
    with pytest.raises(ResolveError):
        resolver.resume(ticket, {"s": session}.get)

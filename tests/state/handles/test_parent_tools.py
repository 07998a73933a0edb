"""The list of a parent's tools: filled after those who read it were made, and read through the reader's own policy."""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from policy_lang.compile import compile_text
from zcpolicy import HostTool, PermitError, Program, ResolvedAgentExecution, Resolver, Session, ToolSpec
from zcpolicy.state.caller import caller_of
from zcpolicy.state.handles import parent_tools as module
from zcpolicy.state.handles.apart import Full
from zcpolicy.state.handles.parent_tools import ParentTools, ShownTools
from zcpolicy.state.secret import secret


def policy(lead: str) -> Program:
    compiled = compile_text(
        "zcpolicy 1\n"
        "tool read() risk read\ntool write() risk read\ntool mail() risk read\n"
        f'agent lead {{ autonomy full; {lead}; delegate to helper; delegate to auditor independent because "it audits" }}\n'
        "agent helper { autonomy full; allow read, write }\n"
        "agent auditor { autonomy full; allow read, mail }\n"
    )
    assert compiled.program is not None, compiled.diagnostics
    return compiled.program


async def _never(_arguments: dict[str, Any], _context: object) -> str:
    raise AssertionError("a tool of the list was run")


def names(specs: Iterable[ToolSpec]) -> list[str]:
    return [str(spec.name) for spec in specs]


ALL = [HostTool(name, f"The tool {name}.", {"type": "object"}, _never) for name in ("read", "write", "mail")]


class Team:
    """A lead, and those that it delegates to."""

    def __init__(self, lead: str = "allow read, mail") -> None:
        self.resolver = Resolver(policy(lead))
        self.session = Session(client="ann")
        self.lead = self.resolver.resolve("lead", session=self.session)
        self.tools = ParentTools()
        self.tools.push(*ALL)

    def sees(self, run: ResolvedAgentExecution) -> ShownTools:
        return self.tools.lent().scoped(caller_of(run))

    def child(self, agent: str, *, independent: bool = False) -> ResolvedAgentExecution:
        return self.resolver.resolve(agent, session=Session(client="ann"), parent=self.lead, independent=independent)


def test_a_delegate_sees_what_its_own_policy_and_those_above_it_show() -> None:
    team = Team()
    assert names(team.sees(team.lead).all()) == ["read", "mail"]
    assert names(team.sees(team.child("helper")).all()) == ["read"]
    assert names(team.sees(team.child("auditor", independent=True)).all()) == ["read", "mail"]
    narrow = Team("allow read")
    assert names(narrow.sees(narrow.child("auditor", independent=True)).all()) == ["read"]
    assert team.sees(team.child("helper")).find("mail") is None


def test_what_is_pushed_later_is_seen_by_those_who_were_lent_it_before() -> None:
    team = Team()
    made = ParentTools()
    lent = made.lent()
    view = lent.scoped(caller_of(team.lead))
    assert view.all() == ()
    made.push(*ALL)
    assert names(view.all()) == ["read", "mail"]
    made.withdraw("read", "unheard of")
    assert names(view.all()) == ["mail"]
    with pytest.raises(PermitError, match="`push` of ParentTools is its owner's"):
        lent.push(*ALL)


def test_r18_a_revoked_grant_is_gone_from_a_view_that_was_there_before() -> None:
    team = Team()
    view = team.sees(team.lead)
    assert view.find("mail") is not None
    team.resolver.publish(policy("allow read"))
    assert names(view.all()) == ["read"]
    assert view.find("mail") is None


def test_nothing_of_it_can_be_run_or_changed() -> None:
    team = Team()
    found = team.sees(team.lead).find("read")
    assert found == ToolSpec("read", "read", "The tool read.", {"type": "object"})
    assert not hasattr(found, "run")
    found.parameters["type"] = "string"  # type: ignore[index]  # a tool that does not know better
    assert team.sees(team.lead).find("read") == ToolSpec("read", "read", "The tool read.", {"type": "object"})


def test_r15_no_secret_stands_in_a_list_for_all() -> None:
    with pytest.raises(PermitError, match="state that all clients share takes no secret"):
        ParentTools().push(ToolSpec("read", "read", "Reads.", {"default": secret("s")}))


def test_the_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PARENT_TOOLS", 3)
    made = ParentTools()
    made.push(*ALL)
    made.push(*ALL)
    with pytest.raises(Full, match="there is room for 3 tools, and no more"):
        made.push(ToolSpec(("github", "read"), "github__read", "Reads.", {}))
    assert [one.name for one in made.held()] == ["read", "write", "mail"]


def test_threads_and_tasks_read_while_the_host_pushes() -> None:
    team, over = Team(), threading.Event()

    def reads() -> set[tuple[str, ...]]:
        view, seen = team.sees(team.lead), set[tuple[str, ...]]()
        while not over.is_set():
            seen.add(tuple(names(view.all())))
        return seen

    async def story() -> list[set[tuple[str, ...]]]:
        reading = [asyncio.create_task(asyncio.to_thread(reads)) for _ in range(3)]
        for _ in range(200):
            team.tools.withdraw("read", "mail")
            await asyncio.sleep(0)
            team.tools.push(*ALL)
        over.set()
        return await asyncio.gather(*reading)

    seen = {one for found in asyncio.run(story()) for one in found}
    assert seen <= {("read", "mail"), ("mail", "read"), ()}

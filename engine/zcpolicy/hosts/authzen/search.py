"""Searches: which agents may call a tool, which tools an agent may call, and whether it may at all.

In: a request, a resolver, `Pages`. Out: `{"page", "context", "results"}`. With arguments, what `decide` allows with them; without,
what may be shown: tools that could be called with some arguments, also those where somebody is asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from time import monotonic
from typing import Any, Final, Literal, TypeVar

from zcpolicy.execution import ResolvedAgentExecution, plan_of
from zcpolicy.facts import ToolName
from zcpolicy.hosts.authzen.pages import Page, Pages, query_of
from zcpolicy.hosts.authzen.questions import AGENT, CALL, TOOL, NotOurs, Question, question_of
from zcpolicy.refusals import ResolveError
from zcpolicy.resolver import Resolver
from zcpolicy.tool_text import written

MAX_SCANNED: Final = 1_000
"""Agents or tools that are looked at for one page of a search; the page is then shorter, and another one follows."""

MAX_SEARCH_SECONDS: Final = 2.0
"""Seconds after which a page of a search ends, with what was found by then; another one follows."""

Json = dict[str, Any]
Kind = Literal["subject", "resource", "action"]
Name = TypeVar("Name")


def search(kind: Kind, members: Mapping[str, Any], resolver: Resolver, pages: Pages) -> Json:
    """One page of a search. Raises BadInput."""
    question = question_of(members, kind)
    query = query_of(kind, members, resolver.program.digest)
    page = pages.asked(members.get("page", {}), query)
    try:
        question.must_be_ours()
        found, end = _SEARCHES[kind](question, resolver, page)
    except (NotOurs, ResolveError) as error:
        found, end, why = [], None, str(error)
    else:
        why = ""
    after = "" if end is None else pages.token(Page(end, page.limit), query)
    context: Json = {"arguments": "any" if question.arguments is None else "given"}
    if why:
        context["reason_admin"] = {"en": why}
    return {"page": {"next_token": after, "count": len(found)}, "context": context, "results": found}


def _subjects(question: Question, resolver: Resolver, page: Page) -> tuple[list[Json], int | None]:
    tool, agents = question.tool, resolver.program.agents
    may = (_agent_may(resolver, name, tool, question) for name in agents[page.start :])
    found, end = _cut(agents, may, page)
    return [{"type": AGENT, "id": name} for name in found], end


def _resources(question: Question, resolver: Resolver, page: Page) -> tuple[list[Json], int | None]:
    run, tools = resolver.resolve(question.agent, session=question.session), resolver.program.tools
    may = (_may(run, name, question.arguments) for name in tools[page.start :])
    found, end = _cut(tools, may, page)
    return [{"type": TOOL, "id": written(name)} for name in found], end


def _actions(question: Question, resolver: Resolver, page: Page) -> tuple[list[Json], int | None]:
    may = (_agent_may(resolver, question.agent, question.tool, question) for _ in range(page.start, 1))
    found, end = _cut((CALL,), may, page)
    return [{"name": name} for name in found], end


_SEARCHES: Final = {"subject": _subjects, "resource": _resources, "action": _actions}


def _cut(names: Sequence[Name], may: Iterable[bool], page: Page) -> tuple[list[Name], int | None]:
    """The names of a page, and where the next one begins; None where there is none."""
    found: list[Name] = []
    end, until = page.start, monotonic() + MAX_SEARCH_SECONDS
    if page.limit:
        for one in islice(may, MAX_SCANNED):
            found += [names[end]] if one else []
            end += 1
            if len(found) == page.limit or monotonic() > until:
                break
    return found, end if end < len(names) else None


def _agent_may(resolver: Resolver, agent: str, tool: ToolName, question: Question) -> bool:
    try:
        run = resolver.resolve(agent, session=question.session)
    except ResolveError:
        return False
    return _may(run, tool, question.arguments)


def _may(run: ResolvedAgentExecution, tool: ToolName, arguments: object) -> bool:
    if arguments is not None:
        return run.decide(tool, arguments).effect == "allow"
    plan = plan_of(run, tool)
    return plan is not None and plan.callable_at_all(run.session)

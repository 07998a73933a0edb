"""What a running tool was given ends with its call: kept for later, or used by a task that it left behind."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from tests.loop.stage import Stage, play, stage
from zcpolicy import PermitError, ResolvedAgentExecution, Session
from zcpolicy.approvals.question import Answer, Approve, Approvers, Question
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.memory import MemoryEntry, MemoryRefused, MemoryScope, genuine_scope
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.registry.host_tools import load_skill_tool
from zcpolicy.registry.sources import InnerCall, SkillSource, ToolContext, ToolResult

LOOK = ("look", {"at": "x"})
FETCH = InnerCall("fetch", {"url": "https://x.org/"})
MAIL = InnerCall("mail", {"to": "x"})
SHELL = InnerCall("shell", {"command": "ls"})
MEMORY = "allow look; memory read own write own"


def kept_by_a_tool(rules: str, take: Callable[[ToolContext], Any], **more: Any) -> tuple[Stage, Any]:
    """What a tool took from its context, after its turn."""
    kept: list[Any] = []

    async def keeps(_arguments: dict[str, Any], context: ToolContext) -> str:
        kept.append(take(context))
        return "kept"

    on = stage(rules, look=keeps, **more)
    play(on, calls(LOOK), "done")
    return on, kept[0]


# --- kept ----------------------------------------------------------------------------------------------------------


def test_a_memory_that_a_tool_kept_tells_the_next_client_nothing() -> None:
    store, kept, told = InMemoryStore(), list[Any](), list[str]()

    async def look(_arguments: dict[str, Any], context: ToolContext) -> str:
        kept.append(context.memory)  # a tool is one object for all clients
        memory = kept[0]
        if len(kept) == 1:
            await memory.remember(store, "ann's secret")
        told.extend(entry.text for entry in await memory.recall(store, ""))
        return "looked"

    for client in ("ann", "eve"):
        on = stage(MEMORY, look=look, session=Session(client=client, id=client))
        result, _ = play(on, calls(LOOK), "done")
        assert result.status == "done"
    assert told == ["ann's secret"]  # to ann


USES: dict[str, Callable[[Any, InMemoryStore], Any]] = {
    "read": lambda memory, _: memory.read,
    "write": lambda memory, _: memory.write,
    "recall": lambda memory, store: asyncio.run(memory.recall(store, "")),
    "remember": lambda memory, store: asyncio.run(memory.remember(store, "late")),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_memory_that_was_kept_opens_nothing(use: Callable[[Any, InMemoryStore], Any]) -> None:
    _, memory = kept_by_a_tool(MEMORY, lambda context: context.memory)
    store = InMemoryStore()
    with pytest.raises(MemoryRefused, match="the call is over"):
        use(memory, store)


@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_key_that_was_kept_opens_nothing(mode: Any) -> None:
    def keys(context: ToolContext) -> Any:
        return getattr(context.memory, mode)

    on, (key,) = kept_by_a_tool(MEMORY, keys)
    with pytest.raises(MemoryRefused, match="the call is over"):
        genuine_scope(key, mode)
    store = InMemoryStore()
    late = {
        "write": lambda: asyncio.run(store.add(key, "late")),
        "read": lambda: asyncio.run(store.search([key], "", 5)),
    }
    with pytest.raises(MemoryRefused):
        late[mode]()
    genuine_scope(getattr(on.run.memory, mode)[0], mode)  # the execution's own are as they were


def test_a_memory_that_answers_late_tells_nothing() -> None:
    left: list[asyncio.Task[Any]] = []

    class Slow(InMemoryStore):
        async def search(self, scopes: Sequence[MemoryScope], query: str, limit: int) -> Sequence[MemoryEntry]:
            await asyncio.sleep(0.02)
            return await super().search(scopes, query, limit)

        async def add(self, scope: MemoryScope, text: str) -> None:
            await asyncio.sleep(0.02)
            await super().add(scope, text)

    slow = Slow()

    async def look(_arguments: dict[str, Any], context: ToolContext) -> str:
        left.append(asyncio.create_task(context.memory.recall(slow, "")))
        left.append(asyncio.create_task(context.memory.remember(slow, "late")))
        await asyncio.sleep(0)
        return "left"

    async def story() -> list[Any]:
        await on.turn(ScriptedModel(calls(LOOK), "done"))
        return await asyncio.gather(*left, return_exceptions=True)

    on = stage(MEMORY, look=look)
    assert [type(found) for found in asyncio.run(story())] == [MemoryRefused, MemoryRefused]
    assert asyncio.run(on.run.memory.recall(slow, "")) == ()


@pytest.mark.parametrize("ask", ["names", "find", "search"])
def test_a_registry_that_was_kept_tells_nothing(ask: str) -> None:
    _, registry = kept_by_a_tool("allow look, mail", lambda context: context.registry)
    given = {"names": (), "find": ("mail",), "search": ("mail",)}[ask]
    with pytest.raises(PermitError, match="the call is over"):
        getattr(registry, ask)(*given)


def test_a_registry_is_shown_to_a_tool_and_not_handed_out() -> None:
    _, public = kept_by_a_tool("allow look", lambda context: {one for one in dir(context.registry) if one[0] != "_"})
    assert public == {"find", "names", "search"}


ACTS: dict[str, Callable[[ToolContext], Any]] = {
    "memory": lambda context: context.memory,
    "registry": lambda context: context.registry,
    "load_skill": lambda context: context.load_skill("deploy"),
    "later": lambda context: context.later(),
    "run": lambda context: asyncio.run(context.run([MAIL])),
    "delegate": lambda context: asyncio.run(context.delegate("b", "t")),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_nothing_of_a_context_acts_after_its_call(act: Callable[[ToolContext], Any]) -> None:
    on, context = kept_by_a_tool(
        f"{MEMORY}; allow mail; skills deploy; delegate to b",
        lambda context: context,
        above="skill deploy { only look }\nagent b { allow look }",
        skills={"deploy": SkillSource("", "")},
    )
    with pytest.raises(PermitError, match="the call is over"):
        act(context)
    assert (on.names, on.session.skills) == (["look"], frozenset())


def test_a_context_is_not_opened_again() -> None:
    _, context = kept_by_a_tool("allow look, mail", lambda context: context)

    async def again() -> None:
        async with context:
            await context.run([MAIL])

    with pytest.raises(PermitError):
        asyncio.run(again())


# --- left behind ---------------------------------------------------------------------------------------------------

Work = Callable[[ToolContext], Coroutine[Any, Any, Any]]


def left_behind(work: Work, rules: str, *more_steps: tuple[str, Any], **more: Any) -> tuple[Stage, Any]:
    """What a task came to, that the tool `look` leaves behind when it returns; the turn goes on with more steps."""
    tasks: list[asyncio.Task[Any]] = []
    setup = {name: more.pop(name) for name in ("approvers", "delegate") if name in more}

    async def look(_arguments: dict[str, Any], context: ToolContext) -> str:
        tasks.append(asyncio.create_task(work(context)))
        await asyncio.sleep(0.01)
        return "looked"

    async def story() -> Any:
        result = await on.turn(ScriptedModel(calls(LOOK, *more_steps), "done"))
        assert result.status == "done"
        assert on.open_reservations() == []
        (found,) = await asyncio.gather(*tasks, return_exceptions=True)
        return found

    on = stage(rules, look=look, **more)
    for name, value in setup.items():
        setattr(on, name, value)
    return on, asyncio.run(story())


async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
    await asyncio.sleep(0.05)
    return "late"


def test_calls_of_a_task_that_was_left_behind_end_with_the_call() -> None:
    on, found = left_behind(lambda context: context.run([FETCH, SHELL]), "allow look, fetch, shell", fetch=slow)
    assert isinstance(found, PermitError)
    assert on.names == ["look", "fetch"]  # the fetch was cut off, the shell never started
    assert on.session.history is not None
    assert [(entry.tool, entry.ok) for entry in on.session.history] == [("fetch", False), ("look", True)]


def test_a_yes_that_comes_after_the_call_is_for_nothing() -> None:
    answered: list[str] = []

    async def person(question: Question) -> Answer:
        await asyncio.sleep(0.02)
        answered.append(question.key)
        return Approve()

    on, found = left_behind(
        lambda context: context.run([SHELL]),
        "allow look, fetch, shell; ask shell",
        ("fetch", {"url": "https://x.org/"}),  # the turn goes on for longer than the person thinks
        fetch=slow,
        approvers=Approvers(person),
    )
    assert isinstance(found, PermitError)
    assert (on.names, answered) == (["look", "fetch"], [])


def test_a_yes_that_could_not_be_called_off_is_for_nothing_either() -> None:
    async def stubborn(_question: Question) -> Answer:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return Approve()

    on, found = left_behind(
        lambda context: context.run([SHELL]), "allow look, shell; ask shell", approvers=Approvers(stubborn)
    )
    assert isinstance(found, PermitError)
    assert on.names == ["look"]


def test_a_child_of_a_task_that_was_left_behind_ends_with_the_call() -> None:
    did: list[str] = []

    async def child(_run: ResolvedAgentExecution, agent: str, task: str, _independent: bool) -> ToolResult:
        did.append(f"{agent} begins")
        await asyncio.sleep(0.05)
        did.append(f"{agent} ends")
        return ToolResult(task)

    _, found = left_behind(
        lambda context: context.delegate("b", "t"),
        "allow look; delegate to b",
        above="agent b { allow look }",
        delegate=child,
    )
    assert isinstance(found, PermitError)
    assert did == ["b begins"]


def test_what_an_inner_tool_left_behind_ends_with_the_inner_call() -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def fetch(_arguments: dict[str, Any], context: ToolContext) -> str:
        tasks.append(asyncio.create_task(context.run([MAIL])))
        return "fetched"

    async def look(_arguments: dict[str, Any], context: ToolContext) -> str:
        await context.run([FETCH])
        (found,) = await asyncio.gather(*tasks, return_exceptions=True)
        return type(found).__name__

    on = stage("allow look, fetch, mail", look=look, fetch=fetch)
    result, _ = play(on, calls(LOOK), "done")
    assert [one.text for one in result.messages if one.role == "tool"] == ["PermitError"]
    assert on.names == ["look", "fetch"]


def test_what_an_inner_tool_started_ends_with_the_outer_call() -> None:
    async def fetch(_arguments: dict[str, Any], context: ToolContext) -> str:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await context.run([SHELL])
        return "fetched"

    on, found = left_behind(lambda context: context.run([FETCH]), "allow look, fetch, shell", fetch=fetch)
    assert isinstance(found, PermitError)
    assert on.open_reservations() == []


def test_a_skill_is_not_loaded_after_the_call() -> None:
    async def late(context: ToolContext) -> str:
        await asyncio.sleep(0.02)
        return context.load_skill("deploy")

    on, found = left_behind(
        late,
        "skills deploy; allow look, fetch, load_skill",
        ("fetch", {"url": "https://x.org/"}),
        above="skill deploy { only look }",
        skills={"deploy": SkillSource("", "")},
        fetch=slow,
        load_skill=load_skill_tool().run,
    )
    assert isinstance(found, PermitError)
    assert on.session.skills == frozenset()


def test_a_call_that_is_cut_off_takes_what_it_started_with_it() -> None:
    did: list[str] = []

    async def look(_arguments: dict[str, Any], context: ToolContext) -> str:
        did.append("look")
        task = asyncio.create_task(context.run([FETCH, SHELL]))
        await asyncio.sleep(30)
        await task
        return "never"

    async def fetch(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(30)
        return "never"

    on = stage("allow look, fetch, shell; runtime { call_timeout 1s }", look=look, fetch=fetch)
    result, _ = play(on, calls(LOOK), "done")
    assert result.status == "done"
    assert (on.names, on.open_reservations()) == (["look", "fetch"], [])


def test_a_tool_acts_in_the_event_loop_that_it_was_called_in() -> None:
    async def look(_arguments: dict[str, Any], context: ToolContext) -> str:
        def elsewhere() -> str:
            try:
                return str(asyncio.run(context.run([MAIL])))
            except PermitError as refused:
                return str(refused)

        return await asyncio.to_thread(elsewhere)

    on = stage("allow look, mail", look=look)
    result, _ = play(on, calls(LOOK), "done")
    assert [one.text for one in result.messages if one.role == "tool"] == [
        "a tool acts in the event loop that it was called in"
    ]
    assert on.names == ["look"]

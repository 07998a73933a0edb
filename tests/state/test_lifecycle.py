"""Construct, register, execute, shut down: each once, in order, and nothing is left behind."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.jumping import run
from tests.state.stage import Notes, SharedNotes, tool
from zcpolicy import PermitError
from zcpolicy.registry.sources import HostTool, ToolContext
from zcpolicy.state.audit import Handles
from zcpolicy.state.given import Given
from zcpolicy.state.lifecycle import Lifecycle
from zcpolicy.state.releasing import Owned
from zcpolicy.state.toolset import Unfit
from zcpolicy.state.versions import SourceVersions

CONTEXT: Any = None  # these tools ask for nothing
SECONDS = (30, 10, 10)
"""Seconds to register, to drain, to release."""
READ = "read by the test"


def started(seconds: tuple[float, float, float] = SECONDS, handles: Handles | None = None) -> Lifecycle:
    return Lifecycle(handles, seconds=seconds)


@dataclass
class Made:
    """A tool that does as it is told, and keeps a log."""

    log: list[str] = field(default_factory=list[str])
    on_register: Callable[[Owned], Awaitable[None]] | None = None
    on_shut_down: Callable[[], Awaitable[None]] | None = None
    on_call: Callable[[], Awaitable[str]] | None = None
    names: Sequence[str] = ("note",)

    async def register(self, owned: Owned) -> None:
        self.log.append("register")
        if self.on_register is not None:
            await self.on_register(owned)

    def tools(self) -> Sequence[HostTool]:
        return [tool(name, self.run) for name in self.names]

    async def run(self, _arguments: dict[str, Any], _context: ToolContext) -> str:
        self.log.append("call")
        return "done" if self.on_call is None else await self.on_call()

    async def shut_down(self) -> None:
        self.log.append("shut down")
        if self.on_shut_down is not None:
            await self.on_shut_down()


def resource(name: str, log: list[str], *, fails: BaseException | None = None) -> Any:
    @asynccontextmanager
    async def held() -> AsyncGenerator[str]:
        log.append(f"+{name}")
        try:
            yield name
        finally:
            log.append(f"-{name}")
            if fails is not None:
                raise fails

    return held()


async def call(tools: Lifecycle, name: str = "note") -> str:
    (found,) = [one for one in tools.sources().builtins if one.name == name]
    return str(await found.run({}, CONTEXT))


async def forever(*_given: object) -> Any:
    await asyncio.Event().wait()


async def broken(*_given: object) -> Any:
    raise OSError("it is broken")


def test_a_tool_goes_through_its_phases() -> None:
    async def story() -> None:
        made = Made()
        tools = started()
        tools.add("notes", lambda _given: made, vouched=READ)
        assert tools.sources().builtins == ()
        assert await tools.register() == {}
        assert await call(tools) == "done"
        assert tools.status() == {
            "notes": {"phase": "executing", "why": "", "tools": ["note"], "handles": [], "vouched": READ}
        }
        (kept,) = tools.sources().builtins
        assert await tools.shut_down() == []
        assert tools.sources().builtins == ()
        with pytest.raises(PermitError, match="tool `note` cannot be called: `notes` is over"):
            await kept.run({}, CONTEXT)
        assert made.log == ["register", "call", "shut down"]

    run(story())


def test_r02_handles_are_given_at_construction_and_never_again() -> None:
    async def story() -> None:
        kept: list[Given] = []
        notes: list[Notes] = []

        def factory(given: Given) -> Made:
            kept.append(given)
            notes.append(given.handle(Notes, "notes"))
            assert given.settings["size"] == 3
            assert given.derived(["config"], lambda: 7).get() == 7
            return Made()

        tools = started(handles=Handles(notes=Notes(), shared=SharedNotes()))
        tools.add("notes", factory, {"size": 3}, vouched=READ)
        assert tools.status()["notes"]["handles"] == ["notes"]
        uses: list[Callable[[], object]] = [
            lambda: kept[0].handle(Notes, "notes"), lambda: kept[0].settings, lambda: kept[0].derived(["config"], int)
        ]  # fmt: skip
        for use in uses:
            with pytest.raises(PermitError, match="nothing is looked up later"):
                use()
        with pytest.raises(PermitError, match="`clear` of Notes is its owner's"):
            notes[0].clear()
        with pytest.raises(Unfit, match="`other` cannot be constructed: the host has no handle `lost` of type `Notes`"):
            tools.add("other", lambda given: Made(log=[str(given.handle(Notes, "lost"))]), vouched=READ)

    run(story())


UNFIT: dict[str, tuple[Callable[[Given], Any], str]] = {
    "waits": (lambda _: open("/etc/hostname"), r'`x` cannot be constructed: `open\("/etc/hostname"\)` while a tool is constructed'),  # noqa: PTH123, SIM115
    "raises": (lambda given: given.settings["a"], r"`x` cannot be constructed: KeyError: 'a', at .*test_lifecycle\.py:\d+$"),
    "makes nothing": (lambda _: None, r"what the factory of `x` made has no `tools\(\)`"),
    "is a coroutine function": (forever, "the factory of `x` is a coroutine function: constructing waits for nothing"),
    "registers without waiting": (
        lambda _: SimpleNamespace(tools=list[HostTool], register=list[str]),
        "`register` of `x` is a plain function: write `async def`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFIT)
def test_what_cannot_be_constructed_leaves_nothing(case: str) -> None:
    factory, said = UNFIT[case]
    tools = started()
    with pytest.raises(Unfit, match=said):
        tools.add("x", factory, vouched=READ)
    assert tools.status() == {}


REGISTERS: dict[str, tuple[Callable[[Owned], Awaitable[None]], str]] = {
    "raises": (broken, r"`notes`: OSError: it is broken, at .*test_lifecycle\.py:\d+"),
    "takes too long": (forever, "`notes`: did not register within 30 seconds"),
}


@pytest.mark.parametrize("case", REGISTERS)
def test_r09_what_did_not_pass_is_not_callable_and_leaves_nothing(case: str) -> None:
    async def story() -> None:
        then, said = REGISTERS[case]
        log: list[str] = []

        async def register(owned: Owned) -> None:
            await owned.enter(resource("a", log))
            await owned.enter(resource("b", log))
            await then(owned)

        sound = Made(names=("other",))
        tools = started()
        tools.add("notes", lambda _: Made(log, register), vouched=READ)
        tools.add("sound", lambda _: sound, vouched=READ)
        failed = await tools.register()
        assert [*failed] == ["notes"]
        assert re.fullmatch(said, failed["notes"])
        assert [one.name for one in tools.sources().builtins] == ["other"]
        assert log == ["register", "+a", "+b", "shut down", "-b", "-a"]
        await tools.shut_down()
        assert log == ["register", "+a", "+b", "shut down", "-b", "-a"]
        assert sound.log == ["register", "shut down"]

    run(story())


def test_r09_nobody_calls_it_while_it_registers() -> None:
    async def story() -> None:
        tools = started()

        async def register(_owned: Owned) -> None:
            assert tools.sources().builtins == ()
            assert tools.status()["notes"]["phase"] == "registering"

        tools.add("notes", lambda _: Made(on_register=register), vouched=READ)
        assert await tools.register() == {}

    run(story())


def test_a_registration_that_is_cancelled_leaves_nothing() -> None:
    async def story() -> None:
        log: list[str] = []

        async def register(owned: Owned) -> None:
            await owned.enter(resource("a", log))
            await forever()

        tools = started()
        tools.add("notes", lambda _: Made(log, register), vouched=READ)
        task = asyncio.create_task(tools.register())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["register", "+a", "shut down", "-a"]
        assert tools.status()["notes"]["phase"] == "over"

    run(story())


def test_r10_resources_and_registration_are_no_part_of_a_call() -> None:
    async def story() -> None:
        kept: list[Owned] = []

        async def register(owned: Owned) -> None:
            kept.append(owned)

        made = Made(on_register=register)
        tools = started()

        async def acts() -> str:
            said: list[str] = []
            for act in (
                made.register(kept[0]),
                kept[0].enter(resource("late", made.log)),
                tools.register(),
                tools.shut_down(),
            ):
                try:
                    await act
                except PermitError as error:
                    said.append(str(error))
            with pytest.raises(PermitError, match="constructing a tool is no part of a call"):
                tools.add("more", lambda _: Made(), vouched=READ)
            return "; ".join(said)

        tools.add("notes", lambda _: made, vouched=READ)
        await tools.register()
        made.on_call = acts
        assert await call(tools) == (
            "resources are acquired in `register`, and nowhere else; registering a tool is no part of a call: a call handles one request; "
            "shutting tools down is no part of a call: a call handles one request"
        )
        assert "+late" not in made.log
        await tools.shut_down()

    run(story())


@pytest.mark.parametrize("ends", [True, False])
def test_calls_under_way_at_shut_down_end_first_or_are_cut_off(ends: bool) -> None:
    async def story() -> None:
        log: list[str] = []

        async def works() -> str:
            try:
                await (asyncio.sleep(0.01) if ends else forever())
            finally:
                log.append("call ends")
            return "in time"

        async def register(owned: Owned) -> None:
            await owned.enter(resource("a", log))

        tools = started()
        tools.add("notes", lambda _: Made(log, register, on_call=works), vouched=READ)
        await tools.register()
        task = asyncio.create_task(call(tools))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await tools.shut_down() == []
        assert log == ["register", "+a", "call", "call ends", "shut down", "-a"]
        if ends:
            assert await task == "in time"
        else:
            with pytest.raises(PermitError, match="the call of `note` was cut off: `notes` is shut down"):
                await task

    run(story())


def test_a_call_that_is_cancelled_is_cancelled() -> None:
    async def story() -> None:
        tools = started()
        tools.add("notes", lambda _: Made(on_call=forever), vouched=READ)
        await tools.register()
        task = asyncio.create_task(call(tools))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await tools.shut_down()

    run(story())


def test_r11_shut_down_is_once_however_often_and_by_whomever_it_is_asked() -> None:
    async def story() -> None:
        log: list[str] = []

        async def slowly() -> None:
            await asyncio.sleep(0.02)

        tools = started()
        tools.add("notes", lambda _: Made(log, on_shut_down=slowly), vouched=READ)
        await tools.register()
        first = asyncio.create_task(tools.shut_down())
        await asyncio.sleep(0.005)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await asyncio.gather(tools.shut_down(), tools.shut_down(), tools.retire("notes"))
        assert log == ["register", "shut down"]
        with pytest.raises(Unfit, match="`late` comes too late: its host is shutting down"):
            tools.add("late", lambda _: Made(), vouched=READ)

    run(story())


def test_r11_when_the_loop_ends_first_everything_is_released_all_the_same() -> None:
    log: list[str] = []

    async def register(owned: Owned) -> None:
        await owned.enter(resource("a", log))
        owned.on_shut_down(forever)
        await owned.enter(resource("b", log))

    async def story() -> None:
        tools = started()
        tools.add("notes", lambda _: Made(log, register), vouched=READ)
        await tools.register()
        task = asyncio.create_task(tools.shut_down())
        await asyncio.sleep(0)
        task.cancel()

    run(story())
    assert log == ["register", "+a", "+b", "shut down", "-b", "-a"]


def test_r11_a_generation_is_retired_beside_its_successor() -> None:
    async def story() -> None:
        handles = Handles(notes=Notes())
        old, new = Made(), Made()
        async with started(handles=handles) as after:
            async with started(handles=handles) as before:
                before.add("notes", lambda _: old, vouched=READ)
                await before.register()
                after.add("notes", lambda _: new, vouched=READ)
                await after.register()
                (kept,) = before.sources().builtins
            with pytest.raises(PermitError):
                await kept.run({}, CONTEXT)
            assert await call(after) == "done"
        assert old.log == ["register", "shut down"]
        assert new.log == ["register", "call", "shut down"]

    run(story())


def test_what_went_wrong_is_told() -> None:
    async def story() -> None:
        log: list[str] = []

        async def register(owned: Owned) -> None:
            await owned.enter(resource("a", log, fails=OSError("a is stuck")))
            owned.on_shut_down(forever)

        tools = started()
        tools.add("one", lambda _: Made(log, register, broken), vouched=READ)
        tools.add("two", lambda _: Made(on_shut_down=broken, names=("other",)), vouched=READ)
        await tools.register()
        assert await tools.shut_down() == [
            "`shut_down` of `two`: OSError: it is broken",
            "`shut_down` of `one`: OSError: it is broken",
            "a resource of `one`: did not end within 10 seconds",
            "a resource of `one`: OSError: a is stuck",
        ]

    run(story())


def test_a_name_is_a_tools_own() -> None:
    async def story() -> None:
        tools = started()
        tools.add("one", lambda _: Made(), vouched=READ)
        with pytest.raises(Unfit, match="there is a tool `one` already"):
            tools.add("one", lambda _: Made(), vouched=READ)
        second = Made()
        tools.add("two", lambda _: second, vouched=READ)
        assert await tools.register() == {"two": "`two`: there is a tool `note` already"}
        assert second.log == ["register", "shut down"]
        await tools.shut_down()

    run(story())


def test_a_tool_is_called_in_the_loop_that_it_registered_in() -> None:
    async def registered() -> HostTool:
        tools = started()
        tools.add("notes", lambda _: Made(), vouched=READ)
        await tools.register()
        return tools.sources().builtins[0]

    one = asyncio.run(registered())
    with pytest.raises(
        PermitError, match="tool `note` is called in the event loop that it registered in, and in no other"
    ):
        asyncio.run(one.run({}, CONTEXT))  # type: ignore[arg-type]


def test_r07_what_keeps_an_identity_table_is_refused_before_anything_of_it_runs() -> None:
    async def story() -> None:
        tools = started()
        tools.add("notes", registering)
        failed = await tools.register()
        assert failed["notes"].startswith("`notes`: keeps state of its own:\n")
        assert "`self.of` of the tool is filled with what a call was given" in failed["notes"]
        assert ran == []

    ran = Registering.ran
    asyncio.run(story())


class Registering:
    """A tool with a table of its own."""

    ran: tuple[str, ...] | list[str] = []

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    async def register(self, _owned: Owned) -> None:
        type(self).ran = ["registered"]

    def tools(self) -> Sequence[HostTool]:
        return [tool("note", self.note)]

    async def note(self, arguments: dict[str, Any], context: ToolContext) -> str:
        self.of[context.identity.client] = arguments["text"]
        return "noted"


def registering(_given: Given) -> Registering:
    return Registering()


@pytest.mark.parametrize("mode", ["re-resolved", "replaced"])
def test_r17_r18_a_tool_lives_on_and_what_it_derived_does_not(mode: str) -> None:
    """`re-resolved`: the same object works it out at use; `replaced`: a fresh one is made, and the old one is retired."""

    async def story() -> None:
        versions = SourceVersions()
        where = {"url": "old"}

        def factory(given: Given) -> Made:
            url = given.derived(["config"], lambda: where["url"]) if mode == "re-resolved" else None
            fixed = where["url"]

            async def answers() -> str:
                return fixed if url is None else url.get()

            return Made(on_call=answers)

        tools = Lifecycle(versions=versions, seconds=SECONDS)
        tools.add("notes", factory, vouched=READ)
        await tools.register()
        (one,) = tools.sources().builtins
        assert await one.run({}, CONTEXT) == "old"
        where["url"] = "new"
        versions.bump("config")
        if mode == "replaced":
            await tools.shut_down()
            with pytest.raises(PermitError):
                await one.run({}, CONTEXT)
            tools = Lifecycle(versions=versions, seconds=SECONDS)
            tools.add("notes", factory, vouched=READ)
            await tools.register()
            (one,) = tools.sources().builtins
        assert await one.run({}, CONTEXT) == "new"
        await tools.shut_down()

    run(story())


# --- whatever fails ----------------------------------------------------------------------------------------------

Fault = Literal["", "raises", "hangs", "exits"]
FAULTS: st.SearchStrategy[Fault] = st.sampled_from(["", "", "", "raises", "hangs", "exits"])


@dataclass(frozen=True)
class Plan:
    """How one tool fares: where its resources fail when they are entered, and left; how it registers, and shuts down."""

    entering: Sequence[Fault]
    leaving: Sequence[Fault]
    registering: Fault
    shutting: Fault


PLANS = st.lists(
    st.builds(
        Plan,
        st.lists(FAULTS, min_size=3, max_size=3),
        st.lists(FAULTS, min_size=3, max_size=3),
        FAULTS,
        FAULTS,
    ),
    min_size=1,
    max_size=3,
)


async def fares(fault: Fault) -> None:
    if fault == "raises":
        raise OSError("as planned")
    if fault == "exits":
        raise asyncio.CancelledError
    if fault == "hangs":
        await forever()


class Held:
    """A resource that fares as planned, and counts."""

    def __init__(self, name: str, entering: Fault, leaving: Fault, log: list[str]) -> None:
        self.name, self.log = name, log
        self.entering: Fault = entering
        self.leaving: Fault = leaving

    async def __aenter__(self) -> None:
        await fares(self.entering)
        self.log.append(f"+{self.name}")

    async def __aexit__(self, *_raised: object) -> None:
        self.log.append(f"-{self.name}")
        await fares(self.leaving)


def planned(number: int, plan: Plan, log: list[str]) -> Made:
    async def register(owned: Owned) -> None:
        for index, (entering, leaving) in enumerate(zip(plan.entering, plan.leaving, strict=True)):
            await owned.enter(Held(f"{number}{'abc'[index]}", entering, leaving, log))
        await fares(plan.registering)

    async def shut_down() -> None:
        log.append(f"!{number}")
        await fares(plan.shutting)

    return Made([], register, shut_down, names=(f"tool{number}",))


@given(PLANS, st.booleans(), st.booleans())
def test_r11_whatever_fails_each_resource_is_released_once_in_reverse_order(
    plans: list[Plan], twice: bool, cancelled: bool
) -> None:
    async def story() -> None:
        tools = started()
        for number, plan in enumerate(plans):
            made = planned(number, plan, log)
            tools.add(str(number), lambda _, made=made: made, vouched=READ)
        failed = await tools.register()
        offered = {one.name for one in tools.sources().builtins}
        assert offered == {f"tool{number}" for number in range(len(plans)) if str(number) not in failed}
        assert offered == {
            f"tool{number}" for number, plan in enumerate(plans) if not any((*plan.entering, plan.registering))
        }
        assert {name[1] for name in log if name[0] == "!"} == set(failed)
        if cancelled:
            task = asyncio.create_task(tools.shut_down())
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if twice or cancelled:
            await tools.shut_down()
        await tools.shut_down()

    log: list[str] = []
    run(story())
    entered = [one[1:] for one in log if one[0] == "+"]
    released = [one[1:] for one in log if one[0] == "-"]
    assert sorted(entered) == sorted(released)
    assert sorted(one for one in log if one[0] == "!") == [f"!{number}" for number in range(len(plans))]
    for number in range(len(plans)):
        mine = of_tool(released, number)
        assert mine == of_tool(entered, number)[::-1]
    survivors = [one[1:] for one in log if one[0] == "!"]
    whole = [str(number) for number, plan in enumerate(plans) if not any((*plan.entering, plan.registering))]
    assert [one for one in survivors if one in whole] == whole[::-1]


def of_tool(names: Iterable[str], number: int) -> list[str]:
    return [one for one in names if one[0] == str(number)]

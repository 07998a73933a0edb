"""The gate by itself, as a host with a loop of its own uses it."""

import asyncio
import copy
import gc
import json
import pickle
import re
from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import policy_lang
from tests.loop.stage import TOOLS, Stage, play, stage
from tests.person import Person
from zcpolicy import PermitError, Session
from zcpolicy.approvals.question import Approve, Approvers, Reject
from zcpolicy.authority import SealError
from zcpolicy.events import Event
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.loop import admitted as module
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.gate import Admitted, Lapsed, Refused, admit, admit_all
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import HostTool, InnerCall, ToolContext
from zcpolicy.sealed import put


def admitted_by(on: Stage, tool: str = "look", arguments: Any = None, **more: Any) -> Awaitable[Any]:
    return admit(on.run, tool, {"at": "x"} if arguments is None else arguments, on.io, **more)


def states(on: Stage) -> list[str]:
    """Of the calls on record, in order."""
    return [entry.state for entry in on.resolver.ledger.entries() if entry.charge.unit == "calls"]


def story(on: Stage, tell: Callable[[Admitted], Awaitable[None]]) -> list[str]:
    """What the ledger says of one admitted call after a story about it."""

    async def whole() -> None:
        call = await admitted_by(on)
        assert isinstance(call, Admitted)
        await tell(call)

    asyncio.run(whole())
    return states(on)


async def _run(call: Admitted) -> None:
    async with call:
        await call.start()
        await call.finish(ok=True)


async def _forget(call: Admitted) -> None:
    async with call:
        pass


async def _leave_it_running(call: Admitted) -> None:
    async with call:
        await call.start()


async def _raise_before(call: Admitted) -> None:
    with pytest.raises(RuntimeError, match="before"):
        async with call:
            raise RuntimeError("before")


async def _raise_within(call: Admitted) -> None:
    async def fails() -> None:
        async with call:
            await call.start()
            raise RuntimeError("within")

    with pytest.raises(RuntimeError, match="within"):
        await fails()


@pytest.mark.parametrize(
    ("tell", "state", "history"),
    [
        (_run, "settled", [True]),
        (_forget, "released", []),
        (_leave_it_running, "settled", [False]),
        (_raise_before, "released", []),
        (_raise_within, "settled", [False]),
    ],
)
def test_a_call_is_given_back_or_counted(
    tell: Callable[[Admitted], Awaitable[None]], state: str, history: list[bool]
) -> None:
    on = stage("allow look")
    assert story(on, tell) == [state]
    assert on.session.history is not None
    assert [entry.ok for entry in on.session.history] == history


def test_a_record_that_fails_does_not_hide_what_else_went_wrong() -> None:
    async def tell(raised: Exception | None) -> str:
        broken = False

        def record(_event: Event) -> None:
            if broken:
                raise OSError("the disk is full")

        call = await admit(on.run, "look", {"at": "x"}, ResolvedIo(record=record))
        assert isinstance(call, Admitted)
        broken = True
        try:
            async with call:
                if raised is not None:
                    raise raised
        except Exception as error:  # noqa: BLE001
            return type(error).__name__
        return ""

    on = stage("allow look")
    assert asyncio.run(tell(None)) == "HostFault"
    assert asyncio.run(tell(RuntimeError())) == "RuntimeError"
    assert states(on) == ["released", "released"]


async def _twice(call: Admitted) -> None:
    await call.start()
    with pytest.raises(PermitError, match="was started before: it runs once"):
        await call.start()
    await call.finish(ok=True)
    for again in (call.start(), call.finish(ok=True)):
        with pytest.raises(PermitError, match="the call is over: it was finished, or given up, before"):
            await again
    await call.abandon()


async def _two_at_once(call: Admitted) -> None:
    found = await asyncio.gather(call.start(), call.start(), return_exceptions=True)
    assert sorted(type(one).__name__ for one in found) == ["NoneType", "PermitError"]
    await call.finish(ok=True)


async def _finish_without_start(call: Admitted) -> None:
    with pytest.raises(PermitError, match="was not started"):
        await call.finish(ok=True)
    await call.start()
    await call.finish(ok=True)


@pytest.mark.parametrize("tell", [_twice, _two_at_once, _finish_without_start])
def test_a_call_runs_once(tell: Callable[[Admitted], Awaitable[None]]) -> None:
    assert story(stage("allow look"), tell) == ["settled"]


# --- what a tired engineer forgets ----------------------------------------------------------------------------------

HINT = "write `await call.start()`"


def test_what_runs_is_given_once_the_call_was_started() -> None:
    async def tell(call: Admitted) -> None:
        assert call.decision.arguments == {"at": "x"}
        for read in (lambda: call.arguments, lambda: call.wire):
            with pytest.raises(PermitError, match=re.escape(HINT)):
                read()
        await call.start()
        assert (call.arguments, call.wire) == ({"at": "x"}, '{"at": "x"}')
        await call.finish(ok=True)
        assert call.arguments == {"at": "x"}

    assert story(stage("allow look"), tell) == ["settled"]


def test_what_runs_is_not_given_of_a_call_that_was_given_up() -> None:
    async def tell(call: Admitted) -> None:
        await call.abandon()
        with pytest.raises(PermitError, match=re.escape(HINT)):
            _ = call.wire

    assert story(stage("allow look"), tell) == ["released"]


async def _give_it_up(call: Admitted) -> None:
    async with call:
        await call.abandon()


async def _only_finish(call: Admitted) -> None:
    with pytest.raises(PermitError, match=re.escape(HINT)):
        async with call:
            await call.finish(ok=True)


@pytest.mark.parametrize(
    ("tell", "slips"),
    [(_run, 0), (_forget, 1), (_give_it_up, 0), (_leave_it_running, 0), (_raise_before, 0), (_only_finish, 0)],
)
def test_a_call_that_is_left_unstarted_is_told_in_the_log(
    tell: Callable[[Admitted], Awaitable[None]], slips: int, caplog: pytest.LogCaptureFixture
) -> None:
    story(stage("allow look"), tell)
    said = [one.getMessage() for one in caplog.records if one.name == "zcpolicy"]
    assert len(said) == slips
    assert all("a call of `look` was left unstarted" in one and HINT in one for one in said)


def test_so_is_one_that_is_let_go(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(module, "LEASE_SECONDS", 0.03)

    async def tell(on: Stage) -> None:
        assert isinstance(await admitted_by(on), Admitted)
        gc.collect()
        await asyncio.sleep(0.1)

    asyncio.run(tell(stage("allow look")))
    assert [one.getMessage().split(":")[0] for one in caplog.records] == [
        "a call of `look` was let go before it was over"
    ]


def test_calls_that_are_admitted_along_and_not_made_are_no_slip(caplog: pytest.LogCaptureFixture) -> None:
    on = stage("allow look")
    wanted = [InnerCall("look", {"at": "x"}), InnerCall("nothing", {})]
    assert isinstance(asyncio.run(admit_all(on.run, wanted, on.io)), Refused)
    assert states(on) == ["released"]
    assert not caplog.records


def test_an_outcome_is_neither_true_nor_false() -> None:
    async def tell() -> list[object]:
        on = stage("allow look")
        return [await admitted_by(on, "nothing"), await admitted_by(on), on.run.decide("look", {"at": "x"})]

    for outcome in asyncio.run(tell()):
        with pytest.raises(TypeError, match=r"isinstance\(call, Admitted\)|compare `.effect` with \"allow\""):
            bool(outcome)


def test_what_is_admitted_cannot_be_made_altered_or_copied() -> None:
    async def tell(call: Admitted) -> None:
        maker: Any = Admitted
        for forbidden in (
            maker,
            lambda: copy.copy(call),
            lambda: copy.deepcopy(call),
            lambda: pickle.dumps(call),
            lambda: setattr(call, "wire", "{}"),
        ):
            with pytest.raises((TypeError, AttributeError)):
                forbidden()
        forged: Admitted = object.__new__(Admitted)
        for slot in ("decision", "edited", "key"):
            put(forged, slot, getattr(call, slot))
        with pytest.raises(SealError, match="is no call that `admit` made"):
            await forged.start()
        with pytest.raises(SealError, match="is no call that `admit` made"):
            _ = forged.arguments
        await call.abandon()

    story(stage("allow look"), tell)


def test_an_altered_call_runs_what_was_judged() -> None:
    async def sly(_arguments: dict[str, Any], _context: ToolContext) -> str:
        return "done"

    on = stage("allow look", look=sly)
    made = module.admitted

    def altering(*given: Any, **more: Any) -> Admitted:
        call = made(*given, **more)
        for what in ("arguments", "wire"):
            with pytest.raises(AttributeError):
                put(call, what, "elsewhere")
        call.decision.arguments["at"] = "elsewhere"
        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zcpolicy.loop.gate.admitted", altering)
        play(on, calls(("look", {"at": "here"})), "done")
    assert on.ran == [("look", {"at": "here"})]


def test_numbers_reach_a_tool_as_they_were_judged() -> None:
    async def tell() -> Any:
        on = Stage(*_pay())
        text = '{"amount": 1e400, "rate": 0.1, "count": 3.0, "long": 1.00000000000000000001}'
        call = await admit(on.run, "pay", text, on.io)
        assert isinstance(call, Admitted)
        async with call:
            await call.start()
            await call.finish(ok=True)
        call.arguments.clear()  # a copy
        return call.arguments

    assert asyncio.run(tell()) == {
        "amount": Decimal("1E+400"), "rate": 0.1, "count": 3, "long": Decimal("1.00000000000000000001"),
    }  # fmt: skip


def _pay() -> Any:
    from zcpolicy import Resolver

    text = "tool pay(amount: number, rate: number, count: integer, long: number) risk low\nagent a { allow pay }"
    resolver = Resolver(policy_lang.loads(f"zcpolicy 1\n{text}\n"))
    session = Session()
    return resolver, session, resolver.resolve("a", session=session), {}, {}


def test_the_registry_withholds_what_the_policy_alone_would_allow() -> None:
    async def tell(with_registry: bool) -> str:
        on = stage("allow look, mail")
        if with_registry:
            from zcpolicy.registry.scoped import ScopedToolRegistry
            from zcpolicy.registry.sources import ToolSources

            await ScopedToolRegistry.assemble(on.run, ToolSources(builtins=(on.tool("look"),)))
        found = await admitted_by(on, "mail", {"to": "x"})
        if isinstance(found, Admitted):
            await found.abandon()
            return "admitted"
        return str(found.reason)

    assert asyncio.run(tell(with_registry=False)) == "admitted"
    assert asyncio.run(tell(with_registry=True)) == "unknown-tool"


def test_a_newer_policy_stops_what_was_admitted_under_the_old_one() -> None:
    on = stage("allow look; limit 1 calls to look")

    async def tell(call: Admitted) -> None:
        on.resolver.publish(policy_lang.loads(f"zcpolicy 1\n{TOOLS}\nagent a {{ allow mail }}"))
        with pytest.raises(Lapsed):
            await call.start()
        again = await admitted_by(on)
        assert isinstance(again, Refused)
        assert again.reason == "not-granted"

    assert story(on, tell) == ["released"]


def test_a_place_whose_lease_is_over_is_gone() -> None:
    now = [1_800_000_000.0]
    on = stage("allow look; limit 1 calls to look", session=Session(clock=lambda: now[0], client="c", id="s"))

    async def tell(call: Admitted) -> None:
        now[0] += 61
        other = await admitted_by(on)
        assert isinstance(other, Admitted)
        with pytest.raises(Lapsed):
            await call.start()
        await _run(other)

    assert story(on, tell)[-1] == "settled"


def test_a_lease_is_renewed_as_long_as_somebody_holds_the_call() -> None:
    renewed: list[str] = []

    class Noting(MemoryLedger):
        def renew(self, key: str, *given: Any, **more: Any) -> None:
            renewed.append(key)
            super().renew(key, *given, **more)

    on = stage("allow look", ledger=Noting())

    async def tell() -> tuple[int, int, int]:
        call = await admitted_by(on, key="k")
        await asyncio.sleep(0.05)
        held = len(renewed)
        await call.start()
        await asyncio.sleep(0.05)
        running = len(renewed)
        await call.finish(ok=True)
        lost = await admitted_by(on, key="l")
        del lost
        gc.collect()
        await asyncio.sleep(0.05)
        return held, running - held, renewed.count("l")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEASE_SECONDS", 0.03)
        held, running, lost = asyncio.run(tell())
    assert held > 1
    assert running > 1
    assert lost == 0


def test_all_are_admitted_or_none() -> None:
    on = stage("allow look, mail; limit 1 calls to mail; deny shell")

    async def tell(*tools: tuple[str, dict[str, Any]]) -> Any:
        found = await admit_all(on.run, [InnerCall(*one) for one in tools], on.io)
        if isinstance(found, list):
            for one in found:
                await one.abandon()
            return len(found)
        assert isinstance(found, Refused)
        return found.reason

    look, mail = ("look", {"at": "x"}), ("mail", {"to": "x"})
    assert asyncio.run(tell(look, mail)) == 2
    assert asyncio.run(tell(look, mail, mail)) == "budget"
    assert asyncio.run(tell(look, ("shell", {"command": "ls"}))) == "not-granted"
    assert on.open_reservations() == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_callers_at_once_never_go_beyond_a_limit(kind: str, tmp_path: Path) -> None:
    ledger = MemoryLedger() if kind == "memory" else SqliteLedger(str(tmp_path / "ledger.db"))
    on = stage(
        "allow look, fetch; limit 7 calls to look; mark untrusted on fetch; deny look when marked untrusted",
        ledger=ledger,
    )

    async def tell() -> tuple[int, int]:
        found = await asyncio.gather(*[admitted_by(on) for _ in range(30)])
        taken = [one for one in found if isinstance(one, Admitted)]
        await asyncio.gather(*[_run(one) for one in taken[:5]], *[one.abandon() for one in taken[5:]])
        more = await asyncio.gather(
            *[admitted_by(on) for _ in range(2)], admitted_by(on, "fetch", {"url": "https://x.org/"}),
            *[admitted_by(on) for _ in range(30)],
        )  # fmt: skip
        for one in more:
            if isinstance(one, Admitted):
                await one.abandon()
        return len(taken), len([one for one in more if isinstance(one, Admitted) and one.decision.tool == "look"])

    first, then = asyncio.run(tell())
    assert first == 7
    assert then <= 2
    assert on.session.labels == {"untrusted"}
    assert on.open_reservations() == []
    ledger.close()


def test_a_key_is_for_one_call() -> None:
    on = stage("allow look")

    async def tell() -> Any:
        await _run(await admitted_by(on, key="k"))
        return await admitted_by(on, key="k")

    again = asyncio.run(tell())
    assert isinstance(again, Refused)
    assert again.text.startswith("This call was made before")


def test_two_equal_calls_at_once_with_one_yes_run_once() -> None:
    answers = [Approve(), Exception("gone")]

    async def person(_question: Any) -> Any:
        await asyncio.sleep(0)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    on = stage("allow mail; ask mail; runtime { parallel_tools on }")
    on.approvers = Approvers(person)

    async def tell() -> list[Any]:
        found = await asyncio.gather(*[admitted_by(on, "mail", {"to": "x"}) for _ in range(2)])
        for one in found:
            if isinstance(one, Admitted):
                await _run(one)
        return [type(one).__name__ for one in found]

    assert sorted(asyncio.run(tell())) == ["Admitted", "Refused"]


def test_a_tool_function_that_is_no_coroutine_function_is_none() -> None:
    def plain(_arguments: dict[str, Any], _context: ToolContext) -> Any:
        return "looked"

    class Called:
        async def __call__(self, _arguments: dict[str, Any], _context: ToolContext) -> str:
            return "looked"

    with pytest.raises(TypeError) as raised:
        HostTool("look", "looks", {"type": "object"}, plain)
    assert str(raised.value) == (
        "`run` of tool `look` is a plain function: write `async def`, and in it `await asyncio.to_thread(…)` around what waits"
    )
    assert HostTool("look", "looks", {}, Called()).run
    assert HostTool("look", "looks", {}, partial(Called.__call__, Called())).run


def test_what_a_call_was_given_ends_with_it() -> None:
    kept: list[ToolContext] = []

    async def keeps(_arguments: dict[str, Any], context: ToolContext) -> str:
        kept.append(context)
        return "kept"

    on = stage("allow look, mail", look=keeps)
    play(on, calls(("look", {"at": "x"})), "done")
    (context,) = kept
    with pytest.raises(PermitError, match="the call is over"):
        asyncio.run(context.run([InnerCall("mail", {"to": "x"})]))
    with pytest.raises(PermitError):
        context.later()
    assert on.names == ["look"]


def test_a_calls_line_says_who_said_yes_or_no() -> None:
    on = stage('allow look; ask look because "people look first"')
    person = Person(Approve(by="ann"), Reject("not on a friday", by="bob"))
    on.approvers = Approvers(person)

    async def whole() -> None:
        call = await admitted_by(on)
        assert isinstance(call, Admitted)
        await call.abandon()
        assert isinstance(await admitted_by(on, arguments={"at": "y"}), Refused)

    asyncio.run(whole())
    lines = [event.data for event in on.events if event.kind == "call"]
    told = [(one["phase"], one.get("reason"), one.get("by"), one.get("note")) for one in lines]
    assert told == [
        ("admitted", None, ["ann"], None), ("abandoned", None, None, None), ("refused", "rejected", ["bob"], "not on a friday"),
    ]  # fmt: skip
    assert [json.loads(one["decision"])["because"] for one in lines] == [["people look first"]] * 3

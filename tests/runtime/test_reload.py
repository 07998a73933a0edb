"""Reload, scenarios 33, 34, 35 and 40: a policy in a file, rewritten while turns of the real loop run."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from policy_lang.serving.compiling import compile_layers
from tests.runtime.scene import EXACT, TOOLS, Does, Scene
from tests.runtime.stores import Store
from zcpolicy import Program, Resolver
from zcpolicy.approvals.question import Approvers
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.gate import Admitted, Lapsed, Refused, admit
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import ToolContext
from zcpolicy.reload.generations import Failure, Generations, Reloaded
from zcpolicy.reload.settling import Settling
from zcpolicy.reload.sources import Compile, PolicySource, Read
from zcpolicy.reload.targets import AppliedLive, Event, Outcome

OPEN = "agent worker { autonomy full; allow look, note, mail; delegate to helper }\nagent helper { autonomy full; allow look, mail }\n"
SHUT = OPEN + 'ceiling { deny mail because "no mail today" }\n'
GONE = OPEN.replace("note, mail", "note").replace("look, mail }", "look }")
WRONG = OPEN + "ceiling { deny mial }\n"
MAIL = ("mail", {"to": "bob"})
LOOK = ("look", {"at": "x"})


class Following(Scene):
    """A scene whose policy is the file of now."""

    def __init__(
        self,
        folder: Path,
        policy: str,
        *,
        compiler: Compile = compile_layers,
        ledger: Ledger | None = None,
        **more: Any,
    ) -> None:
        super().__init__(policy, ledger=ledger, **more)
        self.file = folder / "policy.zcpolicy"
        self.write(policy)
        self.generations = Generations.start(
            PolicySource.of_layers([self.file]),
            compiler,
            folder / "state",
            make=lambda program, number, files: Resolver(program, generation=number, policy_files=files, ledger=ledger),
            how=Settling(settle=0.02),
            debounce=0.02,
            poll=0.1,
        )
        self.resolver = self.generations.resolver

    def write(self, policy: str) -> None:
        """As careful editors do."""
        beside = self.file.with_name("beside")
        beside.write_text(TOOLS + policy)
        beside.replace(self.file)

    def become(self, policy: str) -> Reloaded | Failure:
        """Another policy from now on, if it is one."""
        self.write(policy)
        return self.generations.reload_now()

    def decided(self) -> list[tuple[str, str, int]]:
        """Of each call that ended: the tool, what came of it, and under which generation."""
        data = [event.data for event in self.events if event.kind == "call"]
        lines = [(one["phase"], json.loads(one["decision"])) for one in data if one["phase"] in ("finished", "refused")]
        return [
            (line["tool"], "ran" if phase == "finished" else line["reason"], line["generation"])
            for phase, line in lines
        ]


def noticed(scene: list[Following], policy: str, generation: int) -> Does:
    """A tool that rewrites the policy's file, and ends once the host has noticed."""

    async def does(_arguments: dict[str, Any], _context: ToolContext) -> str:
        scene[0].write(policy)
        async with asyncio.timeout(20):
            while scene[0].generations.status()["generation"] < generation:  # noqa: ASYNC110 - files set no event
                await asyncio.sleep(0.01)
        return "written"

    return does


def following(story: Callable[[], Awaitable[object]], scene: Following) -> None:
    """A story while the host watches its file."""

    async def whole() -> None:
        async with scene.generations:
            await story()

    asyncio.run(whole())


# --- 33 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "reason"), [(SHUT, "denied"), (GONE, "not-granted")])
def test_33_the_next_call_of_a_running_turn(tmp_path: Path, policy: str, reason: str) -> None:
    """Policy tightened while a session runs: its next call is decided under the new generation, and the decision says so."""
    scenes: list[Following] = []
    scene = Following(tmp_path, OPEN, look=noticed(scenes, policy, 2))
    scenes.append(scene)
    following(lambda: scene.turn(calls(MAIL), calls(LOOK), calls(MAIL), "done"), scene)
    assert scene.decided() == [("mail", "ran", 1), ("look", "ran", 1), ("mail", reason, 2)]
    assert scene.names == ["mail", "look"]


def test_33_calls_of_one_answer_that_come_after_the_change(tmp_path: Path) -> None:
    """Policy tightened while a session runs: its next call is decided under the new generation, and the decision says so."""
    scenes: list[Following] = []
    scene = Following(tmp_path, OPEN, look=noticed(scenes, SHUT, 2))
    scenes.append(scene)
    following(lambda: scene.turn(calls(LOOK, MAIL, ("note", {"rest": 1})), "done"), scene)
    assert scene.decided() == [("look", "ran", 1), ("mail", "denied", 2), ("note", "ran", 2)]


def test_33_an_agent_that_is_gone(tmp_path: Path) -> None:
    """Policy tightened while a session runs: its next call is decided under the new generation, and the decision says so."""
    scene = Following(tmp_path, OPEN)
    run = scene.resolver.resolve("worker", session=scene.session)
    scene.become(OPEN.replace("worker", "other"))
    decision = run.decide("mail", {"to": "bob"})
    assert (decision.reason, decision.generation) == ("unknown-agent", 2)
    assert scene.generations.status()["generation"] == decision.to_json()["generation"] == 2


# --- 34 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["an error", "half a file", "no file", "no room"])
def test_34_a_reload_that_fails(tmp_path: Path, how: str) -> None:
    """A reload that fails half way: the old policy, whole, with the reason visible."""
    scene = Following(tmp_path, SHUT)
    if how == "an error":
        done, why = scene.become(WRONG), "`mial`"
    elif how == "half a file":
        done, why = scene.become(OPEN[: OPEN.index("note")]), "policy.zcpolicy:"
    elif how == "no file":
        scene.file.unlink()
        done, why = scene.generations.reload_now(), "does not exist"
    else:
        (tmp_path / "state").rename(tmp_path / "elsewhere")
        done, why = scene.become(OPEN), "no such file or directory"
    assert isinstance(done, Failure)
    status = scene.generations.status()
    assert (status["generation"], status["failure"]["generation"]) == (1, 1)
    assert why in status["failure"]["why"]
    scene.play(calls(MAIL, LOOK), "done")
    assert scene.decided() == [("mail", "denied", 1), ("look", "ran", 1)]


# --- 35 -----------------------------------------------------------------------------------------------------------------


def test_35_a_registry_and_an_admitted_call_of_before(tmp_path: Path) -> None:
    """A revoked grant reaches tool objects that were built before."""
    scene = Following(tmp_path, OPEN)

    async def story() -> None:
        run = scene.resolver.resolve("worker", session=scene.session)
        registry = await ScopedToolRegistry.assemble(run, scene.sources)
        io = ResolvedIo(Approvers(None, {}), scene.events.append)
        admitted = await admit(run, "mail", {"to": "bob"}, io)
        assert isinstance(admitted, Admitted)
        scene.become(GONE)
        with pytest.raises(Lapsed):
            await admitted.start()
        refused = await admit(run, "mail", {"to": "bob"}, io)
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.decision.generation) == ("not-granted", 2)
        assert [spec.name for spec in run.renewed().registry.specs() if spec.name == "mail"] == []
        await registry.close()

    asyncio.run(story())
    assert scene.ran == []


def test_35_a_child_that_is_at_work(tmp_path: Path) -> None:
    """A revoked grant reaches tool objects that were built before."""
    scene = Following(tmp_path, OPEN)

    async def story() -> None:
        above = scene.resolver.resolve("worker", session=scene.session)
        child = scene.resolver.resolve("helper", session=scene.seat("s2"), parent=above)
        registry = await ScopedToolRegistry.assemble(child, scene.sources)
        scene.become(GONE)
        refused = await admit(child, "mail", {"to": "bob"}, ResolvedIo(Approvers(None, {}), scene.events.append))
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.decision.generation) == ("not-granted", 2)
        await registry.close()

    asyncio.run(story())


@pytest.mark.parametrize(("policy", "ran"), [("\nceiling { deny mail }\n", ["look"]), ("\n", ["look", "mail"])])
def test_35_the_steps_of_a_pipeline_that_has_begun(tmp_path: Path, policy: str, ran: list[str]) -> None:
    """A revoked grant reaches tool objects that were built before."""
    scenes: list[Following] = []
    steps = [{"tool": name, "arguments": arguments} for name, arguments in (LOOK, MAIL)]
    piped = "agent worker { autonomy full; allow look, mail, pipeline }\n"
    scene = Following(tmp_path, piped, look=noticed(scenes, policy + piped, 2))
    scenes.append(scene)
    following(lambda: scene.turn(calls(("pipeline", {"steps": steps})), "done"), scene)
    assert scene.names == ran


# --- 40 -----------------------------------------------------------------------------------------------------------------


class Gate:
    """A compiler that is held up, once, after it has read."""

    def __init__(self) -> None:
        self.read = threading.Event()
        self.go = threading.Event()
        self.slow = False

    def __call__(self, layers: Sequence[Path], read: Read) -> Program:
        made = compile_layers(layers, read)
        if self.slow:
            self.slow = False
            self.read.set()
            assert self.go.wait(20)
        return made


def test_40_a_slow_compilation_of_what_was_there_before(tmp_path: Path) -> None:
    """Two reloads race: the result of the older never replaces that of the newer."""
    gate = Gate()
    scene = Following(tmp_path, OPEN, compiler=gate)
    scene.write(GONE)
    gate.slow = True
    done: list[Reloaded | Failure] = []
    older = threading.Thread(target=lambda: done.append(scene.generations.reload_now()))
    older.start()
    assert gate.read.wait(20)
    scene.write(SHUT)
    newer = threading.Thread(target=lambda: done.append(scene.generations.reload_now()))
    newer.start()
    gate.go.set()
    older.join()
    newer.join()
    assert scene.resolver.newest.program.digest == compile_of(scene)
    assert [one.generation for one in done] == sorted(one.generation for one in done)
    scene.play(calls(MAIL), "done")
    assert scene.decided() == [("mail", "denied", scene.generations.status()["generation"])]


def compile_of(scene: Following) -> str:
    """The digest of the file of now."""
    return compile_layers([scene.file], lambda path, _limit: path.read_bytes()).digest


def test_40_many_writers_and_many_reloads(tmp_path: Path) -> None:
    """Two reloads race: the result of the older never replaces that of the newer."""
    scene = Following(tmp_path, OPEN)
    seen: list[int] = []

    async def story() -> None:
        async def renew(number: int) -> None:
            scene.write((OPEN, SHUT, GONE)[number % 3] + f"# {number}\n")
            seen.append((await scene.generations.reload()).generation)

        await asyncio.gather(*map(renew, range(24)))

    following(story, scene)
    assert scene.resolver.newest.program.digest == compile_of(scene)
    assert seen == sorted(seen)


def test_40_a_target_that_answers_late(tmp_path: Path) -> None:
    """Two reloads race: the result of the older never replaces that of the newer."""
    scene = Following(tmp_path, OPEN)
    first, told = asyncio.Event(), list[int]()

    class Slow:
        name = "slow"

        async def take(self, event: Event) -> Outcome:
            told.append(event.generation)
            if event.generation == 2:
                await first.wait()
            return AppliedLive()

    async def story() -> None:
        scene.generations.targets.add(Slow())
        for policy in (SHUT, GONE, OPEN):
            scene.write(policy)
            await scene.generations.reload()
            await asyncio.sleep(0.01)
        assert scene.generations.status()["targets"]["slow"]["generation"] is None
        assert scene.resolver.decide("worker", "mail", {"to": "bob"}).generation == 4
        first.set()
        await scene.generations.targets.answered()

    following(story, scene)
    assert told == [2, 4]
    assert scene.generations.status()["targets"]["slow"]["generation"] == 4


# --- what stands --------------------------------------------------------------------------------------------------------


def test_19_what_was_spent_stands_over_a_reload_from_files(tmp_path: Path, store: Store) -> None:
    """Restart of the process, restart of the store, reload of the policy: counters stand. A reload that lowers a limit applies to what is spent."""
    limited = OPEN.replace("note, mail;", "note, mail; limit 2 calls to mail per day;")
    scene = Following(tmp_path, limited, ledger=store.open())
    assert scene.call(*MAIL) == "ran"
    scene.become(limited + "# later\n")
    assert [scene.call(*MAIL), scene.call(*MAIL)] == ["ran", "budget"]
    scene.become(limited.replace("limit 2", "limit 3"))
    assert [scene.call(*MAIL), scene.call(*MAIL)] == ["ran", "budget"]
    scene.become(limited.replace("limit 2", "limit 1"))
    assert scene.call(*MAIL) == "budget"


def test_9_a_yes_outlives_a_reload_that_left_its_rules_alone(tmp_path: Path, store: Store) -> None:
    """A remembered approval never beats a `deny`, never crosses a reload that changed the rules, never outlives its expiry (tested at use)."""
    asking = OPEN + "ceiling { ask mail; approval { remember exact } }\n"
    scene = Following(tmp_path, asking, ledger=store.open())
    assert scene.call(*MAIL, EXACT) == "ran"
    assert scene.call(*MAIL) == "ran"
    done = scene.become(asking + "group readers = look\nceiling { ask @readers }\n")
    assert isinstance(done, Reloaded)
    assert done.is_new
    assert scene.call(*MAIL) == "ran"
    scene.become(asking.replace("ask mail", 'ask mail because "new"'))
    assert scene.call(*MAIL, EXACT) == "ran"
    scene.become(SHUT)
    assert scene.call(*MAIL) == "denied"

"""From one generation to the next: what is decided, what stands, what is said."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from policy_lang.serving.compiling import compile_layers
from tests.reload.disk import LOOSE, OTHER, TIGHT, WRONG, Disk, until
from zcpolicy import Program, Resolver, Session
from zcpolicy.reload.generations import Failure, Reloaded
from zcpolicy.reload.sources import Broken, PolicySource, Read, Unreadable


def nothing(_layers: Sequence[Path], _read: Read) -> None:
    """A compiler that was never finished."""


def says(resolver: Resolver, tool: str = "act") -> tuple[str, str, int]:
    """What is decided, why, and under which generation."""
    decision = resolver.resolve("a").decide(tool, {} if tool == "act" else {"at": "/x"})
    return decision.effect, decision.reason, decision.to_json()["generation"]


def test_a_policy_that_changed_is_the_next_generation(disk: Disk) -> None:
    generations = disk.start()
    assert says(generations.resolver) == ("allow", "allowed", 1)
    disk.write(TIGHT)
    assert generations.reload_now() == Reloaded(2, is_new=True, changed=(str(disk.file),))
    assert says(generations.resolver) == ("deny", "denied", 2)
    assert generations.status()["generation"] == 2


def test_nothing_new_is_no_generation(disk: Disk) -> None:
    generations = disk.start()
    assert generations.reload_now() == Reloaded(1, is_new=False, changed=())
    disk.write(LOOSE)
    assert generations.reload_now() == Reloaded(1, is_new=False, changed=())
    assert says(generations.resolver)[2] == 1


def test_another_line_is_a_generation_because_decisions_quote_it(disk: Disk) -> None:
    disk.write(TIGHT)
    generations = disk.start()
    run = generations.resolver.resolve("a")
    disk.write(TIGHT.replace("tool look", "# a remark\ntool look"))
    assert generations.reload_now() == Reloaded(2, is_new=True, changed=(str(disk.file),))
    assert [rule.to_json()["line"] for rule in run.decide("act", {}).rules] == [6]


@pytest.mark.parametrize("times", [1, 2])
def test_a_policy_with_an_error_leaves_the_old_one_whole_and_is_seen_until_one_is_good(disk: Disk, times: int) -> None:
    generations = disk.start()
    disk.write(WRONG)
    for _ in range(times):
        failed = generations.reload_now()
        assert isinstance(failed, Failure)
        assert (failed.kind, failed.generation) == ("broken", 1)
        assert failed.why.startswith(f"{disk.file}:4:")
        assert "`loook`" in failed.why
        assert generations.status()["failure"] == failed.to_json()
    generations.glance()
    assert generations.status()["failure"] is not None
    assert says(generations.resolver) == ("allow", "allowed", 1)
    disk.write(TIGHT)
    generations.glance()
    assert generations.status()["failure"] is None
    assert says(generations.resolver) == ("deny", "denied", 2)


def test_back_to_the_old_text_after_an_error_is_the_old_generation(disk: Disk) -> None:
    generations = disk.start()
    disk.write(WRONG)
    generations.reload_now()
    disk.write(LOOSE)
    assert generations.reload_now() == Reloaded(1, is_new=False, changed=())
    assert generations.status()["failure"] is None


def test_a_compiler_that_raises_leaves_the_old_one_whole(disk: Disk) -> None:
    fails = False

    def compiler(layers: Sequence[Path], read: Read) -> Program:
        if fails:
            raise RecursionError
        return compile_layers(layers, read)

    generations = disk.start(compiler=compiler)
    fails = True
    disk.write(TIGHT)
    failed = generations.reload_now()
    assert isinstance(failed, Failure)
    assert (failed.kind, failed.why) == ("broken", "the policy could not be compiled: RecursionError")
    assert says(generations.resolver) == ("allow", "allowed", 1)


def test_a_compiler_that_makes_no_program_makes_no_generation(disk: Disk) -> None:
    with pytest.raises(Broken, match="made no program"):
        disk.start(compiler=nothing)


def test_what_cannot_be_kept_is_not_published(disk: Disk) -> None:
    generations = disk.start()
    disk.write(TIGHT)
    disk.state.rename(disk.folder / "elsewhere")
    failed = generations.reload_now()
    assert isinstance(failed, Failure)
    assert (failed.kind, failed.generation) == ("not-kept", 1)
    assert failed.why == "the policy cannot be kept, or not be put in force: no such file or directory"
    assert says(generations.resolver) == ("allow", "allowed", 1)
    (disk.folder / "elsewhere").rename(disk.state)
    generations.glance()
    assert says(generations.resolver) == ("deny", "denied", 3)
    assert generations.status()["failure"] is None


def test_without_a_policy_nothing_starts(disk: Disk) -> None:
    disk.write(WRONG)
    with pytest.raises(Broken, match="loook"):
        disk.start()
    disk.file.unlink()
    with pytest.raises(Unreadable, match="does not exist"):
        disk.start()
    disk.write(LOOSE)
    assert disk.start().status()["generation"] == 1


# --- what a policy is made of -----------------------------------------------------------------------------------------


def test_layers_and_imports_and_catalogues_are_all_followed(disk: Disk) -> None:
    top, base = disk.folder / "top.zcpolicy", disk.folder / "policies" / "lib" / "base.zcpolicy"
    base.parent.mkdir()
    top.write_text("zcpolicy 1\nagents allowed\n")
    base.write_text("zcpolicy 1\nceiling { deny act when args.n > 3 }\n")
    disk.write(LOOSE.replace("zcpolicy 1\n", 'zcpolicy 1\nimport "lib/base.zcpolicy"\n'))
    generations = disk.start(PolicySource.of_layers([top, disk.file]))
    run = generations.resolver.resolve("a")
    assert [run.decide("act", {"n": n}).effect for n in (1, 5)] == ["allow", "deny"]
    base.write_text("zcpolicy 1\nceiling { deny act when args.n > 0 }\n")
    assert generations.reload_now() == Reloaded(2, is_new=True, changed=(str(base),))
    assert [run.decide("act", {"n": n}).effect for n in (1, 5)] == ["deny", "deny"]
    top.write_text("zcpolicy 1\nagents allowed\nceiling { autonomy readonly }\n")
    assert generations.reload_now() == Reloaded(3, is_new=True, changed=(str(top),))
    base.unlink()
    failed = generations.reload_now()
    assert isinstance(failed, Failure)
    assert (failed.kind, "lib/base.zcpolicy" in failed.why) == ("unreadable", True)


@pytest.mark.parametrize("which", ["file", "import", "folder", "link", "kept", "lock", "beside"])
def test_what_decides_the_policy_is_protected_also_what_came_with_a_reload(disk: Disk, which: str) -> None:
    real = disk.folder / "real.zcpolicy"
    real.write_text("zcpolicy 1\n")
    link = disk.folder / "policies" / "extra.zcpolicy"
    link.symlink_to(real)
    text = LOOSE.replace("risk read", "risk high")
    disk.write(text)
    generations = disk.start()
    run = generations.resolver.resolve("a", session=Session(cwd="/"))
    path = {
        "file": disk.file, "import": real, "folder": disk.file / "x", "link": link, "kept": disk.state / "policy.generation",
        "lock": disk.state / "policy.generation.lock", "beside": disk.state / "policy.generation.new",
    }[which]  # fmt: skip
    came = which in ("import", "link")
    assert run.decide("look", {"at": str(path)}).reason == ("allowed" if came else "protected")
    disk.write(text + 'import "extra.zcpolicy"\n')
    generations.reload_now()
    assert run.decide("look", {"at": str(path)}).reason == "protected"
    assert run.decide("look", {"at": str(disk.folder / "mine")}).reason == "allowed"
    disk.write(text)
    generations.reload_now()
    assert run.decide("look", {"at": str(path)}).reason == ("allowed" if came else "protected")


# --- one step, for everybody --------------------------------------------------------------------------------------------


def test_versions_are_raised_in_the_step_that_publishes(disk: Disk) -> None:
    seen: list[tuple[int, bool]] = []

    def bump() -> None:
        taken = threading.Event()

        def other() -> None:
            if resolver.exclusive.acquire(blocking=False):
                taken.set()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        seen.append((resolver.newest.generation, taken.is_set()))

    generations = disk.start(bump=bump)
    resolver = generations.resolver
    disk.write(TIGHT)
    generations.reload_now()
    generations.reload_now()
    assert seen == [(2, False)]


def test_where_versions_cannot_be_raised_nothing_is_decided_until_they_are(disk: Disk) -> None:
    fails = True

    def bump() -> None:
        if fails:
            raise ValueError

    generations = disk.start(bump=bump)
    run = generations.resolver.resolve("a")
    disk.write(TIGHT)
    failed = generations.reload_now()
    assert isinstance(failed, Failure)
    assert failed.kind == "not-kept"
    decision = run.decide("look", {"at": "/x"})
    assert (decision.effect, decision.reason) == ("deny", "stale-policy")
    generations.glance()
    assert run.decide("look", {"at": "/x"}).effect == "deny"
    fails = False
    generations.glance()
    assert (run.decide("look", {"at": "/x"}).effect, run.decide("act", {}).reason) == ("allow", "denied")


def test_a_host_that_suspends_its_policy_is_not_overruled_by_a_glance(disk: Disk) -> None:
    generations = disk.start()
    generations.resolver.suspend("for the night")
    generations.glance()
    generations.reload_now()
    decision = generations.resolver.decide("a", "act", {})
    assert (decision.reason, decision.note) == ("stale-policy", "for the night")
    generations.resolver.reinstate()
    assert generations.resolver.decide("a", "act", {}).effect == "allow"


def test_what_the_host_published_itself_counts(disk: Disk) -> None:
    generations = disk.start()
    generations.resolver.publish(generations.resolver.program)
    disk.write(OTHER)
    assert generations.reload_now() == Reloaded(3, is_new=True, changed=(str(disk.file),))


def test_an_answer_is_of_the_newest_generation_whenever_that_came(disk: Disk) -> None:
    """Threads ask while generations come: each answer is a whole generation's, and none is the engine's own fault."""
    generations = disk.start()
    odd: list[object] = []
    ends = threading.Event()

    def asks() -> None:
        run = generations.resolver.resolve("a")
        while not ends.is_set():
            before = generations.resolver.newest.generation
            for decision in (generations.resolver.decide("a", "act", {}), run.decide("act", {})):
                wanted = "denied" if decision.generation % 2 == 0 else "allowed"
                if decision.reason != wanted or decision.generation < before:
                    odd.append(decision.to_json())

    threads = [threading.Thread(target=asks) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30):
        disk.write(LOOSE if number % 2 else TIGHT)
        generations.reload_now()
    ends.set()
    for thread in threads:
        thread.join()
    assert generations.status()["generation"] == 31
    assert odd == []


# --- told ---------------------------------------------------------------------------------------------------------------


def test_what_came_of_reloads_is_put_on_record_once_and_in_order(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Reloaded | Failure] = []

    def record(done: Reloaded | Failure) -> None:
        told.append(done)
        if len(told) == 4:
            raise OSError("no room")

    generations = disk.start(record=record)
    for text in (LOOSE, TIGHT, WRONG, WRONG, OTHER, OTHER, LOOSE):
        disk.write(text)
        generations.reload_now()
        generations.glance()
    assert [one.generation if isinstance(one, Reloaded) else one.kind for one in told] == [2, "broken", 3, 4]
    assert [one.message for one in caplog.records] == ["a reload could not be put on record"]
    assert generations.status()["generation"] == 4


def test_a_host_that_does_not_follow_loads_what_changed_when_somebody_asks(disk: Disk) -> None:
    generations = disk.start(max_staleness=600.0, follow=False)
    disk.write(TIGHT)
    for _ in range(5):
        disk.clock.now += 500
        generations.look()
    assert (says(generations.resolver), generations.status()["behind"]) == (("allow", "allowed", 1), True)
    assert generations.reload_now() == Reloaded(2, is_new=True, changed=(str(disk.file),))
    generations.look()
    assert (says(generations.resolver), generations.status()["behind"]) == (("deny", "denied", 2), False)
    run = generations.resolver.resolve("a")
    disk.file.unlink()
    disk.clock.now += 601
    generations.look()
    assert generations.resolver.newest.suspended
    assert run.decide("look", {"at": "/x"}).reason == "stale-policy"
    disk.write(LOOSE)
    generations.look()
    assert (run.decide("look", {"at": "/x"}).effect, run.decide("act", {}).reason) == ("allow", "denied")


def test_what_it_looks_at_while_it_does_not_follow(disk: Disk) -> None:
    async def story() -> None:
        async with disk.start(follow=False, poll=0.02) as generations:
            disk.write(TIGHT)
            await until(lambda: generations.status()["behind"] is True)
            await asyncio.sleep(0.1)
            assert says(generations.resolver)[2] == 1
            generations.request()
            await until(lambda: generations.status()["generation"] == 2)

    asyncio.run(story())

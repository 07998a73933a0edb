"""What makes a host look at its source: files, a signal, a word; and what does not keep it from looking."""

import asyncio
import os
import shutil
import signal
import sys
import threading
from typing import Any

import pytest

from policy_lang.serving.compiling import compile_layers
from tests.reload.disk import LOOSE, OTHER, TIGHT, WRONG, Disk, until, write
from tests.reload.writer import link
from zcpolicy.reload import watching
from zcpolicy.reload.generations import Failure, Generations
from zcpolicy.reload.settling import Settling
from zcpolicy.reload.sources import PolicySource

SELDOM = 3600.0
"""Seconds between two looks of a host that only the file system, or somebody, can make look sooner."""


def host(disk: Disk, source: PolicySource | None = None, **more: Any) -> Generations:
    """Real clocks and real waiting, short."""
    return disk.start(source, how=Settling(settle=0.03), **{"debounce": 0.02, "poll": SELDOM, **more})


def deciding(generations: Generations) -> tuple[int, str]:
    """The generation, and what comes of a call."""
    decision = generations.resolver.decide("a", "act", {})
    return decision.to_json()["generation"], decision.reason


def failed(generations: Generations) -> str:
    """What the last reload failed at."""
    failure = generations.status()["failure"]
    return "" if failure is None else str(failure["kind"])


async def watches(generations: Generations) -> None:
    await until(lambda: generations.status()["watch"]["kind"] == "watching")
    await asyncio.sleep(0.05)


async def becomes(generations: Generations, generation: int, reason: str) -> None:
    await until(lambda: deciding(generations) == (generation, reason))


def test_a_file_that_changes_is_heard_of(disk: Disk) -> None:
    async def story() -> None:
        async with host(disk) as generations:
            await watches(generations)
            disk.write(TIGHT)
            await becomes(generations, 2, "denied")
            disk.file.write_text(LOOSE)
            await becomes(generations, 3, "allowed")
            disk.write(WRONG)
            await until(lambda: generations.status()["failure"] is not None)
            disk.write(OTHER)
            await becomes(generations, 4, "not-granted")
            assert generations.status()["failure"] is None
            assert generations.status()["watch"]["kind"] == "watching"
        assert generations.status()["watch"]["kind"] == "off"

    asyncio.run(story())


def test_an_import_is_heard_of_as_soon_as_it_is_one(disk: Disk) -> None:
    far = disk.folder / "far" / "rest.zcpolicy"
    far.parent.mkdir()
    far.write_text("zcpolicy 1\n")

    async def story() -> None:
        async with host(disk) as generations:
            await watches(generations)
            disk.write(LOOSE + 'import "../far/rest.zcpolicy"\n')
            await until(lambda: str(far) in generations.files)
            await asyncio.sleep(0.3)  # the file system is asked about the other folder
            write(far, "zcpolicy 1\nceiling { deny act }\n")
            await until(lambda: deciding(generations)[1] == "denied")

    asyncio.run(story())


@pytest.mark.parametrize("as_folder", [False, True])
def test_the_folder_may_go_and_come_back(disk: Disk, as_folder: bool) -> None:
    folder = disk.file.parent
    source = PolicySource.of_folder(folder) if as_folder else PolicySource.of_layers([disk.file])

    async def story() -> None:
        async with host(disk, source) as generations:
            await watches(generations)
            for generation in (2, 4):
                shutil.rmtree(folder)
                await until(lambda: failed(generations) == "unreadable")
                folder.mkdir()
                disk.write(TIGHT)
                await becomes(generations, generation, "denied")
                await asyncio.sleep(0.3)
                disk.write(LOOSE)
                await becomes(generations, generation + 1, "allowed")

    asyncio.run(story())


def test_a_link_that_is_turned_is_heard_of(disk: Disk) -> None:
    now = disk.folder / "now"
    link(now, 0)

    async def story() -> None:
        async with host(disk, PolicySource.of_layers([now / "policy.zcpolicy"])) as generations:
            for number, which in enumerate((1, 0, 1), 2):
                await watches(generations)
                link(now, which)
                await until(lambda wanted=number: generations.status()["generation"] == wanted)
                await asyncio.sleep(0.3)

    asyncio.run(story())


def test_its_own_files_beside_the_policy_make_it_look_at_nothing(disk: Disk) -> None:
    disk.state = disk.file.parent

    async def story() -> None:
        async with host(disk) as generations:
            await watches(generations)
            disk.write(TIGHT)
            await becomes(generations, 2, "denied")
            await asyncio.sleep(0.5)
            looked, looks = generations._watch._looked, 0
            for _ in range(10):
                await asyncio.sleep(0.05)
                looks += generations._watch._looked != looked
                looked = generations._watch._looked
            assert looks <= 1

    asyncio.run(story())


# --- other reasons to look ----------------------------------------------------------------------------------------------


def test_what_is_asked_for_close_together_is_one_reload(disk: Disk) -> None:
    compiled: list[int] = []

    def compiler(*given: Any) -> Any:
        compiled.append(1)
        return compile_layers(*given)

    async def story() -> None:
        async with host(disk, told=False, compiler=compiler) as generations:
            await asyncio.sleep(0.05)
            compiled.clear()
            disk.write(TIGHT)
            threads = [threading.Thread(target=generations.request) for _ in range(50)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            await becomes(generations, 2, "denied")
            await asyncio.sleep(0.1)
            assert len(compiled) == 1
            assert generations.status()["watch"] | {"looked": ""} == {
                "kind": "polling", "looked": "", "why": "it is told not to"
            }  # fmt: skip
        generations.request()

    asyncio.run(story())


def test_sighup_is_a_request(disk: Disk) -> None:
    async def story() -> None:
        async with host(disk, told=False, hangup=True) as generations:
            await asyncio.sleep(0.05)
            disk.write(TIGHT)
            os.kill(os.getpid(), signal.SIGHUP)
            await becomes(generations, 2, "denied")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL

    asyncio.run(story())


def test_in_another_thread_no_signal_is_heard_and_all_else_is(disk: Disk) -> None:
    seen: list[tuple[int, str]] = []

    async def story() -> None:
        async with host(disk, hangup=True) as generations:
            await watches(generations)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
            disk.write(TIGHT)
            await becomes(generations, 2, "denied")
            seen.append(deciding(generations))

    thread = threading.Thread(target=lambda: asyncio.run(story()))
    thread.start()
    thread.join()
    assert seen == [(2, "denied")]


def test_looking_now_and_then_finds_it_too(disk: Disk) -> None:
    async def story() -> None:
        async with host(disk, told=False, poll=0.05) as generations:
            disk.write(TIGHT)
            await becomes(generations, 2, "denied")

    asyncio.run(story())


def test_without_watchfiles_it_looks_now_and_then_and_says_so(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)

    async def story() -> None:
        async with host(disk, poll=0.05) as generations:
            await until(lambda: "why" in generations.status()["watch"])
            told = generations.status()["watch"]
            assert (told["kind"], told["why"]) == ("polling", "`watchfiles` is not installed (the extra `reload`)")
            disk.write(TIGHT)
            await becomes(generations, 2, "denied")

    asyncio.run(story())


def test_a_watch_that_dies_is_seen_and_looking_goes_on(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    import watchfiles

    async def story() -> None:
        async with host(disk, poll=0.05) as generations:
            await watches(generations)

            def dies(*_folders: str, **_more: object) -> None:
                raise OSError(28, "inotify watch limit reached")

            monkeypatch.setattr(watchfiles, "awatch", dies)
            shutil.rmtree(disk.file.parent)
            await until(lambda: "inotify" in generations.status()["watch"].get("why", ""))
            assert generations.status()["watch"]["kind"] == "polling"
            disk.file.parent.mkdir()
            disk.write(TIGHT)
            await becomes(generations, 2, "denied")
            monkeypatch.undo()
            await watches(generations)

    asyncio.run(story())


def test_a_look_that_fails_is_told_and_is_not_the_last(disk: Disk) -> None:
    async def story() -> None:
        looks: list[bool] = []

        async def look(asked: bool) -> None:
            looks.append(asked)
            if len(looks) == 1:
                raise RuntimeError("no more threads")

        watch = watching.Watch(look, lambda: (), poll=0.05, told=False)
        task = asyncio.create_task(watch.watch())
        await until(lambda: "fault" in watch.status())
        assert watch.status()["fault"] == "RuntimeError: no more threads"
        await until(lambda: "fault" not in watch.status())
        task.cancel()
        await asyncio.wait((task,))

    asyncio.run(story())


def test_it_ends_whenever_it_is_told_to(disk: Disk) -> None:
    """Also at the very moment at which something came."""

    async def look(asked: bool) -> None:
        await asyncio.sleep(0)

    async def story() -> None:
        async with asyncio.timeout(30):
            for turns in range(300):
                watch = watching.Watch(look, lambda: (), poll=0.001, debounce=0.0, told=False)
                task = asyncio.create_task(watch.watch())
                for _ in range(turns % 12):
                    await asyncio.sleep(0)
                    watch.request()
                task.cancel()
                await asyncio.wait((task,))
                assert watch.status()["kind"] == "off"

    asyncio.run(story())


def test_leaving_ends_everything_and_gives_back_the_folder(disk: Disk) -> None:
    async def story() -> None:
        before = asyncio.all_tasks()
        async with host(disk) as generations:
            await watches(generations)
            disk.write(TIGHT)
            await generations.reload()
        assert asyncio.all_tasks() == before
        assert not isinstance(generations.reload_now(), Failure)
        disk.start().close()

    asyncio.run(story())

"""What a daemon says without being asked: to whoever watches it, on record, and to operators."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from policy_lang.serving.checking import check_settings
from policy_lang.serving.compiling import compile_layers
from zcpolicy.daemon.serving import Daemon
from zcpolicy.daemon.tokens import Tokens

from .desk import POLICY, lay, settings_of, token

SERVED = """zcpolicy 1
tool forge/get_issue(number: integer) risk read
tool absent(query: string) risk read
bundle all_of_forge { server forge }
agent helper { autonomy full; allow forge/get_issue, absent; connect all_of_forge }
agent aide { autonomy full }
"""
TURN = {"agent": "helper", "text": "go"}
NO_SERVER = '[mcp.forge]\ncommand = ["false"]'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return lay(tmp_path / "desk")


@asynccontextmanager
async def watched(file: Path) -> AsyncGenerator[tuple[list[str], Daemon, httpx.AsyncClient]]:
    """A daemon as `zcpolicy serve` makes one, the lines that it tells, and an operator."""
    headers = token(file, "root", "operator") | {"content-type": "application/json"}
    told: list[str] = []
    daemon = Daemon(settings_of(file), compile_layers, told.append, check_settings(file).beside)
    async with (
        daemon.serving(),
        httpx.AsyncClient(base_url=daemon.addresses["http"], timeout=20, headers=headers) as root,
    ):
        yield told, daemon, root


def noted(file: Path, did: str) -> list[dict[str, Any]]:
    parts = sorted((file.parent / "var/log").glob("decisions-*.jsonl"))
    lines = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    return [one["data"] for one in lines if one["kind"] == "host" and one["data"]["did"] == did]


async def until(held: Callable[[], bool]) -> None:
    for _ in range(300):
        if held():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it takes too long")


# --- servers -----------------------------------------------------------------------------------------------------------


def lay_served(file: Path, more: str = NO_SERVER) -> None:
    steps = [{"calls": [{"tool": "forge__get_issue", "arguments": {"number": 7}}]}, "read"]
    lay(file.parent, steps=steps, more=more)
    (file.parent / "team.zcpolicy").write_text(SERVED)


def test_a_server_that_cannot_start_is_told_once_and_everywhere(file: Path) -> None:
    lay_served(file)

    async def story() -> None:
        async with watched(file) as (told, _, root):
            assert (await root.get("/status")).json()["servers"] == {"forge": {"state": "untried"}}
            assert (await root.get("/readyz")).json() == {"ready": True}
            for _ in range(2):
                assert (await root.post("/turn", json=TURN)).json()["text"] == "read"
            lines = [line for line in told if line.startswith("server forge is not there: it cannot be connected: ")]
            assert len(lines) == 1
            shown = (await root.get("/status")).json()["servers"]["forge"]
            assert (shown["state"], shown["why"][:22]) == ("down", "it cannot be connected")
            ready = await root.get("/readyz")
            assert (ready.status_code, ready.json()["servers"]) == (200, {"forge": shown["why"]})
            assert (await root.get("/readyz", headers={"authorization": ""})).json().keys() == {"ready"}

    asyncio.run(story())
    assert [(one["what"], one["there"]) for one in noted(file, "server")] == [("forge", False)]
    (log,) = (file.parent / "var/log").glob("decisions-*.jsonl")
    calls = [one["data"] for one in map(json.loads, log.read_text().splitlines()) if one["kind"] == "call"]
    assert {one["decision"]["reason"] for one in calls} == {"unknown-tool"}
    assert all("server `forge` is not there: it cannot be connected" in json.dumps(one) for one in calls)


def test_tools_that_nobody_brings_are_told_as_it_starts(file: Path) -> None:
    lay_served(file)

    async def story() -> None:
        async with watched(file) as (told, _, root):
            absent = (
                "agent helper, tool absent: the policy lets this agent use it, and the host has no tool of this name"
            )
            assert absent in told
            assert (await root.get("/status")).json()["remarks"] == [absent]

    asyncio.run(story())


# --- the policy --------------------------------------------------------------------------------------------------------


def test_each_generation_failure_and_recovery_has_a_line_and_is_on_record(file: Path) -> None:
    policy = file.parent / "team.zcpolicy"

    async def story() -> None:
        async with watched(file) as (told, _, root):
            policy.write_text(POLICY.replace("limit 3 calls", "limit 2 calls"))
            await root.post("/reload")
            policy.write_text("zcpolicy 1\nagent helper { allow nothing }")
            await root.post("/reload")
            policy.write_text(POLICY.replace("limit 3 calls", "limit 2 calls"))
            await root.post("/reload")
            lines = [line for line in told if "the policy" in line]
            assert len(lines) == 3
            assert lines[0].startswith("generation 2 of the policy is in force: ")
            assert lines[1].startswith("the policy could not be loaded, and generation 2 stays in force: ")
            assert "team.zcpolicy:2:" in lines[1]
            assert "ZC2101" in lines[1]
            assert lines[2] == "the policy is good again: it is generation 2, which is in force"

    asyncio.run(story())
    assert [(one["went"], one["generation"], one.get("new")) for one in noted(file, "reload") if "went" in one] == [
        (True, 2, True), (False, 2, None), (True, 2, False),
    ]  # fmt: skip
    assert all(len(one["digest"]) >= 64 for one in noted(file, "reload") if one.get("went"))
    assert [(one["by"], one["reloaded"]) for one in noted(file, "reload is done")] == [
        ("root", True), ("root", False), ("root", True),
    ]  # fmt: skip


def test_a_start_under_the_last_good_policy_says_so(file: Path) -> None:
    async def starts(wanted: str) -> None:
        async with watched(file) as (told, _, _root):
            assert any(wanted in line for line in told)
        (file.parent / "var/tokens.json").unlink()
        (file.parent / "var/tokens.json.lock").unlink()

    asyncio.run(starts("serving "))
    (file.parent / "team.zcpolicy").write_text("zcpolicy 1\nagent helper { allow nothing }")
    asyncio.run(starts("the policy could not be loaded, and generation 1, the last good one, is in force: "))
    first, second = noted(file, "policy at start")
    assert ("failure" in first, second["failure"]["kind"]) == (False, "broken")
    assert first["digest"] == second["digest"]


def test_a_policy_that_no_longer_fits_the_settings_is_told_before_the_next_start_fails(file: Path) -> None:
    def findings(told: list[str]) -> list[str]:
        return [line for line in told if "ZC6005" in line]

    async def story() -> None:
        async with watched(file) as (told, _, root):
            assert (await root.get("/status")).json()["findings"] == []
            (file.parent / "team.zcpolicy").write_text(
                POLICY.replace("agent aide", "agent other").replace("to aide", "to other")
            )
            went = (await root.post("/reload")).json()
            assert (went["reloaded"], went["new"]) == (True, True)  # it is in force: it tightens
            assert any("ZC6005: the policy has no agent `aide`" in one for one in went["findings"])
            assert (await root.get("/status")).json()["findings"] == went["findings"]
            assert len(findings(told)) == 1

    asyncio.run(story())
    assert noted(file, "reload")[-1]["findings"]


def test_a_policy_that_grew_stale_is_said_and_is_no_fault_of_a_client(file: Path) -> None:
    async def story() -> None:
        async with watched(file) as (told, daemon, root):
            resolver = daemon.host.resolver.newest
            resolver.suspend("the policy's source could not be read since noon")
            await until(lambda: any(line.startswith("the policy decides nothing: ") for line in told))
            answer = await root.post("/turn", json=TURN)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
            assert answer.json() == {"error": "no policy is in force here"}
            daemon.host.resolver.newest.reinstate()
            await until(lambda: "the policy decides again" in told)

    asyncio.run(story())
    assert noted(file, "policy suspended")
    assert noted(file, "policy reinstated")
    (log,) = (file.parent / "var/log").glob("decisions-*.jsonl")
    refused = [json.loads(line)["data"] for line in log.read_text().splitlines() if '"failed"' in line]
    assert [one["refused"] for one in refused] == ["the policy's source could not be read since noon"]


# --- the rest ----------------------------------------------------------------------------------------------------------


def test_a_ledger_that_is_lost_and_comes_back(file: Path) -> None:
    async def story() -> None:
        async with watched(file) as (told, daemon, _):
            ledger = file.parent / "var/ledger.db"
            aside = ledger.rename(ledger.with_suffix(".aside"))
            ledger.write_text("no ledger")
            await daemon._tidings.look()
            await daemon._tidings.look()
            lost = [line for line in told if line.startswith("the ledger is unavailable")]
            assert len(lost) == 1
            aside.rename(ledger)
            await daemon._tidings.look()
            assert "the ledger is there again" in told

    asyncio.run(story())
    assert (len(noted(file, "ledger lost")), len(noted(file, "ledger back"))) == (1, 1)


def test_tokens_that_another_process_gives_out_and_takes_back_are_on_record(file: Path) -> None:
    async def story() -> None:
        async with watched(file) as (_, daemon, root):
            await root.post("/tokens", json={"name": "over_http"})
            others = Tokens(str(file.parent / "var/tokens.json"))
            others.add("ann")
            await daemon._tidings.look()
            others.revoke("ann")
            await daemon._tidings.look()
            await daemon._tidings.look()

    asyncio.run(story())
    assert [(one["what"], one["by"]) for one in noted(file, "token of client")] == [
        ("over_http", "root"), ("ann", "another process"),
    ]  # fmt: skip
    assert [(one["what"], one["by"]) for one in noted(file, "token revoked")] == [("ann", "another process")]


def test_turns_that_are_cut_off_as_it_stops_are_counted(file: Path) -> None:
    lay(file.parent, more="[drain]\nseconds = 0")
    told: list[str] = []

    async def story() -> None:
        daemon = Daemon(settings_of(file), compile_layers, told.append)
        async with daemon.serving() as host:
            started = asyncio.Event()

            async def turn() -> None:
                with host.doors.turn("ann"):
                    started.set()
                    await asyncio.sleep(60)

            running = asyncio.create_task(turn())
            await started.wait()
        await asyncio.wait((running,))
        running.exception()

    asyncio.run(story())
    assert "turns that were cut off: 1" in told


def test_settings_that_were_changed_since_the_start(file: Path) -> None:
    def changed() -> None:
        file.write_text(f"{file.read_text()}# more\n")

    async def story() -> None:
        async with watched(file) as (told, _, root):
            assert (await root.get("/status")).json()["settings"] == "as at start"
            changed()
            assert (await root.get("/status")).json()["settings"] == "changed since start"
            assert told[-1].startswith("serving aide (by others only), helper (gateway, rpc) on ")

    asyncio.run(story())

"""The daemon as a whole: what it starts with, what it lets go of, what goes on in it."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from policy_lang.serving.compiling import compile_layers
from tests.servers.redis_server import RedisServer
from zcpolicy.daemon.serving import Daemon, StartFailed
from zcpolicy.daemon.settings import Settings
from zcpolicy.reload.sources import Broken

from .desk import POLICY, lay, serving, settings_of, token

TURN = {"agent": "helper", "text": "go"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return lay(tmp_path / "desk")


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "arguments": arguments}]}


# --- every way in ------------------------------------------------------------------------------------------------------


def test_one_agent_over_http_and_over_the_socket(file: Path) -> None:
    async def story() -> None:
        async with serving(file) as (daemon, client):
            over_http = (await client.post("/turn", json=TURN)).json()
            assert (over_http["status"], over_http["text"]) == ("done", "kept")
            answer = await _asked(daemon.addresses["rpc"], "turn", TURN)
            assert answer["result"]["text"] == "kept"
            tools = (await client.get("/tools?agent=helper")).json()["tools"]
            assert {one["name"] for one in tools} == {
                "delegate",
                "memory_recall",
                "memory_store",
                "run_later",
                "workflow",
            }
            assert (await client.post("/turn", json={**TURN, "agent": "aide"})).status_code == 403

    asyncio.run(story())


async def _asked(path: str, method: str, params: object) -> dict[str, Any]:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(f"{json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params})}\n".encode())
    answer: dict[str, Any] = json.loads(await reader.readline())
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return answer


def test_a_delegate_and_the_steps_of_a_workflow(file: Path) -> None:
    steps = [
        call("delegate", agent="aide", task="look"),
        call("workflow", steps=[{"prompt": "one", "agent": "aide"}]),
        "both",
    ]
    lay(file.parent, steps=steps)
    policy = file.parent / "team.zcpolicy"
    policy.write_text(POLICY.replace("delegate to aide", "delegate to aide; delegate depth 3"))

    async def story() -> None:
        async with serving(file) as (daemon, client):
            answer = (await client.post("/turn", json=TURN)).json()
            assert answer["text"] == "both"
            kinds = [(line["kind"], line["identity"]["surface"]) for line in _log(file) if line["kind"] == "turn"]
            assert ("turn", "delegate") in kinds
            assert ("turn", "step") in kinds
            assert daemon.host.doors.turns == 0

    asyncio.run(story())


def _log(file: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for part in sorted((file.parent / "var/log").glob("decisions-*.jsonl"))
        for line in part.read_text().splitlines()
    ]


def test_what_the_settings_schedule_and_what_a_call_leaves_behind(file: Path) -> None:
    job = '[[schedule]]\nagent = "aide"\ntext = "look around"\nevery = "1s"\nheartbeat = true'
    lay(file.parent, steps=[call("run_later", text="again", after=0), "planned"], more=job)

    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.post("/turn", json=TURN)).json()["text"] == "planned"
            await _until(lambda: {"heartbeat", "scheduled"} <= _surfaces(file))

    asyncio.run(story())


def _surfaces(file: Path) -> set[str]:
    return {line["identity"]["surface"] for line in _log(file) if line["kind"] == "turn"}


async def _until(held: Callable[[], bool]) -> None:
    for _ in range(300):
        if held():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it takes too long")


def test_a_job_that_fell_due_while_the_daemon_was_down_runs_once(file: Path) -> None:
    job = '[[schedule]]\nagent = "aide"\ntext = "look around"\nevery = "1h"'
    lay(file.parent, more=job)
    kept = file.parent / "var/schedule.json"

    async def story(*, due: bool) -> None:
        async with serving(file):
            await asyncio.sleep(1.2)
        if due:  # the clock goes on by two hours and a half while nobody is there
            held = json.loads(kept.read_text())
            held["jobs"][0]["at"] -= 9_000
            kept.write_text(json.dumps(held))

    asyncio.run(story(due=True))
    assert _surfaces(file) == set()
    asyncio.run(story(due=False))
    asyncio.run(story(due=False))
    assert [line["identity"]["surface"] for line in _log(file) if line["data"].get("phase") == "started"] == [
        "scheduled"
    ]
    assert len(json.loads(kept.read_text())["jobs"]) == 1


def test_a_job_that_takes_long_holds_up_no_other_and_is_not_begun_twice(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _own_tool(file, monkeypatch, "held_clock")
    (file.parent / "held_clock.py").write_text(SLOW_CLOCK)
    job = '[[schedule]]\nagent = "{}"\ntext = "look around"\nevery = "1s"\n'
    more = f"{job.format('helper')}{job.format('aide')}[drain]\nseconds = 0\n"
    file.write_text(file.read_text() + more)

    def begun(agent: str) -> int:
        lines = [line for line in _log(file) if line["kind"] == "turn" and line["data"].get("phase") == "started"]
        return sum(line["identity"]["agent"] == agent for line in lines)

    async def story() -> None:
        async with serving(file):
            await _until(lambda: begun("aide") >= 3)
            assert begun("helper") == 1

    asyncio.run(story())


def test_jobs_follow_the_settings(file: Path) -> None:
    job = '[[schedule]]\nagent = "aide"\ntext = "{}"\nevery = "1h"\n'

    async def texts(more: str) -> list[str]:
        lay(file.parent, more=more)
        async with serving(file) as (daemon, _):
            assert daemon.operating().status()["jobs"] == more.count("[[schedule]]")
        return sorted(one["text"] for one in json.loads((file.parent / "var/schedule.json").read_text())["jobs"])

    assert asyncio.run(texts(job.format("one") + job.format("two"))) == ["one", "two"]
    assert asyncio.run(texts(job.format("two") + job.format("three"))) == ["three", "two"]
    assert asyncio.run(texts("")) == []


CHAT = """
import asyncio
said, heard = [], asyncio.Queue()
class Chat:
    def __init__(self, receive): self.receive = receive
    async def listen(self):
        await self.receive("ann", "hello")
        await asyncio.Event().wait()
    async def send(self, sender, text): said.append((sender, text))
def make(receive): return Chat(receive)
"""


def test_a_chat_of_the_operators_own(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "desk_chat.py").write_text(CHAT)
    monkeypatch.setattr(sys, "path", [str(file.parent), *sys.path])
    lay(file.parent, more='[channels.desk]\nagent = "helper"\nfactory = "desk_chat:make"')

    async def story() -> None:
        async with serving(file):
            said: list[Any] = import_module("desk_chat").said
            await _until(lambda: bool(said))
            assert said == [("ann", "kept")]

    asyncio.run(story())


TOOL = """
from pathlib import Path
from zcpolicy import HostTool
log = []
class Clock:
    async def register(self, owned): pass
    async def shut_down(self): {down}
    def tools(self):
        async def run(arguments, context): return "noon"
        return [HostTool("{name}", "Tells the time.", {{"type": "object", "properties": {{}}}}, run)]
def make(given): {body}
"""


def _own_tool(file: Path, monkeypatch: pytest.MonkeyPatch, module: str, **given: str) -> None:
    parts = {"name": "clock", "body": "return Clock()", "down": "pass", **given}
    (file.parent / f"{module}.py").write_text(TOOL.format(**parts))
    monkeypatch.setattr(sys, "path", [str(file.parent), *sys.path])
    policy = POLICY.replace("agent aide", "tool clock() risk read\nagent aide", 1)
    lay(file.parent, steps=[call("clock"), "told"], more=f'[tools]\nfactories = ["{module}:make"]')
    (file.parent / "team.zcpolicy").write_text(policy.replace("allow memory_store,", "allow clock, memory_store,"))


def test_a_tool_of_the_operators_own(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    _own_tool(file, monkeypatch, "own_clock", down=f"Path({str(gone)!r}).write_text('x')")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            assert (await client.post("/turn", json=TURN)).json()["text"] == "told"
            assert daemon.operating().status()["tools"]["own_clock:make"]["phase"] == "executing"

    asyncio.run(story())
    assert gone.read_text() == "x"


NOTES = """
from zcpolicy import HostTool
from zcpolicy.state.contract import Contract, Handle
from zcpolicy.state.handles.rate_limiter import RateLimiter

class Notes(Handle):
    contract = Contract(
        holds="notes", owner="host", concurrency="lock", isolation="client", reload="re-resolved",
        depends=frozenset({"config"}),
    )
    def __init__(self): self.entries = {}
    def _view(self, scope): return self.entries.setdefault(scope.key, [])
    def _held(self): return []

class Tool:
    def __init__(self, notes, rates, heading): self.notes, self.rates, self.heading = notes, rates, heading
    def tools(self):
        return [HostTool("clock", "Notes.", {"type": "object", "properties": {}}, self.run)]
    async def run(self, arguments, context):
        self.rates.scoped(context.caller).take("draw")
        view = self.notes.scoped(context.caller)
        view.append("x")
        return f"{self.heading}: {len(view)}"

def make(given):
    return Tool(given.handle(Notes), given.handle(RateLimiter), given.settings["heading"])
"""
FACTORY = """
[[tools.factory]]
make = "MODULE:make"
settings = { heading = "notes" }
handles = ["MODULE:Notes"]
[rates]
draw = "2 per hour"
"""


def _own_notes(file: Path, monkeypatch: pytest.MonkeyPatch, module: str, more: str) -> None:
    (file.parent / f"{module}.py").write_text(NOTES)
    monkeypatch.setattr(sys, "path", [str(file.parent), *sys.path])
    lay(file.parent, steps=[call("clock"), call("clock"), call("clock"), "told"], more=more.replace("MODULE", module))
    policy = POLICY.replace("agent aide", "tool clock() risk read\nagent aide", 1)
    (file.parent / "team.zcpolicy").write_text(policy.replace("allow memory_store,", "allow clock, memory_store,"))


def test_a_factory_has_settings_a_handle_and_a_rate(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _own_notes(file, monkeypatch, "own_notes", FACTORY)

    async def story() -> None:
        async with serving(file) as (daemon, client):
            assert (await client.post("/turn", json=TURN)).json()["text"] == "told"
            assert daemon.operating().status()["tools"]["own_notes:make"]["handles"] == [
                "own_notes:Notes",
                "rate_limiter",
            ]
            assert daemon.handles.to_json()["rate_limiter"]["count"] == 1

    asyncio.run(story())
    assert [one["data"]["ok"] for one in _log(file) if one["data"].get("phase") == "finished"] == [True, True, False]


LACKING: dict[str, tuple[str, str, str]] = {
    "no setting": ('settings = { heading = "notes" }\n', "", r"`lack_0:make` cannot be constructed: KeyError: 'heading', at .*/lack_0\.py:26$"),
    "no handle": ('handles = ["MODULE:Notes"]\n', "", "the host has no handle of type `Notes`; there is `parent_tools`"),
    "no rate": ('[rates]\ndraw = "2 per hour"\n', "", "the host has no handle of type `RateLimiter`; there is `parent_tools`"),
    "a handle that is another thing": ("MODULE:Notes", "builtins:dict", "the handle `builtins:dict` cannot be made: TypeError: `builtins:dict` is no handle"),
}  # fmt: skip


@pytest.mark.parametrize("what", LACKING)
def test_a_factory_that_is_not_given_what_it_asks_for_ends_the_start(
    file: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    there, instead, said = LACKING[what]
    _own_notes(file, monkeypatch, f"lack_{[*LACKING].index(what)}", FACTORY.replace(there, instead))
    with pytest.raises(StartFailed, match=said):
        starts(settings_of(file))


# --- what cannot start ---------------------------------------------------------------------------------------------------


def starts(settings: Settings) -> None:
    async def story() -> None:
        async with Daemon(settings, compile_layers).serving():
            raise AssertionError("it has started")

    asyncio.run(story())


def _no_such_folder(file: Path) -> None:
    (file.parent / "var").write_text("a file")


def _open_folder(file: Path) -> None:
    (file.parent / "var").mkdir()
    (file.parent / "var").chmod(0o777)


def _open_tokens(file: Path) -> None:
    token(file, "ann")
    (file.parent / "var/tokens.json").chmod(0o644)


def _damaged(name: str) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        (file.parent / "var").mkdir(mode=0o700)
        (file.parent / "var" / name).write_text("damaged")
        (file.parent / "var" / name).chmod(0o600)

    return damage


def _something_at_the_socket(file: Path) -> None:
    (file.parent / "var").mkdir(mode=0o700)
    (file.parent / "var/zcpolicy.sock").write_text("")


UNSTARTABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "the state folder is a file": (_no_such_folder, "var` cannot be used: File exists"),
    "others can write the state folder": (_open_folder, "var` can be written by others"),
    "others can read the tokens": (_open_tokens, "is open to others"),
    "damaged tokens": (_damaged("tokens.json"), "is damaged, or none"),
    "a damaged schedule": (_damaged("schedule.json"), "the schedule cannot be read"),
    "a damaged key": (_damaged("identity.key"), "holds no key"),
    "a damaged ledger": (_damaged("ledger.db"), "ledger"),
    "something at the socket": (_something_at_the_socket, "that is no socket"),
}


@pytest.mark.parametrize("what", UNSTARTABLE)
def test_what_cannot_start_says_one_line_and_lets_go_of_all(file: Path, what: str) -> None:
    break_it, said = UNSTARTABLE[what]
    settings = settings_of(file)
    break_it(file)
    before = _at_rest()
    with pytest.raises(StartFailed, match=r"\A[^\n]+\Z") as raised:
        starts(settings)
    assert said in str(raised.value)
    for _ in range(100):  # what watches files lets go of them in a thread of its own
        if not _open_files() - before:
            break
        time.sleep(0.05)
    assert not _open_files() - before


def _open_files() -> Counter[str]:
    return Counter(str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink())


def _at_rest() -> Counter[str]:
    """What is open once nothing has been let go of for a while: what watched files for an earlier test may still be about to."""
    found, quiet = _open_files(), 0
    while quiet < 10:
        time.sleep(0.05)
        now = _open_files()
        found, quiet = now, quiet + 1 if now == found else 0
    return found


def test_a_port_that_is_taken(file: Path) -> None:
    async def story() -> None:
        async with serving(file) as (daemon, _):
            other = lay(file.parent.parent / "other")
            port = daemon.addresses["http"].rpartition(":")[2]
            other.write_text(other.read_text().replace("port = 0", f"port = {port}"))
            with pytest.raises(StartFailed, match="address already in use"):
                async with serving(other):
                    pass
            assert not (other.parent / "var/zcpolicy.sock").exists()

    asyncio.run(story())


def test_two_daemons_in_one_folder(file: Path) -> None:
    async def story() -> None:
        async with serving(file):
            with pytest.raises(StartFailed):
                async with serving(file):
                    pass

    asyncio.run(story())


def test_an_open_address_without_tokens(file: Path) -> None:
    token(file, "ann")
    file.write_text(file.read_text().replace("port = 0", 'address = "0.0.0.0"\nport = 0'))
    settings = settings_of(file)
    for name in ("tokens.json", "tokens.json.lock"):
        (file.parent / "var" / name).unlink()

    async def story() -> None:
        with pytest.raises(StartFailed, match=r"others can reach `0\.0\.0\.0`, and nobody has a token yet"):
            async with Daemon(settings, compile_layers).serving():
                pass

    asyncio.run(story())


def test_a_policy_with_errors(file: Path) -> None:
    (file.parent / "team.zcpolicy").write_text(POLICY.replace("allow memory_recall;", "allow memory_recal;"))
    with pytest.raises(Broken, match="`memory_recal` is not a tool"):
        starts(settings_of(file))


FACTORIES: dict[str, tuple[dict[str, str], str]] = {
    "raises": ({"body": "raise ValueError('no key')"}, "cannot be constructed"),
    "opens a file": ({"body": "open('/etc/hosts').read(); return Clock()"}, "open"),
    "keeps state of its own": ({"down": "log.append(1)"}, "keeps state of its own"),
    "a name that is taken": ({"name": "delegate"}, "there is a tool `delegate` already"),
}


@pytest.mark.parametrize("what", FACTORIES)
def test_a_tool_that_cannot_be_ends_the_start(file: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    given, said = FACTORIES[what]
    _own_tool(file, monkeypatch, f"own_{sorted(FACTORIES).index(what)}", **given)
    with pytest.raises(StartFailed) as raised:
        starts(settings_of(file))
    assert said in str(raised.value)


# --- while it runs ---------------------------------------------------------------------------------------------------------


def test_a_reload_is_seen_by_operators(file: Path) -> None:
    root = token(file, "root", "operator")
    policy = file.parent / "team.zcpolicy"

    async def story() -> None:
        async with serving(file) as (_, client):
            json_ = {**root, "content-type": "application/json"}
            before = (await client.get("/status", headers=root)).json()["policy"]
            policy.write_text(POLICY.replace("limit 3 calls", "limit 0 calls"))
            went = (await client.post("/reload", headers=json_)).json()
            assert went["reloaded"]
            assert went["generation"] == before["generation"] + 1
            policy.write_text("zcpolicy 1\nagent helper { allow nothing }")
            failed = (await client.post("/reload", headers=json_)).json()
            assert not failed["reloaded"]
            shown = (await client.get("/status", headers=root)).json()["policy"]
            assert (shown["generation"], shown["failure"]["kind"]) == (went["generation"], "broken")
            assert "ZC2101" in shown["failure"]["why"]
            assert (await client.get("/readyz")).status_code == 200  # the old policy stands whole
            noted = [one["data"] for one in _log(file) if one["kind"] == "host" and "went" in one["data"]]
            assert [(one["went"], one["generation"]) for one in noted] == [
                (True, went["generation"]),
                (False, went["generation"]),
            ]

    asyncio.run(story())


def test_limits_of_a_client_outlive_the_daemon_and_a_new_token(file: Path) -> None:
    lay(file.parent, steps=[call("memory_store", text="x"), "kept"])
    headers = [token(file, "ann")]

    async def turns(number: int) -> list[str]:
        async with serving(file) as (daemon, client):
            for _ in range(number):
                await client.post("/turn", json=TURN, headers=headers[-1])
            told = [one["data"].get("reason") for one in _log(file) if one["kind"] == "call"]
            daemon._kept.tokens.revoke("ann")
            headers.append({"authorization": f"Bearer {daemon._kept.tokens.add('ann')}"})
            return [str(one) for one in told]

    asyncio.run(turns(2))
    assert "budget" not in asyncio.run(turns(1))
    assert "budget" in asyncio.run(turns(1))


def test_everything_of_the_daemons_own_is_protected(file: Path) -> None:
    settings = settings_of(file)
    protected = settings.protected
    folder = str(file.parent)
    assert {f"{folder}/var", f"{folder}/daemon.toml", f"{folder}/answers.json", f"{folder}/aide.json"} <= set(protected)
    own = (settings.tokens_file, settings.ledger_file, settings.schedule_file, settings.key_file, settings.log_folder)
    assert all(one.startswith(f"{folder}/var/") for one in (*own, str(settings.rpc)))


def test_status_and_readiness(file: Path) -> None:
    root = token(file, "root", "operator")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            shown = (await client.get("/status", headers=root)).json()
            assert shown["agents"] == {"helper": ["gateway", "rpc"], "aide": []}
            assert (shown["turns"], shown["draining"]) == (0, False)
            handles = (await client.get("/handles?client=nobody", headers=root)).json()
            assert handles["session_cache"]["contract"]["isolation"] == "session"
            assert {one["count"] for one in handles.values()} == {0}
            assert (await client.get("/handles?klient=x", headers=root)).status_code == 400
            daemon.host.doors.closing = True
            ready = await client.get("/readyz", headers=root)
            assert (ready.status_code, ready.json()["reasons"]) == (503, ["the daemon is about to stop"])
            assert (await client.get("/readyz")).json() == {"ready": False}
            refused = await client.post("/turn", json=TURN, headers=root)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")

    asyncio.run(story())


def test_readiness_without_a_ledger(file: Path, redis_server: RedisServer) -> None:
    lay(file.parent, state=f'ledger = "redis://127.0.0.1:{redis_server.port}"')

    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.get("/readyz")).status_code == 200
            redis_server.kill()
            try:
                assert (await client.get("/readyz")).status_code == 503
                assert (await client.get("/healthz")).status_code == 200
            finally:
                redis_server.start()

    asyncio.run(story())


# --- the end ---------------------------------------------------------------------------------------------------------------


def test_running_turns_end_and_no_new_one_begins(file: Path) -> None:
    async def story() -> None:
        async with serving(file) as (daemon, client):
            doors = daemon.host.doors
            with doors.turn("somebody"):
                closing = asyncio.create_task(doors.close())
                await asyncio.sleep(0.1)
                assert (await client.post("/turn", json=TURN)).status_code == 503
                assert not closing.done()
            await closing

    asyncio.run(story())


SLOW_CLOCK = """
import asyncio
from zcpolicy import HostTool
class Clock:
    def tools(self):
        async def run(arguments, context):
            await asyncio.sleep(60)
            return "late"
        return [HostTool("clock", "Tells the time.", {"type": "object", "properties": {}}, run)]
def make(given): return Clock()
"""


def test_turns_that_take_too_long_are_cut_off(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _own_tool(file, monkeypatch, "slow_clock")
    (file.parent / "slow_clock.py").write_text(SLOW_CLOCK)
    file.write_text(file.read_text() + "\n[drain]\nseconds = 0\n")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            turn = asyncio.create_task(client.post("/turn", json=TURN))
            await _until(lambda: daemon.host.doors.turns == 1)
            await asyncio.sleep(0.3)
            await daemon.host.doors.close()
            answer = await turn
            assert (answer.status_code, answer.json()["error"]) == (
                503,
                "the host has stopped before the turn was done",
            )

    asyncio.run(story())

"""What the daemon costs beside the bare resolver: turns a second and their times, over HTTP, by socket, in this process, and decisions alone.

Each turn is two requests to a scripted model and one call between them, under a limit, on the ledger that is named. The daemon is a
process of its own; clients keep their connections. Prints Markdown.

    python bench/daemon.py [SECONDS]
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from soaking.world import redis_at

import policy_lang
from zcpolicy import HostTool, ResolvedModelAccess, Resolver, Session, ToolSources
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.models import FileModel, read_script
from zcpolicy.daemon.paths.run import run_once
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger

POLICY = """zcpolicy 1
tool look(where: string) risk read
agent helper { autonomy full; allow look when args.where like "r/*"; limit 1_000_000 calls to look per day }
"""
SCRIPT = {"steps": [{"calls": [{"tool": "look", "arguments": {"where": "r/a"}}]}, "done"], "repeat": True}
SETTINGS = """[policy]
layers = ["team.zcpolicy"]
watch = false
[state]
folder = "var"
ledger = "LEDGER"
[http]
port = 0
turns = 100
[rpc]
[agents.helper]
model = "scripted:answers.json"
surfaces = ["gateway", "rpc"]
[tools]
factories = ["look:make"]
"""
TOOL = """from zcpolicy import HostTool
class Look:
    def tools(self):
        async def run(arguments, context): return "seen"
        return [HostTool("look", "Looks.", {"type": "object", "properties": {"where": {"type": "string"}}}, run)]
def make(given): return Look()
"""
CLIENTS = (1, 8, 32)


def measured(once: Callable[[], Any], seconds: float) -> list[float]:
    """Seconds of each time that it was done, for so long."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        once()
        times.append(time.perf_counter() - begun)
    return times


def row(what: str, times: list[float], seconds: float) -> str:
    times.sort()
    p50, p99 = (times[int(len(times) * part)] * 1_000 for part in (0.5, 0.99))
    return f"| {what} | {len(times) / seconds:,.0f} | {p50:.3g} | {p99:.3g} |"


def over_http(folder: Path, ledger: str, seconds: float) -> list[str]:
    folder.mkdir()
    for name, text in (
        ("team.zcpolicy", POLICY), ("answers.json", json.dumps(SCRIPT)), ("look.py", TOOL), ("daemon.toml", SETTINGS.replace("LEDGER", ledger)),
    ):  # fmt: skip
        (folder / name).write_text(text)
    log = folder / "log.txt"
    with log.open("w") as err:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "policy_lang.cli.main", "serve", "daemon.toml"], cwd=folder, stderr=err
        )
    try:
        while "http://" not in log.read_text():
            assert daemon.poll() is None, log.read_text()
            time.sleep(0.05)
        port = int(log.read_text().split("http://")[1].split()[0].rpartition(":")[2])
        kind = ledger.partition(":")[0]
        rows = [
            row(
                f"turn over HTTP, {kind}, {clients} client{'s' * (clients > 1)}", asked(port, clients, seconds), seconds
            )
            for clients in CLIENTS
        ]
        return [
            *rows,
            row(f"turn by socket, {kind}, 1 client", by_socket(folder / "var/zcpolicy.sock", seconds), seconds),
        ]
    finally:
        daemon.terminate()
        daemon.wait(30)


def asked(port: int, clients: int, seconds: float) -> list[float]:
    """Each client in its own session, which begins anew after a hundred turns: a transcript grows."""

    def client(_number: int) -> list[float]:
        connection = HTTPConnection("127.0.0.1", port)
        members: dict[str, str] = {}
        turns = 0

        def once() -> None:
            nonlocal members, turns
            body = json.dumps({"agent": "helper", "text": "look", **members})
            connection.request("POST", "/turn", body, {"content-type": "application/json"})
            said = json.loads(connection.getresponse().read())
            assert said["text"] == "done", said
            turns += 1
            members = {"session": said["session"]} if turns % 100 else {}

        return measured(once, seconds)

    with ThreadPoolExecutor(clients) as pool:
        return [one for times in pool.map(client, range(clients)) for one in times]


def by_socket(path: Path, seconds: float) -> list[float]:
    """One client, on a connection of its own after every hundred turns."""
    turns, request = 0, {"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "helper", "text": "look"}}
    line = json.dumps(request).encode() + b"\n"
    connection = socket.socket(socket.AF_UNIX)

    def once() -> None:
        nonlocal turns, connection
        if turns % 100 == 0:
            connection.close()
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(path))
        turns += 1
        connection.sendall(line)
        said = b""
        while not said.endswith(b"\n"):
            said += connection.recv(65_536)
        assert json.loads(said)["result"]["text"] == "done", said

    try:
        return measured(once, seconds)
    finally:
        connection.close()


def in_process(ledger: Ledger, seconds: float) -> list[float]:
    """The same turn, by the host alone."""

    async def look(_arguments: dict[str, Any], _context: object) -> str:
        return "seen"

    tool = HostTool("look", "Looks.", {"type": "object", "properties": {"where": {"type": "string"}}}, look)
    model = ResolvedModelAccess(FileModel(read_script(json.dumps(SCRIPT).encode()), "scripted"))
    host = Host(Resolver(policy_lang.loads(POLICY), ledger=ledger), ToolSources(builtins=(tool,)), {"helper": model})
    with asyncio.Runner() as runner:
        return measured(lambda: runner.run(run_once(host, "helper", "look")), seconds)


def decisions(seconds: float) -> list[float]:
    run = Resolver(policy_lang.loads(POLICY)).resolve("helper", session=Session())
    return measured(lambda: run.decide("look", {"where": "r/a"}), seconds)


if __name__ == "__main__":
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    print(f"### The daemon's turns beside bare decisions, {length:g} s each\n")
    print("| what | a second | p50 ms | p99 ms |\n|---|---|---|---|")
    print(row("decision alone", decisions(length), length))
    with TemporaryDirectory() as temporary:
        print(row("turn in process, memory", in_process(MemoryLedger(), length), length))
        print(row("turn in process, sqlite", in_process(SqliteLedger(f"{temporary}/ledger.db"), length), length))
        server = redis_at(Path(temporary))
        if server is not None:
            server[0].spawn()
        for kept in ("memory", "sqlite", *([server[1]] if server else ())):
            print("\n".join(over_http(Path(temporary, kept.partition(":")[0] + " daemon"), kept, length)))
        if server is not None:
            server[0].kill()

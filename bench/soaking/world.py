"""The world of a soak: a policy that is written anew all the time, daemons, a Redis server, and their sudden ends.

In: a folder. Out: processes that can be killed and started again; when each was there; what was written and published when.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zcpolicy.daemon.tokens import Tokens

from .talk import Broke, Http

ZCPOLICY = (sys.executable, "-m", "policy_lang.cli.main")
HERE = Path(__file__).parent
START_SECONDS = 60.0

SPEND, TALLY, PAY, SPOT, BURST, SLOW, ALL = 6, 120, 25, 3, 4, 3, 200
"""Limits: `spend` of a client, `tally` of the agent, the sum that a client pays, `spot` of a pot, `burst` of a client in a minute, `slow` at a
time, and `spend` and `tally` of everybody."""

TOOLS = """tool spend(nonce: string) risk low; tool tally(nonce: string) risk low; tool spot(nonce: string, pot: string) risk low
tool burst(nonce: string) risk low; tool pay(nonce: string, amount: integer) risk low; tool slow(nonce: string) risk low
tool even(nonce: string) risk low; tool odd(nonce: string) risk low; tool version(nonce: string) risk low
tool risky(nonce: string) risk high; tool draw(nonce: string, text: string) risk low
tool memory_store(text: string, scope?: string) risk low; tool memory_recall(query: string) risk read
tool delegate(agent: string, task: string, independent?: boolean) risk low"""
ABOVE = 2 + TOOLS.count("\n") + 1


def policy(version: int) -> str:
    """All rules of a version stand on one line, whose number is the version's: so a decision on record says which it was."""
    parity = "odd" if version % 2 else "even"
    allowed = "spend, tally, spot, burst, pay, slow, version, draw, memory_store, memory_recall, delegate"
    rules = (
        "autonomy full", f"allow {allowed}", f"allow {parity}", "allow risky with approval", "memory read own write own",
        f'deny version because "version {version}."', "delegate to aide", 'approval { route "ops", timeout 20s }',
        f"limit {SPEND} calls to spend per day for each client", f"limit {TALLY} calls to tally per day",
        f"limit {PAY} sum args.amount to pay per day for each client", f"limit {BURST} calls to burst per minute for each client",
        f"limit {SLOW} concurrent calls to slow per day",
    )  # fmt: skip
    aide = "agent aide { autonomy full; allow tally, draw, memory_recall; memory read own }"
    ceiling = (
        f"ceiling {{ limit {ALL} calls to spend, tally per day; limit {SPOT} calls to spot per day for each args.pot }}"
    )
    return f"zcpolicy 1\n{TOOLS}\n" + "#\n" * version + f"agent helper {{ {'; '.join(rules)} }} {aide} {ceiling}\n"


def version_at(line: int) -> int:
    """The version whose rules stand on a line."""
    return line - ABOVE


SETTINGS = """[policy]
layers = ["../team.zcpolicy"]
[state]
folder = "var"
ledger = "{ledger}"
[http]
port = {port}
sessions = 8
turns = 16
[rpc]
[agents.helper]
model = "scripted:answers.json"
surfaces = ["gateway", "rpc"]
[agents.aide]
model = "scripted:answers.json"
[tools]
factories = ["soak_tools:make"]
[approvals]
routes = ["ops"]
pause_after = "4s"
[log]
rotate = "4 MB"
keep = 10000
[drain]
seconds = 5
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(eq=False)
class Proc:
    """A process that is killed now and then. `gone`: stretches of time in which it was not there, or about to go."""

    name: str
    command: list[str]
    folder: Path
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    gone: list[list[float]] = field(default_factory=list[list[float]])
    starts: list[float] = field(default_factory=list[float])

    def spawn(self) -> None:
        with (self.folder / f"{self.name}.err").open("a") as err:
            self.process = subprocess.Popen(self.command, cwd=self.folder, env=self.environ, stderr=err, stdout=err)
        self.starts.append(time.time())

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.gone.append([time.time() - 0.05, float("inf")])
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(60)

    def back(self) -> None:
        self.gone[-1][1] = time.time() + 0.5

    def was_gone(self, begun: float, ended: float) -> bool:
        """Whether it was not there at some time in between."""
        return any(one[0] <= ended and begun <= one[1] for one in self.gone)

    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Daemon(Proc):
    """One `zcpolicy serve`. `tokens`: by name."""

    port: int
    tokens: dict[str, str]
    published: list[tuple[float, int]]
    """When it was known that it decides by this version, or a later one."""
    said: dict[str, Any]
    mute: asyncio.Lock

    @classmethod
    def laid(cls, folder: Path, name: str, ledger: str, names: list[str], environ: dict[str, str]) -> "Daemon":
        here = folder / name
        (here / "var").mkdir(parents=True, mode=0o700)
        made = cls(name, [*ZCPOLICY, "serve", "daemon.toml"], here, environ)
        made.port, made.published, made.said = free_port(), [], {}
        (here / "daemon.toml").write_text(SETTINGS.format(ledger=ledger, port=made.port))
        (here / "answers.json").write_text('{"steps": ["never said"], "repeat": true}')
        shutil.copy(HERE / "tools.py", here / "soak_tools.py")
        tokens = Tokens(str(here / "var/tokens.json"))
        made.tokens = {one: tokens.add(one, "operator" if one == "root" else "client") for one in names}
        return made

    @property
    def socket(self) -> str:
        return str(self.folder / "var/zcpolicy.sock")

    @property
    def log(self) -> Path:
        return self.folder / "var/log"

    async def start(self, written: "Writer | None" = None) -> None:
        """Returns as soon as it is ready."""
        self.spawn()
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if not self.is_up():
                raise RuntimeError(
                    f"{self.name} does not start: {(self.folder / f'{self.name}.err').read_text()[-2000:]}"
                )
            try:
                async with asyncio.timeout(5):
                    status, _ = await Http(self.port).once("GET", "/readyz")
                if status == 200:
                    break
            except (Broke, TimeoutError):
                pass
            await asyncio.sleep(0.1)
        else:
            raise RuntimeError(f"{self.name} is not ready in {START_SECONDS} s")
        if self.gone:
            self.back()

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """As the operator. Raises Broke, TimeoutError."""
        async with asyncio.timeout(30):
            return await Http(self.port, self.tokens["root"]).once(method, path, body)

    def measured(self) -> dict[str, float]:
        """RSS in MB, threads, open files. Raises OSError where it is gone."""
        assert self.process is not None
        proc = Path("/proc", str(self.process.pid))
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
        return {
            "rss": int(status["VmRSS"].split()[0]) / 1024, "threads": int(status["Threads"]), "files": len(os.listdir(proc / "fd")),
        }  # fmt: skip


def redis_at(folder: Path) -> tuple[Proc, str] | None:
    """A server that keeps what it is given; None: there is no such program."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    here, port = folder / "redis", free_port()
    here.mkdir()
    options = f"--port {port} --bind 127.0.0.1 --appendonly yes --appendfsync everysec --dir"
    server = Proc("redis", [program, *options.split(), str(here), "--save", ""], here, dict(os.environ))
    return server, f"redis://127.0.0.1:{port}/0"


@dataclass(eq=False)
class Writer:
    """Rewrites the policy. `written`: when a version was first, and last, not yet whole, in the file."""

    file: Path
    daemons: list[Daemon]
    version: int = 0
    written: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    broken: int = 0
    wrong: list[str] = field(default_factory=list[str])
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def step(self) -> None:
        """A new version by one of the ways in which people write files, which each daemon is then told of or notices."""
        async with self.busy:
            if self.version % 5 == 4:
                await self._break()
            self.version += 1
            text = policy(self.version)
            self.written.append((time.time(), self.version))
            if self.version % 2:
                await self._in_place(text)
            else:
                beside = self.file.with_suffix(".new")
                beside.write_text(text)
                beside.replace(self.file)
            await asyncio.gather(*(self._followed(one, told=self.version % 3 != 0) for one in self.daemons))

    async def _in_place(self, text: str) -> None:
        with self.file.open("w") as file:
            file.write(text[: len(text) // 2])
            file.flush()
            await asyncio.sleep(0.03)
            file.write(text[len(text) // 2 :])

    async def _break(self) -> None:
        """One with a mistake: nothing may come of it."""
        await self._in_place(policy(self.version).replace("allow risky", "allow risyk"))
        self.broken += 1
        for one in self.daemons:
            begun = time.time()
            settled = (
                bool(one.published) and one.published[-1][1] == self.version
            )  # else the one before may still be coming
            try:
                _, before = await one.ask("GET", "/status")
                status, said = await one.ask("POST", "/reload", {})
                _, after = await one.ask("GET", "/status")
            except (Broke, TimeoutError):
                self._excuse(one, begun, "does not answer POST /reload")
                continue
            if status != 200 or said.get("reloaded") is not False or after["policy"]["failure"] is None:
                if not one.was_gone(begun, time.time()):
                    self.wrong.append(f"{one.name}: a broken policy was answered {status} {str(said)[:200]}")
            elif (
                settled
                and after["policy"]["generation"] != before["policy"]["generation"]
                and not one.was_gone(begun, time.time())
            ):
                self.wrong.append(f"{one.name}: a broken policy made a generation")

    async def _followed(self, daemon: Daemon, *, told: bool) -> None:
        """Waits until a daemon decides by the newest version, or is gone."""
        begun, digest = time.time(), daemon.said.get("digest")
        try:
            while time.time() < begun + 15:
                if told:
                    status, said = await daemon.ask("POST", "/reload", {})
                    if status == 200 and said["reloaded"]:
                        daemon.published.append((time.time(), self.version))
                        daemon.said = {}
                        return
                    if status == 200 and said["failure"]["kind"] == "unreadable":
                        continue
                    self._excuse(daemon, begun, f"POST /reload was answered {status} {str(said)[:300]}")
                    return
                status, said = await daemon.ask("GET", "/status")
                policy_now = said["policy"]
                if digest is None:
                    told = True  # what it decided by before is not known
                    continue
                if policy_now["digest"] != digest:
                    daemon.published.append((time.time(), self.version))
                    daemon.said = {"digest": policy_now["digest"]}
                    return
                await asyncio.sleep(0.05)
            self._excuse(daemon, begun, f"did not notice version {self.version} in 15 s")
        except (Broke, TimeoutError) as broke:
            self._excuse(daemon, begun, f"the operator gets no answer: {broke!r}")
        finally:
            await self._look(daemon)

    async def _look(self, daemon: Daemon) -> None:
        try:
            _, said = await daemon.ask("GET", "/status")
            daemon.said = {"digest": said["policy"]["digest"]}
        except (Broke, TimeoutError):
            daemon.said = {}

    def _excuse(self, daemon: Daemon, begun: float, what: str) -> None:
        if not daemon.was_gone(begun, time.time()):
            self.wrong.append(f"{daemon.name}: {what}")


def verified(log: Path, head: str | None) -> tuple[int, str]:
    """`zcpolicy log verify`: its exit code, and what it says."""
    words = [*ZCPOLICY, "log", "verify", str(log), *(["--head", head] if head else [])]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def lines_of(file: Path) -> list[dict[str, Any]]:
    """JSON lines; what is no whole line at the end, since its writer was killed, is left out."""
    if not file.exists():
        return []
    found: list[dict[str, Any]] = []
    for raw in file.read_bytes().split(b"\n"):
        try:
            found.append(json.loads(raw))
        except ValueError:
            continue
    return found

"""Ten minutes in the life of daemons: 64 clients, a policy that is rewritten every second, and sudden ends of all processes.

Two `zcpolicy serve` share a Redis server, which is started here (without one: a single daemon on SQLite). Clients come in over HTTP and
by the Unix socket; their models do what they are told. What clients saw, what tools put on record by themselves, and the decision
logs are held against each other. Prints a table; exit 1 where a check fails.

    python bench/soak.py [--seconds 600] [--clients 64] [--kill 25] [--pause 1.0] [--ledger redis|sqlite] [--json FILE] [--keep FOLDER]
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM
from statistics import quantiles
from tempfile import mkdtemp
from typing import Any

from soaking import checks
from soaking.clients import Client, Seen, operator, over_http, over_rpc, stranger
from soaking.world import Daemon, Proc, Writer, lines_of, redis_at, verified

MAX_SLOPE = 3.0
"""MB that a daemon may grow in a minute, once it is warm: what a limit counts by the day is kept for the day."""


class Soak:
    """One run."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.given, self.folder = given, folder
        self.ran = folder / "ran.jsonl"
        self.seen, self.findings = Seen(), dict[str, list[str]]()
        self.redis: Proc | None = None
        self.samples: list[tuple[str, int, float, dict[str, float]]] = []
        self.downs: list[tuple[int, float]] = []
        self.kills, self.heads, self.verifies = Counter[str](), dict[str, str](), list[str]()
        self.reload_seconds: list[float] = []

    async def run(self) -> None:
        """Everything, in order."""
        given = self.given
        environ = {
            **os.environ,
            "SOAK_RAN": str(self.ran),
            "PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
        }
        ledger, names = "sqlite", ["one"]
        found = redis_at(self.folder) if given.ledger == "redis" else None
        if found is not None:
            self.redis, ledger = found
            names.append("two")
            self.redis.spawn()
            await asyncio.sleep(0.5)
        http = given.clients * 3 // 4 // len(names)
        people = ["root", *(f"c{number}" for number in range(http))]
        self.writer = Writer(self.folder / "team.zcpolicy", [])
        self.daemons = [Daemon.laid(self.folder, name, ledger, people, environ) for name in names]
        await self.writer.step()
        await asyncio.gather(*(one.start() for one in self.daemons))
        self.writer.daemons += self.daemons
        self.began, until = time.time(), time.time() + given.seconds
        self.until = until
        tasks = [asyncio.create_task(self._writing()), asyncio.create_task(self._measuring())]
        for place, daemon in enumerate(self.daemons):
            made = [Client(number, daemon, self.seen, "http", number, place * 1_000_000) for number in range(http)]
            tasks += [asyncio.create_task(over_http(one, until, given.pause)) for one in made]
            peers = range(800 + place * 50, 800 + place * 50 + given.clients // 4 // len(names))
            made = [Client(number, daemon, self.seen, "rpc", 900 + place) for number in peers]
            tasks += [asyncio.create_task(over_rpc(one, until, given.pause)) for one in made]
            tasks += [asyncio.create_task(one(daemon, self.seen, until)) for one in (operator, stranger)]
        await self._killing()
        await asyncio.gather(*tasks)
        for daemon in self.daemons:
            daemon.kill(SIGTERM)
        if self.redis is not None:
            self.redis.kill()
        self._check()

    async def _writing(self) -> None:
        while time.time() < self.until:
            begun = time.time()
            await self.writer.step()
            self.reload_seconds.append(time.time() - begun)
            await asyncio.sleep(max(0.0, begun + 1 - time.time()))

    async def _measuring(self) -> None:
        while time.time() < self.until:
            for one in self.daemons:
                try:
                    assert one.process is not None
                    self.samples.append((one.name, one.process.pid, time.time() - self.began, one.measured()))
                except (OSError, KeyError):
                    continue
            await asyncio.sleep(1)

    async def _killing(self) -> None:
        """The last of the daemons and Redis by turns; the first one only early and late, so that it can be seen growing old."""
        late = False
        victims: list[Proc] = [one for one in (*self.daemons[1:], self.redis) if one is not None] or [self.daemons[0]]
        early = self.began + 0.1 * self.given.seconds
        await self._down(self.daemons[0], early)
        while (at := time.time() + self.given.kill * random.uniform(0.8, 1.2)) < self.until - 4:
            if not late and time.time() > self.began + 0.88 * self.given.seconds:
                late = True
                await self._down(self.daemons[0], time.time())
            for victim in random.sample(victims, 1) if random.random() < 0.8 else victims:
                await self._down(victim, at)

    async def _down(self, victim: Proc, at: float) -> None:
        await asyncio.sleep(max(0.0, at - time.time()))
        if victim is self.redis and random.random() < 0.3:
            await self._hang(victim)
            return
        pid = victim.process.pid if victim.process is not None else 0
        victim.kill()
        self.downs.append((pid, time.time()))
        self.kills[victim.name] += 1
        if isinstance(victim, Daemon):
            victim.said = {}
            await asyncio.sleep(random.random())
            await victim.start()
            await self._verify(victim)
            return
        for daemon in self.daemons:  # without it what is limited is refused, and clients may hear that
            daemon.said = {}
        await asyncio.sleep(random.uniform(0.2, 3))
        victim.spawn()
        victim.back()

    async def _hang(self, victim: Proc) -> None:
        """It is there, and answers nothing: for some calls, longer than they wait."""
        assert victim.process is not None
        self.kills[f"{victim.name} hung"] += 1
        victim.process.send_signal(SIGSTOP)
        await asyncio.sleep(random.uniform(1, 7))
        victim.process.send_signal(SIGCONT)

    async def _verify(self, daemon: Daemon) -> None:
        code, said = await asyncio.to_thread(verified, daemon.log, self.heads.get(daemon.name))
        self.verifies.append(f"{daemon.name}: {code}: {said.splitlines()[0] if said else ''}")
        if code != 0:
            self.findings.setdefault("log", []).append(f"{daemon.name} after a kill: {said[:600]}")
        for line in said.splitlines():
            if line.startswith("head: "):
                self.heads[daemon.name] = line.split()[-1]

    # --- afterwards ----------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        found = self.findings
        ran = lines_of(self.ran)
        self.ran_count = Counter(one["tool"] for one in ran)
        logs = [
            checks.Log(
                one.name, [line for file in sorted(one.log.glob("decisions-*.jsonl")) for line in lines_of(file)]
            )
            for one in self.daemons
        ]
        self.lines = sum(len(log.lines) for log in logs)
        self.generations = {log.name: len(log.versions) for log in logs}
        found["generations"] = [
            *(one for log in logs for one in (*log.stale(), *log.mixed())), *checks.under_another(ran, logs),
            *(one for daemon, log in zip(self.daemons, logs, strict=True) for one in log.behind(daemon.published, self.seen.begun)), *self.writer.wrong,
        ]  # fmt: skip
        found["budgets"] = checks.overspent(ran, self.downs)
        found["clients apart"] = [
            *self.seen.wrong["crossed"],
            *checks.mingled(logs),
            *checks.unapproved(ran, self.seen.approved),
        ]
        found.setdefault("log", [])
        found["log"] += checks.unlogged(ran, logs)
        for daemon in self.daemons:
            code, said = verified(daemon.log, self.heads.get(daemon.name))
            if code != 0:
                found["log"].append(f"{daemon.name} at the end: {said[:600]}")
            found["log"] += tampered(daemon)
        found["memory"] = self._growth()
        found["doors"] = self.seen.wrong["open"]
        found["answers"] = self.seen.wrong["answers"]

    def _growth(self) -> list[str]:
        """Of the longest life of a process, without its first third."""
        lives: dict[tuple[str, int], list[tuple[float, dict[str, float]]]] = {}
        for name, pid, at, sizes in self.samples:
            lives.setdefault((name, pid), []).append((at, sizes))
        (name, _), life = max(lives.items(), key=lambda one: len(one[1]))
        warm = life[len(life) // 3 :]
        self.growth: dict[str, Any] = {"daemon": name, "seconds": round(warm[-1][0] - warm[0][0])}
        for what in ("rss", "threads", "files"):
            values = [(at, sizes[what]) for at, sizes in warm]
            self.growth[what] = {
                "first": round(life[0][1][what], 1), "warm": round(values[0][1], 1), "last": round(values[-1][1], 1),
                "most": round(max(one for _, one in values), 1), "per minute": round(checks.slope(values), 2),
            }  # fmt: skip
        if self.growth["seconds"] < 60:
            return []  # too short to tell
        rates = {what: self.growth[what]["per minute"] for what in ("rss", "threads", "files")}
        limits = {"rss": MAX_SLOPE, "threads": 1.0, "files": 5.0}
        return [f"{what} grows by {rates[what]} a minute" for what in rates if rates[what] > limits[what]]

    def report(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        seen, seconds = self.seen, time.time() - self.began
        answered = {name: len(times) for name, times in seen.times.items()}
        return {
            "seconds": self.given.seconds, "clients": self.given.clients, "daemons": len(self.daemons),
            "ledger": "redis" if self.redis else "sqlite",
            "turns": answered, "turns a second": round(sum(answered.values()) / self.given.seconds, 1),
            "latency ms": {name: _latency(times) for name, times in seen.times.items()},
            "statuses": dict(seen.statuses), "reasons": dict(seen.reasons), "probes": dict(seen.probes),
            "requests cut by a kill": seen.cut, "versions": self.writer.version, "broken versions": self.writer.broken,
            "generations decided under": self.generations, "reload ms, all daemons follow": _latency(self.reload_seconds),
            "kills": dict(self.kills), "ran": dict(self.ran_count), "log lines": self.lines, "verified": self.verifies,
            "growth": self.growth, "checked in": round(seconds - self.given.seconds, 1),
            "findings": {what: len(all_of) for what, all_of in self.findings.items()},
            "first findings": {what: all_of[:20] for what, all_of in self.findings.items() if all_of},
        }  # fmt: skip


def tampered(daemon: Daemon) -> list[str]:
    """Copies of a log with one line altered, or gone, or the end cut off: each has to be noticed."""
    found: list[str] = []
    files = sorted(daemon.log.glob("decisions-*.jsonl"))
    for how in ("altered", "gone", "cut"):
        copy = daemon.folder / f"log {how}"
        shutil.copytree(daemon.log, copy)
        file = copy / random.choice(files).name if how != "cut" else copy / files[-1].name
        lines = file.read_bytes().splitlines(keepends=True)
        number = random.randrange(len(lines))
        if how == "altered":
            lines[number] = lines[number].replace(b'"at":"20', b'"at":"21', 1)
        else:
            lines = lines[:number] + (lines[number + 1 :] if how == "gone" else [])
        file.write_bytes(b"".join(lines))
        if verified(copy, None)[0] == 0:
            found.append(f"{daemon.name}: line {number + 1} of {file.name} was {how}, and nobody noticed")
        shutil.rmtree(copy)
    return found


def _latency(times: list[float]) -> dict[str, float]:
    if len(times) < 2:
        return {}
    cut = quantiles(times, n=100)
    return {"p50": round(cut[49] * 1000, 1), "p99": round(cut[98] * 1000, 1), "max": round(max(times) * 1000, 1)}


def _short(value: Any) -> str:
    return json.dumps(value).replace('"', "").strip("{}[]")


def main() -> int:
    """The command."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--seconds", type=float, default=600)
    asked.add_argument("--clients", type=int, default=64)
    asked.add_argument("--kill", type=float, default=25, help="seconds between two sudden ends")
    asked.add_argument("--pause", type=float, default=1.0, help="seconds that a client thinks, at most")
    asked.add_argument("--ledger", choices=("redis", "sqlite"), default="redis")
    asked.add_argument("--json", type=Path)
    asked.add_argument("--keep", type=Path, help="a folder that is left there")
    given = asked.parse_args()
    folder = Path(given.keep or mkdtemp(prefix="soak-")).absolute()
    folder.mkdir(exist_ok=True)
    soak = Soak(given, folder)
    try:
        asyncio.run(soak.run())
    finally:
        for one in (*getattr(soak, "daemons", ()), soak.redis):
            if one is not None and one.is_up():
                one.kill()
    told = soak.report()
    if given.json:
        given.json.write_text(json.dumps(told, indent=1))
    print("| what | |\n|---|---|")
    print("\n".join(f"| {what} | {_short(value)} |" for what, value in told.items() if what != "first findings"))
    failed = {what: all_of for what, all_of in soak.findings.items() if all_of}
    for what, all_of in failed.items():
        print(f"\n{what}: {len(all_of)} findings")
        print("\n".join(f"- {one}" for one in all_of[:10]))
    print("\nfailed" if failed else "\nall checks hold")
    if given.keep is None and not failed:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

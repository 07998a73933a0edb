"""Clients of a soak: what they ask for, and what they look for in every answer.

In: daemons. Out: `Seen`: answers by kind, times, and what must not be. Every text of a client carries its mark (`mk7x`), and every call a
number of its own (`n7-31`): a foreign one in an answer has crossed over.
"""

import asyncio
import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from .talk import Broke, Http, Rpc
from .world import Daemon

ANSWER_SECONDS: Final = 90.0
"""Without an answer for so long, a request hangs."""
KEPT_TURNS: Final = 5
"""Turns of one session; then another one begins."""
FINE: Final = {200, 403, 404, 429, 503}
"""Answers, and clear refusals."""
MARKS: Final = re.compile(r"\bmk(\d+)x|\bn(\d+)-\d+")
NONCE: Final = re.compile(r"n\d+-\d+")
WEIGHTS: Final = {
    "spend": 3, "tally": 2, "spot": 5, "burst": 3, "pay": 3, "slow": 2, "even": 4, "odd": 4, "version": 4, "risky": 0.4, "draw": 2,
    "memory_store": 0.5, "memory_recall": 2, "delegate": 1,
}  # fmt: skip


@dataclass(eq=False)
class Seen:
    """All that clients saw. `begun`: when the turn was sent that asks for a call, by its number."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    times: dict[str, list[float]] = field(default_factory=lambda: {"http": [], "rpc": []})
    wrong: dict[str, list[str]] = field(default_factory=lambda: {"crossed": [], "answers": [], "open": []})
    approved: set[str] = field(default_factory=set[str])
    refused: set[str] = field(default_factory=set[str])
    probes: Counter[str] = field(default_factory=Counter[str])
    cut: int = 0
    begun: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(eq=False)
class Client:
    """One client, on one daemon. `number` is in its calls, `mark` in what is its own; of all that come in by a socket it is one: they are one user."""

    number: int
    daemon: Daemon
    seen: Seen
    surface: str
    mark: int
    count: int = 0

    def nonce(self) -> str:
        self.count += 1
        name = f"n{self.number}-{self.count}"
        self.seen.begun[name] = time.time()
        return name

    def call(self, tool: str) -> list[Any]:
        nonce = self.nonce()
        match tool:
            case "pay":
                return [tool, {"nonce": nonce, "amount": random.choice((1, 3, 7))}]
            case "spot":
                return [tool, {"nonce": nonce, "pot": f"pot {int(time.time() / 2)}"}]
            case "draw":
                return [tool, {"nonce": nonce, "text": f"a picture of mk{self.mark}x"}]
            case "memory_store":
                return [tool, {"text": f"mk{self.mark}x likes number {self.count}"}]
            case "memory_recall":
                return [tool, {"query": "likes number"}]
            case "delegate":
                inner = [[["tally", {"nonce": nonce}], ["memory_recall", {"query": "likes"}]]]
                return [tool, {"agent": "aide", "task": json.dumps({"calls": inner, "echo": True})}]
            case _:
                return [tool, {"nonce": nonce}]

    def text(self) -> str:
        """What the model is to do."""
        wanted = random.choices([*WEIGHTS], [*WEIGHTS.values()], k=random.randint(1, 4))
        batches: list[list[Any]] = [[]]
        for tool in wanted:
            if random.random() < 0.4 and batches[-1]:
                batches.append([])
            batches[-1].append(self.call(tool))
        return json.dumps({"calls": batches, "echo": random.random() < 0.2, "by": f"mk{self.mark}x"})

    def look(self, said: Any) -> None:
        """Searches an answer for what is not this client's."""
        text = json.dumps(said)
        for mark, number in MARKS.findall(text):
            if (mark and int(mark) != self.mark) or (number and int(number) != self.number):
                self.seen.wrong["crossed"].append(
                    f"client {self.number} of {self.daemon.name} was told of mk{mark} n{number}: {text[:300]}"
                )

    def ended(self, begun: float, said: Any) -> None:
        self.seen.times[self.surface].append(time.time() - begun)
        self.seen.reasons[f"{said.get('status')} {said.get('reason')}"] += 1
        if said.get("status") == "failed":
            self.seen.wrong["answers"].append(f"client {self.number} of {self.daemon.name}: {said}")

    def broke(self, begun: float, why: str) -> bool:
        """Whether a request without an answer is excused: its daemon was killed meanwhile."""
        if self.daemon.was_gone(begun, time.time()):
            self.seen.cut += 1
            return True
        self.seen.wrong["answers"].append(
            f"client {self.number} of {self.daemon.name} after {time.time() - begun:.1f} s: {why}"
        )
        return False


async def over_http(client: Client, until: float, pause: float) -> None:
    """One client with a token."""
    http = Http(client.daemon.port, client.daemon.tokens[f"c{client.number}"])
    session, turns, resume = "", 0, False
    while time.time() < until:
        begun = time.time()
        body: dict[str, Any] = {"agent": "helper"}
        body |= {"resume": True} if resume else {"text": client.text()}
        if session:
            body["session"] = session
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                status, said = await http.ask("POST", "/turn", body)
        except Broke as broke:
            if client.broke(begun, str(broke)):
                session, resume = "", False
            await asyncio.sleep(0.3)
            continue
        except TimeoutError:
            client.broke(begun, "no answer")
            session, resume = "", False
            continue
        client.seen.statuses[f"http {status}"] += 1
        if (
            status not in FINE
            or (status == 404 and not client.daemon.gone)
            or (status == 503 and not client.daemon.was_gone(begun - 10, time.time() + 10))
        ):
            client.seen.wrong["answers"].append(f"client {client.number} of {client.daemon.name}: {status} {said}")
        client.look(said)
        if status == 200:
            client.ended(begun, said)
            turns += 1
            session = said["session"] if turns % KEPT_TURNS else ""
            resume = said["status"] == "paused" and bool(session)
            if resume:
                await asyncio.sleep(1)
        else:
            session, resume = "", False
        await asyncio.sleep(random.random() * pause)
    http.close()


async def over_rpc(client: Client, until: float, pause: float) -> None:
    """One connection over the socket."""
    rpc = Rpc(client.daemon.socket)
    turns = 0
    while time.time() < until:
        begun = time.time()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                said = await rpc.ask("turn", agent="helper", text=client.text())
        except (Broke, TimeoutError) as broke:
            client.broke(begun, repr(broke))
            rpc.close()
            await asyncio.sleep(0.3)
            continue
        error = said.get("error")
        client.seen.statuses[f"rpc {error['code'] if error else 'result'}"] += 1
        client.look(said)
        if error is None:
            client.ended(begun, said["result"])
        elif not (error["code"] in (-32000, -32002) and client.daemon.was_gone(begun - 10, time.time() + 10)):
            client.seen.wrong["answers"].append(f"client {client.number} of {client.daemon.name}: {error}")
        turns += 1
        if turns % KEPT_TURNS == 0:
            rpc.close()
        await asyncio.sleep(random.random() * pause)
    rpc.close()


async def operator(daemon: Daemon, seen: Seen, until: float) -> None:
    """Answers what waits: half of it yes, some of it no, the rest never."""
    known: set[str] = set()
    while time.time() < until:
        try:
            _, said = await daemon.ask("GET", "/approvals")
            for one in said.get("questions", ()):
                nonce = NONCE.findall(json.dumps(one["arguments"]))[0]
                if one["id"] in known:
                    continue
                known.add(one["id"])
                kind = int(nonce.rpartition("-")[2]) % 4
                if kind == 3:
                    continue
                (seen.refused if kind == 2 else seen.approved).add(nonce)
                status, told = await daemon.ask(
                    "POST", f"/approvals/{one['id']}", {"answer": "no" if kind == 2 else "yes"}
                )
                seen.probes[f"approval {status}"] += 1
                if status >= 500 and status != 503:
                    seen.wrong["answers"].append(f"{daemon.name}: an answer of an operator: {status} {told}")
        except (Broke, TimeoutError, KeyError):
            pass
        await asyncio.sleep(0.5)


HEALTH: Final = ("/healthz", "/readyz")
ROUTES: Final = (
    ("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/turn"), ("GET", "/tools?agent=helper"), ("GET", "/status"), ("POST", "/reload"),
    ("GET", "/approvals"), ("POST", "/approvals/x"), ("GET", "/tokens"), ("POST", "/tokens"), ("DELETE", "/tokens/c0"), ("GET", "/handles"),
    ("GET", "/"), ("GET", "/healthz/"), ("POST", "/healthz"), ("GET", "/..%2fstatus"), ("GET", "//status"), ("HEAD", "/status"),
)  # fmt: skip


async def stranger(daemon: Daemon, seen: Seen, until: float) -> None:
    """Tries every door without a token, with one that is none, and with a client's those of operators."""
    while time.time() < until:
        method, path = random.choice(ROUTES)
        token = random.choice(("", "", "none of yours", daemon.tokens["c0"] + "x", daemon.tokens["c0"]))
        if token == daemon.tokens["c0"] and path.startswith(("/turn", "/tools?")):
            continue
        begun = time.time()
        try:
            async with asyncio.timeout(30):
                status, said = await Http(daemon.port, token).once(
                    method, path, {"agent": "helper", "text": "x"} if method == "POST" else None
                )
        except Broke as broke:
            if method != "HEAD" and not daemon.was_gone(begun, time.time()):
                seen.wrong["answers"].append(f"{daemon.name}: {method} {path}: {broke}")
            status, said = 0, None
        except TimeoutError:
            if not daemon.was_gone(begun, time.time()):
                seen.wrong["answers"].append(f"{daemon.name}: {method} {path}: no answer")
            status, said = 0, None
        is_health = path in HEALTH and method == "GET"
        healthy = said in ({"alive": True}, {"ready": True}, {"ready": False})
        seen.probes[f"{'health' if is_health else 'other'} {status}"] += 1
        if (status >= 500 and not (is_health and status == 503)) or (status == 200 and not (is_health and healthy)):
            seen.wrong["open"].append(f"{daemon.name}: {method} {path} with {token[:6]!r}: {status} {str(said)[:200]}")
        if status and not is_health and status not in (401, 403, 404, 405, 400, 421):
            seen.wrong["open"].append(f"{daemon.name}: {method} {path} with {token[:6]!r}: {status}")
        await asyncio.sleep(0.1)

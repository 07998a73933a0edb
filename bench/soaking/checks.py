"""What must hold of a soak, seen afterwards from three sides: what the tools say that ran, the decision logs, what clients saw.

In: lines of each. Out: findings by check; none is right.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from .world import ALL, BURST, PAY, SLOW, SPEND, SPOT, TALLY, version_at

Lines = Sequence[Mapping[str, Any]]

PASSING_SECONDS: Final = 0.25
"""Between a policy's publication and its line in the log, and between a tool's last look and its first line: threads take turns."""
SKEW_SECONDS: Final = 10.0
"""Between the time at which a call was charged and the one at which its tool ran."""


def client_of(nonce: str) -> str:
    return nonce.partition("-")[0]


def overspent(ran: Lines, downs: Sequence[tuple[int, float]]) -> list[str]:
    """Limits that the tools' own record breaks. `downs`: processes that were killed, and when."""
    by = defaultdict[str, list[Mapping[str, Any]]](list)
    for line in ran:
        by[line["tool"]].append(line)
    found = [
        f"spend of {client}: {number} ran, {SPEND} may"
        for client, number in Counter(client_of(one["nonce"]) for one in by["spend"]).items() if number > SPEND
    ]  # fmt: skip
    paid = Counter[str]()
    for one in by["pay"]:
        paid[client_of(one["nonce"])] += one["amount"]
    found += [f"pay of {client}: {amount} were paid, {PAY} may be" for client, amount in paid.items() if amount > PAY]
    found += [
        f"spot of {pot}: {number} ran, {SPOT} may" for pot, number in Counter(one["pot"] for one in by["spot"]).items() if number > SPOT
    ]  # fmt: skip
    if len(by["tally"]) > TALLY:  # what a child spends, its delegator spends
        found.append(f"tally: {len(by['tally'])} ran, {TALLY} may")
    if len(by["spend"]) + len(by["tally"]) > ALL:
        found.append(f"spend and tally: {len(by['spend']) + len(by['tally'])} ran, {ALL} may")
    return found + _bursts(by["burst"]) + _at_a_time(by["slow"], by["slow over"], dict(downs))


def _bursts(ran: Lines) -> list[str]:
    """More of one client within a minute than may be, also if each was charged some seconds before it ran."""
    times = defaultdict[str, list[float]](list)
    for one in ran:
        times[client_of(one["nonce"])].append(one["at"])
    found: list[str] = []
    for client, all_of in times.items():
        all_of.sort()
        for first, last in zip(all_of, all_of[BURST:], strict=False):
            if last - first < 60 - SKEW_SECONDS:
                found.append(f"burst of {client}: {BURST + 1} ran within {last - first:.1f} s")
    return found


def _at_a_time(began: Lines, over: Lines, downs: Mapping[int, float]) -> list[str]:
    ended = {one["nonce"]: one["at"] for one in over}
    moments: list[tuple[float, int]] = []
    for one in began:
        end = ended.get(one["nonce"], downs.get(one["by"]))
        if end is not None:
            moments += [(one["at"], 1), (end, -1)]
    most = running = 0
    for _, change in sorted(moments, key=lambda one: (one[0], one[1])):
        running += change
        most = max(most, running)
    return [f"slow: {most} ran at a time, {SLOW} may"] if most > SLOW else []


class Log:
    """The lines of one daemon's log, in their order, and what follows from them."""

    def __init__(self, name: str, lines: Lines) -> None:
        self.name = name
        self.lines = lines
        self.versions: dict[int, set[int]] = defaultdict(set)
        self.reloads: list[tuple[float, int]] = []
        self.calls: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
        self.owners: dict[str, set[str]] = defaultdict(set)
        for line in lines:
            data = line.get("data", {})
            if line["kind"] == "host" and data.get("did") == "reload" and data.get("went"):
                self.reloads.append((moment(line["at"]), int(data["generation"])))
            if line["kind"] == "call":
                self._take(line, data)

    def _take(self, line: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        decision = data["decision"]
        for rule in decision["rules"]:
            self.versions[int(decision["generation"])].add(version_at(int(rule.rpartition(":")[2])))
        nonce = decision.get("arguments", {}).get("nonce")
        if nonce:
            self.calls[nonce][data["phase"]] = line
            self.owners[line["identity"]["client"]].add(client_of(nonce))

    def stale(self) -> list[str]:
        """Calls that were decided under a generation which was over when the model asked for them."""
        newest, found, asked = 0, list[str](), dict[str, int]()
        for line in self.lines:
            data, session = line.get("data", {}), line["identity"]["session"] if "identity" in line else ""
            if line["kind"] == "host" and data.get("did") == "reload" and data.get("went"):
                newest = max(newest, int(data["generation"]))
            elif line["kind"] == "model":
                asked[session] = newest
            elif line["kind"] == "call" and int(data["decision"]["generation"]) < asked.get(session, 0):
                found.append(
                    f"{self.name} line {line['seq']}: {data['phase']} under {data['decision']['generation']}, and {asked[session]} was in force"
                )
        return found

    def behind(self, published: Sequence[tuple[float, int]], begun: Mapping[str, float]) -> list[str]:
        """The same from outside: decided by a version that was known to be over when a client began the turn."""
        found: list[str] = []
        for nonce, phases in self.calls.items():
            versions = {
                version for line in phases.values() for version in self.versions.get(int(line["data"]["decision"]["generation"]), ())
            }  # fmt: skip
            least = max((number for at, number in published if at < begun[nonce]), default=0)
            if versions and min(versions) < least:
                found.append(
                    f"{self.name}: {nonce} was decided by version {min(versions)}, and {least} was in force before its turn began"
                )
        return found

    def mixed(self) -> list[str]:
        """Generations that are two versions of the policy."""
        return [
            f"{self.name}: generation {one} is versions {sorted(of)}"
            for one, of in self.versions.items()
            if len(of) > 1
        ]


def under_another(ran: Lines, logs: Sequence[Log]) -> list[str]:
    """Tools that ran under a version which does not allow them, or after a newer one was in force."""
    found: list[str] = []
    for one in ran:
        entry = _of(one["nonce"], logs, "started")
        if entry is None:
            continue
        log, line = entry
        generation = int(line["data"]["decision"]["generation"])
        versions = log.versions.get(generation, set())
        if one["tool"] in ("even", "odd") and any(("odd" if of % 2 else "even") != one["tool"] for of in versions):
            found.append(f"{one['nonce']}: {one['tool']} ran under version {sorted(versions)}")
        newer = [at for at, number in log.reloads if number > generation and at < one["at"] - PASSING_SECONDS]
        if newer and not one["tool"].endswith("over"):
            found.append(
                f"{one['nonce']}: {one['tool']} began {one['at'] - min(newer):.3f} s after a newer generation than {generation}"
            )
    return found


def _of(nonce: str, logs: Iterable[Log], phase: str) -> tuple[Log, Mapping[str, Any]] | None:
    return next(((log, log.calls[nonce][phase]) for log in logs if phase in log.calls.get(nonce, {})), None)


def unlogged(ran: Lines, logs: Sequence[Log]) -> list[str]:
    """Calls that a tool ran and no log tells of, as admitted and as started; and calls that a log says went well and no tool ran."""
    found = [f"{one['nonce']}: {one['tool']} ran, and no line says `{phase}`" for one in ran for phase in ("admitted", "started")
             if _of(one["nonce"], logs, phase) is None]  # fmt: skip
    known = {one["nonce"] for one in ran}
    for log in logs:
        for nonce, phases in log.calls.items():
            tool = next(iter(phases.values()))["data"]["decision"]["tool"]
            if (
                "finished" in phases
                and phases["finished"]["data"].get("ok")
                and nonce not in known
                and tool != "delegate"
            ):
                found.append(f"{nonce}: {log.name} says that {tool} ran, and it did not")
    return found


def unapproved(ran: Lines, approved: set[str]) -> list[str]:
    """Calls that ran although nobody has said yes to them, or more than once by one yes."""
    risky = Counter(one["nonce"] for one in ran if one["tool"] == "risky")
    return [f"{nonce}: nobody said yes" for nonce in risky if nonce not in approved] + [
        f"{nonce}: ran {number} times by one yes" for nonce, number in risky.items() if number > 1
    ]


def mingled(logs: Sequence[Log]) -> list[str]:
    """Clients that are two by the log, or two that are one. All that come in by the sockets are one user."""
    owners, found = defaultdict[str, set[str]](set), list[str]()
    for log in logs:
        for client, numbers in log.owners.items():
            owners[client] |= numbers
            if len(numbers) > 1 and any(int(one[1:]) < 800 for one in numbers):
                found.append(f"{log.name}: client {client} made calls of {sorted(numbers)}")
    by_number = Counter(number for numbers in owners.values() for number in numbers)
    return found + [f"{number} is {times} clients" for number, times in by_number.items() if times > 1]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """Per minute, by least squares. 0.0 of fewer than five."""
    if len(samples) < 5:
        return 0.0
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0

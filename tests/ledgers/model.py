"""What a ledger means, written down as plainly as can be: a list, and every question answered from the whole of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from zcpolicy.ledgers.contract import Charge, Exhausted, Pot, Reserved, Spender, Spent


class Model:
    def __init__(self) -> None:
        self.time = 0.0
        self.all: list[dict[str, Any]] = []

    def reserve(
        self, key: str, spender: Spender, charges: tuple[Charge, ...], pots: tuple[Pot, ...], at: float, lease: float
    ) -> Reserved | Exhausted:
        self.time = max(self.time, at)
        for one in self.all:
            if one["key"] == key and (
                one["state"] in ("dispatched", "settled") or (one["state"] == "reserved" and self.time < one["until"])
            ):
                return Reserved(key, one["state"], one["at"], fresh=False)
        spent = self.look(pots, at)
        if any(not one.room for one in spent):
            return Exhausted(spent)
        self.all.append(
            {"key": key, "by": spender, "charges": list(charges), "at": self.time, "until": self.time + lease,
             "state": "reserved"}
        )  # fmt: skip
        return Reserved(key, "reserved", self.time, fresh=True)

    def last(self, key: str) -> dict[str, Any] | None:
        return next((one for one in reversed(self.all) if one["key"] == key), None)

    def dispatch(self, key: str, at: float) -> bool:
        self.time = max(self.time, at)
        one = self.last(key)
        if one is None or one["state"] != "reserved" or self.time >= one["until"]:
            return False
        one["state"] = "dispatched"
        return True

    def settle(self, key: str, actual: tuple[Charge, ...], at: float) -> None:
        self.time = max(self.time, at)
        one = self.last(key)
        if one is not None and one["state"] in ("reserved", "dispatched"):
            for charge in actual:
                one["charges"] = [old for old in one["charges"] if old._replace(amount=0) != charge._replace(amount=0)]
            one["charges"] += actual
            one["state"] = "settled"

    def release(self, key: str) -> None:
        one = self.last(key)
        if one is not None and one["state"] == "reserved":
            one["state"] = "released"

    def renew(self, key: str, at: float, lease: float) -> None:
        self.time = max(self.time, at)
        one = self.last(key)
        if one is not None and (
            one["state"] == "dispatched" or (one["state"] == "reserved" and self.time < one["until"])
        ):
            one["until"] = max(one["until"], self.time + lease)

    def look(self, pots: tuple[Pot, ...], at: float) -> tuple[Spent, ...]:
        self.time = max(self.time, at)
        return tuple(self.spent(pot) for pot in pots)

    def spent(self, pot: Pot) -> Spent:
        parts = sorted((one["at"], self.amount(one, pot)) for one in self.all)
        total = sum(amount for _, amount in parts)
        return Spent(total, room=fits(pot, total), retry_after=self.wait(pot, parts, total))

    def wait(self, pot: Pot, parts: list[tuple[float, Any]], total: Any) -> float | None:
        if fits(pot, total):
            return 0.0
        if not fits(pot, 0):
            return None
        if pot.window["kind"] == "calendar":
            return midnight(self.time) + 86_400 - self.time
        if pot.window["kind"] == "rolling":
            seconds = float(pot.window.get("seconds", ""))
            waits = sorted(at + seconds for at, amount in parts if amount)
            return min(
                until - self.time for until in waits if fits(pot, sum(n for at, n in parts if at + seconds > until))
            )
        return None

    def amount(self, one: dict[str, Any], pot: Pot) -> Any:
        """What one reservation takes from a pot now."""
        alive = self.time < one["until"]
        if one["state"] == "released" or (one["state"] == "reserved" and not alive):
            return 0
        if pot.unit == "concurrent calls" and (one["state"] == "settled" or not alive):
            return 0
        by, who = one["by"], pot.who
        within = {
            "turn": (who.client, who.session, who.turn) in [(w.client, w.session, w.turn) for w in by.line],
            "session": (who.client, who.session) in [(w.client, w.session) for w in by.line],
            "rolling": one["at"] > self.time - float(pot.window.get("seconds", "0")),
            "calendar": one["at"] >= midnight(self.time),
        }[pot.window["kind"]]
        owned = {
            "ceiling": True,
            "agent:coder": "coder" in by.chains,
            "agent:base": "base" in by.chains,
            "skill:deploy": "deploy" in by.skills,
            "narrowing": (who.client, who.session) in [(w.client, w.session) for w in by.line],
        }[pot.owner]
        each: dict[tuple[str, ...], bool] = {
            (): True,
            ("client",): who.client in [w.client for w in by.line],
            ("session",): (who.client, who.session) in [(w.client, w.session) for w in by.line],
            ("agent",): who.agent in [w.agent for w in by.line],
            ("args", "to"): pot.value in by.values.get(("to",), ()),
        }
        if not (within and owned and each[pot.each] and (pot.tools is None or by.tool in pot.tools)):
            return 0
        kind = (pot.unit, pot.currency, pot.argument)
        return sum(one.amount for one in one["charges"] if (one.unit, one.currency, one.argument) == kind)


def fits(pot: Pot, spent: Any) -> bool:
    return spent + pot.need < pot.limit if pot.open_end else spent + pot.need <= pot.limit


def midnight(time: float) -> float:
    day = datetime.fromtimestamp(time, UTC)
    return (
        day - timedelta(hours=day.hour, minutes=day.minute, seconds=day.second, microseconds=day.microsecond)
    ).timestamp()

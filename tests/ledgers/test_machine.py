"""Three ledgers, each opened twice, beside the plain model: whatever is done in whatever order, they say the same."""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.servers.redis_server import RedisServer
from zcpolicy.ledgers.contract import Charge, Pot, Who, Yes
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger

from .model import Model
from .said import SESSION, TURN, calendar, pot, rolling, spender, usd

WHOS = [Who("c1", "s1", "t1", "coder"), Who("c1", "s1", "t2", "coder"), Who("c2", "s2", "t1", "helper")]
SPENDERS = [
    spender(WHOS[0], chains=("base",), to="sx"),
    spender(WHOS[1], tool=("github", "x"), to="sy"),
    spender(WHOS[2], WHOS[0], skills=("deploy",), to="sx"),
    spender(WHOS[2], tool=None),
]
AMOUNTS = st.sampled_from([0, 1, 2, 5])
CHARGES = st.sampled_from(
    [
        (Charge("calls", 1), Charge("concurrent calls", 1)),
        (Charge("calls", 1), usd(2), Charge("sum", 3, "", ("amount",))),
        (usd(5), Charge("time", 4)),
    ]
)
ACTUAL = st.sampled_from([(), (usd(1),), (usd(7), usd(1)), (Charge("time", 6), Charge("money", 1, "eur"))])
KEYS = st.sampled_from([f"k{n}" for n in range(5)])
LEASES = st.sampled_from([1.0, 4.0, 60.0])
HANDLES = st.integers(0, 1)
UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@st.composite
def asked(draw: st.DrawFn) -> Pot:
    unit, currency, argument = draw(
        st.sampled_from([
            ("calls", "", ()), ("concurrent calls", "", ()), ("money", "usd", ()), ("time", "", ()), ("sum", "", ("amount",)),
        ])
    )  # fmt: skip
    each = draw(st.sampled_from([(), (), ("client",), ("session",), ("agent",), ("args", "to")]))
    return pot(
        draw(st.sampled_from([0, 1, 3, 8])),
        unit,
        currency=currency,
        argument=argument,
        who=draw(st.sampled_from(WHOS)),
        tools=draw(st.sampled_from([None, frozenset(["shell"]), frozenset([("github", "x"), "shell"])])),
        owner=draw(st.sampled_from(["ceiling", "agent:coder", "agent:base", "skill:deploy", "narrowing"])),
        window=draw(st.sampled_from([TURN, SESSION, rolling(3), rolling(10), calendar("day")])),
        each=each,
        value="sx" if each == ("args", "to") else None,
        need=draw(AMOUNTS),
        open_end=unit == "time",
    )


BROAD = tuple(
    pot(3, unit, argument=argument, window=window, owner=owner)
    for unit, argument in (("calls", ()), ("concurrent calls", ()), ("money", ()), ("time", ()), ("sum", ("amount",)))
    for window, owner in ((SESSION, "ceiling"), (rolling(10), "agent:coder"))
)
POTS = st.lists(asked(), max_size=3).map(tuple)
_names = count()


class Ledgers(RuleBasedStateMachine):
    server: ClassVar[RedisServer]

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        path, name = Path(self.folder.name) / "l.db", f"machine {next(_names)}"
        memory = MemoryLedger()
        self.ledgers: list[list[Any]] = [
            [memory, memory],
            [SqliteLedger(path), SqliteLedger(path)],
            [self.server.ledger(name, clock="caller") for _ in range(2)],
        ]
        self.model = Model()
        self.clock = 86_390.0
        self.looked: list[Pot] = [*BROAD]
        self.yeses: list[list[Any]] = []
        self.time_goes(0.0)

    def teardown(self) -> None:
        for one in self.ledgers[1] + self.ledgers[2]:
            one.close()
        self.folder.cleanup()

    def same(self, expected: Any, handle: int, method: str, *given: Any, **named: Any) -> None:
        for handles in self.ledgers:
            found = getattr(handles[handle], method)(*given, **named)
            assert found == expected, type(handles[handle]).__name__

    @rule(seconds=st.sampled_from([0.25, 1.0, 2.75, 10.0, -0.5, -5.0, -3600.0]))
    def time_goes(self, seconds: float) -> None:
        """All of them act on a time before the clock goes back: what was only looked at is no time to them."""
        self.clock += seconds
        self.model.time = max(self.model.time, self.clock)
        self.same(None, 0, "consume", "nobody's", "u", self.clock)

    @rule(key=KEYS, by=st.sampled_from(SPENDERS), charges=CHARGES, pots=POTS, lease=LEASES, handle=HANDLES)
    def reserve(self, key: str, by: Any, charges: Any, pots: Any, lease: float, handle: int) -> None:
        self.looked = [*self.looked, *pots][:20]
        expected = self.model.reserve(key, by, charges, pots, self.clock, lease)
        self.same(expected, handle, "reserve", key, by, charges, pots, self.clock, lease=lease)

    @rule(key=KEYS, handle=HANDLES)
    def dispatch(self, key: str, handle: int) -> None:
        self.same(self.model.dispatch(key, self.clock), handle, "dispatch", key, self.clock)

    @rule(key=KEYS, actual=ACTUAL, handle=HANDLES)
    def settle(self, key: str, actual: Any, handle: int) -> None:
        self.same(self.model.settle(key, actual, self.clock), handle, "settle", key, actual, self.clock)

    @rule(key=KEYS, handle=HANDLES)
    def release(self, key: str, handle: int) -> None:
        self.same(self.model.release(key), handle, "release", key)

    @rule(key=KEYS, lease=LEASES, handle=HANDLES)
    def renew(self, key: str, lease: float, handle: int) -> None:
        self.same(self.model.renew(key, self.clock, lease), handle, "renew", key, self.clock, lease=lease)

    @rule(pots=POTS, handle=HANDLES)
    def look(self, pots: Any, handle: int) -> None:
        self.looked = [*self.looked, *pots][:20]
        self.same(self.model.look(pots, self.clock), handle, "look", pots, self.clock)

    @rule(
        binding=st.sampled_from(["b1", "b2"]),
        once=st.booleans(),
        lasts=st.sampled_from([None, 1.0, 5.0]),
        handle=HANDLES,
    )
    def approve(self, binding: str, once: bool, lasts: float | None, handle: int) -> None:
        expires = None if lasts is None else self.model.time + lasts
        yes = Yes(binding, once, "", expires, f"person {len(self.yeses)}")
        self.yeses.append([yes, None])
        self.same(None, handle, "approve", yes)

    @rule(binding=st.sampled_from(["b1", "b2"]), use=st.sampled_from(["u1", "u2"]), handle=HANDLES)
    def consume(self, binding: str, use: str, handle: int) -> None:
        live = [
            one for one in self.yeses
            if one[0].binding == binding and (one[0].expires is None or self.model.time < one[0].expires)
        ]  # fmt: skip
        own = [one for one in live if one[1] == use]
        lasting = [one for one in live if not one[0].once]
        free = [one for one in live if one[0].once and one[1] is None]
        best = (own + lasting + free + [None])[0]
        if best is not None and best[0].once:
            best[1] = use
        self.same(best and best[0], handle, "consume", binding, use, self.clock)

    @rule(binding=st.sampled_from(["b1", None]), handle=HANDLES)
    def revoke(self, binding: str | None, handle: int) -> None:
        self.yeses = [one for one in self.yeses if binding is not None and one[0].binding != binding]
        self.same(None, handle, "revoke", binding)

    @invariant()
    def what_was_counted_before_is_right_now(self) -> None:
        pots = tuple(self.looked)
        self.same(self.model.look(pots, self.clock), 1, "look", pots, self.clock)


def test_they_say_the_same(redis_server: RedisServer) -> None:
    Ledgers.server = redis_server
    run_state_machine_as_test(
        Ledgers,
        settings=settings(max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=UNHURRIED),
    )


def test_the_machine_notices_a_ledger_that_forgets(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledgers.server = redis_server

    def forgets(ledger: Any, key: str, actual: Any, clock: float) -> None:
        pass

    monkeypatch.setattr(SqliteLedger, "settle", forgets)
    with pytest.raises(AssertionError, match="SqliteLedger"):
        run_state_machine_as_test(
            Ledgers,
            settings=settings(
                max_examples=60, stateful_step_count=40, deadline=None, database=None, report_multiple_bugs=False,
                suppress_health_check=UNHURRIED, phases=[Phase.generate],
            ),
        )  # fmt: skip

"""A call that may run, once.

In: what the gate decided and reserved. Out: `Admitted`, sealed: its arguments are made anew from the text of what was
judged. What it may do stands in a private record, so that a forged or altered one runs nothing.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from decimal import Decimal
from functools import partial
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Never, Self
from weakref import WeakKeyDictionary, ref

from zcpolicy.approvals.asking import acting
from zcpolicy.authority import SealError
from zcpolicy.decision import Decision
from zcpolicy.faults import in_short, log_slip
from zcpolicy.ledgers.contract import LEASE_SECONDS, Ledger
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.report import report_call
from zcpolicy.loop.standing import Standing
from zcpolicy.loop.unbroken import unbroken
from zcpolicy.permits import remember
from zcpolicy.refusals import PermitError, ResolveError
from zcpolicy.registry.sources import Run
from zcpolicy.sealed import NoTruth, Sealed, final, put
from zcpolicy.texts import spelled

Costs = Mapping[str, Decimal]
Phase = Literal["admitted", "started", "over"]

ASK_ADMITTED: Final = "ask `isinstance(call, Admitted)`"
NOTHING: Final[Costs] = {}
"""No cost."""


class Lapsed(PermitError):
    """The call must not be sent any more: its reservation is gone, or what it was decided on (policy, skills, labels,
    directory, the session's other facts) is not what holds by now. Admit it again.
    """


@final
class Admitted(Sealed, NoTruth):
    """A call that was decided, asked, reserved and marked. Made by `admit`; runs once.

    `decision`: the last one, which permits it. `edited`: a person changed it. What runs, `arguments` and `wire`, it gives once
    it is started. `async with` cleans up: what was not started is given back, what was not finished counts as failed. Its
    lease is renewed as long as somebody holds it.
    """

    __slots__ = ("__weakref__", "decision", "edited", "key")
    _maker = "`admit`"
    _ask = ASK_ADMITTED

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self.decision: Final[Decision] = sealed
            self.key: Final[str] = sealed
            self.edited: Final[bool] = sealed

    @property
    def arguments(self) -> dict[str, Any]:
        """What runs, JSON values made anew; a number that a float cannot hold is a Decimal. Raises PermitError before `start`."""
        return _values(_sent(self).wire)

    @property
    def wire(self) -> str:
        """The arguments as JSON text. Raises PermitError before `start`."""
        return _sent(self).wire

    async def start(self) -> None:
        """The call is sent now: from here on it counts, and until it is over nothing in this process answers for its tree.

        Raises Lapsed, and PermitError if it was started or given up.
        """
        held = _held(self, "admitted")
        held.phase = "started"
        try:
            sent = await unbroken(held.ledger, held.dispatch)
            if sent:
                held.began = monotonic()
                held.at_work.enter_context(acting(held.decision.run))
                held.report("started")
                return
        except ResolveError:
            sent = False
        held.over()
        await unbroken(held.ledger, held.release)
        raise Lapsed("the call has to be admitted again")

    async def finish(self, ok: bool, cost: Costs = NOTHING, *, fault: str = "", error: str = "") -> None:
        """It has run. `ok`: it reports success. `cost`: what it spent, by currency. `fault`, `error`: the name of what was
        raised, and what it says, for the record, which has it in short. Raises PermitError if it does not run.
        """
        held = _held(self, "started")
        held.over()
        try:
            await unbroken(held.ledger, partial(held.settle, ok is True, cost))
        finally:
            held.report("finished", ok=ok is True, cost=_told(cost), **_named(fault=fault, error=in_short(error)))

    async def abandon(self) -> None:
        """It is not made after all, and gives back what it reserved. Does nothing once it was started."""
        held = _held(self)
        if held.phase == "admitted":
            held.over()
            await unbroken(held.ledger, held.release)
            held.report("abandoned")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if raised is None and _held(self).phase == "admitted":
            log_slip(
                f"a call of `{spelled(self.decision.tool)}` was left unstarted: if its tool ran, no limit counts it; "
                "write `await call.start()` before the tool runs, or `await call.abandon()` where it does not"
            )
        await tidied(self, kind, raised, trace)


async def tidied(
    call: Admitted,
    _kind: type[BaseException] | None = None,
    raised: BaseException | None = None,
    _trace: TracebackType | None = None,
) -> None:
    """What `async with` does at its end, where it is no slip that a call was not started: for those that are admitted along."""
    try:
        if _held(call).phase == "started":
            await call.finish(ok=False)
        else:
            await call.abandon()
    except Exception:
        if raised is None:  # what is on its way already matters more
            raise


class Taken(NamedTuple):
    """A call that may run. `on`: what it was decided on. `beside`: the marks of calls that were admitted along, which
    are no news to it. `at`: when it was reserved. `runner`: None where the host has no registry, and runs it itself.
    """

    decision: Decision
    on: Standing
    beside: Counter[str]
    at: float
    runner: Run | None


class _Held:
    """What stands behind an admitted call. `began`: when it was sent. `at_work`: what is so while it runs."""

    __slots__ = ("at_work", "began", "decision", "io", "key", "log", "phase", "renewing", "taken", "wire")

    def __init__(self, taken: Taken, key: str, io: ResolvedIo, log: str) -> None:
        self.taken = taken
        self.decision = taken.decision
        self.wire = taken.decision.wire()
        self.key = key
        self.io = io
        self.log = log
        self.at_work = ExitStack()
        self.phase: Phase = "admitted"
        self.began = 0.0
        self.renewing: asyncio.Task[None] | None = None

    @property
    def ledger(self) -> Ledger:
        return self.decision.run.resolver.ledger

    def dispatch(self) -> bool:
        """False: it must not be sent. Raises ResolveError where the newest policy has no such execution."""
        run = self.decision.run
        with run.resolver.exclusive:
            return self.taken.on.holds(run, self.taken.beside) and run.budgets.dispatch(self.key)

    def settle(self, ok: bool, cost: Costs) -> None:
        self.decision.run.budgets.settle(self.key, cost=cost, seconds=monotonic() - self.began)
        remember(self.decision, ok=ok, at=self.taken.at)

    def release(self) -> None:
        self.decision.run.budgets.release(self.key)

    def report(self, phase: str, **more: Any) -> None:
        report_call(self.io, phase, self.decision, self.key, log=self.log, **more)

    def over(self) -> None:
        self.phase = "over"
        self.at_work.close()
        if self.renewing is not None:
            self.renewing.cancel()


_all_held: WeakKeyDictionary[Admitted, _Held] = WeakKeyDictionary()


def admitted(taken: Taken, key: str, io: ResolvedIo, log: str, *, edited: bool) -> Admitted:
    """For the gate alone: the call is reserved under this key, and its labels are marked."""
    made: Admitted = object.__new__(Admitted)
    held = _all_held[made] = _Held(taken, key, io, log)
    put(made, "decision", taken.decision)
    put(made, "key", key)
    put(made, "edited", edited)
    held.renewing = asyncio.get_running_loop().create_task(_renewing(ref(made), spelled(taken.decision.tool)))
    return made


def to_run(call: Admitted) -> tuple[Decision, Run | None, dict[str, Any]]:
    """What permits a call, what runs it, and its arguments, from the private record. For the gate. Raises SealError."""
    held = _held(call)
    return held.decision, held.taken.runner, _values(held.wire)


def still_holds(call: Admitted) -> bool:
    """Whether what a call was decided on is what holds now. For the gate, right before its tool begins."""
    taken = _held(call, "started").taken
    try:
        return taken.on.holds(taken.decision.run, taken.beside)
    except ResolveError:
        return False


async def _renewing(call: "ref[Admitted]", tool: str) -> None:
    """Until it is over, or nobody holds it any more. Holds nothing of it meanwhile."""
    while True:
        await asyncio.sleep(LEASE_SECONDS / 3)
        if not await _renewed(call):
            log_slip(f"a call of `{tool}` was let go before it was over: write `async with call`, `start` and `finish`")
            return


async def _renewed(call: "ref[Admitted]") -> bool:
    one = call()
    if one is None:
        return False
    held = _held(one)
    await unbroken(held.ledger, partial(held.decision.run.budgets.renew, held.key))
    return True


def _held(call: object, phase: Phase | None = None) -> _Held:
    found = _all_held.get(call) if type(call) is Admitted else None
    if found is None:
        raise SealError(f"{type(call).__name__[:60]} is no call that `admit` made")
    if phase is not None and found.phase != phase:
        raise PermitError(_WRONG[phase, found.phase])
    return found


_WRONG: Final[dict[tuple[Phase, Phase], str]] = {
    ("started", "admitted"): "the call was not started: write `await call.start()` before its tool runs",
    ("started", "over"): "the call is over: it was finished, or given up, before",
    ("admitted", "started"): "the call was started before: it runs once",
    ("admitted", "over"): "the call is over: it was finished, or given up, before",
}
"""By the phase that is wanted, and the one that it is in."""


def _sent(call: Admitted) -> _Held:
    """Raises PermitError for a call that was not started."""
    held = _held(call)
    if not held.began:
        raise PermitError(
            "what runs is given once the call is started: write `await call.start()` first; "
            "`call.decision.arguments` is for looking at"
        )
    return held


def _values(wire: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(wire, parse_float=_number)
    return found


def _number(text: str) -> float | Decimal:
    """A float where it says the same."""
    exact = Decimal(text)
    near = float(exact)
    return near if Decimal(repr(near)) == exact else exact


def _named(**texts: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _told(cost: Costs) -> dict[str, str]:
    return {str(currency): str(amount) for currency, amount in cost.items()}

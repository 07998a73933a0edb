"""Limits (SPEC 8): whether there is room, and what is reserved, settled and given back.

In: an execution, what it is about to spend. Out: a reservation, or the deny of a limit that has no room.
"""

from __future__ import annotations

from functools import partial

from zcpolicy.authority import genuine
from zcpolicy.combine import Verdict, of_the_call, plan_behind
from zcpolicy.exact import added, number_text
from zcpolicy.ledgers.contract import Charge, Exhausted, LedgerUnavailable, Reserved
from zcpolicy.pots import (
    CALL,
    RUNNING,
    Unpayable,
    can_be_kept,
    charges_of,
    limits_of,
    money_of,
    must_be_priced,
    reported,
    spender_of,
)  # fmt: skip
from zcpolicy.refusals import PermitError
from zcpolicy.room import NO_TIME, OUT_OF_REACH, outage, over, pots_of, spent_in, unavailable, unpayable
from zcpolicy.sealed import hidden
from zcpolicy.texts import escaped
from zcpolicy.windows import NoTime, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final

    from zcpolicy.decision import Decision
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import ToolName
    from zcpolicy.ledgers.contract import Ledger, Pot, Spent
    from zcpolicy.loop.access import NamedModel, ResolvedModelAccess
    from zcpolicy.loop.messages import Usage
    from zcpolicy.pots import Amounts, Counting, Number

MADE_BEFORE: Final = "this very request was made before"
_NOTHING: Final[dict[str, Any]] = {}


class _Open:
    """Reservations that are more than the ledger's. `places`: of calls in turn that wait: takes theirs. `running`: calls in turn
    that have it. `unrecorded`: in no ledger: no limit bounds them, and it could not be reached.
    """

    __slots__ = ("places", "running", "unrecorded")

    def __init__(self) -> None:
        self.places: dict[str, Callable[[], Reserved | Verdict]] = {}
        self.running: set[str] = set()
        self.unrecorded: set[str] = set()


class Budgets:
    """What one execution may spend. Made by `ResolvedAgentExecution.budgets`. Safe to use from many threads.

    Whatever is spent counts for this execution and for every one above it. Its methods wait where the ledger is
    `blocking`: an async host calls them in a thread. `key`: names one reservation in the whole ledger; asking again
    with the same key charges nothing again. All raise SealError for an execution that was altered.
    """

    __slots__ = ("_open", "_run_of")

    def __init__(self, run: ResolvedAgentExecution) -> None:
        genuine(run)
        _RUN.__set__(self, run)
        _OPEN.__set__(self, _Open())

    @property
    def _run(self) -> ResolvedAgentExecution:
        run: ResolvedAgentExecution = _RUN.__get__(self)
        genuine(run)
        return run

    # --- calls of tools ------------------------------------------------------------------------------------------

    def reserve(
        self,
        decision: Decision,
        key: str,
        cost: Mapping[str, object] | None = _NOTHING,
        *,
        in_turn: bool = False,
    ) -> Reserved | Verdict:
        """All that a call spends, at once, or the deny: reason `budget`, or `ledger-unavailable`.

        `cost`: what the call is expected to cost, by currency; empty: it costs nothing; None: that is not known. `in_turn`:
        it runs after others that are reserved already, so that its place among concurrent calls is taken by `dispatch`.
        What was denied stays so. Raises PermitError for a decision of another execution.
        """
        plan = plan_behind(decision.verdict)
        if decision.run is not self._run:
            raise PermitError("the decision is of another execution")
        if plan is None or decision.effect == "deny":
            return decision.verdict
        try:
            if cost is None or len(cost):
                must_be_priced(cost, plan.limits)
        except Unpayable as error:
            found: Reserved | Verdict = unpayable(error)
        else:
            amounts = {**CALL, **money_of(cost)}
            running = [one for one in plan.limits if in_turn and one.unit == RUNNING[0]]
            found = self._take(key, plan.limits, amounts, plan.name, decision.arguments, in_turn=bool(running))
            if running and isinstance(found, Reserved) and found.fresh:
                place = (_place(key), running, {RUNNING: 1}, plan.name, decision.arguments)
                _open(self).places[key] = partial(self._take, *place)
        if decision.effect == "ask" and key in _open(self).unrecorded:
            _open(self).unrecorded.discard(key)
            found = unavailable((), "that one yes starts one call cannot be told")
        return of_the_call(decision.verdict, found) if isinstance(found, Verdict) else found

    def dispatch(self, key: str) -> bool:
        """From now on it counts, whatever comes. False: the call must not run, its place is gone."""
        if key in _open(self).unrecorded:
            return True
        place = _open(self).places.get(key)
        if place is not None and isinstance(place(), Verdict):
            return False
        try:
            sent = self._ledger.dispatch(key, self._clock())
            if not sent or place is None:
                return sent
            _open(self).running.add(key)
            _open(self).places.pop(key, None)
            return self._ledger.dispatch(_place(key), self._clock())
        except LedgerUnavailable as error:
            outage(error)
            return False

    def settle(self, key: str, *, cost: Mapping[str, object] | None = None, seconds: float | None = None) -> None:
        """The call is over, whether it succeeded, failed or was cancelled. What is not told counts as reserved.

        `cost`: what it really cost, by currency; `seconds`: how long it took. What goes beyond the reservation is
        recorded whole. Where the ledger cannot be reached it counts as reserved.
        """
        amounts = money_of(cost)
        took = reported(seconds)
        if took is not None:
            amounts["time", ""] = took
        self._settle(key, amounts)
        if key in _open(self).running:
            _open(self).running.discard(key)
            self._settle(_place(key), {})

    def release(self, key: str) -> None:
        """Gives back what was reserved for a call that never left; what left counts."""
        if key in _open(self).unrecorded:
            _open(self).unrecorded.discard(key)
            return
        if _open(self).places.pop(key, None) is not None:
            self.release(_place(key))
        try:
            self._ledger.release(key)
        except LedgerUnavailable as error:
            outage(error)  # its lease gives it back

    def renew(self, key: str) -> None:
        """The call still runs: its lease runs from now."""
        if key in _open(self).running:
            self.renew(_place(key))
        if key not in _open(self).unrecorded:
            try:
                self._ledger.renew(key, self._clock())
            except LedgerUnavailable as error:
                outage(error)  # should the lease end, it counts as reserved

    # --- what no tool spends -------------------------------------------------------------------------------------

    def iteration(self, key: str) -> Verdict | None:
        """One more request to the model in this turn; a deny stops the turn."""
        return self._once(key, "iterations")

    def delegation(self, key: str) -> Verdict | None:
        """One more execution below this one."""
        return self._once(key, "delegations")

    def model_call(
        self, key: str, access: ResolvedModelAccess[NamedModel], input_tokens: int, max_output: int | None = None
    ) -> Verdict | None:
        """Reserves and dispatches one request; a key that was used before is denied: each request is charged.

        `input_tokens`: an estimate; `max_output`: tokens of the longest answer, else as the access says.
        """
        output = access.max_output_tokens if max_output is None else max_output
        limits = self._limits("tokens", "money", "time")
        cost, fault = _cost(access, input_tokens, output)
        try:
            must_be_priced(cost, limits, f"model `{escaped(str(access.model.name)[:60])}`", fault)
        except Unpayable as error:
            return unpayable(error)
        amounts: Amounts = {("tokens", ""): input_tokens + output, ("time", ""): 0, **money_of(cost)}
        found = self._take(key, limits, amounts)
        if isinstance(found, Verdict):
            return found
        return self._sent(key, found) if found.fresh else Verdict("deny", "budget", note=MADE_BEFORE)

    def model_done(
        self, key: str, access: ResolvedModelAccess[NamedModel], usage: Usage, seconds: float | None = None
    ) -> None:
        """The request is over. Tokens that the host does not know, and their price, count as reserved."""
        amounts: dict[tuple[str, str], Number] = {}
        tokens_in, tokens_out = reported(usage.input_tokens), reported(usage.output_tokens)
        if isinstance(tokens_in, int) and isinstance(tokens_out, int):
            amounts = money_of(_cost(access, tokens_in, tokens_out)[0])
            amounts["tokens", ""] = tokens_in + tokens_out
        took = reported(seconds)
        if took is not None:
            amounts["time", ""] = took
        self._settle(key, amounts)

    # --- what is left --------------------------------------------------------------------------------------------

    def time_left(self, decision: Decision | None = None) -> float | None:
        """Seconds that `time` limits leave, of this call or else of models; None: no limit says. 0 if it is not known."""
        found = self._left("time", decision)
        return None if found is None else float(found)

    def tokens_left(self) -> int | None:
        """Tokens that limits leave for a request, input and output together; None: no limit says. 0 if it is not known."""
        found = self._left("tokens", None)
        return None if found is None else int(found)

    def _left(self, unit: str, decision: Decision | None) -> Number | None:
        plan = plan_behind(decision.verdict) if decision is not None else None
        arguments = decision.arguments if decision is not None else _NOTHING
        limits = [one for one in plan.limits if one.unit == unit] if plan is not None else self._limits(unit)
        if not limits:
            return None
        try:
            looked = spent_in(self._run, limits, {}, arguments)
        except (NoTime, LedgerUnavailable, Unpayable):
            return 0
        return min((max(added(pot.limit, -spent.total), 0) for _, pot, spent in looked), default=None)

    # --- the ledger ----------------------------------------------------------------------------------------------

    @property
    def _ledger(self) -> Ledger:
        return self._run.resolver.ledger

    def _clock(self) -> float:
        """The time, for what has to go on where it is not known: then the ledger's own latest holds."""
        try:
            return told(self._run.session.clock)
        except NoTime:
            return 0.0

    def _limits(self, *units: str) -> list[Counting]:
        return [one for one in limits_of(self._run.stack, None) if one.unit in units]

    def _once(self, key: str, unit: str) -> Verdict | None:
        found = self._take(key, self._limits(unit), {(unit, ""): 1})
        if isinstance(found, Verdict):
            return found
        denied = self._sent(key, found)
        if denied is None:
            self._settle(key, {})
        return denied

    def _sent(self, key: str, held: Reserved) -> Verdict | None:
        if held.state == "reserved" and not self.dispatch(key):
            return Verdict("deny", "ledger-unavailable", note="the ledger lost what was reserved")
        return None

    def _take(
        self,
        key: str,
        limits: Sequence[Counting],
        amounts: Amounts,
        tool: ToolName | None = None,
        arguments: dict[str, Any] = _NOTHING,
        *,
        in_turn: bool = False,
    ) -> Reserved | Verdict:
        run = self._run
        try:
            clock = told(run.session.clock)
            pots = pots_of(limits, amounts, arguments, run)
            spender = spender_of(run, tool, limits, arguments)
            charges = charges_of(amounts, limits, arguments)
            if in_turn:
                charges = [charge for charge in charges if charge.unit != RUNNING[0]]
        except NoTime:
            return unavailable(limits, NO_TIME)
        except Unpayable as error:
            return unpayable(error)
        try:
            if not run.session.ledger:
                raise LedgerUnavailable(OUT_OF_REACH)
            found = self._ledger.reserve(key, spender, charges, [pot for _, pot in pots], clock)
        except LedgerUnavailable as error:
            if limits:
                return unavailable(limits, error)
            outage(error)
            _open(self).unrecorded.add(key)
            return Reserved(key, "reserved", clock, fresh=True)
        except ValueError:
            return Verdict("deny", "budget", note="an amount is negative or out of bounds")
        _open(self).unrecorded.discard(key)
        if isinstance(found, Exhausted):
            looked = [(counting, pot, spent) for (counting, pot), spent in zip(pots, found.spent, strict=True)]
            return over(looked, _too_much(looked) if tool is None else "")
        return found

    def _settle(self, key: str, amounts: Amounts) -> None:
        if key in _open(self).unrecorded:
            _open(self).unrecorded.discard(key)
            return
        actual = [Charge(unit, amount, currency) for (unit, currency), amount in amounts.items() if can_be_kept(amount)]
        try:
            self._ledger.settle(key, actual, self._clock())
        except LedgerUnavailable as error:
            outage(error)  # it was dispatched, and counts as reserved


_RUN: Final = hidden(Budgets, "_run_of")
_OPEN: Final = hidden(Budgets, "_open")


def _open(budgets: Budgets) -> _Open:
    found: _Open = _OPEN.__get__(budgets)
    return found


def _place(key: str) -> str:
    """Under which a call in turn stands among those that run."""
    return f"{key}/running"


def _cost(
    access: ResolvedModelAccess[NamedModel], input_tokens: int, output_tokens: int
) -> tuple[Mapping[str, object] | None, str]:
    """What a request costs by the host's prices; None where they do not say, and why, where they failed."""
    if access.prices is None:
        return None, ""
    try:
        found: Any = access.prices.cost(access.model.name, input_tokens, output_tokens)
    except Exception as error:  # noqa: BLE001 - the host's code: however it fails, there is no price
        return None, f"has no price since the price function failed ({type(error).__name__})"
    return found if hasattr(found, "items") else None, ""


def _too_much(looked: Sequence[tuple[Counting, Pot, Spent]]) -> str:
    """Of a request that no empty pot has room for: waiting does not help."""
    for counting, pot, _ in looked:
        if pot.need > pot.limit and counting.unit in ("money", "tokens"):
            need, most = _said(counting, pot.need), _said(counting, pot.limit)
            less = "send less, " if counting.unit == "tokens" else ""
            do = f"{less}lower `max_output_tokens`, or raise the limit"
            return f"one request reserves {need}, and the limit is {most}: {do}"
    return ""


def _said(counting: Counting, amount: Number) -> str:
    """`2.05 usd`, `800 tokens`."""
    if counting.unit == "tokens":
        return f"{number_text(amount)} tokens"
    whole, _, rest = number_text(amount).partition(".")
    return f"{whole}.{rest:0<2} {counting.currency}"

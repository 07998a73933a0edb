"""SPEC 8: pots, windows and sums; labels and history, as far as one process goes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.clock import Clock
from tests.engine.programs import STRING, body, leaf, limit, program, rule, run, schema, tool
from zcpolicy import Entry, PermitError, ResolvedAgentExecution, Resolver, Session
from zcpolicy.combine import Verdict
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.pots import MAX_POTS_OF_CALL

NUMBERS = schema(n="number", to=STRING, l={"kind": "list", "item": STRING}, x="any")
TOOLS = [tool("ping", NUMBERS, risk="read"), tool("pong", NUMBERS, risk="read")]
ALLOW = rule("allow", "0-1")
DAY = 86_400.0


def rolling(seconds: int) -> dict[str, Any]:
    return {"kind": "rolling", "seconds": str(seconds)}


def start(*limits: Any, clock: Clock | None = None, **parts: Any) -> ResolvedAgentExecution:
    resolver = Resolver(program(TOOLS, body("a", ALLOW, limits=list(limits), **parts)))
    return resolver.resolve("a", session=Session(interactive=True, clock=clock or Clock()))


def call(run: ResolvedAgentExecution, name: str = "ping", **arguments: Any) -> str:
    """Decides, and runs what is allowed."""
    decision = run.decide(name, arguments)
    if decision.effect == "allow":
        run.permit(decision)
    return decision.reason


SERIES: dict[str, tuple[Any, list[dict[str, Any]], list[str]]] = {
    "the second runs, the third does not": (limit("2"), [{}, {}, {}], ["allowed", "allowed", "budget"]),
    "nothing at all": (limit("0"), [{}], ["budget"]),
    "of one tool": (limit("1", tools="1"), [{}, {}, {"name": "pong"}, {"name": "pong"}], ["allowed", "allowed", "allowed", "budget"]),
    "a sum is exact": (
        limit("0.3", "sum", argument=["n"]), [{"n": 0.1}, {"n": 0.2}, {"n": 0.0}, {"n": 0.1}], ["allowed"] * 3 + ["budget"],
    ),
    "a sum is not refilled": (limit("10", "sum", argument=["n"]), [{"n": 10}, {"n": -5}, {"n": 1}], ["allowed", "budget", "budget"]),
    "a sum of what is missing": (limit("10", "sum", argument=["n"]), [{}], ["budget"]),
    "a pot for each value, folded": (
        limit("1", each=["args", "to"]), [{"to": "A"}, {"to": "a"}, {"to": "b"}, {}], ["allowed", "budget", "allowed", "budget"],
    ),
    "a pot for each element": (
        limit("1", each=["args", "l"]), [{"l": ["a", "b", "a"]}, {"l": ["c", "B"]}, {"l": ["c"]}, {"l": []}],
        ["allowed", "budget", "allowed", "allowed"],
    ),
    "a pot for each value of any kind": (
        limit("1", each=["args", "x"]), [{"x": 1}, {"x": 1.0}, {"x": "1"}, {"x": True}, {"x": {"a": [1]}}, {"x": {"A": [1]}}],
        ["allowed", "budget", "allowed", "allowed", "allowed", "budget"],
    ),
    "zero below nought is zero": (limit("1", each=["args", "x"]), [{"x": 0}, {"x": -0.0}, {"x": {"a": -0.0}}], ["allowed", "budget", "allowed"]),
    "a sum for each value": (
        limit("5", "sum", argument=["n"], each=["args", "to"]), [{"n": 5, "to": "a"}, {"n": 1, "to": "a"}, {"n": 5, "to": "b"}],
        ["allowed", "budget", "allowed"],
    ),
    "concurrent calls": (limit("1", "concurrent calls"), [{}, {}], ["allowed", "allowed"]),
    "no concurrent calls": (limit("0", "concurrent calls"), [{}], ["budget"]),
    "money is not what calls spend": (limit("0.01", "money", currency="usd"), [{}, {}], ["allowed", "allowed"]),
    "another pot": (limit("1", pot="agent:other"), [{}, {}], ["allowed", "allowed"]),
}  # fmt: skip


@pytest.mark.parametrize("case", SERIES)
def test_series(case: str) -> None:
    one, calls, reasons = SERIES[case]
    run = start(one)
    assert [call(run, **arguments) for arguments in calls] == reasons


HIDDEN: dict[str, tuple[Any, bool]] = {
    "no calls": (limit("0"), True),
    "no calls at a time": (limit("0", "concurrent calls"), True),
    "no time": (limit("0", "time"), True),
    "a call": (limit("1"), False),
    "none for each value: an empty list has none": (limit("0", each=["args", "l"]), False),
    "a sum of nothing: nothing fits": (limit("0", "sum", argument=["n"]), False),
    "no money: calls spend none": (limit("0", "money", currency="usd"), False),
    "no iterations: calls are none": (limit("0", "iterations"), False),
    "no calls of another agent's": (limit("0", pot="agent:other"), True),
}  # fmt: skip


@pytest.mark.parametrize("case", HIDDEN)
def test_a_tool_that_a_limit_of_none_denies_is_not_shown(case: str) -> None:
    one, hidden = HIDDEN[case]
    run = start(one)
    assert run.tools() == (() if hidden else ("ping", "pong"))
    assert call(run, l=[], n=0) == ("budget" if hidden else "allowed")


def test_all_limits_of_a_call_or_none() -> None:
    run = start(limit("5"), limit("1", tools="1"))
    assert [call(run, "pong"), call(run, "pong"), call(run, "pong")] == ["allowed", "budget", "budget"]
    assert [call(run) for _ in range(5)] == ["allowed"] * 4 + ["budget"]  # what was denied was not charged


WINDOWS: dict[str, tuple[dict[str, Any], float, float | None]] = {
    "a minute": (rolling(60), 60.0, 60.0),
    "an hour": (rolling(3_600), 3_600.0, 3_600.0),
    "a day of the calendar": ({"kind": "calendar", "calendar": "day", "zone": "UTC"}, DAY / 2, DAY / 2),
    "a day elsewhere": ({"kind": "calendar", "calendar": "day", "zone": "Asia/Tokyo"}, 3 * 3_600.0, 3 * 3_600.0),
    "a month": ({"kind": "calendar", "calendar": "month", "zone": "UTC"}, 30.5 * DAY, 30.5 * DAY),
    "a session": ({"kind": "session"}, 100 * DAY, None),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows_and_when_to_come_back(case: str) -> None:
    window, length, retry = WINDOWS[case]
    clock = Clock()
    run = start(limit("1", window=window), clock=clock)
    assert call(run) == "allowed"
    denied = run.decide("ping", {})
    assert (denied.reason, denied.retry_after) == ("budget", retry)
    clock.now += length - 1
    assert call(run) == "budget"
    clock.now += 1
    assert call(run) == ("budget" if retry is None else "allowed")


def test_a_verdict_of_a_request_says_which_limit_it_is() -> None:
    run = start(limit("1", "iterations", window={"kind": "turn"}))
    assert run.budgets.iteration("one") is None
    denied = run.budgets.iteration("two")
    assert denied is not None
    assert repr(denied) == "<Verdict deny (budget): a limit is exhausted: limit 1 iterations of `a`>"
    assert denied.for_model == "A limit is reached. Go on without this call."
    assert bool(denied)  # as `if denied:` has it, the turn stops


def test_a_verdict_of_a_call_is_neither_true_nor_false() -> None:
    run = start(limit("1"))
    decision = run.decide("ping", {})
    assert call(run) == "allowed"
    for verdict in (decision.verdict, run.budgets.reserve(decision, "k"), run.decide("ping", {}).verdict):
        assert isinstance(verdict, Verdict)
        with pytest.raises(TypeError, match="neither true nor false"):
            bool(verdict)


def test_what_can_never_fit_has_no_time_to_come_back() -> None:
    run = start(limit("1", "sum", argument=["n"], window=rolling(60)))
    too_much, missing, negative = (run.decide("ping", arguments) for arguments in ({"n": 2}, {}, {"n": -1}))
    assert (too_much.reason, too_much.retry_after, too_much.note) == (
        "budget",
        None,
        "a limit is exhausted: limit 1 sum of `a`",
    )
    assert missing.note == "the argument that a limit sums is missing or no number"
    assert negative.note == "the argument that a limit sums is negative"
    assert [rule.part for rule in missing.rules] == ["limits"]


def test_room_comes_back_bit_by_bit() -> None:
    clock = Clock(1_000.0)
    run = start(limit("3", window=rolling(60)), limit("100", window={"kind": "session"}), clock=clock)
    for _ in range(3):
        assert call(run) == "allowed"
        clock.now += 10
    assert run.decide("ping", {}).retry_after == 30.0
    clock.now += 30
    assert [call(run), call(run)] == ["allowed", "budget"]
    assert run.decide("ping", {}).retry_after == 10.0


def test_a_turn_ends_with_the_turn() -> None:
    run = start(limit("1", window={"kind": "turn"}))
    assert [call(run), call(run)] == ["allowed", "budget"]
    run.session.turn = "2"
    assert [call(run), call(run)] == ["allowed", "budget"]


def test_a_clock_set_back_grants_nothing_twice() -> None:
    clock = Clock()
    run = start(limit("1", window=rolling(60)), clock=clock)
    assert call(run) == "allowed"
    clock.now -= 3_600
    assert call(run) == "budget"
    clock.now += 3_600 + 61
    assert call(run) == "allowed"


def test_counters_survive_a_resolver_and_an_edited_limit_applies_to_what_is_spent() -> None:
    ledger = MemoryLedger()
    for amount, reason in (("3", "allowed"), ("3", "allowed"), ("2", "budget"), ("3", "allowed"), ("3", "budget")):
        compiled = program(TOOLS, body("a", ALLOW, limits=[limit(amount, window=rolling(60))]))
        run = Resolver(compiled, ledger=ledger).resolve("a", session=Session(clock=Clock()))
        assert call(run) == reason


def test_many_at_once_never_take_more_than_there_is() -> None:
    run = start(limit("20"))
    decision = run.decide("ping", {})

    def permitted(_: int) -> bool:
        try:
            run.permit(decision)
        except PermitError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(permitted, range(100))) == 20


OWNERS: dict[str, tuple[dict[str, Any], list[tuple[str, str]], list[str]]] = {
    "a ceiling's pot is everybody's": ({"pot": "ceiling"}, [("a", "c1"), ("b", "c2")], ["allowed", "budget"]),
    "one for each agent": ({"pot": "ceiling", "each": ["agent"]}, [("a", "c1"), ("b", "c1"), ("a", "c2")], ["allowed", "allowed", "budget"]),
    "one for each client": ({"pot": "ceiling", "each": ["client"]}, [("a", "c1"), ("a", "c2"), ("b", "c1")], ["allowed", "allowed", "budget"]),
    "one for each session": ({"pot": "ceiling", "each": ["session"]}, [("a", "c1"), ("a", "c1")], ["allowed", "allowed"]),
}  # fmt: skip


@pytest.mark.parametrize("case", OWNERS)
def test_whose_pot(case: str) -> None:
    more, calls, reasons = OWNERS[case]
    ceiling = body("ceiling", kind="ceiling", limits=[limit("1", window=rolling(60), **more)])
    resolver = Resolver(program(TOOLS, body("a", ALLOW), body("b", ALLOW), ceiling=ceiling))
    said = [call(resolver.resolve(agent, session=Session(client=client, clock=Clock()))) for agent, client in calls]
    assert said == reasons


def test_an_agents_pot_is_that_of_those_who_narrow_it() -> None:
    own = body("a", ALLOW, limits=[limit("1", window=rolling(60))])
    resolver = Resolver(program(TOOLS, own, body("b", kind="narrows"), narrows={"b": "a"}))
    assert call(resolver.resolve("b", session=Session(clock=Clock()))) == "allowed"
    assert call(resolver.resolve("a", session=Session(clock=Clock()))) == "budget"


@pytest.mark.parametrize("independent", [False, True])
def test_a_child_spends_of_every_pot_above_it(independent: bool) -> None:
    parent = body("a", ALLOW, limits=[limit("2")], delegate={"to": {"b": {"independent": independent}}})
    resolver = Resolver(program(TOOLS, parent, body("b", ALLOW)))
    above = resolver.resolve("a", session=Session(clock=Clock()))
    child = resolver.resolve("b", parent=above, session=Session(clock=Clock()))
    assert [call(child), call(above), call(child), call(above)] == ["allowed", "allowed", "budget", "budget"]


def test_a_ledger_that_cannot_be_reached() -> None:
    run = start(limit("5"))
    run.session.ledger = False
    assert call(run) == "ledger-unavailable"
    assert (
        Resolver(program(TOOLS, body("a", ALLOW))).resolve("a", session=Session(ledger=False)).decide("ping", {}).effect
        == "allow"
    )


def test_what_a_call_would_spend() -> None:
    run = start(limit("5"))
    call(run)
    assert run.decide("ping", {}).charges == [
        {"limit": None, "unit": "calls", "amount": "1", "spent": "1", "of": "5", "pot": "agent:a", "value": None}
    ]


# --- permits, labels, history ------------------------------------------------------------------------------------


def test_nothing_is_permitted_that_would_not_be_decided_so() -> None:
    resolver = Resolver(program(TOOLS, body("a", rule("allow", "0"), rule("ask", "0", leaf("args.to", "==", "boss")))))
    run = resolver.resolve("a", session=Session(interactive=True))
    denied, asked = run.decide("pong", {}), run.decide("ping", {"to": "boss"})
    for decision in (denied, asked):
        with pytest.raises(PermitError):
            run.permit(decision)
    assert run.permit(asked, approved=True).effect == "ask"
    forged = run.decide("pong", {})
    forged.effect = "allow"
    with pytest.raises(PermitError):
        run.permit(forged)
    with pytest.raises(PermitError, match="another execution"):
        resolver.resolve("a").permit(asked)


def test_labels_are_put_on_by_what_is_permitted() -> None:
    marks = [
        rule("mark", "0", label="seen"),
        rule("mark", "0", leaf("args.to", "==", "x"), label="x"),
        rule("deny", "1", {"marked": "x"}),
    ]
    run = Resolver(program(TOOLS, body("a", ALLOW, *marks), labels=["seen", "x"])).resolve("a")
    run.decide("ping", {"to": "x"})
    assert run.session.labels == frozenset()
    run.permit(run.decide("ping", {"to": "y"}), ok=False)
    assert run.session.labels == {"seen"}
    assert call(run, "pong") == "allowed"
    run.permit(run.decide("ping", {}))  # what cannot be told marks
    assert run.session.labels == {"seen", "x"}
    assert call(run, "pong") == "denied"


REQUIRES: dict[str, tuple[dict[str, Any], list[Entry] | None, str]] = {
    "nothing before": ({}, [], "precondition"),
    "done before": ({}, [Entry("ping", {})], "allowed"),
    "another tool": ({}, [Entry("pong", {})], "precondition"),
    "a tool of a server": ({}, [Entry(("srv", "ping"), {})], "precondition"),
    "it failed": ({}, [Entry("ping", {}, ok=False)], "precondition"),
    "in time": ({"within": "60"}, [Entry("ping", {}, at=940.0)], "allowed"),
    "too long ago": ({"within": "60"}, [Entry("ping", {}, at=939.0)], "precondition"),
    "the same argument": ({"same": [["n"]]}, [Entry("ping", {"n": 7.0})], "allowed"),
    "another argument": ({"same": [["n"]]}, [Entry("ping", {"n": 8})], "precondition"),
    "another letter case": ({"same": [["to"]]}, [Entry("ping", {"to": "X"})], "precondition"),
    "not sent then": ({"same": [["n"]]}, [Entry("ping", {})], "precondition"),
    "not sent now": ({"same": [["l"]]}, [Entry("ping", {"l": ["a"]})], "precondition"),
    "a history that cannot be read": ({}, None, "precondition"),
}


@pytest.mark.parametrize("case", REQUIRES)
def test_preconditions(case: str) -> None:
    require, history, reason = REQUIRES[case]
    compiled = program(TOOLS, body("a", ALLOW, require=[{"earlier": "0", "later": "1", **require}]))
    session = Session(history=history, clock=Clock(1_000.0))
    assert Resolver(compiled).resolve("a", session=session).decide("pong", {"n": 7, "to": "x"}).reason == reason


def test_whose_history_counts() -> None:
    def resolver(**more: Any) -> Resolver:
        require = [{"earlier": "0", "later": "1", **more}]
        return Resolver(
            program(
                TOOLS, body("a", ALLOW, require=require, delegate={"to": {"b": {}}}), body("b", ALLOW, require=require)
            )
        )

    def then(one: Resolver, client: str) -> str:
        call(one.resolve("b", session=Session(client="c", clock=Clock())))
        return call(one.resolve("a", session=Session(client=client, clock=Clock())), "pong")

    assert then(resolver(), "c") == "precondition"
    assert then(resolver(by_any_agent=True), "c") == "allowed"
    assert then(resolver(by_any_agent=True), "other") == "precondition"
    one = resolver()
    above = one.resolve("a", session=Session(clock=Clock()))
    call(above)
    assert call(one.resolve("b", parent=above, session=Session(clock=Clock())), "pong") == "allowed"


def test_a_call_counts_in_a_bounded_number_of_pots() -> None:
    everyone = tool("send", schema(to={"kind": "list", "item": {"kind": "string"}}))
    each = limit("3", each=["args", "to"])
    execution = run([everyone], rule("allow", "0"), limits=[each])
    names = [str(number) for number in range(MAX_POTS_OF_CALL + 1)]
    assert execution.decide("send", {"to": names[1:]}).effect == "allow"
    over = execution.decide("send", {"to": names})
    assert (over.reason, over.note) == ("budget", "the argument that a limit keeps pots by has more than 1000 elements")

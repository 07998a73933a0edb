"""More of budgets: windows of the calendar, pots for each value, limits at every level of a tree, nothing and less."""

import asyncio
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from policy_lang import PolicyError, loads
from tests.clock import Clock
from tests.daemon.world import World
from tests.runtime.scene import TOOLS, Scene
from zcpolicy import ResolvedAgentExecution
from zcpolicy.daemon.paths.run import run_once
from zcpolicy.ledgers.contract import Ledger, Reserved
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.messages import ModelRequest, ModelResponse, Usage
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import ToolContext, ToolResult
from zcpolicy.sessions import fork, restore, save

LOOK = ("look", {"at": "x"})
MAIL = ("mail", {"to": "bob"})


def at(text: str) -> float:
    """Seconds of a time in UTC, `2026-03-28T23:30`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def looks(scene: Scene, **more: Any) -> str:
    return scene.call(*LOOK, **more)


# --- windows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "used", "before", "after"),
    [
        ('calendar month in "Europe/Berlin"', "2026-01-31T22:30", "2026-01-31T22:59", "2026-01-31T23:01"),
        ('calendar month in "UTC"', "2026-02-01T00:00", "2026-02-28T23:59", "2026-03-01T00:00"),
        ('calendar day in "Europe/Berlin"', "2026-03-28T23:30", "2026-03-29T21:59", "2026-03-29T22:00"),  # 23 hours
        ('calendar day in "Europe/Berlin"', "2026-10-24T22:30", "2026-10-25T22:59", "2026-10-25T23:00"),  # 25 hours
        ("hour", "2026-01-31T22:30", "2026-01-31T23:29", "2026-01-31T23:31"),
        ("90m", "2026-01-31T22:30", "2026-01-31T23:59", "2026-02-01T00:01"),
    ],
)
@pytest.mark.parametrize("anew", [False, True])
def test_a_window_ends_where_it_ends_also_for_a_session_that_was_saved(
    anew: bool, window: str, used: str, before: str, after: str
) -> None:
    scene = Scene(f"agent worker {{ allow any; limit 1 calls to look per {window} }}", clock=Clock(at(used)))
    assert looks(scene) == "ran"
    if anew:
        scene.session = restore(save(scene.session), clock=scene.clock)
    scene.clock.now = at(before)
    assert looks(scene) == "budget"
    scene.clock.now = at(after)
    assert looks(scene) == "ran"
    assert looks(scene) == "budget"


@pytest.mark.parametrize(
    ("window", "seconds"),
    [
        ("hour", 3400), ("session", None), ("turn", None), ('calendar day in "UTC"', 43_000),
    ],
)  # fmt: skip
def test_when_to_come_back(window: str, seconds: float | None) -> None:
    """Of a rolling window: when the first of what was spent is out of it."""
    scene = Scene(f"agent worker {{ allow any; limit 2 calls to look per {window} }}")
    run = scene.resolver.resolve("worker", session=scene.session)
    for wait in (0, 100):
        scene.clock.now += wait
        run.permit(run.decide("look", {"at": "x"}))
    scene.clock.now += 100
    decision = run.decide("look", {"at": "x"})
    assert (decision.reason, decision.retry_after) == ("budget", seconds)


def test_what_was_refused_counts_nowhere() -> None:
    scene = Scene("agent worker { allow any; deny shell; ask mail; limit 1 calls to any }")
    for wire, given in (
        ("shell", {"command": "ls"}),
        ("look", {}),
        ("look", "[1]"),
        ("nothing", {}),
        ("look", {"at": "x", "more": 1}),
    ):
        assert scene.call(wire, given) != "ran"
    assert looks(scene) == "ran"
    assert looks(scene) == "budget"


# --- pots for each value ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "ends"),
    [
        ("Strasse", "STRASSE", "budget"),
        ("Straße", "STRASSE", "budget"),
        ("é", "e\N{COMBINING ACUTE ACCENT}", "budget"),
        ("ann", "ann ", "ran"),
        ("", "", "budget"),
        ("1", "01", "ran"),
    ],
)
def test_values_that_are_one_have_one_pot(first: str, second: str, ends: str) -> None:
    scene = Scene("agent worker { allow any; limit 1 calls to mail for each args.to }")
    assert scene.call("mail", {"to": first}) == "ran"
    assert scene.call("mail", {"to": second}) == ends


@pytest.mark.parametrize(
    ("lists", "ends"),
    [
        ([["a", "a", "A"], ["a"]], ["ran", "ran"]),
        ([["a", "b"], ["b", "c"], ["b"]], ["ran", "ran", "budget"]),
        ([["a"], ["a"], ["c", "a"], ["c"]], ["ran", "ran", "budget", "ran"]),
    ],
)
def test_a_list_counts_in_the_pot_of_each_of_its_elements(lists: list[list[str]], ends: list[str]) -> None:
    scene = Scene(
        "tool lamp(to: list<string>) risk low\nagent worker { allow any; limit 2 calls to lamp for each args.to }"
    )
    run = scene.resolver.resolve("worker", session=scene.session)
    went: list[str] = []
    for one in lists:
        decision = run.decide("lamp", {"to": one})
        went.append("ran" if decision.effect == "allow" else decision.reason)
        if decision.effect == "allow":
            run.permit(decision)
    assert went == ends


@pytest.mark.parametrize(
    ("amounts", "ends"),
    [
        (["0.1", "0.1", "0.1", "0.000001"], ["ran", "ran", "ran", "budget"]),
        (["-1"], ["budget"]),
        (["0", "0", "0.3", "0"], ["ran", "ran", "ran", "ran"]),
        (["0.4", "0.3"], ["budget", "ran"]),
        (["3e-1", "1e-400"], ["ran", "budget"]),
    ],
)
def test_sums_are_exact(amounts: list[str], ends: list[str]) -> None:
    scene = Scene("agent worker { allow any; limit 0.3 sum args.amount to pay per day }")
    assert [scene.call("pay", f'{{"amount": {one}}}') for one in amounts] == ends


def test_what_is_not_said_is_denied_and_what_the_host_writes_is_said() -> None:
    scene = Scene(
        'tool lamp(to?: string, amount?: number) risk low\ntool bulb(to?: string = "a") risk low\n'
        "agent worker { allow any; limit 1 calls to lamp, bulb for each args.to; limit 5 sum args.amount to lamp }"
    )
    run = scene.resolver.resolve("worker", session=scene.session)

    def went(tool: str, given: dict[str, Any]) -> str:
        decision = run.decide(tool, given)
        if decision.effect == "allow":
            run.permit(decision)
        return decision.reason

    assert [went("lamp", {}), went("lamp", {"to": "z"}), went("lamp", {"amount": 1})] == ["budget"] * 3
    assert [went("lamp", {"to": "z", "amount": 5}), went("lamp", {"to": "y", "amount": 1})] == ["allowed", "budget"]
    assert [went("bulb", {}), went("bulb", {"to": "A"}), went("bulb", {"to": "b"})] == ["allowed", "budget", "allowed"]


# --- nothing, and less --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit",
    ["-1 calls", "1.5 calls", "-1.00 usd", "1.5 iterations", "-5m time", "0.5 concurrent calls", "-1 tokens", "1.0000001 usd"],
)  # fmt: skip
def test_a_limit_is_no_part_of_a_call_and_never_less_than_none(limit: str) -> None:
    with pytest.raises(PolicyError):
        loads(f"{TOOLS} agent worker {{ allow look; limit {limit} per day }}")


@pytest.mark.parametrize("limit", ["0 iterations per turn", "0 tokens", "0 usd", "0s time"])
def test_where_nothing_may_be_spent_no_model_is_asked(limit: str) -> None:
    scene = Scene(f"agent worker {{ allow any; limit {limit} }}")
    went = scene.play("done", access={"prices": Flat("0.01")})
    assert (went.result.status, went.model.requests) == ("stopped", [])


class Flat:
    """A price of each response, or none of one model."""

    def __init__(self, price: str, unpriced: str = "") -> None:
        self.price, self.unpriced = Decimal(price), unpriced

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal] | None:
        return None if model == self.unpriced else {"usd": self.price}


def test_what_is_free_runs_where_no_money_may_be_spent() -> None:
    scene = Scene("agent worker { allow any; limit 0 usd }")
    assert scene.play("done", access={"prices": Flat("0")}).result.status == "done"


@pytest.mark.parametrize(
    ("rules", "ends"),
    [
        ("limit 0 concurrent calls to look", "budget"),
        ("limit 0 calls", "budget"),
        ("limit 0 calls to mail", "ran"),
        ("limit 0 delegations", "ran"),
        ("limit 0 sum args.amount to pay", "ran"),
    ],
)
def test_none_of_what(rules: str, ends: str) -> None:
    assert looks(Scene(f"agent worker {{ allow any; {rules} }}")) == ends


# --- whose pot ----------------------------------------------------------------------------------------------------------

EACH = ("agent worker { allow any; delegate to free, third; delegate depth 3; %s }\n"
        "agent free { allow any; delegate to third; delegate depth 3; %s }\nagent third { allow any; %s }\n")  # fmt: skip


@pytest.mark.parametrize("limit", ["limit 3 calls to look for each session", "limit 3 calls to look"])
def test_a_child_spends_what_its_parents_session_has(limit: str) -> None:
    scene = Scene(EACH % (limit, "", ""))
    above = scene.resolver.resolve("worker", session=scene.session)
    scene.play(calls(LOOK, LOOK), "done", agent="free", session=scene.seat("s2"), parent=above)
    scene.play(calls(LOOK, LOOK), "done")
    scene.play(calls(LOOK), "done", agent="free", session=scene.seat("s3"), parent=above)
    assert scene.ends() == ["ran", "ran", "ran", "budget", "budget"]


def test_each_session_of_a_child_has_its_own_and_a_fork_has_none() -> None:
    scene = Scene("agent worker { allow any } ceiling { limit 1 calls to look for each session }")
    first = [looks(scene), looks(scene, session=scene.seat("s2"))]
    later = [looks(scene), looks(scene, session=fork(scene.session)), looks(scene, session=scene.seat("s3"))]
    assert (first, later) == (["ran", "ran"], ["budget", "budget", "ran"])


def test_three_levels_with_a_limit_on_each() -> None:
    scene = Scene(EACH % ("limit 5 calls to look", "limit 3 calls to look", "limit 2 calls to look"))
    first = scene.resolver.resolve("worker", session=scene.session)
    second = scene.resolver.resolve("free", session=scene.seat("s2"), parent=first)
    scene.play(calls(*[LOOK] * 4), "done", agent="third", session=scene.seat("s3"), parent=second)
    assert scene.ends() == ["ran", "ran", "budget", "budget"]
    scene.play(calls(*[LOOK] * 2), "done", agent="free", session=scene.seat("s2"), parent=first)
    assert scene.ends()[4:] == ["ran", "budget"]
    scene.play(calls(*[LOOK] * 3), "done")
    assert scene.ends()[6:] == ["ran", "ran", "budget"]


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        ("profile p { limit 1 calls to look per day } agent worker { use p; allow any } agent free { use p; allow any }", ["ran", "ran"]),
        ("agent worker { allow any } agent free { allow any } ceiling { limit 1 calls to look per day }", ["ran", "budget"]),
        ("agent worker { allow any; limit 1 calls to look per day } agent free narrows worker { deny mail }", ["ran", "budget"]),
        ("agent worker { allow any } agent free narrows worker { limit 1 calls to look per day }", ["ran", "ran"]),
        ("agent worker { allow any } agent free { allow any } ceiling { limit 1 calls to look per day for each agent }", ["ran", "ran"]),
        ("agent worker { allow any } agent free { allow any } ceiling { limit 1 calls to look per day for each client }", ["ran", "budget"]),
    ],
)  # fmt: skip
def test_whose_pot_it_is(policy: str, ends: list[str]) -> None:
    scene = Scene(policy)
    assert [looks(scene), looks(scene, agent="free", session=scene.seat("s2"))] == ends


# --- children under money -----------------------------------------------------------------------------------------------


class Priced(World):
    """Models with a price each."""

    prices: Any = Flat("1.00")

    def access(self, agent: str) -> ResolvedModelAccess:
        return ResolvedModelAccess(self.models[agent], self.prices, 10)


UNDER = """
agent worker { allow any; delegate to free%s; %s }
agent free { allow any except delegate; %s }
"""
INDEPENDENT = ' independent because "it is trusted"'


def once(request: ModelRequest) -> ModelResponse | str:
    """A child that makes a call, and is done once it has its result."""
    return "done" if request.messages[-1].role == "tool" else calls(("cron_add", {"text": "x"}))


def below(world: World, free: bool) -> None:
    """`worker` hands over twice, and is done."""
    hand = ("delegate", {"agent": "free", "task": "do it", "independent": free})
    world.script("worker", calls(hand), calls(hand), "done")
    world.script("free", *[once] * 4)
    asyncio.run(run_once(world.host, "worker", "have it done"))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    ("rules", "ceiling"), [("limit 4.00 usd", ""), ("", "ceiling { limit 4.00 usd per day }")], ids=["root", "ceiling"]
)
def test_a_child_without_a_price_is_not_asked_under_the_money_of_its_root(
    rules: str, ceiling: str, free: bool, tmp_path: Path
) -> None:
    world = Priced(UNDER % (INDEPENDENT if free else "", rules, "") + ceiling, tmp_path)
    world.prices = Flat("1.00", unpriced="model of free")
    below(world, free)
    assert (world.ran, len(world.models["free"].requests)) == ([], 0)
    assert len(world.models["worker"].requests) == 3  # whose own model has one


@pytest.mark.parametrize("free", [False, True])
def test_a_child_without_a_price_runs_where_no_money_is_limited(free: bool, tmp_path: Path) -> None:
    world = Priced(UNDER % (INDEPENDENT if free else "", "", ""), tmp_path)
    world.prices = Flat("1.00", unpriced="model of free")
    below(world, free)
    assert world.ran == [("free", "cron_add")] * 2


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    ("rules", "own", "ran"),
    [
        ("limit 7.00 usd", "", 2), ("limit 5.00 usd", "", 2), ("limit 4.00 usd", "", 1), ("limit 2.00 usd", "", 1), ("limit 1.00 usd", "", 0),
        ("", "limit 1.00 usd", 2), ("", "limit 1.00 usd per day", 1), ("limit 9.00 usd", "limit 3.00 usd per day", 2),
        ("limit 0 delegations", "", 0), ("limit 1 delegations", "", 1), ("limit 1 calls to cron_add", "", 1),
    ],
)  # fmt: skip
def test_a_child_spends_from_the_money_of_its_root(rules: str, own: str, ran: int, free: bool, tmp_path: Path) -> None:
    """Each response costs 1.00: one of the worker, two of a child, one of the worker, two of a child, one of the worker."""
    world = Priced(UNDER % (INDEPENDENT if free else "", rules, own), tmp_path)
    below(world, free)
    assert world.ran == [("free", "cron_add")] * ran


# --- pipelines ----------------------------------------------------------------------------------------------------------


def steps(*wanted: tuple[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    return ("pipeline", {"steps": [{"tool": tool, "arguments": given} for tool, given in wanted]})


@pytest.mark.parametrize(
    ("limit", "ran"),
    [
        ("limit 5 calls to any", 3), ("limit 4 calls to any", 0), ("limit 2 calls to look", 0), ("limit 3 calls to look", 3),
        ("limit 1 calls to pipeline", 0), ("limit 2 calls to pipeline", 3),
    ],
)  # fmt: skip
def test_a_pipeline_within_a_pipeline_counts_each_of_its_calls(limit: str, ran: int) -> None:
    """Two pipelines and three looks. One that has no room for all of its steps runs none."""
    scene = Scene(f"agent worker {{ allow any; {limit} }}")
    scene.play(calls(steps(steps(LOOK, LOOK, LOOK))), "done")
    assert len(scene.ran) == ran


@pytest.mark.parametrize(
    ("limit", "ran"),
    [
        ("limit 1 concurrent calls to look", 3), ("limit 0 concurrent calls to look", 0),
        ("limit 1 concurrent calls", 0), ("limit 2 concurrent calls", 3), ("limit 2 calls to look", 0),
    ],
)  # fmt: skip
def test_steps_that_run_one_after_the_other_need_one_place(limit: str, ran: int, ledger: Ledger) -> None:
    """The pipeline itself runs all the while."""
    scene = Scene(f"agent worker {{ allow any; {limit} }}", ledger=ledger)
    for _ in range(2):  # and it is given back
        scene.play(calls(steps(LOOK, LOOK, LOOK)), "done", session=scene.seat(secrets.token_hex(4)))
        assert len(scene.ran) == ran
        scene.ran.clear()


def test_a_step_whose_place_is_taken_meanwhile_is_not_made() -> None:
    """Neither are those after it. Another turn takes the place while the first step runs, and keeps it."""
    policy = "agent worker { allow any; limit 1 concurrent calls to mail }"

    async def between(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        other = scene.resolver.resolve("worker", session=scene.session)
        assert other.budgets.dispatch(taken(other, "other"))
        return ToolResult("looked")

    scene = Scene(policy, look=between)
    scene.play(calls(steps(LOOK, ("mail", {"to": "x"}), LOOK)), "done")
    assert scene.names == ["look"]


def taken(run: ResolvedAgentExecution, key: str) -> str:
    assert isinstance(run.budgets.reserve(run.decide("mail", {"to": "y"}), key), Reserved)
    return key


def test_two_pipelines_at_once_run_whole_or_not_at_all() -> None:
    scene = Scene("agent worker { allow any; limit 3 calls to look; runtime { parallel_tools on } }")
    scene.play(calls(steps(LOOK, LOOK), steps(LOOK, LOOK)), "done")
    assert len(scene.ran) == 2


@pytest.mark.parametrize("inner", [("shell", {"command": "ls"}), ("look", {}), ("nothing", {})])
def test_a_pipeline_within_a_pipeline_with_a_step_that_may_not_run(inner: tuple[str, dict[str, Any]]) -> None:
    scene = Scene("agent worker { allow any; deny shell }")
    scene.play(calls(steps(steps(LOOK, inner))), "done")
    assert scene.ran == []


@pytest.mark.parametrize("limit", ["limit 1 concurrent calls to look", "limit 1 concurrent calls"])
def test_calls_one_after_the_other_need_one_place(limit: str) -> None:
    scene = Scene(f"agent worker {{ allow any; {limit}; runtime {{ parallel_tools off }} }}")
    scene.play(calls(LOOK, LOOK, LOOK), "done")
    assert scene.ends() == ["ran", "ran", "ran"]


def test_usage_of_less_than_nothing_gives_nothing_back() -> None:
    scene = Scene("agent worker { allow any; limit 5_000 tokens }")
    scene.play(calls(LOOK, usage=Usage(-100_000, -100_000)), "done", "done")
    spent = sum(entry.charge.amount for entry in scene.resolver.ledger.entries() if entry.charge.unit == "tokens")
    assert spent > 0

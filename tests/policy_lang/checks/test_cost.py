"""The checks stay linear: shapes that tempt a check to compare everything with everything."""

import time
from collections.abc import Callable

import pytest

from policy_lang.checks import run_checks
from policy_lang.gather import Root, gather
from policy_lang.names.bind import bind
from policy_lang.source import Source
from tests.policy_lang.checks.judging import PROJECT

N = 3_000
SECONDS = 20.0
"""Of processor time. Linear checks need less than one, a few where coverage is measured; a quadratic one needs minutes."""

TOOLS = "zcpolicy 1\n" + "".join(f"tool t{n}(n: integer, s?: string, p: path) risk high\n" for n in range(100))


def body(statement: Callable[[int], str]) -> str:
    return "agent a {\n    allow any\n" + "".join(f"    {statement(n)}\n" for n in range(N)) + "}\n"


def one_rule(separator: str, test: Callable[[int], str]) -> str:
    return f"agent a {{ allow t1 when {separator.join(test(n) for n in range(N))} }}"


SHAPES = {
    "the same deny again and again": body(lambda n: f"deny t{n % 100}"),
    "dead rules and what kills them": body(lambda n: f"allow t{n % 100}\n    deny t{n % 100}"),
    "conditions on the same tools": body(lambda n: f"deny t{n % 100} when args.n > {n % 50}"),
    "an approval for each condition": body(lambda n: f"allow t{n % 100} with approval when args.n > {n}"),
    "an only for each tool": body(lambda n: f"only t{n % 100}, t1"),
    "limits of every shape": body(lambda n: f"limit {n} calls to t{n % 100} per {n % 99 + 1}s"),
    "a conjunction": one_rule(" and ", lambda n: f"args.n != {n}"),
    "a disjunction": one_rule(" or ", lambda n: f'args.s == "{n}"'),
    "a product": one_rule(" and ", lambda n: f"(args.n == {n} or args.n == {n + 1})"),
    "every of many": one_rule(" or ", lambda n: f'every paths under "/{n}"'),
    "two long lists": one_rule(" and ", lambda n: f"args.n != {n}").replace("}", "and args.s in [")
    + ", ".join(f'"{n}"' for n in range(N))
    + '] and args.s like ["x", '
    + ", ".join(f'"a{n}*"' for n in range(N))
    + "] }",
    "a ring of delegates": "".join(f"agent a{n} {{ allow t{n % 100}; delegate to a{(n + 1) % N} }}\n" for n in range(N)),
    "a chain of narrowings": "agent a0 { allow any }\n" + "".join(f"agent a{n} narrows a{n - 1} {{ deny t{n % 100}; limit {N - n} calls }}\n" for n in range(1, 900)),
}  # fmt: skip


@pytest.mark.parametrize("policy", SHAPES.values(), ids=SHAPES.keys())
def test_no_check_compares_everything_with_everything(policy: str) -> None:
    gathered, found = gather([Root(Source("policy", TOOLS + policy), PROJECT)])
    bound, of_names = bind(gathered)
    assert [d.message for d in (*found, *of_names) if d.severity == "error"] == []
    start = time.process_time()
    run_checks(bound)
    assert time.process_time() - start < SECONDS

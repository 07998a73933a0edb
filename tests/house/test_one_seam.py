"""There is no seventh way: what makes executions and registries, runs turns, calls models and runs tools is called in one place.

The scan reads every file of both packages. A call that is not where it belongs fails, and so does a place that is listed and
has no such call any more. import-linter (pyproject.toml) holds the same by imports.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from .blocks import ROOT

ENGINE = ROOT / "engine"
HOST = "zcpolicy/daemon/host.py"
DIRECT = "zcpolicy/parity/direct.py"  # what the harness compares every path with
TOOLS = {  # programs of the command line and of the tests in policy files: they decide, and run nothing
    "policy_lang/testing.py", "policy_lang/checks/witness.py", "policy_lang/cli/decide.py", "policy_lang/cli/resolve.py",
}  # fmt: skip

PLACES: dict[str, set[str]] = {
    ".resolve(agent": {HOST, DIRECT, "zcpolicy/resolver.py", "zcpolicy/tickets.py", *TOOLS},
    ".resume(ticket": {HOST},
    "ScopedToolRegistry.assemble": {HOST, DIRECT},
    "run_tool_call_loop": {HOST, DIRECT},
    "execution(State": {"zcpolicy/resolver.py"},
    "State(": {"zcpolicy/resolver.py"},
    "enrol": {"zcpolicy/execution.py"},
    "__new__(ResolvedAgentExecution)": {"zcpolicy/execution.py"},
    "__new__(ScopedToolRegistry)": {"zcpolicy/registry/scoped.py"},
    "model.stream(": {"zcpolicy/loop/asked_model.py"},
    "runner_of": {"zcpolicy/loop/gate.py"},
    "host.turn(": {
        f"zcpolicy/daemon/paths/{one}.py" for one in ("channel", "rpc", "gateway", "run", "delegate", "step")
    }
    | {"zcpolicy/parity/reference.py"},
}
"""What is called, and the files that may call it, each of which does."""


def called(node: ast.Call) -> Iterator[str]:
    """Which of the calls of `PLACES` this is."""
    function = node.func
    bare = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    given = {one.arg for one in node.keywords}
    if isinstance(function, ast.Attribute):
        if function.attr == "resolve" and (node.args or "session" in given or "parent" in given):
            yield ".resolve(agent"
        if function.attr == "resume" and node.args:
            yield ".resume(ticket"
        if function.attr == "stream" and node.args:
            yield "model.stream("
        if function.attr == "turn" and ast.unparse(function).endswith("host.turn"):
            yield "host.turn("
        if function.attr == "__new__" and node.args:
            yield f"__new__({ast.unparse(node.args[0])})"
    if bare == "assemble":
        yield "ScopedToolRegistry.assemble"
    if bare in ("run_tool_call_loop", "enrol", "runner_of"):
        yield bare
    if bare == "State":
        yield "State("
    if bare == "execution" and isinstance(function, ast.Name):
        yield "execution(State"


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def found(file: Path) -> set[str]:
    tree = tree_of(file)
    return {what for node in ast.walk(tree) if isinstance(node, ast.Call) for what in called(node)}


def mentioned(file: Path) -> set[str]:
    """Names that are handed on or imported without being called: `turn = run_tool_call_loop` is no way round."""
    tree = tree_of(file)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return names


def sources() -> dict[str, Path]:
    return {
        str(path.relative_to(root)): path
        for root, folder in ((ENGINE, ENGINE / "zcpolicy"), (ROOT, ROOT / "policy_lang"))
        for path in sorted(folder.rglob("*.py"))
    }


@pytest.mark.parametrize("what", PLACES)
def test_it_is_called_where_it_belongs_and_nowhere_else(what: str) -> None:
    callers = {name for name, path in sources().items() if what in found(path)}
    assert callers == PLACES[what]


def test_what_runs_a_turn_is_not_handed_on() -> None:
    """The loop's own package says its name; nobody else may hold it without calling it."""
    holders = {
        name
        for name, path in sources().items()
        if {"run_tool_call_loop", "runner_of", "enrol"} & mentioned(path) and not name.startswith("zcpolicy/loop/")
    }
    names = "zcpolicy/__init__.py"  # for hosts: tests/house/test_names.py
    makers = {HOST, DIRECT, names, "zcpolicy/registry/scoped.py", "zcpolicy/authority.py", "zcpolicy/execution.py"}
    assert holders <= makers


SEVENTH = {
    "resume without the host": ("def review(resolver, ticket):\n    return resolver.resume(ticket, {}.get)", ".resume(ticket"),
    "a review in the background": ("async def review(run, model, io):\n    await run_tool_call_loop(run, model, io, [])", "run_tool_call_loop"),
    "the same by another name": ("import zcpolicy.loop.loop as l\nasync def f(*a):\n    await l.run_tool_call_loop(*a)", "run_tool_call_loop"),
    "a registry of its own": ("async def f(run, s):\n    return await ScopedToolRegistry.assemble(run, s)", "ScopedToolRegistry.assemble"),
    "an execution of its own": ("def f(r, s):\n    return r.resolve('a', session=s)", ".resolve(agent"),
    "a model that is asked directly": ("def f(model, request):\n    return model.stream(request)", "model.stream("),
    "a forged record": ("def f(*a):\n    return execution(State(*a))", "execution(State"),
    "an object without its maker": ("def f():\n    return object.__new__(ResolvedAgentExecution)", "__new__(ResolvedAgentExecution)"),
}  # fmt: skip


@pytest.mark.parametrize("case", SEVENTH)
def test_a_seventh_way_is_seen(case: str, tmp_path: Path) -> None:
    text, what = SEVENTH[case]
    file = tmp_path / "seventh.py"
    file.write_text(text, encoding="utf-8")
    assert what in found(file)

"""The reference pages name what there is, and nothing else."""

import inspect
import re
from typing import get_args

import pytest

from policy_lang import ast
from policy_lang.cli.app import COMMANDS
from zcpolicy.combine import REASONS
from zcpolicy.facts import Session
from zcpolicy.shapes import Schema

from .blocks import ROOT

REFERENCE = ROOT / "docs/reference"
WORDS = {  # how each declaration and statement begins
    ast.Edition: "zcpolicy 1", ast.Catalog: "catalog", ast.Import: "import", ast.Tool: "tool", ast.Server: "server", ast.Risk: "risk",
    ast.Label: "label", ast.Scope: "scope", ast.Let: "let", ast.Group: "group", ast.Bundle: "bundle", ast.Context: "context",
    ast.Skill: "skill", ast.Profile: "profile", ast.Agent: "agent", ast.Ceiling: "ceiling", ast.AgentsAllowed: "agents allowed",
    ast.TestBlock: "test", ast.Only: "only", ast.Autonomy: "autonomy", ast.Limit: "limit", ast.Connect: "connect",
    ast.Skills: "skills", ast.Memory: "memory", ast.Delegate: "delegate to", ast.DelegateDepth: "delegate depth",
    ast.DelegateNone: "delegate none", ast.Approval: "approval", ast.Runtime: "runtime", ast.Require: "require",
    ast.OnDrift: "on drift", ast.Use: "use",
}  # fmt: skip


def first_cells(page: str) -> list[str]:
    """The code in the first column of a page's tables."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    rows = [line.replace("\\|", "¦").split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row)]


def test_every_reason_in_its_order() -> None:
    assert first_cells("reasons.md") == list(REASONS)


def test_every_reason_has_a_way_out() -> None:
    page = ROOT / "docs/guide/7-why-was-my-call-denied.md"
    rows = [line.split("|")[1:-1] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [row[0].strip() for row in rows] == [f"`{reason}`" for reason in REASONS]
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in rows)


def test_every_fact_of_a_session_that_a_host_gives() -> None:
    text = (ROOT / "docs/facts.md").read_text(encoding="utf-8").partition("## All of them")[2]
    told = set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))
    given = set(inspect.signature(Session).parameters)
    elsewhere = {"labels", "history", "clock", "turn", "above", "drift", "ledger"}  # no facts of what surrounds a call
    assert given - elsewhere == told


def test_every_operator() -> None:
    told = " ".join(first_cells("operators.md"))
    assert [operator for operator in get_args(ast.Operator) if operator not in told] == []


def test_every_kind() -> None:
    kinds = set(get_args(Schema.__annotations__["kind"]))
    told = {kind.partition("<")[0] for kind in first_cells("kinds.md")}
    assert kinds - {"null"} == told


@pytest.mark.parametrize("node", [*get_args(ast.Declaration), *get_args(ast.Statement)], ids=lambda node: node.__name__)
def test_every_statement(node: type) -> None:
    told = first_cells("statements.md")
    words = get_args(ast.Effect) if node is ast.Rule else (WORDS[node],)
    for word in words:
        assert any(cell == word or cell.startswith(f"{word} ") for cell in told)


def test_every_command() -> None:
    told = {cell.split()[1] for cell in first_cells("command-line.md")}
    assert told == set(COMMANDS)

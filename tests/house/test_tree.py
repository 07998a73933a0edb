"""What holds for every file of the tree: its words, its sizes, its imports."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .blocks import ROOT

MAX_LINES = 500  # the goal is 300
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc", "shared"}
LONG_WITH_A_REASON = {
    "policy_lang/ast.py",  # one closed set of types, read as a list
}
KEPT_AS_THEY_CAME = ("bench/",)


def tracked(pattern: str) -> list[Path]:
    """The files under version control, and those that are about to be, below these patterns."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


PACKAGES = [*tracked("policy_lang/*.py"), *tracked("engine/*.py")]
TESTS = tracked("tests/*.py")
ENGINE = ROOT / "engine/zcpolicy"
OUTSIDE_THE_CORE = {"prices.py"}  # wraps a library, and is loaded by the hosts that want it
IN_PROCESS_LEDGER = {"contract.py", "book.py", "memory.py", "reservations.py"}  # every resolver makes one
CORE = [
    p
    for p in PACKAGES
    if (p.parent == ENGINE and p.name not in OUTSIDE_THE_CORE)
    or (p.parent == ENGINE / "ledgers" and p.name in IN_PROCESS_LEDGER)
]
"""What a decision loads. Loops, hosts, registries and stores are loaded by those that use them."""


def lines_with(pattern: str, files: list[Path]) -> list[str]:
    wanted = re.compile(pattern)
    return [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        if not str(file.relative_to(ROOT)).startswith(KEPT_AS_THEY_CAME)
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if wanted.search(line)
    ]


def imports(file: Path) -> Iterator[str]:
    """Every module that a file imports anywhere, functions included."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_nothing_names_a_place_on_the_machine_it_was_written_on() -> None:
    text = [p for p in tracked("*") if p.suffix not in {".json", ".lock", ".png"}]
    assert lines_with(r"(?<!\w)/" + r"(work/(main|shared|tmp)|root/|tmp/team)", text) == []


def test_nothing_is_left_for_later() -> None:
    assert lines_with(r"\bTODO\b|\bFIXME\b|\bXXX\b|NotImplementedError", PACKAGES) == []


def test_no_test_is_switched_off() -> None:
    assert lines_with(r"mark\." + r"(skip|xfail)|pytest\." + r"skip\(", TESTS) == []


def test_silenced_findings_say_which_and_why() -> None:
    ignored = [*lines_with(r"#\s*type:\s*ignore|#\s*pyright:\s*ignore|#\s*noqa", PACKAGES)]
    unreasoned = [
        line
        for line in ignored
        if not re.search(r"(ignore\[[\w,\s-]+\]|noqa: [A-Z]+\d+(, [A-Z]+\d+)*)\s+(-|#|–)", line)
    ]
    assert unreasoned == []


@pytest.mark.parametrize("file", PACKAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_can_be_read_in_one_sitting(file: Path) -> None:
    assert file.stem not in VAGUE
    lines = len(file.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES or str(file.relative_to(ROOT)) in LONG_WITH_A_REASON


@pytest.mark.parametrize(
    "file", [p for p in PACKAGES if p.read_text(encoding="utf-8").strip()], ids=lambda file: str(file.relative_to(ROOT))
)
def test_a_module_says_what_comes_in_and_what_goes_out(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", CORE, ids=lambda file: file.name)
def test_the_core_of_the_engine_imports_the_standard_library_only(file: Path) -> None:
    foreign = {
        name
        for name in imports(file)
        if not name.startswith((".", "zcpolicy")) and name.split(".")[0] not in sys.stdlib_module_names
    }
    assert foreign == set()
    assert "dataclasses" not in set(imports(file)), "costs every start of a hook several milliseconds"


def has_function(file: Path, name: str) -> bool:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


def test_checks_do_not_know_each_other() -> None:
    folder = ROOT / "policy_lang/checks"
    checks = {f"policy_lang.checks.{file.stem}" for file in folder.glob("*.py") if has_function(file, "check")}
    crossing = {
        f"{file.name} -> {name}"
        for file in folder.glob("*.py")
        if file.stem != "__init__"
        for name in checks.intersection(imports(file))
    }
    assert crossing == set()
    assert len(checks) >= 5

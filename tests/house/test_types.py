"""Mistakes that the type checkers have to find: each `# error: TEXT` in tests/typing stands on a line that both refuse.

`TEXT` is what mypy says; `TEXT | TEXT` gives pyright's words after the bar. Nothing else in those files may be refused.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .blocks import ROOT

FILES = sorted((ROOT / "tests/typing").glob("*.py"))
BIN = Path(sys.executable).parent
Found = dict[int, str]


def expected(file: Path) -> Iterator[tuple[int, str, str]]:
    """The line, mypy's words, pyright's words."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if said := re.search(r"# error: (.+)", line):
            mypy, _, pyright = said[1].partition(" | ")
            yield number, mypy, pyright or mypy


def run(*command: str) -> str:
    return subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout


@pytest.fixture(scope="module")
def mypy() -> dict[Path, Found]:
    """What mypy refuses, by file and line."""
    found: dict[Path, Found] = {file: {} for file in FILES}
    for line in run("mypy", "--no-pretty", *map(str, FILES)).splitlines():
        if said := re.match(r"(.+?):(\d+): error: (.+)", line):
            found.setdefault((ROOT / said[1]).resolve(), {}).setdefault(int(said[2]), said[3])
    return found


@pytest.fixture(scope="module")
def pyright() -> dict[Path, Found]:
    """What pyright refuses, by file and line."""
    found: dict[Path, Found] = {file: {} for file in FILES}
    for each in json.loads(run("pyright", "--outputjson", *map(str, FILES)))["generalDiagnostics"]:
        place = each["range"]["start"]["line"] + 1
        found.setdefault(Path(each["file"]), {}).setdefault(place, each["message"])
    return found


def compare(found: Found, wanted: dict[int, str]) -> None:
    assert found.keys() == wanted.keys(), found
    for line, words in wanted.items():
        assert words in found[line], (line, found[line])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_mypy_refuses(file: Path, mypy: dict[Path, Found]) -> None:
    compare(mypy[file], {line: words for line, words, _ in expected(file)})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_pyright_refuses(file: Path, pyright: dict[Path, Found]) -> None:
    compare(pyright[file], {line: words for line, _, words in expected(file)})


def test_there_are_such_files() -> None:
    assert len(FILES) >= 2

"""Mistakes that the type checkers have to find: each `# error: TEXT` in tests/typing stands on a line that both refuse.

`TEXT` is what mypy says; `TEXT || TEXT` gives pyright's words after the bars. Nothing else in those files may be refused.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .blocks import ROOT

FILES = sorted((ROOT / "tests/typing").glob("*.py"))
BIN = Path(sys.executable).parent
Found = dict[int, str]  # line → all that is said of it


def expected(file: Path) -> Iterator[tuple[int, str, str]]:
    """The line, mypy's words, pyright's words."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if said := re.search(r"# error: (.+)", line):
            mypy, _, pyright = said[1].partition(" || ")
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
            add(found, (ROOT / said[1]).resolve(), int(said[2]), said[3])
    return found


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Found]:
    """What pyright refuses, by file and line. The project's own settings leave these files out: copies have their own."""
    folder = tmp_path_factory.mktemp("pyright")
    for file in FILES:
        shutil.copy(file, folder)
    paths = [str(ROOT), str(ROOT / "engine")]
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": paths, "typeCheckingMode": "strict"}))
    found: dict[Path, Found] = {file: {} for file in FILES}
    said = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)))
    for each in said["generalDiagnostics"]:
        place = FILES[0].parent / Path(each["file"]).name
        add(found, place, each["range"]["start"]["line"] + 1, each["message"].replace("\u00a0", " "))
    return found


def add(found: dict[Path, Found], file: Path, line: int, message: str) -> None:
    of_file = found.setdefault(file, {})
    of_file[line] = f"{of_file[line]}\n{message}" if line in of_file else message


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

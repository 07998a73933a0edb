"""The index: a row holds only if its test ran and passed in this very run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parity.own_loop import DIVERGING
from zcpolicy.parity.index import IndexUnusable, Outcome, Row, read_index, wrong
from zcpolicy.parity.settings import SETTINGS

HERE = Path(__file__).parent

OWN = read_index(str(HERE / "index.toml"))


def test_our_own_index_has_a_row_for_every_setting_and_no_other() -> None:
    plain = [row for row in OWN if not row.diverges]
    assert [(row.surface, row.setting) for row in plain] == [(setting.area, setting.name) for setting in SETTINGS]
    ran: dict[str, Outcome] = {row.evidence: "passed" for row in OWN}
    assert wrong(OWN, ran, {setting.name: setting.area for setting in SETTINGS}, DIVERGING, str(HERE)) == []


def row(**said: str) -> Row:
    usual = {
        "surface": "tools",
        "setting": "deny",
        "owner": "us",
        "tracking": "https://example.org/1",
        "evidence": "t.py::test",
    }
    return Row(1, **{**usual, **said})


KNOWN = {"deny": "tools"}

WRONG: dict[str, tuple[Row, Outcome | None, list[str]]] = {
    "as it should be": (row(), "passed", []),
    "a file is followed, also with a place in it": (row(tracking="README.md#x"), "passed", []),
    "a test that was renamed": (
        row(), None, ["row 1 (tools: deny): `t.py::test` is no test of this run: renamed, removed, or outside of what was run"],
    ),
    "a test that failed": (row(), "failed", ["row 1 (tools: deny): `t.py::test` failed"]),
    "a test that was skipped": (row(), "skipped", ["row 1 (tools: deny): `t.py::test` was skipped"]),
    "a test that is marked to fail, and does": (
        row(), "xfailed", ["row 1 (tools: deny): `t.py::test` failed, as it was marked to"],
    ),
    "a test that is marked to fail, and passes": (
        row(), "xpassed", ["row 1 (tools: deny): `t.py::test` passed, though it was marked to fail"],
    ),
    "a test that was deselected": (row(), "deselected", ["row 1 (tools: deny): `t.py::test` was deselected"]),
    "nowhere to follow it": (
        row(tracking="soon"), "passed", ["row 1 (tools: deny): `soon` is neither an https address nor a file that is there"],
    ),
    "a setting that there is not": (
        row(setting="dney"), "passed",
        ["row 1 (tools: dney): there is no such setting", "tools: deny: no row answers for it"],
    ),
    "another surface": (
        row(surface="labels"), "passed", ["row 1 (labels: deny): this setting is of the surface `tools`"],
    ),
    "a divergence is no answer for the other paths": (
        row(diverges="nightly"), "passed", ["tools: deny: no row answers for it"],
    ),
    "a divergence that nobody knows of": (
        row(diverges="daily"), "passed",
        [
            "tools: deny: no row answers for it",
            "nightly: deny: no row answers for this divergence",
            "row 1 (tools: deny): `daily` is not known to diverge there",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_row(name: str) -> None:
    one, outcome, expected = WRONG[name]
    outcomes: dict[str, Outcome] = {} if outcome is None else {one.evidence: outcome}
    assert (
        wrong([one], outcomes, KNOWN, {("nightly", "deny")} if one.diverges else (), str(HERE.parent.parent / "docs"))
        == expected
    )


def test_no_row_says_what_another_says() -> None:
    said = wrong([row(), row()], {"t.py::test": "passed"}, KNOWN, (), ".")
    assert said == ["row 1 (tools: deny): it says the same as row 1"]


UNUSABLE = {
    "no TOML": ("[[row", "it is no TOML: Expected ']]' at the end of an array declaration (at end of document)"),
    "nothing": ("", "it holds `[[row]]`s and nothing else"),
    "something else": ("[rows]\n[[row]]\n", "it holds `[[row]]`s and nothing else"),
    "no row": ("row = 1", "it holds `[[row]]`s and nothing else"),
    "a row of nothing": ("[[row]]\n", "row 1 names no `surface`"),
    "no evidence": (
        '[[row]]\nsurface = "a"\nsetting = "b"\nowner = "c"\ntracking = "d"\nevidence = " "', "row 1 names no `evidence`",
    ),
    "evidence that is no text": (
        '[[row]]\nsurface = "a"\nsetting = "b"\nowner = "c"\ntracking = "d"\nevidence = 1', "row 1 names no `evidence`",
    ),
    "a member that means nothing": (
        '[[row]]\nsurface = "a"\nsetting = "b"\nowner = "c"\ntracking = "d"\nevidence = "e"\nstatus = "done"',
        "row 1 says `status`, which means nothing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_is_no_index(name: str, tmp_path: Path) -> None:
    text, message = UNUSABLE[name]
    file = tmp_path / "index.toml"
    file.write_text(text)
    with pytest.raises(IndexUnusable) as raised:
        read_index(str(file))
    assert str(raised.value) == message


# --- in pytest -----------------------------------------------------------------------------------------------------

TESTS = """\
import pytest

marks = pytest.mark

def test_passes(): pass

def test_fails(): assert False

@marks.skip(reason="later")
def test_skipped(): pass

@marks.xfail
def test_marked_to_fail(): assert False

@marks.xfail(strict=False)
def test_marked_to_pass(): pass

@pytest.fixture
def broken():
    yield
    raise RuntimeError

def test_whose_end_fails(broken): pass

def test_left_out(): pass
"""


def run(folder: Path, *words: str) -> tuple[int, list[str]]:
    """The exit status of pytest there, and what it says of the index."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=plain, check=False)
    lines = done.stdout.splitlines()
    heads = [place for place, line in enumerate(lines) if "parity index" in line]
    said = [line for line in lines[heads[0] + 1 :] if line.startswith(("row", "it "))] if heads else []
    return done.returncode, said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def index(folder: Path, *tests: str) -> str:
    rows = (
        f'[[row]]\nsurface = "s"\nsetting = "{test}"\nowner = "us"\ntracking = "https://example.org"\n'
        f'evidence = "test_it.py::{test}"\n'
        for test in tests
    )
    (folder / "index.toml").write_text("\n".join(rows))
    return "index.toml"


def test_a_run_whose_every_row_passed(folder: Path) -> None:
    assert run(folder, "-k", "passes and not marked", "--parity-index", index(folder, "test_passes")) == (0, [])


def test_every_row_that_is_not_borne_out_is_told(folder: Path) -> None:
    names = [
        "test_passes", "test_fails", "test_skipped", "test_marked_to_fail", "test_marked_to_pass",
        "test_whose_end_fails", "test_left_out", "test_renamed",
    ]  # fmt: skip
    status, said = run(folder, "--deselect", "test_it.py::test_left_out", "--parity-index", index(folder, *names))
    assert status == 1
    assert said == [
        "row 2 (s: test_fails): `test_it.py::test_fails` failed",
        "row 3 (s: test_skipped): `test_it.py::test_skipped` was skipped",
        "row 4 (s: test_marked_to_fail): `test_it.py::test_marked_to_fail` failed, as it was marked to",
        "row 5 (s: test_marked_to_pass): `test_it.py::test_marked_to_pass` passed, though it was marked to fail",
        "row 6 (s: test_whose_end_fails): `test_it.py::test_whose_end_fails` failed",
        "row 7 (s: test_left_out): `test_it.py::test_left_out` was deselected",
        "row 8 (s: test_renamed): `test_it.py::test_renamed` is no test of this run: renamed, removed, or outside of what was run",
    ]


def test_a_run_of_one_test_is_held_to_the_whole_index_where_it_is_asked_for(folder: Path) -> None:
    """Nothing is looked at where it is not."""
    file = index(folder, "test_passes", "test_left_out")
    one = "test_it.py::test_passes"
    assert run(folder, one) == (0, [])
    asked = run(folder, one, "--parity-index", file)
    assert asked[0] == 1
    assert asked[1][0].startswith("row 2 (s: test_left_out): `test_it.py::test_left_out` is no test of this run")
    (folder / "pytest.ini").write_text(f"[pytest]\nparity_index = {file}\n")
    assert run(folder, one) == asked


def test_an_index_that_is_not_there_fails_the_run(folder: Path) -> None:
    assert run(folder, "test_it.py::test_passes", "--parity-index", "none.toml") == (
        1,
        ["it cannot be read: No such file or directory"],
    )

"""How a matrix is written: what is not as it should be stands out, and nothing of a host's text steers page or terminal."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from policy_lang.cli.main import main
from zcpolicy.parity.matrix import Cell, Matrix
from zcpolicy.parity.render import as_json, html, markdown, summary
from zcpolicy.parity.settings import SETTINGS

DENY, TIME = (setting for setting in SETTINGS if setting.name in ("deny", "limit time"))
EVIL = '<b onclick="x">|\x1b[31m'

MIXED = Matrix(
    ("chat", EVIL),
    (DENY, TIME),
    (
        Cell("chat", "deny", "tools", "enforced", {"ran": ["look"]}, {"ran": ["look"]}),
        Cell(EVIL, "deny", "tools", "not applied", {"ran": ["look"]}, {"ran": ["look", "pick"]}, "as without it"),
        Cell("chat", "limit time", "budgets", "partly", {"ended": []}, {"ended": []}, f"OSError: {EVIL}"),
        Cell(EVIL, "limit time", "budgets", "enforced", {"ended": []}, {"ended": []}),
    ),
)


def test_the_summary_counts() -> None:
    assert summary(MIXED) == "2 settings on 2 paths: 2 enforced, 1 partly, 1 not applied"
    assert not MIXED.enforced


def test_a_path_that_crashed_stands_out() -> None:
    crashed = Cell(
        "chat", "deny", "tools", "crashed", {"ran": ["look"]}, {"ran": []}, "RuntimeError: no", "Traceback …"
    )
    broken = Matrix(("chat",), (DENY,), (crashed,))
    assert summary(broken) == "1 setting on 1 path: 0 enforced, 1 crashed"
    assert "| deny | ran: look; shown: look | ran: look, pick; shown: look, pick | **crashed** |" in markdown(broken)
    assert "- `deny` on `chat` crashed: RuntimeError: no; seen: ran: nothing" in markdown(broken)
    assert 'class="crashed"' in html(broken)
    assert as_json(broken)["summary"]["crashed"] == 1


def test_markdown_tells_what_is_not_as_it_should_be() -> None:
    lines = markdown(MIXED).splitlines()
    assert "| deny | ran: look; shown: look | ran: look, pick; shown: look, pick | yes | **no** |" in lines
    evil = '&lt;b onclick="x">/ [31m'
    assert lines[-2:] == [
        f"- `deny` on `{evil}` is not applied: as without it; seen: ran: look, pick",
        f"- `limit time` on `chat` is partly: OSError: {evil}; seen: ended: nothing",
    ]
    heads = [line for line in lines if line.startswith("| setting")]
    assert all(line.count("|") == 6 for line in heads)


def test_json_has_the_same() -> None:
    found = json.loads(json.dumps(as_json(MIXED)))
    assert found["summary"] == {"cells": 4, "enforced": 2, "partly": 1, "not_applied": 1, "crashed": 0}
    assert found["settings"][0]["cells"][1] == {
        "path": EVIL, "status": "not applied", "expected": {"ran": ["look"]}, "seen": {"ran": ["look", "pick"]},
        "note": "as without it", "drive": f"{EVIL}-deny",
    }  # fmt: skip


class Tags(HTMLParser):
    """The tags of a page, and the attributes that they have."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


def test_a_page_holds_no_tags_of_a_host() -> None:
    tags = Tags()
    tags.feed(html(MIXED))
    assert not tags.found & {"b", "onclick", "script"}
    assert "\x1b" not in html(MIXED)
    assert 'class="not-applied"' in html(MIXED)


# --- the command ---------------------------------------------------------------------------------------------------

ONE = ("parity", "--path", "run", "--path", "step", "--setting", "deny", "--setting", "narrowing only")


def test_the_command_shows_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(ONE) == 0
    assert capsys.readouterr().out.splitlines() == [
        "tools            run  step",
        "  deny           yes  yes",
        "narrowing        run  step",
        "  narrowing only yes  yes",
        "2 settings on 2 paths: all enforced",
    ]


def test_where_names_do_not_fit_they_are_numbered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    assert main(ONE) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "1 run, 2 step",
        "tools            1    2",
        "  deny           yes  yes",
    ]


def test_a_line_for_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*ONE, "--format", "plain")) == 0
    assert capsys.readouterr().out.splitlines() == [
        "tools: deny: run: enforced",
        "tools: deny: step: enforced",
        "narrowing: narrowing only: run: enforced",
        "narrowing: narrowing only: step: enforced",
    ]


@pytest.mark.parametrize(("style", "begins"), [("json", "{\n"), ("markdown", "# Parity"), ("html", "<!doctype html>")])
def test_the_other_formats(style: str, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*ONE, "--format", style)) == 0
    assert capsys.readouterr().out.startswith(begins)


WRONG = {
    ("--path", "ruun"): "zcpolicy: there is no path `ruun`; did you mean `run`?\n",
    ("--setting", "deni"): "zcpolicy: there is no setting `deni`; did you mean `deny`?\n",
    (
        "--host",
        "no_such:PATHS",
    ): "zcpolicy: --host `no_such:PATHS` cannot be loaded: there is no module `no_such`, from this folder\n",
    (
        "--host",
        "json.no:PATHS",
    ): "zcpolicy: --host `json.no:PATHS` cannot be loaded: there is no module `json.no`, from this folder\n",
    ("--host", "json:PATHS"): "zcpolicy: --host `json:PATHS` cannot be loaded: module `json` has no `PATHS`\n",
    ("--host", ".json:PATHS"): "zcpolicy: --host `.json:PATHS` names no list of paths: write MODULE:NAME\n",
    ("--host", "json:a.b"): "zcpolicy: --host `json:a.b` names no list of paths: write MODULE:NAME\n",
    ("--host", "json"): "zcpolicy: --host `json` names no list of paths: write MODULE:NAME\n",
    ("--host", "json:dumps"): "zcpolicy: --host `json:dumps` is no list of `zcpolicy.parity.probe.ParityPath`\n",
    ("--setting", "?"): "zcpolicy: there is no setting `?`\n",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_not_there(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("parity", *words)) == 2
    assert capsys.readouterr().err == WRONG[words]


FAILS = {
    "raises": ("x = 1\nraise ValueError('no port')\n", "ValueError: no port", 2),
    "in a function": ("def f():\n    return {}['a']\nPATHS = f()\n", "KeyError: 'a'", 2),
    "is not written well": ("x = 1\ndef (:\n", "SyntaxError: invalid syntax", 2),
    "lacks a library": ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'", 1),
    "ends the process": ("import sys\nsys.exit('no settings')\n", "SystemExit: no settings", 2),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_hosts_module_that_fails_is_not_a_fault_of_ours(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, says, line = FAILS[name]
    module = f"host_that_{name.replace(' ', '_')}"
    (tmp_path / f"{module}.py").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(("parity", "--host", f"{module}:PATHS")) == 2
    told = capsys.readouterr().err
    assert told == (
        f"zcpolicy: --host `{module}:PATHS` cannot be loaded: the host's module failed: {says} ({tmp_path / module}.py:{line})\n"
    )


def test_only_the_gateway_needs_a_library(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policy_lang.cli.parity.find_spec", {"starlette": None}.get)
    assert main(("parity", "--path", "run", "--setting", "deny")) == 0
    capsys.readouterr()
    assert main(("parity",)) == 2
    told = (
        "zcpolicy: the path `gateway` needs the extra `parity`: pip install 'zcpolicy[parity]', or name other paths\n"
    )
    assert capsys.readouterr().err == told

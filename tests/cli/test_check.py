"""`check`: styles, statuses, fixes."""

import json
from pathlib import Path

import pytest

from policy_lang.cli import check
from policy_lang.fixes import Fixed

from .conftest import Cli

BROKEN = "zcpolicy 1\ntool read() risk read\nagent a { autonomy supervised; allow raed }\n"
WARNED = "zcpolicy 1\ntool read() risk read\nagent a { allow read }\n"


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [
        ("zcpolicy 1\ntool read() risk read\nagent a { autonomy supervised; allow read }\n", [], 0),
        (BROKEN, [], 1),
        (WARNED, [], 0),
        (WARNED, ["--deny-warnings"], 1),
        (BROKEN, ["--format", "json"], 1),
        (BROKEN, ["--format", "sarif"], 1),
        (BROKEN, ["--format", "github"], 1),
        ("", [], 1),
        ("\x00", [], 1),
        ("zcpolicy 1\n" + "(" * 20_000, [], 1),
    ],
)
def test_status(cli: Cli, text: str, options: list[str], status: int) -> None:
    write("a.zcpolicy", text)
    assert cli("check", "a.zcpolicy", *options).status == status


def test_human(cli: Cli) -> None:
    write("a.zcpolicy", BROKEN)
    ran = cli("check", "a.zcpolicy")
    assert ran.out.startswith("error[ZC2101]: `raed` is not a tool\n --> a.zcpolicy:3:38\n")
    assert ran.out.endswith("\n1 error in 1 file\n")


def test_plain(cli: Cli) -> None:
    write("a.zcpolicy", BROKEN)
    assert (
        cli("check", "a.zcpolicy", "--format", "plain").out == "a.zcpolicy:3:38: error ZC2101: `raed` is not a tool\n"
    )


def test_json(cli: Cli) -> None:
    write("a.zcpolicy", BROKEN)
    said = json.loads(cli("check", "a.zcpolicy", "--format", "json").out)
    assert said["summary"] == {"errors": 1, "warnings": 0, "files": 1}
    assert said["diagnostics"][0]["span"]["start"] == {"line": 3, "column": 38}


def test_a_folder_is_its_policies_sorted(cli: Cli) -> None:
    write("some/b.zcpolicy", BROKEN)
    write("some/a.zcpolicy", BROKEN)
    write("some/below/c.zcpolicy", BROKEN)
    write("some/.hidden/d.zcpolicy", BROKEN)
    write("some/notes.txt", "no policy")
    lines = cli("check", "some", "--format", "plain").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["some/a.zcpolicy", "some/b.zcpolicy", "some/below/c.zcpolicy"]


def test_layers(cli: Cli) -> None:
    write("managed.zcpolicy", "zcpolicy 1\ntool read() risk read\nagent a { autonomy supervised; allow read }\n")
    write("below/mine.zcpolicy", "zcpolicy 1\nagent b narrows a { deny read }\n")
    assert cli("check", "below/mine.zcpolicy").status == 1
    ran = cli("check", "below/mine.zcpolicy", "--layer", "managed.zcpolicy", "--format", "json")
    assert json.loads(ran.out)["summary"]["errors"] == 0


def test_a_missing_layer_is_an_error(cli: Cli) -> None:
    ran = cli("check", "team.zcpolicy", "--layer", "nowhere.zcpolicy")
    assert ran.status == 1
    assert "`nowhere.zcpolicy` does not exist" in ran.out


def test_a_compiled_policy_is_not_taken_for_text(cli: Cli, tmp_path: Path) -> None:
    made = tmp_path / "team.zcpc"
    made.write_text('{"digest":"0"}', "utf-8")
    ran = cli("check", "--fix", str(made))
    assert (ran.status, made.read_text("utf-8")) == (2, '{"digest":"0"}')
    assert "is compiled" in ran.err


ASK = "    ask read\n"
THRICE = f"zcpolicy 1\ntool read() risk read\nagent a {{\n    autonomy supervised\n    allow read\n{3 * ASK}}}\n"


def test_fix_leaves_what_is_not_safe(cli: Cli) -> None:
    write("a.zcpolicy", BROKEN)
    ran = cli("check", "a.zcpolicy", "--fix")
    assert ran.status == 1
    assert Path("a.zcpolicy").read_text(encoding="utf-8") == BROKEN


def test_fix_applies_safe_fixes_and_checks_again(cli: Cli) -> None:
    write("a.zcpolicy", THRICE)
    ran = cli("check", "a.zcpolicy", "--fix")
    assert ran == (0, "no findings in 1 file\n", "a.zcpolicy: 2 fixed\n")
    assert Path("a.zcpolicy").read_text(encoding="utf-8") == THRICE.replace(3 * ASK, ASK)


def test_fix_puts_back_what_made_it_worse(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoils(found: object) -> tuple[Fixed, ...]:
        return (Fixed("a.zcpolicy", THRICE, "zcpolicy 1\nagent a { alow x }\n", 1),)

    monkeypatch.setattr(check, "fixed_texts", spoils)
    write("a.zcpolicy", THRICE)
    ran = cli("check", "a.zcpolicy", "--fix", "--format", "plain")
    assert (ran.status, ran.err, ran.out.count("\n")) == (0, "", 2)
    assert Path("a.zcpolicy").read_text(encoding="utf-8") == THRICE


def test_fix_of_a_file_that_cannot_be_written(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(path: Path, before: str, after: str) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(check, "rewrite", refuses)
    write("a.zcpolicy", THRICE)
    ran = cli("check", "a.zcpolicy", "--fix")
    assert (ran.status, ran.err) == (2, "zcpolicy: `a.zcpolicy` cannot be fixed: Permission denied\n")


def test_a_cache_says_the_same_and_keeps_entries(cli: Cli) -> None:
    write("tools.zcpolicy", "zcpolicy 1\ntool read() risk read\n")
    write("agents.zcpolicy", "zcpolicy 1\nagent a { allow read }\n")
    write("root.zcpolicy", 'zcpolicy 1\nimport "tools.zcpolicy"\nimport "agents.zcpolicy"\n')
    without = cli("check", "root.zcpolicy", "--format", "plain")
    first = cli("check", "root.zcpolicy", "--format", "plain", "--cache", "kept")
    again = cli("check", "root.zcpolicy", "--format", "plain", "--cache", "kept")
    assert without.out == first.out == again.out != ""
    assert len(list(Path("kept").iterdir())) > 1

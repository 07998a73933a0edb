"""What `zcpolicy serve --check` says of a start that would fail, without starting anything."""

import sys
from pathlib import Path

import pytest

from policy_lang.serving.checking import check_settings
from zcpolicy.daemon.tokens import Tokens

POLICY = "zcpolicy 1\ntool look(note: string) risk read\nagent helper { autonomy supervised; allow look }\n"
SETTINGS = """\
[policy]
layers = ["team.zcpolicy"]
[state]
folder = "var"
[http]
port = 0
[tools]
factories = ["clocks_of_ours:make"]
[agents.helper]
model = "{model}"
surfaces = ["gateway"]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("team.zcpolicy").write_text(POLICY)
    Path("answers.json").write_text('{"steps": ["hello"]}')
    Path("clocks_of_ours.py").write_text("raise OSError('it is imported')\ndef make(given): ...\n")
    Path("var").mkdir(mode=0o700)


def said(model: str = "scripted:answers.json") -> list[str]:
    """Code and message of each finding."""
    Path("daemon.toml").write_text(SETTINGS.format(model=model))
    return [f"{one.code.id} {one.message}" for one in check_settings(Path("daemon.toml")).diagnostics]


def given_out() -> Path:
    """A file of tokens."""
    file = Path("var/tokens.json")
    Tokens(str(file.absolute())).add("ann")
    return file


def test_tokens_that_can_be_used_have_no_findings() -> None:
    assert said() == []
    given_out()
    before = sorted(Path("var").iterdir())
    assert said() == []
    assert sorted(Path("var").iterdir()) == before


def test_damaged_tokens() -> None:
    given_out().write_text("damaged")
    (found,) = said()
    assert found.startswith("ZC6006 ")
    assert "tokens.json" in found


def test_tokens_that_others_can_read() -> None:
    given_out().chmod(0o644)
    (found,) = said()
    assert found.startswith("ZC6006 ")
    assert "is open to others" in found


def test_tokens_that_were_taken_away() -> None:
    given_out().unlink()
    (found,) = said()
    assert found.startswith("ZC6006 ")


def test_a_provider_that_pydantic_ai_does_not_have() -> None:
    assert said("nonsense:gpt") == ["ZC6003 pydantic-ai has no provider `nonsense`"]


def test_a_provider_whose_library_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    (found,) = said("openai:gpt-5.2")
    assert found.startswith("ZC6010 provider `openai` needs a library: please install the `openai` package")


def test_modules_of_factories_are_not_imported() -> None:
    assert said() == []
    assert "clocks_of_ours" not in sys.modules

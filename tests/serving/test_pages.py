"""The page of a diagnostic of settings shows what has it and what has not."""

import re
import shutil
from pathlib import Path

import pytest

from policy_lang.explain import pages
from policy_lang.serving.checking import check_settings

ROOT = Path(__file__).resolve().parents[2]
ERRORS = ROOT / "examples/errors/settings"
PAGES = sorted(pages().glob("ZC6*.md"))
BLOCK = re.compile(r"## (?P<section>Avoid|Prefer)\n\n```toml\n(?P<text>.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_avoids_has_the_finding_and_what_it_prefers_has_not(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_AUTHORIZATION", "set")
    for name in ("team.zcpolicy", "answers.json"):
        shutil.copy(ERRORS / name, tmp_path)
    for policy in ("routed", "drifting"):
        shutil.copytree(ERRORS / policy, tmp_path / policy)
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        file = tmp_path / "daemon.toml"
        file.write_text(block["text"], encoding="utf-8")
        found = {one.code.id for one in check_settings(file).diagnostics}
        assert found == ({page.stem} if block["section"] == "Avoid" else set()), block["section"]


def test_what_a_page_avoids_is_the_example() -> None:
    shown = {f"{ERRORS.name} {match['text']}" for page in PAGES for match in BLOCK.finditer(page.read_text("utf-8"))}
    for file in ERRORS.glob("*.toml"):
        assert f"{ERRORS.name} {file.read_text('utf-8').partition(chr(10))[2]}" in shown, file.name

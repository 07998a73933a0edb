"""Everything that the Markdown shows is run: the README's tour, the examples' commands, the guide's policies."""

import re
import sys
from pathlib import Path

import pytest

from policy_lang.compile import compile_text
from policy_lang.diagnostics import Diagnostic

from .blocks import ROOT, Block, Command, blocks, matches, run_command, run_story

EXAMPLES = sorted(
    p.parent for p in (ROOT / "examples").glob("*/README.md") if p.parent.name not in {"errors", "catalogs"}
)
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
POLICIES = [
    block for file in GUIDES if file.parent.name != "codes" for block in blocks(file) if block.lang == "zcpolicy"
]
PRELUDE = (Path(__file__).parent / "prelude.zcpolicy").read_text(encoding="utf-8")
STATEMENTS = re.compile(
    r"(allow|ask|deny|only|autonomy|auto_approve|limit|connect|skills|memory|delegate|approval|runtime|mark|require|on|use)\b"
)


def test_the_readme_runs_as_written(tmp_path: Path) -> None:
    assert run_story(ROOT / "README.md", tmp_path, skip=r"(git clone|cd|scripts/|pip install)") >= 8


@pytest.mark.parametrize(
    ("page", "programs"),
    [
        ("embedding", 2),
        ("facts", 1),
        ("loop", 1),
        ("own-loop", 3),
        ("approvals", 2),
        ("hosting", 3),
        ("reload", 2),
        ("state", 2),
    ],
)
def test_a_page_for_hosts_runs_as_written(page: str, programs: int, tmp_path: Path) -> None:
    assert run_story(ROOT / f"docs/{page}.md", tmp_path) == programs


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_does_what_its_readme_says(folder: Path) -> None:
    assert run_story(folder / "README.md", ROOT) >= 2


def test_what_we_show_is_formatted(tmp_path: Path) -> None:
    shown = [block for block in POLICIES if block.title is not None]
    for number, block in enumerate(shown):
        (tmp_path / f"{number}.zcpolicy").write_text(block.text, encoding="utf-8")
    formatted = Command("zcpolicy fmt --check " + " ".join([*map(str, EXAMPLES), str(tmp_path)]), "…", 0, "examples")
    run_command(formatted, ROOT, Path(sys.executable).parent)
    assert len(shown) >= 2


def whole(block: Block) -> str:
    """A block as a policy: whole ones as they are, declarations and statements among the prelude's tools."""
    if block.text.startswith("zcpolicy 1"):
        return block.text
    lines = [line for line in block.text.splitlines() if line.strip() and not line.startswith("#")]
    if STATEMENTS.match(lines[0]):
        return f"{PRELUDE}\nagent example {{\n{block.text}}}\n"
    return f"{PRELUDE}\n{block.text}"


def errors(found: tuple[Diagnostic, ...]) -> list[str]:
    return [f"{d.source.position(d.span.start).line}: {d.code.id} {d.message}" for d in found if d.severity == "error"]


@pytest.mark.parametrize("block", POLICIES, ids=lambda block: block.where)
def test_a_policy_in_the_documentation_compiles(block: Block) -> None:
    text = whole(block)
    compiled = compile_text(text)
    assert errors(compiled.diagnostics) == [], text


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{file.relative_to(ROOT)}: {target}"
        for file in [*GUIDES, ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *ROOT.glob("examples/**/README.md")]
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", file.read_text(encoding="utf-8"))
        if "://" not in target and not (file.parent / target).exists()
    ]
    assert broken == []


def test_three_dots_stand_for_any_lines() -> None:
    assert matches("a\n…\nz", "a\nb\nc\nz\n")
    assert matches("a …", "a b\n")
    assert not matches("a\nz", "a\nb\nz\n")


def test_ci_does_what_the_readme_tells_a_newcomer() -> None:
    (told,) = [block for block in blocks(ROOT / "README.md") if block.lang == "sh"]
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert [line.partition("#")[0].strip() for line in told.text.splitlines()] == [
        line for line in ci if line.startswith("scripts/")
    ]


def test_the_index_of_decisions_lists_them_all() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[.+\]\((.+)\)$", index, re.MULTILINE)
    assert listed == sorted(page.name for page in folder.glob("0*.md"))

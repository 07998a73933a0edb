"""Which fixes are applied, and that a file is rewritten whole or not at all."""

from pathlib import Path

import pytest

from policy_lang.codes import Code
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.fixes import fixed_texts, replace_bytes, rewrite
from policy_lang.source import Source, Span

CODE = Code("ZC3101", "rule that decides nothing", "warning")
SOURCE = Source("a.zcpolicy", "0123456789")


def finding(*edits: tuple[int, int, str], safe: bool = True, source: Source = SOURCE) -> Diagnostic:
    made = tuple(Edit(source, Span(start, end), text) for start, end, text in edits)
    return Diagnostic(CODE, "x", source, Span(0, 1), fix=Fix(made, safe))


@pytest.mark.parametrize(
    ("case", "findings", "after"),
    [
        ("one", [finding((1, 3, "ab"))], "0ab3456789"),
        ("two apart, in any order", [finding((5, 6, "")), finding((1, 2, "xyz"))], "0xyz2346789"),
        ("neighbours", [finding((1, 3, "a")), finding((3, 5, "b"))], "0ab56789"),
        ("the first of two that overlap", [finding((1, 4, "a")), finding((3, 6, "b"))], "0a456789"),
        ("an outer after an inner", [finding((4, 5, "a")), finding((2, 8, "b"))], "0123a56789"),
        ("two insertions at one place", [finding((3, 3, "a")), finding((3, 3, "b"))], "012a3456789"),
        ("the same edit twice", [finding((3, 4, "a")), finding((3, 4, "a"))], "012a456789"),
        ("a fix is taken whole", [finding((1, 2, "a")), finding((5, 6, "b"), (1, 2, "c"))], "0a23456789"),
        ("only safe ones", [finding((1, 2, "a")), finding((5, 6, "b"), safe=False)], "0a23456789"),
    ],
)
def test_applied(case: str, findings: list[Diagnostic], after: str) -> None:
    assert [fixed.after for fixed in fixed_texts(findings)] == [after], case


def test_nothing_to_apply() -> None:
    assert fixed_texts([finding((1, 2, "a"), safe=False), Diagnostic(CODE, "x", SOURCE, Span(0, 1))]) == ()
    assert fixed_texts([finding((1, 3, "a"), (2, 4, "b"))]) == ()


def test_several_files() -> None:
    other = Source("b.zcpolicy", "abc")
    fixed = fixed_texts([finding((0, 1, "")), finding((0, 1, "X"), source=other)])
    assert [(one.name, one.after, one.count) for one in fixed] == [
        ("a.zcpolicy", "123456789", 1),
        ("b.zcpolicy", "Xbc", 1),
    ]


def test_ten_thousand_fixes_are_quick() -> None:
    source = Source("a", "x" * 100_000)
    (fixed,) = fixed_texts([finding((at, at + 1, "y"), source=source) for at in range(0, 100_000, 10)])
    assert fixed.after == "yxxxxxxxxx" * 10_000


def test_rewrite_keeps_mode_and_link(tmp_path: Path) -> None:
    target, link = tmp_path / "t.zcpolicy", tmp_path / "l.zcpolicy"
    target.write_text("before", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    rewrite(link, "before", "after")
    assert (link.is_symlink(), target.read_text(encoding="utf-8"), target.stat().st_mode & 0o777) == (
        True,
        "after",
        0o640,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.zcpolicy", "t.zcpolicy"]


def test_rewrite_refuses_a_file_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "t.zcpolicy"
    path.write_text("other", encoding="utf-8")
    with pytest.raises(OSError, match="has changed meanwhile"):
        rewrite(path, "before", "after")
    assert path.read_text(encoding="utf-8") == "other"


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "t.zcpolicy"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_bytes(folder, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["t.zcpolicy"]

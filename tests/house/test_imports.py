"""No file of a package imports itself by way of others: what a file needs stands below it.

Imports inside functions count; those for annotations alone do not, since nothing runs there.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from .blocks import ROOT


def of_annotations(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(node: ast.AST, modules: set[str]) -> Iterator[str]:
    """The modules that a tree imports when it runs."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield whole if whole in modules else node.module or ""
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    below = node.orelse if isinstance(node, ast.If) and of_annotations(node) else ast.iter_child_nodes(node)
    for part in below:
        yield from imported(part, modules)


def graph(folder: Path, package: str) -> dict[str, set[str]]:
    files = {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in folder.rglob("*.py")
    }
    return {
        module: set(imported(ast.parse(path.read_text(encoding="utf-8")), set(files))) & files.keys()
        for module, path in files.items()
    }


@pytest.mark.parametrize("folder", ["policy_lang", "engine/zcpolicy"])
def test_no_file_imports_itself_by_way_of_others(folder: str) -> None:
    try:
        TopologicalSorter(graph(ROOT / folder, Path(folder).name)).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))


def test_a_circle_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f() -> None:\n    from p.b import x\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("from p import a\n", encoding="utf-8")
    with pytest.raises(CycleError):
        TopologicalSorter(graph(tmp_path, "p")).prepare()


def test_annotations_make_no_circle(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("if TYPE_CHECKING:\n    from p.b import x\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("from p.a import y\n", encoding="utf-8")
    TopologicalSorter(graph(tmp_path, "p")).prepare()


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.py")), ids=lambda path: path.parent.name)
def test_an_example_needs_nothing_beyond_the_package(path: Path) -> None:
    names = imported(ast.parse(path.read_text(encoding="utf-8")), set())
    beyond = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert beyond <= {"policy_lang", "zcpolicy"}

"""The bounds of the packages: every constant `MAX_…`, its value, and what its docstring says.

In: the source of the packages. Out: the text of docs/reference/bounds.md; run as a script it writes the page.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/bounds.md"
HEAD = """\
# Bounds

What is longer, deeper or more is a diagnostic, a deny, or UNKNOWN, as each line says; never a traceback. The page is made from the constants
of the source (`python tests/house/bounds.py`), and a test holds them equal.

"""


def constants(file: Path) -> Iterator[tuple[str, str, str]]:
    """Name, value and docstring of each public bound of a module."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for node, after in zip(body, [*body[1:], *body[-1:]], strict=True):
        if isinstance(node, ast.AnnAssign):
            target, value = node.target, node.value
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        else:
            continue
        if value is not None and isinstance(target, ast.Name) and target.id.startswith("MAX_"):
            said = after.value if isinstance(after, ast.Expr) else None
            told = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
            yield target.id, value_of(value), " ".join(told.split())


def value_of(node: ast.expr) -> str:
    """A value as people write it: products of numbers are worked out."""
    try:
        return f"{eval(compile(ast.Expression(node), '', 'eval'), {}):,}"
    except NameError:
        return ast.unparse(node)


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for package in ("policy_lang", "engine/zcpolicy"):
        lines.append(f"## {Path(package).name}\n\n| in | bound | is | what it bounds |\n|---|---|---|---|\n")
        lines += [
            f"| `{file.relative_to(ROOT / package)}` | `{name}` | {value} | {told} |\n"
            for file in sorted((ROOT / package).rglob("*.py"))
            for name, value, told in constants(file)
        ]
        lines.append("\n")
    return "".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

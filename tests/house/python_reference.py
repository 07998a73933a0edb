"""The names that hosts import from `zcpolicy`: how each is written, and what its docstring says.

In: the source of the engine. Out: the text of docs/reference/python.md; run as a script it writes the page.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine"
PAGE = ROOT / "docs/reference/python.md"
WIDTH = 110
HEAD = """\
# The Python API

Every name that `from zcpolicy import …` gives, with what its docstring says: shapes, units, and what it raises. The page is made from the
source (`python tests/house/python_reference.py`), and a test holds them equal. How they go together: [embedding](../embedding.md),
[hosting](../hosting.md), [a loop of your own](../own-loop.md), [our loop](../loop.md).

"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Defined(NamedTuple):
    """A name where it is defined. `said`: the docstring of an alias, which stands below it."""

    module: str
    node: ast.stmt
    said: str = ""


@cache
def body_of(module: str) -> list[ast.stmt]:
    """The statements of a module, those for the type checker alone taken in."""
    file = ENGINE / f"{module.replace('.', '/')}.py"
    file = file if file.exists() else file.with_suffix("") / "__init__.py"
    return [*flat(ast.parse(file.read_text(encoding="utf-8")).body)]


def flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from flat(node.body)
        else:
            yield node


def public() -> dict[str, str]:
    """The names of the package, and the module that each is taken from."""
    return {
        (alias.asname or alias.name): node.module or ""
        for node in body_of("zcpolicy")
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def defined(name: str, module: str) -> Defined:
    """Where a name is defined, followed through those that only pass it on."""
    body = body_of(module)
    for number, node in enumerate(body):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return Defined(module, node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and assigned(node) == name:
            after = body[number + 1] if number + 1 < len(body) else None
            said = after.value if isinstance(after, ast.Expr) else None
            return Defined(module, node, str(said.value) if isinstance(said, ast.Constant) else "")
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return defined(name, node.module or "")
    raise LookupError(f"{name} is not in {module}")


def assigned(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


# --- as text -------------------------------------------------------------------------------------------------------


def said_by(node: ast.AST) -> str:
    """A docstring as paragraphs."""
    text = ast.get_docstring(node) if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) else None
    return paragraphs(text or "")


def paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def call_of(name: str, function: Function, *, method: bool) -> str:
    """How a function is written, a long one with an argument to a line."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + [*given.defaults]
    words = [worded(one, default) for one, default in zip(plain, defaults, strict=True)]
    words = words[1:] if method and not is_static(function) else words
    if given.vararg is not None:
        words.append(f"*{worded(given.vararg, None)}")
    elif given.kwonlyargs:
        words.append("*")
    words += [worded(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg is not None:
        words.append(f"**{worded(given.kwarg, None)}")
    result = ast.unparse(function.returns).strip("'") if function.returns is not None and name != "" else ""
    return laid_out(name, words, f" -> {result}" if result else "")


def laid_out(name: str, words: list[str], result: str = "") -> str:
    line = f"{name}({', '.join(words)}){result}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){result}"])


def worded(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation).strip(chr(39))}" if one.annotation is not None else ""
    return f"{one.arg}{kind}{f' = {ast.unparse(default)}' if default is not None else ''}"


def is_static(function: Function) -> bool:
    return "staticmethod" in decorators(function)


def decorators(node: Function | ast.ClassDef) -> set[str]:
    found = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return {one.id if isinstance(one, ast.Name) else ast.unparse(one) for one in found}


def made(name: str, node: ast.ClassDef) -> str:
    """How one is made: called, or by something else."""
    body = [*flat(node.body)]
    maker = next((one for one in body if isinstance(one, ast.Assign) and assigned(one) == "_maker"), None)
    if maker is not None and isinstance(maker.value, ast.Constant):
        return ""
    first = next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if first is not None:
        return call_of(name, first, method=True).removesuffix(" -> None")
    bases = {ast.unparse(base) for base in node.bases}
    if "dataclass" in decorators(node) or "NamedTuple" in bases:
        return laid_out(name, [field for one in body if (field := field_of(one))])
    return f"class {name}({', '.join(sorted(bases))})" if bases else f"class {name}"


def field_of(node: ast.stmt) -> str:
    if not isinstance(node, ast.AnnAssign) or assigned(node).startswith("_"):
        return ""
    default = ""
    if node.value is not None:
        default = " = …" if isinstance(node.value, ast.Call) else f" = {ast.unparse(node.value)}"
    return f"{assigned(node)}: {ast.unparse(node.annotation)}{default}"


def members(node: ast.ClassDef) -> Iterator[str]:
    """A line for each public method and property."""
    for one in flat(node.body):
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) or one.name.startswith("_"):
            continue
        said = said_by(one).replace("\n\n", " ")
        if decorators(one) & {"property", "cached_property"}:
            result = f": {ast.unparse(one.returns).strip(chr(39))}" if one.returns is not None else ""
            written = f"{one.name}{result}"
        else:
            wait = "await " if isinstance(one, ast.AsyncFunctionDef) else ""
            line = " ".join(call_of(one.name, one, method=True).split()).replace("( ", "(").replace(", )", ")")
            written = f"{wait}{line}"
        yield f"- `{written}`{f': {said}' if said else ''}"


def entry(name: str, found: Defined) -> Iterator[str]:
    """The part of the page on one name."""
    node = found.node
    yield f"## {name}"
    if isinstance(node, ast.ClassDef):
        written, said = made(name, node), said_by(node)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        wait = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
        written, said = f"{wait}{call_of(name, node, method=False)}", said_by(node)
    else:
        written, said = ast.unparse(node), paragraphs(found.said)
    if written:
        yield f"```py\n{written}\n```"
    if said:
        yield said
    if isinstance(node, ast.ClassDef):
        listed = "\n".join(members(node))
        if listed:
            yield listed


def page() -> str:
    """The whole page."""
    parts = [
        part
        for name, module in sorted(public().items(), key=lambda one: one[0].lower())
        for part in entry(name, defined(name, module))
    ]
    return HEAD + "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

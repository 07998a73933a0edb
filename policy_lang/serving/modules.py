"""Modules of the operator's own, looked at without importing them: that would run them.

In: the folder of the settings, a `module:name`. Out: what the start would stumble over, as far as the text of the module tells: it is not
there, is no Python, or has nothing of that name. What a module does as it is imported only the start can tell.
"""

import ast
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from policy_lang.files import read_bytes
from policy_lang.nearest import nearest

MAX_MODULE_BYTES: Final = 1_000_000
"""Bytes of a module that is looked into; a larger one is left to the start."""


class Fault(NamedTuple):
    """What is wrong, and what may help."""

    message: str
    help: str | None = None


def fault_of(folder: Path, module: str, name: str, what: str) -> Fault | None:
    """`what`: what the name should be, for people. None: nothing that could be seen."""
    first = module.partition(".")[0]
    beside = folder / first
    if beside.is_dir() or beside.with_suffix(".py").is_file():
        file = _file([folder], module.split("."))
        if file is None and not _is_elsewhere(folder, module):
            return Fault(f"there is no module `{module}`", f"there is nothing of that name in `{first}`")
    else:
        spec = find_spec(first)
        if spec is None:
            near = nearest(first, [path.stem for path in folder.glob("*.py")])
            hint = "modules are found beside the settings, and where Python has them"
            return Fault(f"there is no module `{module}`", f"did you mean `{near}`?" if near else hint)
        inside = [Path(one) for one in spec.submodule_search_locations or ()]
        found = Path(spec.origin) if spec.origin is not None and spec.origin.endswith(".py") else None
        file = found if module == first else _file(inside, module.split(".")[1:])
    return None if file is None else _inside(file, module, name, what)


def _file(folders: list[Path], parts: list[str]) -> Path | None:
    for folder in folders:
        whole = folder.joinpath(*parts)
        for file in (whole / "__init__.py", whole.parent / f"{whole.name}.py"):
            if file.is_file():
                return file
    return None


def _is_elsewhere(folder: Path, module: str) -> bool:
    """A package without a file of its own, or a module that is no Python text."""
    whole = folder.joinpath(*module.split("."))
    return whole.is_dir() or any(whole.parent.glob(f"{whole.name}.*"))


def _inside(file: Path, module: str, name: str, what: str) -> Fault | None:
    data = read_bytes(file, MAX_MODULE_BYTES)
    if isinstance(data, str):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except SyntaxError as error:
        return Fault(f"`{file.name}:{error.lineno or 1}` is no Python: {error.msg[:200]}")
    except (ValueError, RecursionError, MemoryError):
        return Fault(f"`{file.name}` is no Python")
    names = set(_names(tree.body))
    if name in names or "*" in names or "__getattr__" in names or _writes_globals(tree):
        return None
    near = nearest(name, sorted(names))
    return Fault(f"`{module}` has no {what} `{name}`", f"did you mean `{near}`?" if near else None)


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """What statements of a module bind, those inside `if`, `try`, `with`, … as well; `*`: whatever another module has."""
    for one in body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield one.name
            continue
        if isinstance(one, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in one.names)
            continue
        for node in ast.walk(one):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.stmt) and node is not one:
                yield from _names([node])


def _writes_globals(tree: ast.Module) -> bool:
    """Whether more may come to be in it than its statements tell."""
    return any(
        isinstance(node, ast.Global)
        or (isinstance(node, ast.Name) and node.id in ("globals", "exec", "setattr", "vars"))
        for node in ast.walk(tree)
    )

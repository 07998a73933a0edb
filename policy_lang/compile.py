"""The pipeline, in reading order.

In: a root file or text, and the layers above it. Out: a `Compiled`: the program, or `None` and the reasons.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from policy_lang import ast
from policy_lang.bound import Bound
from policy_lang.checks import run_checks
from policy_lang.diagnostics import Diagnostic, has_errors, in_order
from policy_lang.files import read_source
from policy_lang.gather import Root, gather
from policy_lang.lower import lower
from policy_lang.names import bind
from policy_lang.source import Source
from policy_lang.suppress import unsuppressed
from policy_lang.types import check_kinds
from zcpolicy.program import Program


@dataclass(frozen=True, slots=True)
class Compiled:
    """What became of a policy. `program` is None with an error among the diagnostics.

    `tests`: the `test` blocks of the roots. `bound`: for tools that explain; None when a root could not be read.
    """

    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    tests: tuple[tuple[Source, ast.TestBlock], ...] = ()
    bound: Bound | None = None


def compile_policy(path: str | Path, *, layers: Sequence[str | Path] = ()) -> Compiled:
    """Compile a policy file under its layers, highest first."""
    roots: list[Root] = []
    for each in (*layers, path):
        where = Path(each)
        source = read_source(where)
        if isinstance(source, Diagnostic):
            return Compiled(None, (source,))
        roots.append(Root(source, where.parent, where))
    return compile_roots(roots)


def compile_text(text: str, *, name: str = "<text>", folder: str | Path = ".") -> Compiled:
    """Compile policy text; its relative imports and catalogues start at `folder`."""
    return compile_roots([Root(Source(name, text), Path(folder))])


def compile_roots(roots: Sequence[Root]) -> Compiled:
    """Every stage in turn. Logic is judged once names and kinds are right; a policy with an error is none."""
    with collector_paused():
        return _compile(roots)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without cyclic garbage collection: trees have no cycles, and walking them again and again costs a third."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compile(roots: Sequence[Root]) -> Compiled:
    gathered, found = gather(roots)
    bound, of_names = bind(gathered)
    found = (*found, *of_names, *check_kinds(bound))
    if not has_errors(found):
        found = (*found, *run_checks(bound))
    found = in_order(unsuppressed(found, gathered))
    tests = tuple(
        (file.source, node)
        for file in gathered.files
        if file.is_root and file.layer == gathered.lowest
        for node in file.file.declarations
        if isinstance(node, ast.TestBlock)
    )
    program = None if has_errors(found) else Program.build(*lower(bound))
    return Compiled(program, found, tests, bound)

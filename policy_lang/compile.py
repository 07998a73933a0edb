"""The pipeline, in reading order.

In: a root file or text, and the layers above it. Out: a `Compiled`: the program, or `None` and the reasons.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from policy_lang import ast, codes
from policy_lang.bound import NOTHING, Bound, Kept
from policy_lang.cache import Cache
from policy_lang.checks import run_checks
from policy_lang.collector import collector_paused
from policy_lang.diagnostics import Diagnostic, has_errors, in_order
from policy_lang.files import ReadBytes, read_bytes, read_source
from policy_lang.gather import Gathered, Root, gather
from policy_lang.incremental import keep, prepare
from policy_lang.kinds.check import check_kinds
from policy_lang.lower.program import lower
from policy_lang.names.bind import bind
from policy_lang.source import Source
from policy_lang.suppress import unsuppressed
from zcpolicy.program import Program
from zcpolicy.shapes import Origins, ProgramData

NAMING = (
    ast.Edition | ast.Catalog | ast.Import | ast.Tool | ast.Server | ast.Risk | ast.Label | ast.Scope | ast.Let | ast.Group
    | ast.Bundle | ast.Context
)  # fmt: skip
"""Declarations that hold no body: an error in one loses a name."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What became of a policy. `program` is None with an error among the diagnostics.

    `tests`: the `test` blocks of the roots. `bound`: for tools that explain; None when a root could not be read.
    """

    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    tests: tuple[tuple[Source, ast.TestBlock], ...] = ()
    bound: Bound | None = None


def compile_policy(
    path: str | Path,
    *,
    layers: Sequence[str | Path] = (),
    cache: Cache | None = None,
    bytes_of: ReadBytes = read_bytes,
) -> Compiled:
    """Compile a policy file under its layers, highest first; with a cache, unchanged files that only hold agents are
    not parsed and not judged again. `bytes_of`: reads each file, imports and catalogues too.
    """
    roots: list[Root] = []
    for each in (*layers, path):
        where = Path(each)
        source = read_source(where, read=bytes_of)
        if isinstance(source, Diagnostic):
            return Compiled(None, (source,))
        roots.append(Root(source, where.parent, where))
    return compile_roots(roots, cache, bytes_of)


def compile_text(text: str, *, name: str = "<text>", folder: str | Path = ".") -> Compiled:
    """Compile policy text; its relative imports and catalogues start at `folder`."""
    return compile_roots([Root(Source(name, text), Path(folder))])


def compile_roots(roots: Sequence[Root], cache: Cache | None = None, bytes_of: ReadBytes = read_bytes) -> Compiled:
    """Every stage in turn. Logic is judged once names and kinds are right; a policy with an error is none."""
    with collector_paused():
        if cache is None:
            gathered, found = gather(roots, bytes_of=bytes_of)
            return _compile(gathered, found, NOTHING)
        prepared = prepare(roots, cache, bytes_of)
        return _compile(prepared.gathered, prepared.found, prepared.kept, partial(keep, prepared, cache))


UNREAD = frozenset(
    {codes.MISSING_IMPORT, codes.IMPORT_CYCLE, codes.MISSING_CATALOG, codes.BAD_CATALOG, codes.FILE_IN_TWO_LAYERS}
)
"""Something that would declare names could not be read: what is said of names after that follows from it."""

Findings = tuple[Diagnostic, ...]

MAX_BETWEEN = 200
"""How many blanks may stand between a test and the line that goes on with it by mistake."""

_OPERATOR = re.compile(r"[=!<>]|(?:in|not|like|matches|contains|under|glob|in_domain|in_net|runs)\b")

LOGIC = "ZC3"
"""Codes from here on are judged only once there is no error before."""

FOLLOWING = frozenset(
    {codes.UNKNOWN_TOOL, codes.UNKNOWN_TOOL_HERE, codes.UNKNOWN_TOOL_CALLED, codes.UNKNOWN_NAME, codes.EMPTY_SET,
     codes.UNKNOWN_FIELD, codes.UNREVIEWED}
)  # fmt: skip
"""What may follow from a declaration that could not be parsed."""

NAMING_WORDS = frozenset(
    {"catalog", "import", "tool", "server", "risk", "label", "scope", "let", "group", "bundle", "context"}
)
"""What declarations that hold no body begin with: met inside a block that was never closed, they are lost as well."""


def independent(
    later: tuple[Diagnostic, ...], before: tuple[Diagnostic, ...], gathered: Gathered
) -> tuple[Diagnostic, ...]:
    """The later findings that do not merely follow from what went wrong before: one finding per cause."""
    if any(finding.code in UNREAD for finding in before):
        return ()
    bodies = {
        file.source.name: [d.span for d in file.file.declarations if not isinstance(d, NAMING)]
        for file in gathered.files
    }
    errors = [finding for finding in before if finding.severity == "error"]
    lost = any(
        _loses_a_name(finding)
        or not any(span.start <= finding.span.start < span.end for span in bodies.get(finding.source.name, ()))
        for finding in errors
    )
    broken: dict[str, set[int]] = {}
    for finding in errors:
        broken.setdefault(finding.source.name, set()).add(finding.span.start)
    return tuple(
        finding
        for finding in later
        if not (lost and finding.code in FOLLOWING)
        and not (errors and finding.code is codes.MISPLACED_STATEMENT)  # its `agent` may be what could not be read
        and not _cut_off(finding, broken.get(finding.source.name, set()))
    )


def _loses_a_name(finding: Diagnostic) -> bool:
    said = finding.source.text[finding.span.start : finding.span.end]
    return finding.code is codes.MISPLACED_STATEMENT and said in NAMING_WORDS


def _cut_off(finding: Diagnostic, broken: set[int]) -> bool:
    """Whether the next line goes on with an operator, which cannot be read there: the test was cut in two."""
    text, end = finding.source.text, finding.span.end
    after = text[end : end + MAX_BETWEEN]
    return end + len(after) - len(after.lstrip()) in broken and _OPERATOR.match(after.lstrip()) is not None


def _compile(
    gathered: Gathered,
    found: Findings,
    kept: Kept,
    keep: Callable[[Bound, Findings, ProgramData, Origins], None] | None = None,
) -> Compiled:
    bound, of_names = bind(gathered, kept)
    found = (*found, *independent((*of_names, *check_kinds(bound)), found, gathered))
    if has_errors(found):
        known = tuple(finding for finding in kept.findings if finding.code.id < LOGIC)
        return Compiled(None, in_order((*unsuppressed(found, gathered), *known)), tests_of(gathered), bound)
    found = in_order((*unsuppressed((*found, *run_checks(bound)), gathered), *kept.findings))
    if has_errors(found):
        return Compiled(None, found, tests_of(gathered), bound)
    data, origins = lower(bound)
    if keep is not None:
        keep(bound, found, data, origins)
    return Compiled(Program.build(data, origins), found, tests_of(gathered), bound)


def tests_of(gathered: Gathered) -> tuple[tuple[Source, ast.TestBlock], ...]:
    """The `test` blocks of the policy's own root."""
    return tuple(
        (file.source, node)
        for file in gathered.files
        if file.is_root and file.layer == gathered.lowest
        for node in file.file.declarations
        if isinstance(node, ast.TestBlock)
    )

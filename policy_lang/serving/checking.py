"""A daemon's settings and its policy, judged together: what `zcpolicy serve --check` says, and what it starts with.

In: the path of a file of settings. Out: a `Checked`: settings that can be served, or None; all findings about both files.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from policy_lang import codes
from policy_lang.compile import Compiled, compile_policy
from policy_lang.diagnostics import Diagnostic, has_errors, in_order
from policy_lang.render.plain import plain
from policy_lang.serving.reading import Table
from policy_lang.serving.secrets import concealed
from policy_lang.serving.settings import read_settings
from policy_lang.serving.starting import judge_start
from policy_lang.serving.together import judge_together
from zcpolicy.daemon.settings import Settings
from zcpolicy.program import Program
from zcpolicy.reload.sources import PolicySource, Unreadable

Beside = Callable[[Program], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Checked:
    """`settings` is None with an error among the diagnostics. `files`: how many files were judged. `without_policy`: the
    settings, where nothing is wrong but the policy: a daemon may still have one that was good. `beside`: what is wrong between these
    settings and another policy, a line each.
    """

    settings: Settings | None
    diagnostics: tuple[Diagnostic, ...]
    files: int = 1
    without_policy: Settings | None = None
    beside: Beside = lambda _program: ()


def check_settings(path: Path) -> Checked:
    """What is wrong with a file of settings, with the policy that it names, and between the two."""
    read = read_settings(path)
    if read.settings is None or read.table is None:
        return Checked(None, read.diagnostics)
    roots = _roots(read.settings, read.table)
    if not roots:
        return Checked(None, concealed(read.table.found))
    judge_start(read.settings, read.table)
    compiled = _compiled(roots)
    if compiled.program is not None:
        judge_together(read.settings, read.table, compiled.program)
    found = in_order((*concealed(read.table.found), *compiled.diagnostics))
    sound = None if has_errors(found) else read.settings
    without = None if has_errors(read.table.found) else read.settings
    return Checked(sound, found, 1 + len(roots), without, partial(_beside, read.settings, read.table))


def _beside(settings: Settings, table: Table, program: Program) -> Sequence[str]:
    top = replace(table, found=[])
    judge_together(settings, top, program)
    return plain(concealed(top.found)).splitlines()


def _roots(settings: Settings, top: Table) -> Sequence[Path]:
    """The policy's root files, highest layer first; none where a folder has none, which is reported."""
    if settings.policy.folder is None:
        return [_shown(layer) for layer in settings.policy.layers]
    try:
        return [_shown(os.fspath(root)) for root in PolicySource.of_folder(settings.policy.folder).roots()]
    except Unreadable as error:
        top.say(codes.UNUSABLE_FILE, _shorter(str(error)), ("policy", "folder"))
        return []


def _compiled(roots: Sequence[Path]) -> Compiled:
    return compile_policy(roots[-1], layers=roots[:-1])


def _shown(path: str) -> Path:
    """A path as people type it here, if that is shorter."""
    near = os.path.relpath(path)
    return Path(path if near.startswith("..") else near)


def _shorter(message: str) -> str:
    return message.replace(f"`{os.getcwd()}{os.sep}", "`")  # noqa: PTH109 - a prefix of text

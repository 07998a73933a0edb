"""`zcpolicy check PATH…`: find mistakes; `--fix` mends what is safe to mend.

In: policy files. Out: findings in one of five styles; status 0, or 1 with errors.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from policy_lang.cli.errors import CommandError
from policy_lang.cli.options import (
    cache_option,
    compiling,
    format_option,
    layer_option,
    paths_argument,
    policies,
    progress,
)
from policy_lang.compile import Compiled
from policy_lang.diagnostics import Diagnostic, in_order
from policy_lang.fixes import Fixed, fixed_texts, rewrite
from policy_lang.render import Style, render, summary
from policy_lang.render.colour import wants_colour

MAX_ROUNDS = 10
"""How often `--fix` looks again: a fix may uncover another."""


@click.command("check", epilog="Example: zcpolicy check --deny-warnings policies/")
@paths_argument
@layer_option
@cache_option
@click.option("--fix", is_flag=True, help="Apply the fixes that are safe, then check again.")
@click.option("--deny-warnings", is_flag=True, help="Warnings fail, too.")
@format_option("sarif", "github")
def command(
    paths: tuple[Path, ...],
    layers: tuple[Path, ...],
    cache_folder: Path | None,
    fix: bool,
    deny_warnings: bool,
    style: Style,
) -> int:
    """Find mistakes in policies: each file a policy of its own, each folder its files."""
    files = policies(paths)
    compiled = compiling(layers, cache_folder)
    found = _findings(files, compiled, style)
    if fix:
        found = _mend(files, compiled, style, found)
    colour = style == "human" and wants_colour(sys.stdout)
    print(render(found, style, files=len(files), colour=colour), end="")
    if style == "human":
        print(("\n" if found else "") + summary(found, len(files), colour=colour), end="")
    return int(bool(found) if deny_warnings else _errors(found) > 0)


def _findings(files: tuple[Path, ...], compiled: Callable[[Path], Compiled], style: Style) -> tuple[Diagnostic, ...]:
    return in_order(
        finding for path in progress(files, shown=style == "human") for finding in compiled(path).diagnostics
    )


def _mend(
    files: tuple[Path, ...], compiled: Callable[[Path], Compiled], style: Style, found: tuple[Diagnostic, ...]
) -> tuple[Diagnostic, ...]:
    """Apply safe fixes until none is left. Where the fixed policy has more errors than before, the text is put back."""
    for _ in range(MAX_ROUNDS):
        texts = fixed_texts(found)
        if not texts:
            break
        _write(texts)
        after = _findings(files, compiled, style)
        if _errors(after) > _errors(found):
            _write(tuple(Fixed(text.name, text.after, text.before, 0) for text in texts))
            break
        for text in texts:
            print(f"{text.name}: {text.count} fixed", file=sys.stderr)
        found = after
    return found


def _write(texts: tuple[Fixed, ...]) -> None:
    for text in texts:
        try:
            rewrite(Path(text.name), text.before, text.after)
        except OSError as error:
            raise CommandError(f"`{text.name}` cannot be fixed: {error.strerror or error}") from None


def _errors(found: tuple[Diagnostic, ...]) -> int:
    return sum(finding.severity == "error" for finding in found)

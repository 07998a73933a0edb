"""A policy for a command that needs the whole of it; without click, since `decide` needs one, too.

In: a policy file and its layers. Out: what became of it; its findings printed where it did not compile.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from policy_lang.cli.errors import CommandError
from policy_lang.compile import Compiled, compile_policy
from policy_lang.diagnostics import Diagnostic
from policy_lang.render import render
from policy_lang.render.colour import wants_colour


def compiled(path: Path, layers: tuple[Path, ...], style: str) -> Compiled:
    """The policy; with errors, JSON findings go to stdout and all others but `quiet` ones to stderr.

    Raises:
        CommandError: there is no such file.
    """
    made = compile_policy(existing(path), layers=layers)
    if made.program is None and style == "json":
        print(render(made.diagnostics, "json"), end="")
    elif made.program is None and style != "quiet":
        complain(made.diagnostics, style)
    return made


def existing(path: Path) -> Path:
    """The path itself.

    Raises:
        CommandError: there is nothing, or a compiled policy, which `check --fix` must not take for text.
    """
    if not os.path.lexists(path):
        raise CommandError(f"`{path}` does not exist")
    if path.suffix == ".zcpc":
        raise CommandError(f"`{path}` is compiled, which only `decide` reads: name the text that it was made of")
    return path


def complain(found: Sequence[Diagnostic], style: str) -> None:
    """Print findings on stderr, for a command that has something else to say on stdout."""
    drawn = render(found, "plain" if style == "plain" else "human", colour=wants_colour(sys.stderr))
    print(drawn, end="", file=sys.stderr)

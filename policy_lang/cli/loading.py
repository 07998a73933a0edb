"""A policy for a command that needs the whole of it.

In: a policy file and its layers. Out: what became of it; its findings printed where it did not compile.
"""

import os
import sys
from pathlib import Path

from policy_lang.cli.main import CommandError
from policy_lang.compile import Compiled, compile_policy
from policy_lang.render import render
from policy_lang.render.colour import wants_colour


def compiled(path: Path, layers: tuple[Path, ...], style: str) -> Compiled:
    """The policy; with errors, JSON findings go to stdout and all others but `quiet` ones to stderr.

    Raises:
        CommandError: there is no such file.
    """
    if not os.path.lexists(path):
        raise CommandError(f"`{path}` does not exist")
    made = compile_policy(path, layers=layers)
    if made.program is None and style == "json":
        print(render(made.diagnostics, "json"), end="")
    elif made.program is None and style != "quiet":
        drawn = render(made.diagnostics, "plain" if style == "plain" else "human", colour=wants_colour(sys.stderr))
        print(drawn, end="", file=sys.stderr)
    return made

"""`zcpolicy serve SETTINGS`: check a daemon's settings and its policy, then serve until told to stop.

In: a TOML file. Out: findings; with `--check` nothing else. Status 0 after an orderly end, 1 where settings or policy have errors,
2 where the daemon cannot start.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policy_lang.cli.daemon_url import TOKEN_VARIABLE
from policy_lang.cli.errors import CommandError
from policy_lang.cli.loading import complain, existing
from policy_lang.cli.options import format_option
from policy_lang.render import Style, render, summary
from policy_lang.render.colour import wants_colour
from policy_lang.render.visible import visible

if TYPE_CHECKING:
    from policy_lang.serving.checking import Beside
    from zcpolicy.daemon.settings import Settings


@click.command("serve", epilog="Example: zcpolicy serve --check daemon.toml")
@click.argument("settings", type=click.Path(path_type=Path))
@click.option("--check", "only_check", is_flag=True, help="Say what is wrong with settings and policy, and end.")
@format_option()
def command(settings: Path, only_check: bool, style: Style) -> int:
    """Serve agents to clients over HTTP, a Unix socket and a schedule, all under one policy."""
    from policy_lang.serving.checking import check_settings

    checked = check_settings(existing(settings))
    errors = checked.settings is None
    if only_check:
        colour = style == "human" and wants_colour(sys.stdout)
        print(render(checked.diagnostics, style, files=checked.files, colour=colour), end="")
        if style == "human":
            blank = "\n" if checked.diagnostics else ""
            print(blank + summary(checked.diagnostics, checked.files, colour=colour), end="")
        return int(errors)
    if checked.diagnostics:
        complain(checked.diagnostics, style)
    return 1 if checked.without_policy is None else _serve(settings, checked.without_policy, checked.beside)


def _serve(path: Path, settings: "Settings", beside: "Beside") -> int:
    """A policy with errors, which have been told, is served under the last good one, if there is one.

    Raises CommandError where the daemon cannot start.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the policy is watched: it is about to be read
    from policy_lang.serving.compiling import compile_layers
    from zcpolicy.daemon.serving import Daemon, StartFailed
    from zcpolicy.reload.sources import Broken

    if TOKEN_VARIABLE in os.environ:
        raise CommandError(
            f"the variable {TOKEN_VARIABLE} is set: tools that the daemon starts would have an operator's token; unset it"
        )
    sys.path.insert(0, str(path.absolute().parent))  # where tools and chats of the operator's own lie
    try:
        asyncio.run(Daemon(settings, compile_layers, _told, beside).run())
    except StartFailed as failed:
        raise CommandError(f"the daemon cannot start: {failed}") from None
    except Broken:
        return 1
    return 0


def _told(line: str) -> None:
    """A line for whoever watches: one that nobody hears is no reason to end."""
    try:
        print(f"zcpolicy: {visible(line)}", file=sys.stderr, flush=True)
    except OSError:
        return

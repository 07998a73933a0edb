"""The commands by name, each imported when it is run; completion; help.

In: the words after `zcpolicy`. Out: an exit status.
"""

import importlib
import os
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NoReturn

import click

from policy_lang.cli.errors import USAGE, CommandError

COMMANDS: Final = {
    "check": "find mistakes in policies",
    "test": "run the `test` blocks of policies",
    "decide": "say what would happen to one call, and why",
    "fmt": "write policies in the one layout",
    "compile": "write a policy in its compiled form",
    "resolve": "show all that an agent gets",
    "explain": "print the page of a diagnostic",
    "parity": "show which path of a host, ours or your own, enforces which setting",
    "hook": "decide the calls of a coding agent: Claude Code, Codex, Gemini, Copilot, Cursor, VS Code",
    "serve": "serve agents to clients, until it is told to stop",
    "token": "give out, list and revoke the tokens of the daemon's clients",
    "approvals": "see and answer what waits for an operator of the daemon",
    "log": "say whether a decision log is whole, and what it says",
    "tools": "fetch the list of tools of an MCP server",
    "init": "write a starter policy from a list of tools",
    "completion": "print the completion script of a shell",
}
"""Every command and what it does; `policy_lang.cli.NAME` holds it as `command`."""
_MODULES: Final = {"compile": "compile_", "init": "init_", "decide": "decide_words", "hook": "hook_words"}

COMPLETE_VARIABLE: Final = "_ZCPOLICY_COMPLETE"


class _Commands(click.Group):
    """A group that imports a command when it is asked for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = _MODULES.get(cmd_name, cmd_name)
        command: click.Command = importlib.import_module(f"policy_lang.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            _unknown_command(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _unknown_command(word: str) -> NoReturn:
    near = get_close_matches(word, COMMANDS, n=1)
    raise CommandError(f"there is no command `{word}`" + (f"; did you mean `{near[0]}`?" if near else "; see --help"))


def _version() -> str:
    try:
        return version("zcpolicy")
    except PackageNotFoundError:
        return "0 (not installed)"


@click.group(cls=_Commands, epilog="Example: zcpolicy check team.zcpolicy")
@click.version_option(_version(), prog_name="zcpolicy")
def app() -> None:
    """Policies that keep AI agents in bounds: check them, test them, ask them."""


def run_app(words: Sequence[str]) -> int:
    """Run a command through click."""
    if COMPLETE_VARIABLE in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(app, {}, "zcpolicy", COMPLETE_VARIABLE, os.environ[COMPLETE_VARIABLE])
    try:
        status = app.main(list(words), prog_name="zcpolicy", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        raise CommandError(_words(error)) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except SystemExit:  # click's way with a reader that went away
        raise BrokenPipeError from None
    return status if isinstance(status, int) else 0


def _words(error: click.ClickException) -> str:
    """Click's message in our spelling: one line, and where help is."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    help_at = f"; see {context.command_path} --help" if context else ""
    return f"{message[:1].lower()}{message[1:]}{help_at}"

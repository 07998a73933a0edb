"""`zcpolicy token add|list|revoke`: who may talk to the daemon.

In: a file of settings, names. Out: a new token, shown once; who has one. A daemon that runs takes it up at the next request.
"""

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policy_lang.cli.errors import CommandError
from policy_lang.cli.loading import complain, existing
from policy_lang.cli.options import Command, format_option
from policy_lang.render.as_json import json_text
from policy_lang.render.visible import visible

if TYPE_CHECKING:
    from zcpolicy.daemon.tokens import Holder, Role, Tokens


@click.group("token", epilog="Example: zcpolicy token add ann --output ann.token")
def command() -> None:
    """Give out the tokens that clients and operators of the daemon come in with, list them, revoke them."""


def _settings_option(command: Command) -> Command:
    return click.option(
        "--settings", "settings", type=click.Path(path_type=Path), default=Path("daemon.toml"), show_default=True,
        help="The settings of the daemon.",
    )(command)  # fmt: skip


@command.command("add")
@click.argument("name")
@click.option("--operator", is_flag=True, help="It may also see and change how the daemon runs.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it to this new file, which is yours alone, instead of showing it.",
)
@_settings_option
@format_option()
def add(name: str, operator: bool, output: Path | None, settings: Path, style: str) -> int:
    """Give out a token, and show it, or write it to a file: it is told once, and kept nowhere else."""
    tokens = _tokens(settings)
    role: Role = "operator" if operator else "client"
    token = _given(tokens, name, role) if output is None else None
    if output is not None:
        _write(tokens, name, role, output)
    if style == "json":
        told = {"token": token} if output is None else {"file": str(output)}
        print(json_text({"name": name, "role": role, **told}), end="")
    elif output is None:
        print(token)
        print("shown once: it is not kept, only its digest is", file=sys.stderr)
    return 0


def _given(tokens: "Tokens", name: str, role: "Role") -> str:
    """A new token. Raises CommandError."""
    from zcpolicy.daemon.tokens import TokensError

    try:
        return tokens.add(name, role)
    except TokensError as error:
        raise CommandError(str(error)) from None


def _write(tokens: "Tokens", name: str, role: "Role", output: Path) -> None:
    """A new token into a new file. One that nobody was told is taken back. Raises CommandError."""
    shown = visible(str(output))
    try:
        made = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise CommandError(f"`{shown}` is there already, and is not written over") from None
    except OSError as error:
        raise CommandError(f"`{shown}` cannot be written: {(error.strerror or str(error)).lower()}") from None
    try:
        with os.fdopen(made, "w", encoding="ascii") as file:
            token = _given(tokens, name, role)
            try:
                file.write(f"{token}\n")
                file.flush()
            except OSError as error:
                tokens.revoke(name)
                raise CommandError(f"`{shown}` cannot be written: {(error.strerror or str(error)).lower()}") from None
    except BaseException:
        with suppress(OSError):
            output.unlink()
        raise


@command.command("list")
@_settings_option
@format_option()
def listed(settings: Path, style: str) -> int:
    """Say who has a token, whose was revoked, and which client of the decision log each is."""
    from zcpolicy.daemon.clients import ids_in
    from zcpolicy.daemon.tokens import TokensError

    tokens = _tokens(settings)
    ids = ids_in(tokens.folder)
    try:
        holders = tokens.holders()
    except TokensError as error:
        raise CommandError(str(error)) from None
    if style == "json":
        print(json_text({"tokens": [_as_json(one, ids) for one in holders]}), end="")
        return 0
    for one in holders:
        known = f", client {ids[one.name]}" if one.name in ids else ""
        gone = "" if one.revoked is None else f", revoked {_day(one.revoked)}"
        print(f"{one.name}: {one.role}, since {_day(one.made)}{gone}{known}")
    if not holders:
        print("nobody has a token", file=sys.stderr)
    return 0


@command.command("revoke")
@click.argument("name")
@_settings_option
def revoke(name: str, settings: Path) -> int:
    """Take a token back: whoever has it is turned away from the next request on."""
    from zcpolicy.daemon.tokens import TokensError

    try:
        _tokens(settings).revoke(name)
    except TokensError as error:
        raise CommandError(str(error)) from None
    return 0


def _tokens(path: Path) -> "Tokens":
    """The daemon's tokens, whatever else is wrong with the settings. Raises CommandError."""
    from policy_lang.serving.settings import read_settings
    from zcpolicy.daemon.folders import make_own
    from zcpolicy.daemon.settings import SettingsError
    from zcpolicy.daemon.tokens import Tokens

    read = read_settings(existing(path))
    if read.state is None:
        complain(read.diagnostics, "human")
        raise CommandError(f"`{path}` does not say where tokens are kept")
    try:
        make_own(read.state)
    except SettingsError as error:
        raise CommandError(str(error)) from None
    return Tokens(str(Path(read.state, "tokens.json")))


def _as_json(holder: "Holder", ids: dict[str, str]) -> dict[str, object]:
    told = {"name": holder.name, "role": holder.role, "made": holder.made, "revoked": holder.revoked}
    return {**told, "client": ids.get(holder.name)}


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")

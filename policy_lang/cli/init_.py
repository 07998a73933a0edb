"""`zcpolicy init TOOLS.json --as SERVER`: a starter policy.

In: a list of tools. Out: policy text on stdout, or in a file that does not exist yet.
"""

import os
from pathlib import Path

import click

from policy_lang.catalog.mcp import CatalogError, read_tools
from policy_lang.cli.errors import CommandError
from policy_lang.cli.options import format_option
from policy_lang.files import read_bytes
from policy_lang.fixes import replace_bytes
from policy_lang.gather import MAX_CATALOG_BYTES
from policy_lang.render.as_json import json_text
from policy_lang.starter import starter


@click.command("init", epilog="Example: zcpolicy init tools.json --as github -o team.zcpolicy")
@click.argument("tools", type=click.Path(path_type=Path))
@click.option("--as", "server", required=True, metavar="SERVER", help="What the policy calls the server.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A new file to write. [default: stdout]")
@format_option()
def command(tools: Path, server: str, output: Path | None, style: str) -> int:
    """Write a starter policy for the tools of a server, from its answer to MCP `tools/list`."""
    data = read_bytes(tools, MAX_CATALOG_BYTES)
    if isinstance(data, str):
        raise CommandError(f"`{tools}` {data}")
    if not server or not server.isprintable():
        raise CommandError("`--as` needs the name of a server")
    try:
        listed = read_tools(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise CommandError(f"`{tools}` is not UTF-8") from None
    except CatalogError as error:
        raise CommandError(f"`{tools}` cannot be used: {error}") from None
    text = starter(listed, server, _from(output, tools))
    if output is not None:
        _write(output, text)
    if style == "json":
        print(json_text({"file": None if output is None else str(output), "text": text}), end="")
    else:
        print(text if output is None else f"wrote {output}", end="" if output is None else "\n")
    return 0


def _from(output: Path | None, tools: Path) -> str:
    """The list's path as the policy has to say it."""
    if tools.is_absolute():
        return tools.as_posix()
    return Path(os.path.relpath(tools, output.parent if output else Path())).as_posix()


def _write(output: Path, text: str) -> None:
    if os.path.lexists(output):
        raise CommandError(f"`{output}` exists already")
    try:
        replace_bytes(output.absolute(), text.encode())
    except OSError as error:
        raise CommandError(f"`{output}` cannot be written: {error.strerror or error}") from None

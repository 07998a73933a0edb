"""`zcpolicy tools -o FILE -- COMMAND…` or `--url URL`: fetch the list of tools of an MCP server.

In: how to start or reach a server. Out: a file that `catalog` and `zcpolicy init` take, sorted by name, replaced in one step,
and what changed against the file that was there; status 1 where `--check` finds a difference.
"""

import json
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from policy_lang.catalog.mcp import CatalogError, tools_on_the_wire
from policy_lang.cli.errors import CommandError
from policy_lang.cli.options import format_option
from policy_lang.files import read_bytes
from policy_lang.fixes import replace_bytes
from policy_lang.gather import MAX_CATALOG_BYTES
from policy_lang.render.as_json import json_text
from policy_lang.render.visible import visible

MAX_TIMEOUT: Final = 3600
"""Seconds that a server may be given for its answer."""

_PARTS: Final = {
    "description": "description",
    "inputSchema": "schema",
    "annotations": "hints",
    "title": "title",
    "outputSchema": "output schema",
}
Tools = Mapping[str, Mapping[str, Any]]


class Changes(NamedTuple):
    """What is different: names, and for those on both sides what of them."""

    added: list[str]
    removed: list[str]
    changed: dict[str, list[str]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@click.command(
    "tools",
    context_settings={"allow_interspersed_args": False},
    epilog="Example: zcpolicy tools -o git.json -- uvx mcp-server-git && zcpolicy init git.json --as git",
)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The list to write."
)
@click.option("--url", metavar="URL", help="Reach a server over Streamable HTTP, instead of starting one.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VARIABLE",
    help="A header for --url; its value is in the environment.",
)
@click.option(
    "--env", "variables", multiple=True, metavar="VARIABLE", help="Pass this variable on to COMMAND; repeat it."
)
@click.option(
    "--timeout",
    type=click.IntRange(1, MAX_TIMEOUT),
    default=30,
    show_default=True,
    help="Seconds to wait for the list.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if FILE is not what the server lists.")
@click.option("--force", is_flag=True, help="Replace a FILE that is different.")
@format_option()
@click.argument("words", nargs=-1, metavar="[--] [COMMAND...]", type=click.UNPROCESSED)
def command(
    output: Path,
    url: str | None,
    headers: tuple[str, ...],
    variables: tuple[str, ...],
    timeout: int,
    check: bool,
    force: bool,
    style: str,
    words: tuple[str, ...],
) -> int:
    """Fetch the list of tools of an MCP server, and say what changed against the list that is there.

    The server is started by COMMAND, which gets HOME, PATH and the like, and what --env names; or it is at --url.
    """
    fetch = _source(url, headers, variables, words)
    with _waiting(shown=style == "human" and sys.stderr.isatty()):
        text, tools = _usable(fetch(timeout))
    before, unusable = _there(output)
    changes = _changes(before or {}, tools)
    same = before is not None and not changes
    writes = not check and not same and ((before is None and not unusable) or force)
    if writes:
        _write(output, text)
    state = (
        "written" if writes else "unchanged" if same else unusable or ("is missing" if before is None else "differs")
    )
    _say(output, tools, changes, style, state, first=before is None)
    if check:
        return int(not same)
    if not same and not writes:
        raise CommandError(f"`{output}` {unusable or 'is different'}: replace it with --force, after a look at it")
    return 0


@contextmanager
def _waiting(*, shown: bool) -> Generator[None]:
    """Says on a terminal what takes so long, and leaves it clean."""
    if shown:
        print("asking the server …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _source(
    url: str | None, headers: Sequence[str], variables: Sequence[str], words: Sequence[str]
) -> Callable[[float], list[dict[str, Any]]]:
    """How to get the list, once everything that is asked for is known to be there."""
    if (url is None) == (not words):
        raise CommandError("name one server: `-- COMMAND…` to start it, or `--url URL`")
    if url is None and headers:
        raise CommandError("`--header` goes with `--url`; a server that is started takes `--env VARIABLE`")
    if url is not None and variables:
        raise CommandError("`--env` goes with `-- COMMAND…`; a server at a URL takes `--header NAME=VARIABLE`")
    given = dict(map(_header, headers))
    passed = {name: _variable(name) for name in variables}
    if url is not None:
        _check_url(url)
    try:
        from policy_lang.cli.server_tools import of_command, of_url
    except ImportError as error:
        raise CommandError(str(error)) from None
    if url is not None:
        return lambda seconds: of_url(url, given, seconds)
    return lambda seconds: of_command(words, passed, seconds)


def _check_url(url: str) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise CommandError("`--url` is no URL") from None
    if not fine:
        raise CommandError("`--url` needs the form `https://HOST/PATH`")
    if parts.username is not None:
        raise CommandError("`--url` holds a user or a password: use `--header Authorization=VARIABLE`")


def _header(said: str) -> tuple[str, str]:
    name, equals, variable = said.partition("=")
    if not equals or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise CommandError(f"`--header {name}` is no header: write NAME=VARIABLE, the variable holding the value")
    value = _variable(variable)
    if not value.isascii() or not value.isprintable():
        raise CommandError(f"the variable `{variable}` holds what no header can")
    return name, value.strip()


def _variable(name: str) -> str:
    if name not in os.environ:
        raise CommandError(f"there is no variable `{name}` in the environment")
    return os.environ[name]


def _there(output: Path) -> tuple[Tools | None, str]:
    """The list that is there, None for none; and why a file that is there cannot be one."""
    if not os.path.lexists(output):
        return None, ""
    data = read_bytes(output, MAX_CATALOG_BYTES)
    if isinstance(data, str):
        raise CommandError(f"`{output}` {data}")
    try:
        return tools_on_the_wire(data.decode("utf-8")), ""
    except UnicodeDecodeError:
        return None, "is no list of tools"
    except CatalogError as error:
        return None, f"is no list of tools ({error})"


def _usable(listed: list[dict[str, Any]]) -> tuple[str, Tools]:
    """The text of the list, as the compiler itself will read it."""
    if not listed:
        raise CommandError("the server lists no tools")
    try:
        ordered = json.loads(json.dumps(sorted(listed, key=lambda tool: tool["name"]), sort_keys=True))
        text = json_text({"tools": [{"name": tool["name"], **tool} for tool in ordered]})
        return text, tools_on_the_wire(text)
    except CatalogError as error:
        raise CommandError(f"the server's list cannot be used: {error}") from None


def _changes(before: Tools, now: Tools) -> Changes:
    changed = {name: _different(before[name], now[name]) for name in sorted(before.keys() & now.keys())}
    return Changes(
        sorted(now.keys() - before.keys()),
        sorted(before.keys() - now.keys()),
        {name: parts for name, parts in changed.items() if parts},
    )


def _different(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [word for key, word in _PARTS.items() if before.get(key) != now.get(key)]


def _write(output: Path, text: str) -> None:
    try:
        replace_bytes(output.resolve(), text.encode())
    except OSError as error:
        raise CommandError(f"`{output}` cannot be written: {error.strerror or error}") from None


def _say(output: Path, tools: Tools, changes: Changes, style: str, state: str, *, first: bool) -> None:
    if style == "json":
        changed = [{"name": name, "what": parts} for name, parts in changes.changed.items()]
        said = {"file": str(output), "tools": len(tools), "same": state == "unchanged", "written": state == "written"}
        print(json_text({**said, "added": changes.added, "removed": changes.removed, "changed": changed}), end="")
        return
    shown = visible(str(output))
    if style == "human":
        print(f"{shown}: {len(tools)} {'tool' if len(tools) == 1 else 'tools'}, {visible(state)}")
    if not first:
        print("".join(f"  {line}\n" if style == "human" else f"{shown}: {line}\n" for line in _lines(changes)), end="")


def _lines(changes: Changes) -> Iterator[str]:
    yield from (f"added: {visible(name)}" for name in changes.added)
    yield from (f"removed: {visible(name)}" for name in changes.removed)
    yield from (f"changed: {visible(name)}: {', '.join(parts)}" for name, parts in changes.changed.items())

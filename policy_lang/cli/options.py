"""What several commands take: the format, the layers, the policies.

In: words of the command line. Out: click decorators, and the files that PATHs mean.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from policy_lang.cache import Cache
from policy_lang.cli.errors import CommandError
from policy_lang.cli.loading import existing
from policy_lang.compile import Compiled, compile_policy

Command = TypeVar("Command", bound=Callable[..., Any])


def format_option(*more: str) -> Callable[[Command], Command]:
    """`--format human|plain|json` and what else this command can print."""
    choices = click.Choice(["human", "plain", "json", *more])
    return click.option("--format", "style", type=choices, default="human", show_default=True, help="How to print.")


def layer_option(command: Command) -> Command:
    """`--layer F`, as often as there are layers above the policy, highest first."""
    return click.option(
        "--layer",
        "layers",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A policy above this one; repeat it, highest first.",
    )(command)


def cache_option(command: Command) -> Command:
    """`--cache DIR`: where to keep what was found out about unchanged files."""
    return click.option(
        "--cache",
        "cache_folder",
        type=click.Path(path_type=Path, file_okay=False),
        help="Keep what was found out about unchanged files here; guard it like the policies.",
    )(command)


def compiling(layers: tuple[Path, ...], cache_folder: Path | None) -> Callable[[Path], Compiled]:
    """How a command compiles its policies."""
    return partial(compile_policy, layers=layers, cache=Cache(cache_folder) if cache_folder is not None else None)


def paths_argument(command: Command) -> Command:
    """`PATH…`: policy files, or folders of them."""
    argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
    return argument(command)


def policy_argument(command: Command) -> Command:
    """`POLICY`: one policy file."""
    return click.argument("policy", type=click.Path(path_type=Path))(command)


def policies(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files meant: those named, and every `*.zcpolicy` below a named folder, sorted; hidden folders aside.

    Raises:
        CommandError: a path does not exist, or a folder holds no policy.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(_inside(path))
            if not inside:
                raise CommandError(f"there is no `*.zcpolicy` file in `{path}`")
            found.update(dict.fromkeys(inside))
        else:
            found[existing(path)] = None
    return tuple(found)


def _inside(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(here, name) for name in files if name.endswith(".zcpolicy"))


def progress(paths: Iterable[Path], *, shown: bool) -> Iterator[Path]:
    """The paths one by one; on a terminal stderr says which of how many, and is clean again at the end."""
    everything = tuple(paths)
    draw = shown and len(everything) > 1 and sys.stderr.isatty()
    for number, path in enumerate(everything, 1):
        if draw:
            print(f"\r\x1b[K{number}/{len(everything)} {str(path)[-60:]}", end="", file=sys.stderr, flush=True)
        yield path
    if draw:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)

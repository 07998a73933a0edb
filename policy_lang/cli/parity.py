"""`zcpolicy parity`: drives every path of a host with every setting, and prints which enforces which.

In: the paths of the reference host, or those that a module of one's own has. Out: the matrix; status 1 where a path does not enforce a setting.
"""

import asyncio
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Final

import click

import policy_lang
from policy_lang.cli.errors import CommandError
from policy_lang.cli.options import format_option
from policy_lang.cli.words import nearest
from policy_lang.render.colour import Piece, StyleName, paint, wants_colour
from policy_lang.render.visible import visible
from zcpolicy.extras import missing

if TYPE_CHECKING:
    from zcpolicy.parity.matrix import Cell, Matrix, Status
    from zcpolicy.parity.probe import ParityPath
    from zcpolicy.parity.settings.setting import Setting

_WORDS: Final[dict[str, tuple[str, StyleName]]] = {
    "enforced": ("yes", "good"),
    "partly": ("part", "warning"),
    "not applied": ("no", "error"),
    "crashed": ("err", "error"),
}


@click.command("parity", epilog="Example: zcpolicy parity --format markdown > docs/parity-matrix.md")
@click.option("--host", metavar="MODULE:NAME", help="The paths of your own host. [default: the reference host]")
@click.option("--path", "names", metavar="NAME", multiple=True, help="Drive only this path; repeat it.")
@click.option("--setting", "wanted", metavar="NAME", multiple=True, help="Show only this setting; repeat it.")
@format_option("markdown", "html")
def command(host: str | None, names: tuple[str, ...], wanted: tuple[str, ...], style: str) -> int:
    """Drive every path of a host with every setting, and show which path enforces which."""
    from zcpolicy.parity import render
    from zcpolicy.parity.matrix import matrix

    paths, settings = _paths(host, names), _settings(wanted)
    if sys.stderr.isatty() and style == "human":
        print("driving every path with every setting …", end="", file=sys.stderr, flush=True)
    made = asyncio.run(matrix(paths, cache(policy_lang.loads), settings))
    if sys.stderr.isatty() and style == "human":
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    written = {"markdown": render.markdown, "html": render.html, "json": render.json}.get(style)
    if written is not None:
        print(written(made), end="")
    elif style == "plain":
        print("".join(_plain(made)), end="")
    else:
        width = shutil.get_terminal_size((80, 24)).columns
        print(paint(_human(made, width), colour=wants_colour(sys.stdout)), end="")
    return int(not made.enforced)


def _paths(host: str | None, names: Sequence[str]) -> "Sequence[ParityPath]":
    """The paths that are meant.

    Raises:
        CommandError: there is no such path, or a library that a path stands on is not installed.
    """
    from zcpolicy.parity.reference import PATHS

    known = PATHS if host is None else _own(host)
    _known(names, [path.name for path in known], "path")
    meant = [path for path in known if not names or path.name in names]
    if host is not None:
        return meant
    if any(path.name == "gateway" for path in meant) and find_spec("starlette") is None:
        raise CommandError(f"{missing('the path `gateway`', 'parity')}, or name other paths")
    return meant


def _own(host: str) -> "Sequence[ParityPath]":
    """The paths of a module, which is found from the current folder as well.

    Raises:
        CommandError: there is no such module or name, or it is no list of paths.
    """
    from zcpolicy.parity.probe import ParityPath

    module, _, name = host.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise CommandError(f"--host `{host}` names no list of paths: write MODULE:NAME")
    sys.path.insert(0, "")
    try:
        found: Any = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a module does as it is imported
        raise CommandError(f"--host `{host}` cannot be loaded: {_of_the_host(error, module, name)}") from None
    finally:
        sys.path.remove("")
    listed: list[Any] = list(found) if type(found) in (list, tuple) else []
    if not listed or not all(type(path) is ParityPath for path in listed):
        raise CommandError(f"--host `{host}` is no list of `zcpolicy.parity.probe.ParityPath`")
    return listed


def _of_the_host(error: BaseException, module: str, name: str) -> str:
    """What kept a host's module from being loaded, with the last place in it."""
    if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
        return f"there is no module `{error.name}`, from this folder"
    frames = [frame for frame in extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    if isinstance(error, AttributeError) and not frames:
        return f"module `{module}` has no `{name}`"
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else module
    words = str(error)
    if isinstance(error, SyntaxError) and error.filename is not None:
        where, words = f"{error.filename}:{error.lineno}", error.msg
    return f"the host's module failed: {type(error).__name__}: {' '.join(words.split())[:200]} ({where})"


def _is_theirs(file: str) -> bool:
    return file not in (__file__, "<string>") and not file.startswith("<frozen")


def _settings(names: Sequence[str]) -> "Sequence[Setting]":
    """The settings that are meant.

    Raises:
        CommandError: there is no such setting.
    """
    from zcpolicy.parity.settings import SETTINGS

    _known(names, [setting.name for setting in SETTINGS], "setting")
    return [setting for setting in SETTINGS if not names or setting.name in names]


def _known(names: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise CommandError(f"there is no {what} `{name}`" + (f"; did you mean `{near}`?" if near else ""))


def _plain(made: "Matrix") -> Iterator[str]:
    for cell in made.cells:
        note = f": {visible(cell.note)}" if cell.note else ""
        yield f"{cell.area}: {cell.setting}: {visible(cell.path)}: {cell.status}{note}\n"


def _human(made: "Matrix", width: int) -> Iterator[Piece]:
    from zcpolicy.parity.render import brief, summary

    names = [visible(name) for name in made.paths]
    left = max(len(setting.name) for setting in made.settings) + 3
    heads, legend = names, ""
    if left + sum(len(name) + 1 for name in names) > width:
        heads = [str(number) for number in range(1, len(names) + 1)]
        legend = ", ".join(f"{number} {name}" for number, name in zip(heads, names, strict=True))
    columns = [max(len(head), 4) for head in heads]
    if legend:
        yield Piece(f"{legend}\n", "faint")
    for area, settings in groupby(made.settings, key=lambda setting: setting.area):
        yield Piece(f"{area:<{left}}", "strong")
        yield Piece(
            " ".join(f"{head:<{column}}" for head, column in zip(heads, columns, strict=True)).rstrip() + "\n", "faint"
        )
        for setting in settings:
            yield Piece(f"  {setting.name:<{left - 2}}")
            yield from _marks(made.row(setting.name), columns)
    for cell in made.cells:
        if cell.status != "enforced":
            yield Piece(f"{visible(cell.path)}: {cell.setting}: ", "strong")
            yield Piece(f"{cell.status}: {visible(cell.note)}; seen {visible(brief(cell.seen))}\n")
    yield Piece(f"{summary(made)}\n", "good" if made.enforced else "error")


def _marks(cells: "Sequence[Cell]", columns: Sequence[int]) -> Iterator[Piece]:
    for place, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        word, style = _word(cell.status)
        yield Piece(word, style)
        yield Piece("\n" if place == len(cells) - 1 else " " * (column - len(word) + 1))


def _word(status: "Status") -> "tuple[str, StyleName]":
    return _WORDS[status]

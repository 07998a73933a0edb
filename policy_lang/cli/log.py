"""`zcpolicy log`: whether a decision log is what was written, and what it says.

In: the folder of a log, or one of its files. Out: what is wrong with it, status 1 if anything is; or its lines, those that are wanted.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Any, Final

import click

from policy_lang.cli.errors import CommandError
from policy_lang.cli.options import Command, format_option
from policy_lang.nearest import nearest
from policy_lang.render.as_json import json_text
from policy_lang.render.colour import Piece, paint, wants_colour
from policy_lang.render.visible import visible
from zcpolicy.exact import is_list, is_object

if TYPE_CHECKING:
    from zcpolicy.daemon.log.line import Line
    from zcpolicy.daemon.log.verify import Finding, Place, Verified

_AGO: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PAUSE: Final = 0.5
MAX_TOLD_VALUES: Final = 10
"""Clients, agents and so on that are named where no line is of the one that was asked for."""
_HEADS: Final = "whoever may write there could write it all anew: compare with a head that was kept elsewhere (--head)"


@click.group("log", epilog="Example: zcpolicy log verify var/log")
def command() -> None:
    """Look into a decision log: whether it is whole, and what it says."""


def _path_argument(command: Command) -> Command:
    """`PATH`: the folder of a log, or one of its files."""
    return click.argument("path", type=click.Path(path_type=Path))(command)


@command.command("verify", epilog="Example: zcpolicy log verify var/log --head 8e15d5de…")
@_path_argument
@click.option("--head", metavar="HASH", help="The hash of a line that was kept elsewhere; one line has to have it.")
@format_option()
def verify_command(path: Path, head: str | None, style: str) -> int:
    """Say whether lines were altered, put in, taken out, reordered or cut off, and where."""
    from zcpolicy.daemon.log.line import is_hash
    from zcpolicy.daemon.log.verify import verify

    if head is not None and not is_hash(head):
        raise CommandError("--head takes the `sha256` of a line: 64 hexadecimal digits, small")
    try:
        found = verify(path, head)
    except OSError as error:
        raise _unreadable(path, error) from None
    if style == "json":
        print(json_text(_verified_json(found)), end="")
    elif style == "plain":
        for finding in found.problems:
            print(f"{_where(finding.place)}: {finding.text}")
        for finding in found.notes:
            print(f"{_where(finding.place)}: note: {finding.text}")
    else:
        print(paint(_verified(found, head), colour=wants_colour(sys.stdout)), end="")
    return int(not found.is_sound)


@command.command("show", epilog="Example: zcpolicy log show var/log --agent coder --kind call --since 1h")
@_path_argument
@click.option("--client", metavar="C", help="Only what was done for this client: its id, or the name of its token.")
@click.option("--agent", metavar="A", help="Only what this agent did.")
@click.option("--channel", metavar="SURFACE", help="Only what came by this surface: channel, gateway, rpc, run, …")
@click.option("--session", metavar="S", help="Only what was done in this session.")
@click.option("--kind", metavar="K", help="Only lines of this kind: call, approval, turn, …, host, log.")
@click.option("--since", metavar="T", help="Not before: 2026-11-30, 2026-11-30T21:00 (UTC), or 10m, 2h, 3d ago.")
@click.option("--until", metavar="T", help="Before: as --since.")
@click.option("--follow", is_flag=True, help="Go on with what is written from now on, until interrupted.")
@format_option()
def show_command(path: Path, since: str | None, until: str | None, follow: bool, style: str, **who: str | None) -> int:
    """Print the lines of a log, oldest first; `--format json` prints one object per line."""
    from zcpolicy.daemon.log.show import Reader, Wanted

    _known_kind(who["kind"])
    named = {name: text for name, text in who.items() if text is not None}
    who["client"] = _client(path, who["client"])
    wanted = Wanted(**who, since=_moment("since", since), until=_moment("until", until))
    reader, bad = Reader(path, wanted), 0
    try:
        while True:
            shown, wrong = _print(reader.more(whole=not follow), style)
            bad += wrong
            if not follow:
                if not shown and named:
                    print(f"zcpolicy: {_nothing(path, named)}", file=sys.stderr)
                return int(bad > 0)
            sys.stdout.flush()
            sleep(_PAUSE)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise _unreadable(path, error) from None


def _known_kind(kind: str | None) -> None:
    """Raises CommandError for a kind that no line has."""
    from zcpolicy.daemon.log.line import KINDS

    if kind is not None and kind not in KINDS:
        near = nearest(kind, KINDS)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(KINDS)}"
        raise CommandError(f"there are no lines of kind `{visible(kind[:40])}`: {hint}")


def _client(path: Path, name: str | None) -> str | None:
    """The id of a client that is called by its name: in the daemon's folder the log lies beside the tokens."""
    from zcpolicy.daemon.clients import ids_in

    if name is None:
        return None
    folder = path if path.is_dir() else path.parent
    return ids_in(str(folder.absolute().parent)).get(name, name)


def _nothing(path: Path, named: dict[str, str]) -> str:
    """Which values the log has of what was asked for. Raises OSError."""
    from zcpolicy.daemon.log.show import Reader

    fields = {"client": "client", "agent": "agent", "channel": "surface", "session": "session", "kind": ""}
    seen: dict[str, dict[str, None]] = {name: {} for name in named}
    for _, line in Reader(path).more(whole=True):
        for name, found in seen.items() if line is not None else ():
            assert line is not None
            value = line.who.get(fields[name]) if fields[name] else line.entry.get("kind")
            if value and len(found) <= MAX_TOLD_VALUES:
                found[str(value)] = None
    told = [f"of {name} {_few(list(found))}" for name, found in seen.items()]
    return f"no such line; the log has lines {'; '.join(told)}"


def _few(values: list[str]) -> str:
    shown = ", ".join(visible(value[:100]) for value in values[:MAX_TOLD_VALUES])
    return (shown + (", …" if len(values) > MAX_TOLD_VALUES else "")) or "nothing"


def _print(lines: "Iterator[tuple[Place, Line | None]]", style: str) -> tuple[int, int]:
    """Prints lines, and says how many, and how many were none."""
    colour, shown, bad = style == "human" and wants_colour(sys.stdout), 0, 0
    for place, line in lines:
        shown += line is not None
        if line is None:
            bad += 1
            print(f"zcpolicy: {_where(place)} is no line of the log, or was altered", file=sys.stderr)
        elif style == "json":
            print(_line_json(line))
        else:
            print(paint(_line(line), colour=colour), end="")
    return shown, bad


def _unreadable(path: Path, error: OSError) -> CommandError:
    return CommandError(f"`{visible(str(path))}` cannot be read: {(error.strerror or str(error)).lower()}")


def _where(place: "Place") -> str:
    line = f":{place.line}" if place.line else ""
    return visible(place.file) + line + (f": line {place.seq}" if place.seq else "")


def _verified(found: "Verified", head: str | None) -> Iterator[Piece]:
    for finding in found.problems:
        yield Piece(f"{_where(finding.place)}: ", "strong")
        yield Piece(f"{finding.text}\n")
    for finding in found.notes:
        yield Piece(f"{_where(finding.place)}: {finding.text}\n", "faint")
    if found.more:
        yield Piece(f"and {found.more} more\n")
    counts = f"{_count(found.lines, 'line')} in {_count(found.files, 'file')}"
    if found.first > 1 and found.whole:
        counts += f"; the first {found.first - 1} were removed by rotation, in {_count(found.gone.files, 'file')}"
    if found.problems:
        yield Piece(f"{counts}: {_count(len(found.problems) + found.more, 'problem')}\n", "error")
    else:
        yield Piece(f"{counts}: sound\n", "good")
    yield Piece(f"head: line {found.head.seq}, {found.head.sha256}\n")
    if head is None and not found.problems:
        yield Piece(f"{_HEADS}\n", "faint")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _verified_json(found: "Verified") -> dict[str, Any]:
    def told(finding: "Finding") -> dict[str, Any]:
        return {**finding.place._asdict(), "text": finding.text}

    return {
        "sound": found.is_sound,
        "files": found.files,
        "lines": found.lines,
        "first": found.first,
        "head": {"seq": found.head.seq, "sha256": found.head.sha256},
        "gone": {"files": found.gone.files, "lines": found.gone.lines},
        "problems": [told(one) for one in found.problems],
        "more": found.more,
        "notes": [told(one) for one in found.notes],
    }


def _line_json(line: "Line") -> str:
    from json import dumps

    return dumps({**line.entry, "sha256": line.sha256})


def _line(line: "Line") -> Iterator[Piece]:
    from zcpolicy.texts import json_text as shown

    at, kind = str(line.entry.get("at", "")), str(line.entry.get("kind", ""))
    yield Piece(f"{visible(at[:23].replace('T', ' '))} ", "faint")
    yield Piece(f"{visible(kind):<10}", "strong")
    if line.who:
        names = (str(line.who.get(name) or "-") for name in ("agent", "client", "session", "surface"))
        yield Piece(f" {visible(' '.join(names))}:")
    said = dict(line.said)
    decision: Any = said.pop("decision", None)
    if is_object(decision):
        yield Piece(f" {visible(str(said.pop('phase', '')))} ")
        yield from _decision(decision, said)
    elif decision is not None:
        said["decision"] = decision
    yield Piece(f" {shown(said)}\n" if said else "\n")


def _decision(decision: dict[str, Any], said: dict[str, Any]) -> Iterator[Piece]:
    """A call as people say it. Takes out of `said` what is told with it: who said yes or no."""
    from zcpolicy.texts import json_text as shown

    tool, effect, generation = decision.get("tool"), str(decision.get("effect")), decision.get("generation")
    name = "/".join(map(str, tool)) if is_list(tool) else str(tool)
    yield Piece(f"{visible(name)} {shown(decision.get('arguments'))} ")
    reason = str(said.pop("reason", None) or decision.get("reason"))
    yield Piece(visible(f"{effect} ({reason})"), "good" if effect == "allow" else "warning")
    if rules := _joined(decision.get("rules")):
        yield Piece(f" by {rules}")
    if people := _joined(said.pop("by", None)):
        yield Piece(f", {'no' if effect == 'deny' else 'yes'} of {people}")
    note = said.pop("note", None) if people else decision.get("note")
    notes = [*_each(decision.get("because")), *_each(note)]
    if notes:
        yield Piece(f": {visible('; '.join(notes))}")
    if generation is not None:
        yield Piece(f", generation {visible(str(generation))}", "faint")


def _joined(value: Any) -> str:
    return visible(", ".join(_each(value)))


def _each(value: Any) -> list[str]:
    """One text, or several; those that say something."""
    return [str(one) for one in (value if is_list(value) else [value]) if one]


def _moment(option: str, text: str | None) -> str | None:
    """A time as lines have it. Raises CommandError."""
    from zcpolicy.daemon.log.line import moment

    if text is None:
        return None
    if text[:-1].isdecimal() and text[-1] in _AGO:
        return moment(time() - min(int(text[:10].rstrip("smhd")), 10**9) * _AGO[text[-1]])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"--{option} `{visible(text[:40])}` is no time: write 2026-11-30, 2026-11-30T21:00 or 10m"
        ) from None
    return moment((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())

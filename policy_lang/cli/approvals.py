"""`zcpolicy approvals`: what waits for an operator at a daemon, and the operator's answers.

In: where the daemon is, a token, answers. Out: the questions, each with the whole call. Status 1 where an answer is not taken.
"""

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from policy_lang.cli.daemon_url import DaemonAt, daemon_at, path_to
from policy_lang.cli.errors import CommandError
from policy_lang.cli.options import Command, format_option
from policy_lang.render.as_json import json_text
from policy_lang.render.colour import Piece, paint, wants_colour
from policy_lang.render.visible import visible
from zcpolicy.exact import is_list, is_object

if TYPE_CHECKING:
    from zcpolicy.approvals.question import Question

FOLLOW_SECONDS: Final = 30
"""For which one request waits for news."""
_ELSE: Final = "n [why] = no, s = skip, q = quit"
LONG_SECONDS: Final = 86_400.0
"""Seconds for which a question stands on the terminal that has no time of its own."""


def _access(command: Command) -> Command:
    """Where the daemon is, and who asks."""
    options: list[Callable[[Any], Any]] = [
        click.option(
            "--settings", type=click.Path(path_type=Path), default=Path("daemon.toml"), show_default=True,
            help="The settings of a daemon on this machine.",
        ),
        click.option("--url", metavar="URL", help="Where the daemon is, instead; https unless it is on this machine."),
        click.option(
            "--token-file", type=click.Path(path_type=Path), metavar="FILE",
            help="Holds the operator's token; else the variable ZCPOLICY_TOKEN does.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group("approvals", invoke_without_command=True, epilog="Example: zcpolicy approvals --follow")
@_access
@click.option("--follow", is_flag=True, help="Wait for more.")
@format_option()
@click.pass_context
def command(
    context: click.Context, settings: Path, url: str | None, token_file: Path | None, follow: bool, style: str
) -> int:
    """Go through the questions that wait for an operator, one by one; without a terminal, list them."""
    if context.invoked_subcommand is not None:
        given = [name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
        if given:  # passed over, they would send the token elsewhere than told
            raise click.UsageError(f"options stand after `{context.invoked_subcommand}`")
        return 0
    daemon = daemon_at(settings, url, token_file)
    if style == "human" and sys.stdin.isatty() and sys.stdout.isatty():
        return _go_through(daemon, follow=follow)
    if not follow:
        return _show(_listed(daemon), style)
    return _follow(daemon, style)


@command.command("list")
@_access
@format_option()
def list_command(settings: Path, url: str | None, token_file: Path | None, style: str) -> int:
    """List the questions that wait, oldest first."""
    return _show(_listed(daemon_at(settings, url, token_file)), style)


@command.command("answer", epilog="Example: zcpolicy approvals answer 7c4e… yes --scope exact")
@click.argument("name", metavar="ID")
@click.argument("said", metavar="yes|no", type=click.Choice(["yes", "no"]))
@click.option("--scope", type=click.Choice(["once", "exact", "tool"]), help="How far a yes reaches; by default `once`.")
@click.option("--note", metavar="TEXT", help="Why not: the agent is told.")
@_access
@format_option()
def answer_command(
    name: str, said: str, scope: str | None, note: str | None, settings: Path, url: str | None, token_file: Path | None,
    style: str,
) -> int:  # fmt: skip
    """Answer one question."""
    body = {"answer": said, **_named(scope=scope, note=note)}
    told = daemon_at(settings, url, token_file).post(path_to("approvals", name), body)
    if style == "json":
        print(json_text({"status": told.status, **told.body}), end="")
    elif told.status in (200, 202):
        print(_taken(told.body))
    if told.status in (200, 202):
        return 0
    if style != "json":
        print(f"zcpolicy: not taken: {told.error}", file=sys.stderr)
    return 1


def _named(**members: str | None) -> dict[str, str]:
    return {name: value for name, value in members.items() if value is not None}


def _taken(body: dict[str, Any]) -> str:
    scope = f" ({visible(str(body['scope']))})" if "scope" in body else ""
    later = "" if body.get("recorded") is True else ": it is put on record once the turn has paused"
    return f"{visible(str(body.get('answer')))}{scope}, by {visible(str(body.get('by')))}{later}"


# --- lists ---------------------------------------------------------------------------------------------------------------


def _listed(daemon: DaemonAt, *, wait: int = 0, since: int | None = None) -> dict[str, Any]:
    """Raises CommandError."""
    told = daemon.get(path_to("approvals"), wait=wait, **({} if since is None else {"since": since}))
    body = told.body
    sound = told.status == 200 and is_list(body.get("questions")) and type(body.get("revision")) is int
    if not sound or not all(is_object(one) for one in body["questions"]):
        raise CommandError(f"the daemon does not list what waits: {told.error}")
    names = _names(daemon) if body["questions"] else {}
    for one in body["questions"]:
        if (name := names.get(str(one.get("client")))) is not None:
            one["client_name"] = name
    return body


def _names(daemon: DaemonAt) -> dict[str, str]:
    """Clients by their ids, as far as they have tokens."""
    found = daemon.get(path_to("tokens")).body.get("tokens")
    holders = [one for one in found if is_object(one)] if is_list(found) else []
    return {str(one.get("client")): str(one.get("name")) for one in holders}


def _show(found: dict[str, Any], style: str) -> int:
    if style == "json":
        print(json_text(found), end="")
        return 0
    questions: list[dict[str, Any]] = found["questions"]
    if style == "plain":
        for one in questions:
            print(_plain(one))
    else:
        print(paint(_human(questions), colour=wants_colour(sys.stdout)), end="")
    if found.get("more"):
        print(f"and {found['more']} more", file=sys.stderr)
    if not questions:
        print("nothing waits", file=sys.stderr)
    return 0


def _follow(daemon: DaemonAt, style: str) -> int:
    """Prints the list again whenever it changes."""
    found = _listed(daemon)
    while True:
        _show(found, style)
        sys.stdout.flush()
        before = revision = found["revision"]
        while revision == before:
            found = _listed(daemon, wait=FOLLOW_SECONDS, since=revision)
            revision = found["revision"]


def _plain(one: dict[str, Any]) -> str:
    first = str(one.get("text")).partition("\n")[0]
    return f"{visible(str(one.get('id')))}: {visible(first)}{_left(one)}"


def _human(questions: list[dict[str, Any]]) -> Iterable[Piece]:
    for one in questions:
        yield Piece(visible(str(one.get("id"))), "strong")
        yield Piece(f"{_left(one)}\n", "faint")
        for line in str(one.get("text")).split("\n"):
            yield Piece("| ", "frame")
            yield Piece(f"{visible(line)}\n")
        for line in _around(one):
            yield Piece(f"  {line}\n", "faint")


def _left(one: dict[str, Any]) -> str:
    due, paused = one.get("due"), one.get("paused") is True
    left = f", {max(0, round(due))} s left" if isinstance(due, int | float) and isfinite(due) else ""
    said = ", answered" if one.get("answered") is True else ""
    return f"{left}{', its turn has paused' if paused else ''}{said}"


def _around(one: dict[str, Any]) -> list[str]:
    """What else there is to know, on lines that hold nothing but what is seen."""
    lasts = one.get("remember_for")
    beyond = (
        f", beyond this call for {lasts:g} s"
        if isinstance(lasts, int | float)
        else ", beyond this call for its session"
    )
    scopes = _words(one.get("scopes"))
    route = visible(str(one.get("route") or ""))
    found = [
        f"for client {_client(one)}, in session {_word(one, 'session')}, by {_word(one, 'surface')}"
        + (f"; route {route}" if route else "; the person at the session"),
        f"a yes reaches: {scopes}" + (beyond if scopes != "once" else ""),
    ]
    if rules := _words(one.get("rules")):
        found.append(f"asked by {rules}")
    return found


def _word(one: dict[str, Any], name: str) -> str:
    return visible(str(one.get(name)))


def _client(one: dict[str, Any]) -> str:
    known = "client_name" in one
    return f"{_word(one, 'client_name')} ({_word(one, 'client')})" if known else _word(one, "client")


def _words(value: Any) -> str:
    return visible(", ".join(map(str, value))) if is_list(value) else ""


# --- at a terminal -------------------------------------------------------------------------------------------------------


def _go_through(daemon: DaemonAt, *, follow: bool) -> int:
    """Puts each question once, in full."""
    seen: set[tuple[str, str]] = set()
    found = _listed(daemon)
    if not found["questions"] and not follow:
        print("nothing waits", file=sys.stderr)
    while True:
        fresh = [one for one in found["questions"] if _mark(one) not in seen and one.get("answered") is not True]
        for one in fresh:
            seen.add(_mark(one))
            if not _put(daemon, one):
                return 0
        if not fresh and not follow:
            return 0
        wait = {} if fresh else {"wait": FOLLOW_SECONDS, "since": found["revision"]}
        found = _listed(daemon, **wait)


def _mark(one: dict[str, Any]) -> tuple[str, str]:
    """The same question may be asked again."""
    return str(one.get("id")), str(one.get("asked"))


def _put(daemon: DaemonAt, one: dict[str, Any]) -> bool:
    """One question: a person reads it, and answers. False once they want no more. Raises CommandError without a terminal."""
    from zcpolicy.approvals.terminal import AskedNoMore, NoTerminal, offers, typed

    question = _question(one)
    shown = replace(question, text="\n".join((question.text, *_around(one))))
    said: dict[str, str] | None = None
    while said is None:
        try:
            line = typed(os.ttyname(sys.stdin.fileno()), shown, f"{offers(question)}; {_ELSE}: ")
        except NoTerminal:
            raise CommandError("there is no terminal") from None
        except (AskedNoMore, OSError):
            return True
        if line in (None, "q", "quit"):
            return False
        if line in ("s", "skip"):
            return True
        said = _understood(str(line), question)
    told = daemon.post(path_to("approvals", question.id), said)
    print(_taken(told.body) if told.status in (200, 202) else f"not taken: {told.error}")
    return True


def _understood(line: str, question: "Question") -> dict[str, str] | None:
    """The answer that was typed; None for what is none: a slip of the finger is no answer."""
    from zcpolicy.approvals.terminal import scope_of

    scope = scope_of(line)
    if scope is not None and scope in question.scopes:
        return {"answer": "yes", "scope": scope}
    word, _, why = line.partition(" ")
    return {"answer": "no", **({"note": why.strip()} if why.strip() else {})} if word in ("n", "no") else None


def _question(one: dict[str, Any]) -> "Question":
    """Raises CommandError for what is none."""
    from zcpolicy.approvals.question import Question

    known = {name: one.get(name) for name in Question.__dataclass_fields__}
    due = one.get("due")
    try:
        return Question.from_json(
            {**known, "key": "", "binding": "", "tool_binding": "", "due": LONG_SECONDS if due is None else due}
        )
    except ValueError:
        raise CommandError("the daemon sent a question that is none") from None

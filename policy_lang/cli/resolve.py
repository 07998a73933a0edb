"""`zcpolicy resolve POLICY --agent A`: all that an execution gets, with the place of every statement.

In: a policy and an agent. Out: one section per surface; status 4 for an agent that does not exist.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from policy_lang.cli.facts import must_fit, session_from
from policy_lang.cli.loading import compiled
from policy_lang.cli.options import format_option, layer_option, policy_argument
from policy_lang.cli.surfaces import surfaces
from policy_lang.cli.tool_name import written
from policy_lang.cli.words import nearest
from policy_lang.render.as_json import json_text
from policy_lang.render.colour import Piece, paint, wants_colour
from policy_lang.render.visible import visible
from zcpolicy.resolver import ResolveError, Resolver, UnknownAgent

DENIED = 4
CLIENT = "client"
"""Whose session it is where none is named: nobody's has no memory, whatever the policy says."""
_REACH = {"never": "this call only", "exact": "the same call again", "tool": "this tool in this session"}
Line = tuple[str, str]
"""What holds, and where it is written."""


@click.command("resolve", epilog="Example: zcpolicy resolve team.zcpolicy --agent coder")
@policy_argument
@click.option("--agent", required=True, metavar="A", help="The agent to look at.")
@click.option("--session", metavar="JSON", help="Facts of the session, as of `decide`.")
@layer_option
@format_option()
def command(policy: Path, agent: str, session: str | None, layers: tuple[Path, ...], style: str) -> int:
    """Show all that an agent gets: tools, approvals, limits, runtime, memory, skills, delegation, servers."""
    facts = session_from(session, client=CLIENT)
    program = compiled(policy, layers, style).program
    if program is None:
        return 1
    must_fit(facts, program)
    try:
        run = Resolver(program).resolve(agent, session=facts)
    except ResolveError as error:
        near = nearest(agent, program.agents) if isinstance(error, UnknownAgent) else None
        print(f"zcpolicy: {error}{f'; did you mean `{near}`?' if near else ''}", file=sys.stderr)
        return DENIED
    found = surfaces(run)
    if style == "json":
        print(json_text(found), end="")
    else:
        print(paint(_pieces(found), colour=style == "human" and wants_colour(sys.stdout)), end="")
    return 0


def _pieces(found: dict[str, Any]) -> Iterator[Piece]:
    chain = " narrows ".join(found["chain"])
    yield Piece(f"agent {visible(chain)}", "strong")
    yield Piece(f"  policy {found['digest'][:12]}\n", "faint")
    for title, lines in _sections(found):
        yield Piece(f"\n{title}\n", "strong")
        for what, where in lines:
            yield Piece(f"  {visible(what)}")
            yield Piece(f"  {visible(where)}\n" if where else "\n", "faint")


def _sections(found: dict[str, Any]) -> Iterator[tuple[str, list[Line]]]:
    yield f"tools ({len(found['tools'])})", list(_tools(found["tools"])) or [("none", "")]
    classes = found["autonomy"]["classes"]
    yield (
        "autonomy",
        [(", ".join(f"{risk} {answer}" for risk, answer in classes.items()), ""), *_from(found["autonomy"])],
    )
    yield "approvals", list(_approvals(found["approvals"]))
    yield "limits", [(_text(one, "limit"), _where(one)) for one in found["limits"]] or [("none", "")]
    yield "preconditions", [(_text(one, "require"), _where(one)) for one in found["preconditions"]] or [("none", "")]
    yield "runtime", [*_values(found["runtime"]["values"]), *_from(found["runtime"])]
    memory = found["memory"]
    yield "memory", [(f"{kind} {_list(memory[kind])}", "") for kind in ("read", "write")] + _from(memory)
    yield "skills", [(_list(found["skills"]["names"]), ""), *_from(found["skills"])]
    yield "delegation", list(_delegation(found["delegation"]))
    yield "servers", [(_list(found["connects"]["names"]), ""), *_from(found["connects"])]


def _values(values: dict[str, Any]) -> Iterator[Line]:
    for name, value in values.items():
        said = (
            ("on" if value else "off")
            if isinstance(value, bool)
            else f"{value:g}s"
            if isinstance(value, float)
            else value
        )
        yield f"{name} {said}", ""


def _tools(tools: list[Any]) -> Iterator[Line]:
    for tool in tools:
        yield f"{written(tool['tool'])} ({tool['class']})", ""
        for rule in tool["rules"]:
            yield f"    {_text(rule, rule['effect'])}", _where(rule)


def _approvals(said: dict[str, Any]) -> Iterator[Line]:
    if said["none"]:
        yield "nobody is asked: what would ask is denied", ""
    else:
        yield f"asked: {_list(said['routes']) if said['routes'] else 'the person at the session'}", ""
        yield f"a yes is good for: {_REACH[said['remember']]}", ""
        if said["timeout"] is not None:
            yield f"an answer is due in {said['timeout']}s", ""
    yield from _from(said)


def _delegation(said: dict[str, Any]) -> Iterator[Line]:
    if not said["to"]:
        yield "none", ""
    for agent, how in said["to"].items():
        because = f" because {how['because']}" if "because" in how else ""
        yield f"{agent}{' independent' if how.get('independent') else ''}{because}", ""
    if said["to"]:
        yield f"depth {said['depth']}", ""
    yield from _from(said)


def _from(said: dict[str, Any]) -> list[Line]:
    return [(f"    {_text(one, one['body'])}", _where(one)) for one in said["from"]]


def _text(said: dict[str, Any], otherwise: str) -> str:
    return str(said["text"] or otherwise)


def _where(said: dict[str, Any]) -> str:
    return f"{said['file']}:{said['line']}" if said["file"] else f"({said['body']})"


def _list(names: list[str]) -> str:
    return ", ".join(names) or "none"

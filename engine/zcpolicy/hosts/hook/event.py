"""What every host's event comes to, and what every answer is made of.

In: an event as JSON values. Out: `Asked`; `Reply`. An event that is not what its host sends is `NoEvent`: the call does not run.
"""

from __future__ import annotations

from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final, Literal, Protocol

    from zcpolicy.facts import ToolName

    Effect = Literal["allow", "ask", "deny"]
else:
    Protocol = object

BLOCKS: Final = 2
"""The exit status that every host takes for a deny, whatever stands on stdout. (With 1 most of them run the call.)"""


class NoEvent(Exception):
    """This is no event that a call can be decided by. The message says why, for the operator."""


class Asked(NamedTuple):
    """One call, as a host tells of it.

    `tool`: what the host says it is, in fields of their own; None where there is only `wire`, its joined spelling. `server`: the
    MCP server, where a field says so beside the spelling; "" where none does. `arguments`: JSON values, or JSON text.
    `session`, `turn`: the host's ids; `turn` is "" where it has none. `cwd`: where the call's process will start; None where
    the host does not tell. `asks`: an `ask` holds the call until a person says yes. `counts`: the call runs if it is allowed;
    else another event of the same call comes, which counts it. `form`: which of its shapes the host wants for an answer.
    """

    wire: str
    arguments: object
    session: str
    turn: str = ""
    tool: ToolName | None = None
    server: str = ""
    cwd: str | None = None
    asks: bool = False
    counts: bool = True
    form: str = ""


class Reply(NamedTuple):
    """What the hook's process leaves: one text on each stream, and its exit status."""

    out: str
    err: str
    status: int


class Host(Protocol):
    """A module of this package: one host."""

    MCP_PREFIX: str
    """What a spelling begins with if and only if the tool is of an MCP server; "" where nothing tells."""

    def read(self, event: Mapping[str, Any], *, attended: bool) -> Asked:
        """The call of an event. `attended`: the operator says that a person is there. Raises NoEvent."""
        ...

    def spelled(self, server: str, name: str) -> str:
        """How the host spells the tool of an MCP server, for models and hooks."""
        ...

    def said(self, asked: Asked, effect: Effect, text: str) -> str:
        """The answer for stdout; "" where the exit status says it. `text`: why, for the model or, where the host asks, for a person."""
        ...


def refusal(why: str) -> Reply:
    """The deny that every host understands: it needs no event. `why`: one line; it is never empty."""
    line = "".join(letter if letter.isprintable() else " " for letter in why).strip() or "the call cannot be decided"
    return Reply("", f"zcpolicy: {line}\n", BLOCKS)


def text_of(event: Mapping[str, Any], *names: str) -> str:
    """The text under the one of these names that is there. Raises NoEvent where none is, or two, or it is no text or empty."""
    found = [event[name] for name in names if name in event]
    if len(found) != 1 or type(found[0]) is not str or not found[0]:
        raise NoEvent(f"the event has no `{names[0]}`")
    return str(found[0])


def text_or(event: Mapping[str, Any], name: str) -> str:
    """The text under a name, "" where there is nothing. Raises NoEvent for what is no text."""
    found = event.get(name)
    if found is None:
        return ""
    if type(found) is not str:
        raise NoEvent(f"`{name}` of the event is no text")
    return str(found)


def directory_of(event: Mapping[str, Any], name: str = "cwd") -> str | None:
    """The absolute directory under a name; None where none is told."""
    from zcpolicy.facts import is_absolute

    found = text_or(event, name)
    return found if is_absolute(found) else None


def must_be(event: Mapping[str, Any], name: str, *values: str) -> str:
    """The text under a name. Raises NoEvent for any other than these: the hook stands where it has no say."""
    found = text_of(event, name)
    if found not in values:
        raise NoEvent(f"event `{found[:60]}` is not one before a call: the hook belongs under `{values[0]}`")
    return found


def arguments_of(event: Mapping[str, Any], name: str) -> object:
    """The arguments under a name: an object, or JSON text of one, which the engine reads. Raises NoEvent."""
    found = event.get(name)
    if type(found) is not str and not hasattr(found, "keys"):
        raise NoEvent(f"`{name}` of the event is no object")
    return found


def plain(name: str, kept: str = "_-") -> str:
    """A name as hosts spell it: what is not a letter or a digit of ASCII, or one of `kept`, is `_`."""
    return "".join(one if (one.isascii() and one.isalnum()) or one in kept else "_" for one in name)


def tool_of(asked: Asked, tools: Sequence[ToolName], host: Host) -> ToolName | None:
    """Which tool is meant: by fields where there are some, else by the one of the policy's that is spelled so.

    None for a spelling that begins as those of MCP tools do and fits none of them. Raises NoEvent for one that fits two.
    """
    if asked.tool is not None:
        return asked.tool
    remote = bool(asked.server) or bool(host.MCP_PREFIX and asked.wire.startswith(host.MCP_PREFIX))
    fits = [one for one in tools if _fits(one, asked, host, remote=remote)]
    if len(fits) > 1:
        raise NoEvent(
            f"`{asked.wire[:200]}` is how the host spells two tools of the policy; which one is meant cannot be told"
        )
    if fits:
        return fits[0]
    return None if remote else asked.wire


def _fits(tool: ToolName, asked: Asked, host: Host, *, remote: bool) -> bool:
    if isinstance(tool, str):
        return tool == asked.wire and not remote
    server, name = tool
    return asked.server in ("", server) and host.spelled(server, name) == asked.wire

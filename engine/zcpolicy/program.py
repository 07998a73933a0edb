"""The compiled policy: its canonical bytes, its digest, and where each part came from.

In: what the compiler made (`ProgramData`, `Origins`), or a `NAME.zcpc` file. Out: a sealed, immutable `Program`.
The shapes of the data stand in `shapes`. A `NAME.zcpc` file is the JSON `{digest, format, origins, program}`,
where `program` is in its canonical form except for line breaks between agents, so that an agent is parsed only
when it is first asked for.
"""

from __future__ import annotations

from zcpolicy.exact import ReadOnly, canonical, frozen, is_object
from zcpolicy.sealed import Sealed, final, hidden, put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike
    from typing import Any, Final, Never

    from zcpolicy.shapes import Agent as Agent
    from zcpolicy.shapes import All as All
    from zcpolicy.shapes import Answer as Answer
    from zcpolicy.shapes import Any_ as Any_
    from zcpolicy.shapes import Approval as Approval
    from zcpolicy.shapes import Body as Body
    from zcpolicy.shapes import BodyOrigins as BodyOrigins
    from zcpolicy.shapes import Condition as Condition
    from zcpolicy.shapes import Connect as Connect
    from zcpolicy.shapes import Delegate as Delegate
    from zcpolicy.shapes import DelegateTo as DelegateTo
    from zcpolicy.shapes import Effect as Effect
    from zcpolicy.shapes import Has as Has
    from zcpolicy.shapes import Hints as Hints
    from zcpolicy.shapes import Leaf as Leaf
    from zcpolicy.shapes import Limit as Limit
    from zcpolicy.shapes import ListOf as ListOf
    from zcpolicy.shapes import Marked as Marked
    from zcpolicy.shapes import Memory as Memory
    from zcpolicy.shapes import Negation as Negation
    from zcpolicy.shapes import NumberValue as NumberValue
    from zcpolicy.shapes import ObjectOf as ObjectOf
    from zcpolicy.shapes import Only as Only
    from zcpolicy.shapes import Operand as Operand
    from zcpolicy.shapes import OperandRight as OperandRight
    from zcpolicy.shapes import Origins as Origins
    from zcpolicy.shapes import Place as Place
    from zcpolicy.shapes import ProgramData as ProgramData
    from zcpolicy.shapes import Require as Require
    from zcpolicy.shapes import RiskClass as RiskClass
    from zcpolicy.shapes import Rule as Rule
    from zcpolicy.shapes import Schema as Schema
    from zcpolicy.shapes import Tool as Tool
    from zcpolicy.shapes import ToolIds as ToolIds
    from zcpolicy.shapes import Value as Value
    from zcpolicy.shapes import Window as Window
else:

    def __getattr__(name: str) -> object:
        """The shapes, for those who import them from here at run time: they cost the import of `typing`."""
        if name.startswith("_"):
            raise AttributeError(name)
        from zcpolicy import shapes

        return getattr(shapes, name)


FORMAT: Final = "1"
"""The version of the file format; a file of another one is refused."""
SEMANTICS: Final = "1"
"""The edition of the language whose meaning this engine has."""
MAX_COMPILED_BYTES: Final = 512 * 1024 * 1024
"""Bytes of a compiled file."""
MAX_TOOLS: Final = 1_000_000
"""Tools of one program."""

SMALL_PROGRAM: Final = 1_000_000
"""Bytes of a program that are hashed faster than a faster hash is loaded."""

_AGENTS: Final = b'{"agents":{\n'
_PROGRAM: Final = b',\n"program":'
_ORIGINS: Final = b',\n"origins":'


class CompiledError(Exception):
    """A compiled policy that cannot be used. The message says what is wrong, lower case, no full stop."""


def pack(ids: set[int] | frozenset[int]) -> ToolIds:
    """A set of tool ids as ascending decimal ranges: `"3,7-19"`."""
    parts: list[str] = []
    ordered = sorted(ids)
    start = 0
    for index, value in enumerate(ordered):
        if index + 1 < len(ordered) and ordered[index + 1] == value + 1:
            continue
        first = ordered[start]
        parts.append(str(first) if first == value else f"{first}-{value}")
        start = index + 1
    return ",".join(parts)


def unpack(ids: ToolIds, count: int = MAX_TOOLS) -> frozenset[int]:
    """The ids of a packed set. Raises CompiledError if it is not one, or names an id of `count` or above."""
    out: set[int] = set()
    above = -1
    try:
        for part in ids.split(",") if ids else ():
            first, dash, last = part.partition("-")
            low, high = int(first), int(last if dash else first)
            if not above < low <= high < count:  # ascending, so that ranges cannot repeat each other without end
                raise ValueError
            above = high
            out.update(range(low, high + 1))
    except ValueError:
        raise CompiledError(f"`{ids[:60]}` is not a set of tools of this policy") from None
    return frozenset(out)


@final
class Program(Sealed):
    """A whole checked policy. Made by `Program.build` (the compiler) or `load_compiled`.

    What was parsed of it is frozen, and stands in hidden slots.
    """

    __slots__ = ("_agent_lines", "_head", "_origin_head", "_origin_lines", "_parsed", "_sets", "digest")
    _maker = "the compiler or `load_compiled`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self.digest: Final[str] = sealed  # sha-256 of the canonical bytes, hexadecimal
            self._agent_lines: Final[Mapping[str, bytes]] = sealed  # name → `"name":{…}`
            self._head: Final[bytes] = sealed  # the rest of the program: an object without `agents`
            self._origin_lines: Final[Mapping[str, bytes]] = sealed
            self._origin_head: Final[bytes] = sealed

    @staticmethod
    def build(data: ProgramData, origins: Origins) -> Program:
        """The program of compiled data. Raises CompiledError for data that is not well formed."""
        whole: dict[str, Any] = {**data}
        places: dict[str, Any] = {**origins}
        try:
            return _sealed(
                {name: _line(name, whole["agents"][name]) for name in _in_order(whole["agents"])},
                canonical({name: part for name, part in whole.items() if name != "agents"}).encode(),
                {name: _line(name, places["agents"][name]) for name in _in_order(places["agents"])},
                canonical({name: part for name, part in places.items() if name != "agents"}).encode(),
            )
        except (UnicodeEncodeError, RecursionError, KeyError, TypeError, AttributeError):
            raise CompiledError("the compiled data is not well formed") from None

    def canonical(self) -> bytes:
        """The RFC 8785 bytes that `digest` is the SHA-256 of."""
        return _whole(self._agent_lines, self._head).replace(b"\n", b"")

    def dump(self) -> bytes:
        """The content of a `NAME.zcpc` file."""
        return b"".join(
            (
                b'{"digest":"', self.digest.encode(), b'","format":"', FORMAT.encode(), b'"',
                _ORIGINS, _whole(self._origin_lines, self._origin_head),
                _PROGRAM, _whole(self._agent_lines, self._head), b"}\n",
            )
        )  # fmt: skip

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of all agents, in canonical order."""
        return tuple(self._agent_lines)

    @property
    def tools(self) -> tuple[str | tuple[str, str], ...]:
        """The names of all tools of the catalogue: `name` of the host, `(server, name)` of a server."""
        parsed = _parsed_of(self)
        found: tuple[str | tuple[str, str], ...] | None = parsed.get("tools")
        if found is None:
            found = parsed["tools"] = tuple(
                tool["name"] if tool["server"] is None else (tool["server"], tool["name"])
                for tool in head_of(self)["tools"]
            )
        return found

    def __repr__(self) -> str:
        return f"<Program {self.digest[:12]}, {len(self._agent_lines)} agents>"


_PARSED: Final = hidden(Program, "_parsed")
_SETS: Final = hidden(Program, "_sets")


def _parsed_of(program: Program) -> dict[str, Any]:
    found: dict[str, Any] = _PARSED.__get__(program)
    return found


def head_of(program: Program) -> ProgramData:
    """Everything but the agents (`agents` is empty), frozen. For the engine."""
    head: ProgramData = _once(program, "head", program._head, "program")
    return head


def has_agent(program: Program, name: object) -> bool:
    """Whether there is an agent of this name. For the engine."""
    return isinstance(name, str) and name in program._agent_lines


def agent_of(program: Program, name: str) -> Agent | None:
    """An agent's data, frozen, or None if there is none. For the engine."""
    line = program._agent_lines.get(name)
    if line is None:
        return None
    agent: Agent = _once(program, f"agent {name}", b"{%b}" % line, "agent")[name]
    return agent


def tools_in(program: Program, ids: ToolIds) -> frozenset[int]:
    """`unpack` within the program's tools, remembered: agents share many sets. For the engine."""
    sets: dict[str, frozenset[int]] = _SETS.__get__(program)
    found = sets.get(ids)
    if found is None:
        found = sets[ids] = unpack(ids, len(head_of(program)["tools"]))
    return found


def names_in(program: Program, ids: ToolIds) -> frozenset[str | tuple[str, str]]:
    """The names of a packed set of tools, remembered. For the engine."""
    key = f"names {ids}"
    parsed = _parsed_of(program)
    found: frozenset[str | tuple[str, str]] | None = parsed.get(key)
    if found is None:
        tools = program.tools
        found = parsed[key] = frozenset(tools[index] for index in tools_in(program, ids))
    return found


def origins_of(program: Program, kind: str, name: str) -> BodyOrigins:
    """Where a body's parts were written; empty if that is not known. `kind`: agent, ceiling, skill."""
    line = program._origin_lines.get(name)
    found: Any
    try:
        if kind == "agent":
            found = _parse(b"{%b}" % line)[name] if line else {}
        else:
            head = _parse(program._origin_head)
            found = head["ceiling"] if kind == "ceiling" else head["skills"].get(name, {})
    except (CompiledError, KeyError, AttributeError, TypeError):
        found = {}
    places: BodyOrigins = frozen(found if is_object(found) else {})  # read one by one, see `places`
    return places


def load_compiled(source: str | PathLike[str] | bytes) -> Program:
    """The program in a `NAME.zcpc` file, or in its bytes.

    Raises OSError if the file cannot be read, CompiledError if it is not a compiled policy of this format or if its
    digest does not fit its program.
    """
    data = source if isinstance(source, bytes) else _read(source)
    start, middle = data.find(_PROGRAM), data.find(_ORIGINS)
    if not data.startswith(b'{"digest":"') or not 0 < middle < start or not data.endswith(b"}\n"):
        return _load_any(data)
    digest = _opening(data[:middle])
    agents, head = _split(data[start + len(_PROGRAM) : -2])
    places, rest = _split(data[middle + len(_ORIGINS) : start])
    del data
    return _verified(_sealed(agents, head, places, rest), digest)


def _read(path: str | PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        data = file.read(MAX_COMPILED_BYTES + 1)
    if len(data) > MAX_COMPILED_BYTES:
        raise CompiledError(f"the file has more than {MAX_COMPILED_BYTES} bytes")
    return data


def _opening(text: bytes) -> str:
    fields = _parse(text + b"}")
    return _accepted(fields)


def _accepted(fields: Any) -> str:
    """The digest that the file names. Raises CompiledError for another format."""
    form = fields.get("format") if is_object(fields) else None
    if not isinstance(form, str) or not isinstance(fields.get("digest"), str):
        raise CompiledError("this is not a compiled policy")
    if form != FORMAT:
        raise CompiledError(f"format `{form[:20]}`, and this engine reads `{FORMAT}`: compile the policy again")
    return str(fields["digest"])


def _load_any(data: bytes) -> Program:
    """The same from JSON that somebody laid out in another way."""
    fields = _parse(data)
    digest = _accepted(fields)
    program, origins = fields.get("program"), fields.get("origins")
    for part in (program, origins):
        if not is_object(part) or not is_object(part.get("agents")):
            raise CompiledError("this is not a compiled policy")
    return _verified(Program.build(program, origins), digest)


def _split(section: bytes) -> tuple[dict[str, bytes], bytes]:
    """Agents' lines by name, and the rest as an object."""
    lines = section.split(b"\n")
    if lines[0] + b"\n" != _AGENTS or not lines[-1].startswith(b"},"):
        raise CompiledError("this is not a compiled policy")
    found: dict[str, bytes] = {}
    for line in lines[1:-1]:
        if line:
            line = line.removesuffix(b",")
            name = _parse(line[: line.find(b'":') + 1])
            if not isinstance(name, str) or name in found:
                raise CompiledError("this is not a compiled policy: an agent is not named, or twice")
            found[name] = line
    return found, b"{" + lines[-1][2:]


def _whole(lines: Mapping[str, bytes], head: bytes) -> bytes:
    return b"".join((_AGENTS, b",\n".join(lines.values()), b"\n},", head[1:]))


def _line(name: str, part: object) -> bytes:
    return f"{canonical(name)}:{canonical(part)}".encode()


def _in_order(names: Mapping[str, object]) -> list[str]:
    return sorted(names, key=lambda name: name.encode("utf-16-be"))


def _sealed(agents: dict[str, bytes], head: bytes, places: dict[str, bytes], rest: bytes) -> Program:
    digest = _sha256(len(head) + sum(map(len, agents.values())))
    digest.update(b'{"agents":{')
    between = b""
    for line in agents.values():
        digest.update(between)
        digest.update(line)
        between = b","
    digest.update(b"},")
    digest.update(head[1:])
    program: Program = object.__new__(Program)
    put(program, "digest", digest.hexdigest())
    put(program, "_agent_lines", ReadOnly(agents))
    put(program, "_head", head)
    put(program, "_origin_lines", ReadOnly(places))
    put(program, "_origin_head", rest)
    _PARSED.__set__(program, {})
    _SETS.__set__(program, {})
    return program


def _sha256(size: int) -> Any:
    """A new hash. `hashlib` loads OpenSSL, which takes longer than hashing a policy of moderate size without it."""
    for name in ("_sha2", "_sha256") if size < SMALL_PROGRAM else ():  # the first since Python 3.12
        try:
            return __import__(name).sha256()  # `importlib` would cost more than it is worth here
        except ImportError:
            continue
    from hashlib import sha256

    return sha256()


def _verified(program: Program, digest: str) -> Program:
    if program.digest != digest:
        raise CompiledError("the digest does not fit the program: the file is damaged or was edited")
    head_of(program)  # a program of other semantics is refused here, not at the first call
    return program


def _parse(data: bytes) -> Any:
    from json import loads

    try:
        return loads(data.decode())
    except (ValueError, RecursionError):
        raise CompiledError("this is not a compiled policy: not well-formed JSON") from None


def _once(program: Program, key: str, data: bytes, kind: str) -> Any:
    """Parsed, checked and frozen on first use."""
    parsed = _parsed_of(program)
    found = parsed.get(key)
    if found is None:
        found = _parse(data)
        if kind == "program":
            _check_head(found)
            bodies = [found["ceiling"], *found["skills"].values()]
        else:
            _check_agents(found)
            bodies = [agent["body"] for agent in found.values()]
        try:
            found = parsed[key] = frozen(found)
        except RecursionError:
            raise CompiledError("this policy nests too deep for where it is used") from None
        for body in bodies:
            for ids in _tool_sets(body):
                tools_in(program, ids)
    return found


def _check_head(head: Any) -> None:
    from zcpolicy.validate import is_head

    semantics = head.get("semantics") if is_object(head) else None
    if isinstance(semantics, str) and semantics != SEMANTICS:
        raise CompiledError(f"semantics `{semantics[:20]}`, and this engine has `{SEMANTICS}`")
    if not is_head(head) or len(head["tools"]) > MAX_TOOLS:
        raise CompiledError("this is not a compiled policy: a part has not the shape that it must have")


def _check_agents(agents: Any) -> None:
    from zcpolicy.validate import are_agents

    if not are_agents(agents):
        raise CompiledError("this is not a compiled policy: an agent has not the shape that it must have")


def _tool_sets(body: Body) -> Iterator[ToolIds]:
    """All sets of tools in a body, so that one that is none is found before anything is decided by it."""
    for part in (body.get("rules", ()), body.get("only", ()), body.get("limits", ())):
        yield from (one["tools"] for one in part if "tools" in one)
    for require in body.get("require", ()):
        yield require["earlier"]
        yield require["later"]
    if "connect" in body:
        yield body["connect"]["tools"]

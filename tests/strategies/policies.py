"""Whole policies: agents, profiles, narrowing agents, ceilings, skills, delegation, over a catalogue.

Out: a `Sketch`, which prints itself as policy text and can be rearranged. Most sketches compile; the caller
discards the few that do not.
"""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.strategies.catalogues import Param, Shelf, Tool, rarely, shelves
from tests.strategies.conditions import conditions

HEADER = (
    "label dirty, private",
    "context { role: string, tier: integer, home: path }",
    'let secrets = ["**/.env", "**/*.pem"]',
    'let roots = ["/w/app", "/srv"]',
    'let names = ["abc", "x"]',
)


@dataclass(frozen=True)
class Block:
    """`agent a { … }` and its like. `kind`: agent, narrows, ceiling, skill, profile. None uses a later one."""

    kind: str
    head: str
    statements: tuple[str, ...]

    def text(self) -> str:
        """One statement a line."""
        inner = "".join(f"    {statement}\n" for statement in self.statements)
        return f"{self.head} {{\n{inner}}}\n"

    def plus(self, statement: str) -> "Block":
        """The same with one more statement."""
        return replace(self, statements=(*self.statements, statement))


@dataclass(frozen=True)
class Sketch:
    """A policy in parts. `delegations`: ((delegator, child), independent). `skilled`: agents that may load `s0`."""

    shelf: Shelf
    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    delegations: tuple[tuple[tuple[str, str], bool], ...] = ()
    skilled: tuple[str, ...] = ()

    def text(self) -> str:
        """The policy text."""
        return "zcpolicy 1\n" + "\n".join(self.lines) + "\n" + "".join(block.text() for block in self.blocks)

    def __repr__(self) -> str:
        files = "".join(f"\n# beside it, {name}: {text}" for name, text in self.shelf.files)
        return f"<<<\n{self.text()}{files}\n>>>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # what Hypothesis prints of a failing example
        printer.text(repr(self))

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of the agents."""
        return tuple(block.head.split()[1] for block in self.blocks if block.kind in ("agent", "narrows"))

    def swap(self, old: Block, new: Block) -> "Sketch":
        """The same with one block replaced."""
        return replace(self, blocks=tuple(new if block is old else block for block in self.blocks))


# --- references ----------------------------------------------------------------------------------------


@st.composite
def references(draw: st.DrawFn, shelf: Shelf, usable: tuple[Tool, ...]) -> tuple[str, Tool]:
    """A tool set, and one tool in it."""
    tool = draw(st.sampled_from(usable))
    wide = ["any", "@few"] + (["*"] if tool.server is None else [f"{tool.server}/*", "*/*", f"*/{tool.name[:3]}*"])
    items = [draw(st.sampled_from([tool.ref, tool.ref, tool.ref, f"{tool.ref[:-2]}*", *wide]))]
    if items[0] == "@few":
        return ("@few" if tool in shelf.tools[:2] else f"@few, {tool.ref}"), tool
    if draw(rarely(4)):
        items.append(draw(st.sampled_from(usable)).ref)
    covered = {one.key for item in items for one in shelf.matching(item)}
    removable = [one for one in shelf.tools if one.key in covered and one is not tool]
    excepted = f" except {draw(st.sampled_from(removable)).ref}" if bool(removable) and draw(rarely(4)) else ""
    return ", ".join(items) + excepted, tool


# --- statements ----------------------------------------------------------------------------------------


@st.composite
def rules(draw: st.DrawFn, effect: str, shelf: Shelf, usable: tuple[Tool, ...], mark: str = "") -> str:
    """`allow`, `ask`, `deny`, `auto_approve` or `mark` with its condition."""
    tools, tool = draw(references(shelf, usable))
    grants, wide = effect in ("allow", "auto_approve"), tools.startswith(("any", "*"))
    text = f"{effect} {mark}{tools}"
    if effect == "allow" and draw(rarely(7)):
        text += " with approval"
    when = draw(conditions(tool, grants, wide)) if draw(st.integers(0, 9)) < 6 else ""
    unless = draw(conditions(tool, not grants, wide)) if draw(st.integers(0, 9)) < 3 else ""
    text += f" when {when}" if when else ""
    text += f" unless {unless}" if unless and unless not in when else ""
    if draw(rarely(10)):
        text += ' because "so it is"'
    if effect == "deny" and draw(rarely(4)):
        text += " unclear ask"
    return text


@st.composite
def restrictions(draw: st.DrawFn, shelf: Shelf, usable: tuple[Tool, ...], limited: bool = True) -> str:
    """A statement that any body may hold."""
    kinds = ["deny", "deny", "ask", "only", "autonomy", "mark", "require", "approval", "drift"] + (
        ["limit", "limit"] if limited else []
    )
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "deny" | "ask":
            return draw(rules(kind, shelf, usable))
        case "mark":
            return draw(rules("mark", shelf, usable, f"{draw(st.sampled_from(('dirty', 'private')))} on "))
        case "only":
            return f"only {draw(references(shelf, usable))[0]}"
        case "autonomy":
            table = "{ read allow; low ask; medium allow; high deny }"
            return f"autonomy {draw(st.sampled_from(('readonly', 'supervised', 'supervised', 'full', table)))}"
        case "limit":
            return draw(limits(usable))
        case "drift":
            kind = draw(st.sampled_from(("", " description", " schema", " any")))
            return f"on drift{kind} {draw(st.sampled_from(('allow', 'ask', 'deny')))}"
        case "require":
            return draw(requires(usable))
        case _:
            return draw(st.sampled_from(('approval { route "ops" }', "approval { remember never }", "approval none")))


@st.composite
def limits(draw: st.DrawFn, usable: tuple[Tool, ...]) -> str:
    """A limit that one process can count."""
    tool = draw(st.sampled_from(usable))
    numbers = [param for param in tool.params if param.kind in ("integer", "number")]
    texts = [param for param in tool.params if param.kind in ("string", "list<string>", "integer")]
    window = draw(
        st.sampled_from(("", " per session", " per hour", " per 90s", ' per calendar day in "Europe/Berlin"'))
    )
    if bool(numbers) and draw(st.booleans()):
        return f"limit {draw(st.sampled_from((0, 4, 5.5)))} sum args.{draw(st.sampled_from(numbers)).name} to {tool.ref}{window}"
    each = f" for each args.{draw(st.sampled_from(texts)).name}" if bool(texts) and draw(st.booleans()) else ""
    unit = draw(st.sampled_from(("calls", "calls", "calls", "concurrent calls")))
    return f"limit {draw(st.integers(0, 2))} {unit} to {tool.ref}{'' if unit != 'calls' else window}{each}"


@st.composite
def requires(draw: st.DrawFn, usable: tuple[Tool, ...]) -> str:
    """`require T before U`."""
    earlier, later = draw(st.sampled_from(usable)), draw(st.sampled_from(usable))
    shared = [one.name for one in earlier.params if one.name in {other.name for other in later.params}]
    text = f"require {earlier.ref} before {later.ref}"
    if draw(st.booleans()):
        text += f" within {draw(st.sampled_from(('1m', '1h')))}"
    return text + (f" same args.{draw(st.sampled_from(shared))}" if bool(shared) and draw(st.booleans()) else "")


@st.composite
def grants(draw: st.DrawFn, shelf: Shelf, usable: tuple[Tool, ...]) -> str:
    """A statement for granting bodies alone."""
    return draw(rules(draw(st.sampled_from(("allow", "allow", "allow", "auto_approve"))), shelf, usable))


# --- bodies --------------------------------------------------------------------------------------------


@st.composite
def granting(draw: st.DrawFn, name: str, shelf: Shelf, skilled: bool, profiles: tuple[str, ...]) -> Block:
    """An agent that grants; it can connect what the catalogue has."""
    connects = bool(shelf.servers) and not draw(rarely(5))
    usable = tuple(tool for tool in shelf.tools if tool.server is None or connects)
    statements = [f"connect {draw(st.sampled_from(('all_servers', 'all_servers', 'few_tools')))}"] if connects else []
    statements += ["skills s0"] if skilled else []
    statements += draw(st.lists(grants(shelf, usable), min_size=1, max_size=4))
    if draw(st.booleans()):
        statements.append("allow any")
    statements += draw(st.lists(restrictions(shelf, usable), max_size=3))
    used = draw(st.lists(st.sampled_from(profiles), unique=True, max_size=2)) if profiles else []
    statements += [f"use {', '.join(used)}"] if used else []
    return Block("agent", f"agent {name}", tuple(statements))


@st.composite
def restricting(draw: st.DrawFn, kind: str, head: str, shelf: Shelf, size: int = 2) -> Block:
    """A body that only withholds."""
    statements = draw(st.lists(restrictions(shelf, shelf.tools, kind != "narrows"), min_size=1, max_size=size))
    if shelf.servers and kind in ("narrows", "skill") and draw(rarely(5)):
        statements.append(draw(st.sampled_from(("connect none", "connect few_tools", "connect all_servers"))))
    return Block(kind, head, tuple(statements))


@st.composite
def profiles(draw: st.DrawFn, shelf: Shelf) -> tuple[Block, ...]:
    """`p0` may grant, `p1` restricts."""
    made: list[Block] = []
    hosts = tuple(tool for tool in shelf.tools if tool.server is None)
    if draw(st.booleans()):
        made.append(Block("profile", "profile p0", tuple(draw(st.lists(grants(shelf, hosts), min_size=1, max_size=2)))))
    if draw(st.booleans()):
        made.append(draw(restricting("profile", "profile p1", shelf)))
    return tuple(made)


Edges = dict[tuple[str, str], bool]
"""Delegations: (delegator, child) → whether independent."""


@st.composite
def edges(draw: st.DrawFn, names: tuple[str, ...], bounded: bool) -> Edges:
    """Who delegates to whom: `a0` to `a1`, both to `a2`; at least `a0` to `a1`, bounded, where `bounded` is wanted."""
    made: Edges = {}
    for pair in (("a0", "a1"), ("a1", "a2"), ("a0", "a2")):
        if set(pair) <= set(names) and draw(st.booleans()):
            made[pair] = draw(st.booleans())
    return {**made, ("a0", "a1"): False} if bounded else made


def _delegating(block: Block, made: Edges) -> Block:
    """An agent with its delegations; two deep, so that a child may delegate too."""
    name = block.head.split()[1]
    for (delegator, child), independent in made.items():
        if delegator == name:
            block = block.plus(f"delegate to {child}" + (' independent because "it must"' if independent else ""))
    return block.plus("delegate depth 2") if any(delegator == name for delegator, _ in made) else block


@st.composite
def sketches(draw: st.DrawFn, having: str = "") -> Sketch:
    """A policy over a catalogue of its own. `having` `child`, `narrows`, `skill`: with one of these for certain."""
    shelf = draw(shelves())
    blocks = list(draw(profiles(shelf)))
    used = tuple(block.head.split()[1] for block in blocks)
    skilled = having == "skill" or draw(st.booleans())
    if skilled:
        blocks.append(draw(restricting("skill", "skill s0", shelf)))
    others = draw(st.sampled_from(((), ("a1",), ("a1", "a2")))) if having != "child" else ("a1",)
    made = draw(edges(("a0", *others), having == "child"))
    names = (*reversed(others), "a0")
    blocks += [_delegating(draw(granting(name, shelf, skilled and name == "a0", used)), made) for name in names]
    if having == "narrows" or draw(st.booleans()):
        blocks.append(draw(restricting("narrows", "agent n0 narrows a0", shelf)))
        if draw(st.booleans()):
            blocks.append(draw(restricting("narrows", "agent n1 narrows n0", shelf)))
    if draw(rarely(3)):
        blocks.append(draw(restricting("ceiling", "ceiling", shelf)))
    return Sketch(shelf, _lines(shelf), tuple(blocks), tuple(made.items()), ("a0",) if skilled else ())


@st.composite
def plain_sketches(draw: st.DrawFn) -> Sketch:
    """One agent that is given everything, save for what one or two conditions say: for looking at conditions."""
    shelf = draw(shelves())
    tool = draw(st.sampled_from(shelf.tools))
    ref = draw(st.sampled_from((tool.ref, "any")))
    how = draw(st.sampled_from(("allow", "deny", "ask", "unclear", "auto_approve")))
    word = draw(st.sampled_from(("when", "unless")))
    grants = how in ("allow", "auto_approve")
    condition = draw(conditions(tool, grants == (word == "when"), ref == "any"))
    rule = f"{'deny' if how == 'unclear' else how} {ref} {word} {condition}{' unclear ask' if how == 'unclear' else ''}"
    statements = [rule] if how == "allow" else ["allow any", rule]
    statements += ["autonomy supervised"] if how == "auto_approve" else []
    statements += ["connect all_servers"] if shelf.servers else []
    return Sketch(shelf, _lines(shelf), (Block("agent", "agent a0", tuple(statements)),))


@st.composite
def limited_sketches(draw: st.DrawFn) -> Sketch:
    """Agents that may do everything, within limits of their own, of those above, of a profile and of a ceiling."""
    shelf = draw(shelves())
    some = st.lists(limits(shelf.tools), max_size=2).map(tuple)
    free = ("allow any", *(["connect all_servers"] if shelf.servers else []))
    blocks = [
        Block("profile", "profile p1", draw(st.lists(limits(shelf.tools), min_size=1, max_size=1).map(tuple))),
        Block("agent", "agent a1", (*free, *draw(some), *draw(st.sampled_from(((), ("use p1",)))))),
        Block("agent", "agent a0", (*free, "delegate to a1", *draw(some), *draw(st.sampled_from(((), ("use p1",)))))),
        Block("narrows", "agent n0 narrows a0", ("autonomy full",)),
        Block("ceiling", "ceiling", draw(some)),
    ]
    return Sketch(shelf, _lines(shelf), tuple(blocks), ((("a0", "a1"), False),))


def _lines(shelf: Shelf) -> tuple[str, ...]:
    """What is declared beside the bodies."""
    lines = [*HEADER, *shelf.lines, f"group few = {', '.join(tool.ref for tool in shelf.tools[:2])}"]
    declared = [line.split()[1] for line in shelf.lines if line.startswith("server ")]
    lines += [f"server {name} {{}}" for name in shelf.servers if name not in declared]
    if shelf.servers:
        lines.append(f"bundle all_servers {{ {'; '.join(f'server {name}' for name in shelf.servers)} }}")
        few = shelf.servers[0]
        names = [tool.name for tool in shelf.tools if tool.server == few]
        how = f" except {names[0]}" if len(names) > 1 else f" only {names[0][:3]}*"
        lines.append(f"bundle few_tools {{ server {few}{how} }}")
    return tuple(lines)


def parameters(shelf: Shelf) -> tuple[Param, ...]:
    """Every parameter of every tool."""
    return tuple(param for tool in shelf.tools for param in tool.params)

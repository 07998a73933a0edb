"""Names: every name of a policy bound to what it means.

In: `Gathered`. Out: `Bound`, and a finding for every name that means nothing or two things.
"""

from collections.abc import Iterator
from typing import TypeVar

from policy_lang import ast, codes
from policy_lang.bound import NOTHING, Bound, BoundBody, BundleTools, Kept, Namespace
from policy_lang.diagnostics import Diagnostic, Label
from policy_lang.gather import Gathered, LoadedFile
from policy_lang.kinds.declared import kind_schema
from policy_lang.kinds.operands import BUILT_IN_FACTS
from policy_lang.names.bodies import Bodies
from policy_lang.names.mentions import Mentions
from policy_lang.names.references import Binder, unknown_name
from policy_lang.names.scope import Named, Scopes, build_scopes
from policy_lang.nearest import nearest
from policy_lang.risk import risk_classes
from policy_lang.source import Span
from policy_lang.tools import Catalogue, build_catalogue, fits_glob
from zcpolicy.shapes import Schema

MAX_NARROWING = 1_000
"""The longest chain of agents that narrow each other."""

MAX_SHOWN = 8
"""The most names of a circle that a message lists."""

D = TypeVar("D", bound=ast.Declaration)
N = TypeVar("N", bound=Named)


def bind(gathered: Gathered, kept: Kept = NOTHING) -> tuple[Bound, tuple[Diagnostic, ...]]:
    """Resolve every name. With an error among the findings the result serves further reporting only."""
    catalogue, of_tools = build_catalogue(gathered)
    scopes, of_names = build_scopes(gathered)
    found = [*of_tools, *of_names]
    binder = Binder(catalogue, scopes, gathered.lowest)
    bodies = Bodies(scopes)
    bound = Bound(
        gathered=gathered,
        catalogue=catalogue,
        classes=risk_classes(gathered, catalogue, binder, found),
        labels=tuple(sorted({name.text for node, _ in declarations(gathered, ast.Label) for name in node.names})),
        scopes=tuple(sorted({name.text for node, _ in declarations(gathered, ast.Scope) for name in node.names})),
        context=_context(gathered, found),
        agents={
            full: bodies.build("narrows" if node.narrows else "agent", full, node, file)
            for full, node, file in _named(scopes, "agent", ast.Agent)
        },
        ceilings=tuple(
            bodies.build("ceiling", "ceiling", node, file) for node, file in declarations(gathered, ast.Ceiling)
        ),
        skills={
            full: bodies.build("skill", full, node, file) for full, node, file in _named(scopes, "skill", ast.Skill)
        },
        profiles={
            full: bodies.build("profile", full, node, file)
            for full, node, file in _named(scopes, "profile", ast.Profile)
        },
        bundles=dict(_bundles(scopes, catalogue, found)),
        lets={full: (node, file) for full, node, file in _named(scopes, "let", ast.Let)},
        groups={full: (node, file) for full, node, file in _named(scopes, "group", ast.Group)},
        names=scopes.visible,
        tool_sets=binder.sets,
        kept=kept,
    )
    found.extend(_declared_twice(gathered))
    found.extend(_unknown_servers(gathered, catalogue))
    mentions = Mentions(bound, scopes, binder)
    mentions.visit()
    found.extend(_narrowing(bound, scopes))
    found.extend(_lower_layers(bound))
    return bound, (*found, *binder.found, *bodies.found, *mentions.found)


def declarations(gathered: Gathered, kind: type[D]) -> Iterator[tuple[D, LoadedFile]]:
    """The declarations of one type, each with its file, highest layer first."""
    for file in gathered.files:
        for node in file.file.declarations:
            if isinstance(node, kind):
                yield node, file


def _named(scopes: Scopes, space: Namespace, kind: type[N]) -> Iterator[tuple[str, N, LoadedFile]]:
    for full, (node, file) in scopes.declared[space].items():
        if isinstance(node, kind):
            yield full, node, file


def _context(gathered: Gathered, found: list[Diagnostic]) -> dict[str, Schema]:
    out: dict[str, Schema] = {}
    first: dict[str, Label] = {}
    for node, file in declarations(gathered, ast.Context):
        for item in node.fields:
            schema = kind_schema(item.kind)
            if BUILT_IN_FACTS.get(item.name.text, schema) != schema:
                message = f"`session.{item.name.text}` is built in, and of another kind"
                found.append(Diagnostic(codes.DUPLICATE_NAME, message, file.source, item.span, help="rename it"))
                continue
            if item.name.text in out and out[item.name.text] != schema:
                message = f"context fact `{item.name.text}` is declared with two kinds"
                found.append(
                    Diagnostic(codes.DUPLICATE_NAME, message, file.source, item.span, (first[item.name.text],))
                )
                continue
            out[item.name.text] = schema
            first[item.name.text] = Label(file.source, item.span, "first declared here")
    return out


def _declared_twice(gathered: Gathered) -> Iterator[Diagnostic]:
    """Labels, scopes and servers that one layer declares twice. A lower layer may speak of a server again."""
    first: dict[tuple[int, str, str], Label] = {}
    for file in gathered.as_read:
        for space, name, span in _global_names(file):
            key = (file.layer, space, name)
            if key not in first:
                first[key] = Label(file.source, span, "first declared here")
                continue
            message, advice = f"{space} `{name}` is declared twice", "remove one of them"
            yield Diagnostic(codes.DUPLICATE_NAME, message, file.source, span, (first[key],), advice)


def _global_names(file: LoadedFile) -> Iterator[tuple[str, str, Span]]:
    for node in file.file.declarations:
        match node:
            case ast.Label(names=names):
                yield from (("label", name.text, name.span) for name in names)
            case ast.Scope(names=names):
                yield from (("scope", name.text, name.span) for name in names)
            case ast.Server(name=name):
                yield "server", name.text, node.span
            case _:
                pass


def _unknown_servers(gathered: Gathered, catalogue: Catalogue) -> Iterator[Diagnostic]:
    """`server NAME { … }` declares no server: catalogues and tools do. Elsewhere than in the policy's own root it may speak
    of a server that this policy does not have, as long as that is no misspelling.
    """
    listed = {node.server.text for node, _ in declarations(gathered, ast.Catalog) if node.server is not None}
    listed.update(server for server in catalogue.ids if server is not None)
    for node, file in declarations(gathered, ast.Server):
        name = node.name.text
        if name in listed:
            continue
        near = nearest(name, sorted(listed))
        if near is not None or (file.is_root and file.layer == gathered.lowest):
            help_text = f"did you mean `{near}`?" if near else "declare it with a `catalog` or `tool` statement"
            yield Diagnostic(codes.UNKNOWN_NAME, f"unknown server `{name}`", file.source, node.span, help=help_text)


def _bundles(scopes: Scopes, catalogue: Catalogue, found: list[Diagnostic]) -> Iterator[tuple[str, BundleTools]]:
    for full, node, file in _named(scopes, "bundle", ast.Bundle):
        servers: set[str] = set()
        tools: set[int] = set()
        for item in node.items:
            name = item.server.text
            if name not in catalogue.servers:
                known = list(catalogue.servers)
                found.append(unknown_name(codes.UNKNOWN_NAME, "server", name, item.span, file, known))
                continue
            servers.add(name)
            tools |= _bundle_tools(item, catalogue, file, found)
        yield full, BundleTools(frozenset(servers), frozenset(tools))


def _bundle_tools(item: ast.BundleItem, catalogue: Catalogue, file: LoadedFile, found: list[Diagnostic]) -> set[int]:
    known = catalogue.ids.get(item.server.text, {})
    named: set[int] = set()
    for pattern in item.only if item.only is not None else item.excepted or ():
        fitting = {
            number
            for name, number in known.items()
            if (fits_glob(pattern.text, name) if pattern.is_pattern else name == pattern.text)
        }
        if not fitting:
            server, written = item.server.text, pattern.text
            if pattern.is_pattern:
                message, near = f"`{written}` matches no tool of server `{server}`", None
                found.append(Diagnostic(codes.UNKNOWN_TOOL, message, file.source, item.names_span, help=near))
            else:
                found.append(
                    unknown_name(
                        codes.UNKNOWN_TOOL, f"tool of server `{server}`:", written, item.names_span, file, list(known)
                    )
                )
        named |= fitting
    everything = set(known.values())
    if item.only is not None:
        return named
    return everything - named


def _narrowing(bound: Bound, scopes: Scopes) -> Iterator[Diagnostic]:
    """Unknown parents, circles of `narrows`, chains that are too long. Each agent is walked once."""
    depth: dict[str, int] = {}
    for name, body in bound.agents.items():
        node = body.node
        if isinstance(node, ast.Agent) and node.narrows is not None and body.parent is None:
            known = scopes.candidates(body.file, "agent")
            yield unknown_name(codes.UNKNOWN_NAME, "agent", node.narrows.text, node.narrows.span, body.file, known)
        trail: dict[str, None] = {}
        at: str | None = name
        while at is not None and at not in depth and at not in trail:
            trail[at] = None
            at = bound.agents[at].parent if at in bound.agents else None
        if at is not None and at in trail:
            circle = list(trail)[list(trail).index(at) :]
            yield _circle(bound, circle)
        below = depth.get(at, 0) if at is not None else 0
        for number, step in enumerate(reversed(trail), 1):
            depth[step] = below + number
            if depth[step] == MAX_NARROWING + 1:
                message = f"`{step}` narrows through more than {MAX_NARROWING} agents"
                yield Diagnostic(
                    codes.NARROWING_CYCLE, message, bound.agents[step].file.source, _of_agent(bound.agents[step]).span
                )


def _circle(bound: Bound, circle: list[str]) -> Diagnostic:
    names = " → ".join(f"`{step}`" for step in [*circle[:MAX_SHOWN], circle[0]])
    first, *others = (bound.agents[step] for step in circle)
    labels = tuple(_of_agent(body) for body in others[:MAX_SHOWN])
    message = f"agents narrow each other in a circle: {names}"
    return Diagnostic(codes.NARROWING_CYCLE, message, first.file.source, _of_agent(first).span, labels)


def _of_agent(body: BoundBody) -> Label:
    node = body.node
    span = node.narrows.span if isinstance(node, ast.Agent) and node.narrows else node.span
    return Label(body.file.source, span, "and here")


def _lower_layers(bound: Bound) -> Iterator[Diagnostic]:
    """What a lower layer may not: grant without leave from above, trust the hints of a server from above."""
    gathered = bound.gathered
    open_below = [
        any(isinstance(d, ast.AgentsAllowed) for f in layer for d in f.file.declarations) for layer in gathered.layers
    ]
    first_layer: dict[str, int] = {}
    for file in gathered.files:
        for node in file.file.declarations:
            server = (
                node.server
                if isinstance(node, ast.Catalog)
                else node.ref.server
                if isinstance(node, ast.Tool)
                else None
            )
            if isinstance(node, ast.Server):
                server = node.name
            if server is not None:
                first_layer.setdefault(server.text, file.layer)
            if isinstance(node, ast.Agent) and node.narrows is None and not all(open_below[: file.layer]):
                message = f"agent `{node.name.text}` grants in a lower layer"
                help_text = "write `agent NAME narrows PARENT`, or let the layer above say `agents allowed`"
                yield Diagnostic(codes.AGENT_NOT_ALLOWED, message, file.source, node.name.span, help=help_text)
            if isinstance(node, ast.Server) and node.trust_hints and first_layer[node.name.text] < file.layer:
                message = f"a layer below would trust the hints of server `{node.name.text}`"
                yield Diagnostic(
                    codes.LOOSENED_BELOW,
                    message,
                    file.source,
                    node.span,
                    help="only the layer that declares a server trusts it",
                )

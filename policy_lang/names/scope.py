"""Which declaration a written name means, file by file.

In: `Gathered`. Out: `Scopes`: what each file sees, under the name that it must write, and the full name of each
declaration; findings about names declared twice. An import's `as` puts a prefix and a dot before the names of a file;
a lower layer sees the names above.
"""

from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.bound import Namespace
from policy_lang.diagnostics import Diagnostic, Label
from policy_lang.gather import Gathered, LoadedFile
from policy_lang.source import Span

Named = ast.Group | ast.Let | ast.Bundle | ast.Skill | ast.Agent | ast.Profile


@dataclass(frozen=True, slots=True)
class Scopes:
    """`declared`: by namespace and full name. `visible`: by file, namespace and written name, the full name."""

    declared: dict[Namespace, dict[str, tuple[Named, LoadedFile]]]
    visible: dict[tuple[int, str, str], str]

    def candidates(self, file: LoadedFile, space: Namespace) -> list[str]:
        """The names that a file may write, for suggestions."""
        return [written for (owner, where, written) in self.visible if owner == id(file) and where == space]


@dataclass(slots=True)
class _Builder:
    gathered: Gathered
    prefixes: dict[int, str] = field(default_factory=dict[int, str])
    seen: dict[int, dict[tuple[str, str], str]] = field(default_factory=dict[int, dict[tuple[str, str], str]])


def build_scopes(gathered: Gathered) -> tuple[Scopes, tuple[Diagnostic, ...]]:
    """Collect the declarations and resolve what each file sees."""
    builder = _Builder(gathered)
    for layer in gathered.layers:
        if layer:
            _give_prefixes(builder, layer[0], "")
    found: list[Diagnostic] = []
    declared: dict[Namespace, dict[str, tuple[Named, LoadedFile]]] = {
        "group": {}, "let": {}, "bundle": {}, "skill": {}, "agent": {}, "profile": {},
    }  # fmt: skip
    for file in gathered.as_read:
        for node in file.file.declarations:
            if isinstance(node, Named):
                _declare(declared, builder.prefixes.get(id(file), ""), node, file, found)
    visible: dict[tuple[int, str, str], str] = {}
    above: dict[tuple[str, str], str] = {}
    for layer in gathered.layers:
        if not layer:
            continue
        for file in layer:
            for (space, written), full in {**above, **_visible(builder, file)}.items():
                visible[id(file), space, written] = full
        above = {**above, **_visible(builder, layer[0])}
    return Scopes(declared, visible), tuple(found)


def _give_prefixes(builder: _Builder, file: LoadedFile, prefix: str) -> None:
    """A file's names are full under the prefixes of the first way to it from its root."""
    if id(file) in builder.prefixes:
        return
    builder.prefixes[id(file)] = prefix
    for node, imported in file.imports:
        _give_prefixes(builder, imported, f"{prefix}{node.prefix.text}." if node.prefix else prefix)


def _visible(builder: _Builder, file: LoadedFile) -> dict[tuple[str, str], str]:
    """What a file sees: its own names, those of imports without a prefix, the others behind theirs."""
    known = builder.seen.get(id(file))
    if known is not None:
        return known
    out: dict[tuple[str, str], str] = {}
    for node, imported in file.imports:
        before = f"{node.prefix.text}." if node.prefix else ""
        for (space, written), full in _visible(builder, imported).items():
            out[space, before + written] = full
    prefix = builder.prefixes.get(id(file), "")
    for declaration in file.file.declarations:
        if isinstance(declaration, Named):
            space, name, _ = _key(declaration)
            out[space, name] = prefix + name
    builder.seen[id(file)] = out
    return out


def _declare(
    declared: dict[Namespace, dict[str, tuple[Named, LoadedFile]]],
    prefix: str,
    node: Named,
    file: LoadedFile,
    found: list[Diagnostic],
) -> None:
    space, name, span = _key(node)
    full = prefix + name
    if full not in declared[space]:
        declared[space][full] = (node, file)
        return
    first, first_file = declared[space][full]
    label = Label(first_file.source, _key(first)[2], "first declared here")
    found.append(
        Diagnostic(
            codes.DUPLICATE_NAME, f"{space} `{full}` is declared twice", file.source, span, (label,), _advice(space)
        )
    )


def _advice(space: Namespace) -> str:
    if space == "agent":
        return "rename one, put both bodies into one, or write `agent NEW narrows OLD { … }` to restrict it"
    return "rename one of them"


def _key(node: Named) -> tuple[Namespace, str, Span]:
    match node:
        case ast.Group(name=name):
            return "group", name.text, name.span
        case ast.Let(name=name):
            return "let", name.text, name.span
        case ast.Bundle(name=name):
            return "bundle", name.text, name.span
        case ast.Skill(name=name):
            return "skill", name.text, name.span
        case ast.Agent(name=name):
            return "agent", name.text, name.span
        case ast.Profile(name=name):
            return "profile", name.text, name.span

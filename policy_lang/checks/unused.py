"""Declarations that nothing uses.

In: `Survey`. Out: ZC3110. Only the root file of the policy itself is judged, and only if it declares bodies: what an imported
file, a higher layer or a file of shared names declares is for others to use.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.bound import Bound, Namespace
from policy_lang.checks.edits import remove
from policy_lang.checks.survey import Survey
from policy_lang.conditions import leaves
from policy_lang.diagnostics import Diagnostic, Fix
from policy_lang.gather import LoadedFile
from policy_lang.source import Span

Space = Namespace | str


@dataclass(slots=True)
class _Used:
    """The names in use, by what they name; `tested` and `marked` labels apart."""

    bound: Bound
    names: set[tuple[Space, str]] = field(default_factory=set[tuple[Space, str]])

    def name(self, file: LoadedFile, space: Namespace, written: str) -> None:
        full = self.bound.full(file, space, written)
        if full is not None:
            self.names.add((space, full))

    def tools(self, file: LoadedFile, *sets: ast.ToolSet | None) -> None:
        for tools in sets:
            for item in (*tools.items, *tools.excepted) if tools is not None else ():
                if isinstance(item, ast.GroupRef):
                    self.name(file, "group", item.name)

    def operand(self, operand: ast.Operand) -> None:
        if operand.root == "session" and operand.path:
            self.names.add(("context", operand.path[0]))


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every declaration of the root file."""
    bound = survey.bound
    lowest = bound.gathered.layers[-1] if bound.gathered.layers else ()
    roots = [file for file in lowest if file.is_root]
    if not any(isinstance(node, ast.Agent | ast.Ceiling) for file in roots for node in file.file.declarations):
        return
    used = _Used(bound)
    for view in survey.bodies():
        for placed in view.body.statements:
            if placed.via is None:
                _statement(used, placed.node, placed.file)
        for name in view.body.uses:
            used.names.add(("profile", name))
    for file in bound.gathered.files:
        for declaration in file.file.declarations:
            _declaration(used, declaration, file)
    for file in roots:
        for declaration in file.file.declarations:
            yield from _unused(used, declaration, file)


def _statement(used: _Used, node: ast.Statement, file: LoadedFile) -> None:
    match node:
        case ast.Rule():
            used.tools(file, node.tools)
            if node.label is not None:
                used.names.add(("marked", node.label.text))
            for leaf, _ in leaves(node):
                _leaf(used, leaf, file)
        case ast.Only(tools=tools) | ast.Limit(tools=tools):
            used.tools(file, tools)
        case ast.Require(earlier=earlier, later=later):
            used.tools(file, earlier, later)
        case ast.Connect(bundles=names):
            for name in names:
                used.name(file, "bundle", name.text)
        case ast.Skills(names=names):
            for name in names:
                used.name(file, "skill", name.text)
        case ast.Memory(read=read, write=write):
            used.names.update(("scope", name.text) for name in (*(read or ()), *(write or ())))
        case _:
            pass


def _leaf(used: _Used, leaf: ast.Condition, file: LoadedFile) -> None:
    match leaf:
        case ast.Marked(label=label):
            used.names.add(("tested", label.text))
        case ast.Test(left=left, right=right):
            used.operand(left)
            if isinstance(right, ast.LetRef):
                used.name(file, "let", right.name)
            elif isinstance(right, ast.Operand):
                used.operand(right)
        case ast.Bare(operand=operand):
            used.operand(operand)
        case _:
            pass


def _declaration(used: _Used, node: ast.Declaration, file: LoadedFile) -> None:
    match node:
        case ast.Group(tools=tools) | ast.Risk(tools=tools):
            used.tools(file, tools)
        case ast.Bundle(items=items):
            used.names.update(("server", item.server.text) for item in items)
        case ast.TestBlock(steps=steps):
            for step in steps:
                if isinstance(step, ast.TestAgent):
                    for skill in step.skills:
                        used.name(file, "skill", skill.text)
        case _:
            pass


def _unused(used: _Used, node: ast.Declaration, file: LoadedFile) -> Iterator[Diagnostic]:
    match node:
        case ast.Group(name=name) | ast.Let(name=name) | ast.Bundle(name=name) | ast.Skill(name=name) | ast.Profile(name=name):
            space: Namespace = _SPACES[type(node)]
            if (space, used.bound.full(file, space, name.text)) not in used.names:
                advice = {"bundle": "connect it in an agent, or drop it", "profile": "write `use` in an agent, or drop it"}
                yield _finding(file, space, name.text, name.span, advice.get(space, "drop it, or use it"), node.span)
        case ast.Server(name=name):
            if ("server", name.text) not in used.names:
                start = node.span.start
                at = file.source.text.find(name.text, start, node.span.end)
                span = Span(at, at + len(name.text)) if at >= 0 else node.span
                help_text = f"its tools cannot be called until an agent connects a bundle with `server {name.text}`"
                yield _finding(file, "server", name.text, span, help_text, None)
        case ast.Label(names=names):
            for each in names:
                yield from _label(used, each, file)
        case ast.Scope(names=names):
            for each in names:
                if ("scope", each.text) not in used.names:
                    yield _finding(file, "scope", each.text, each.span, "drop it, or name it in `memory`", None)
        case ast.Context(fields=fields):
            for item in fields:
                if ("context", item.name.text) not in used.names:
                    yield _finding(file, "context fact", item.name.text, item.name.span, f"drop it, or test `session.{item.name.text}`", None)
        case _:
            return


_SPACES: dict[type[ast.Declaration], Namespace] = {
    ast.Group: "group", ast.Let: "let", ast.Bundle: "bundle", ast.Skill: "skill", ast.Profile: "profile",
}  # fmt: skip


def _label(used: _Used, name: ast.Name, file: LoadedFile) -> Iterator[Diagnostic]:
    if ("tested", name.text) in used.names:
        return
    if ("marked", name.text) in used.names:
        message = f"label `{name.text}` is marked, and no rule tests it"
        help_text = f"write `ask … when marked {name.text}`, or drop the label"
        yield Diagnostic(codes.UNUSED_NAME, message, file.source, name.span, (), help_text)
    else:
        yield _finding(file, "label", name.text, name.span, "drop it, or `mark` and test it", None)


def _finding(file: LoadedFile, space: str, name: str, span: Span, help_text: str, whole: Span | None) -> Diagnostic:
    fix = Fix((remove(file.source, whole),), safe=True) if whole is not None else None
    message = f"{space} `{name}` is never used" if space != "server" else f"server `{name}` is in no bundle"
    return Diagnostic(codes.UNUSED_NAME, message, file.source, span, (), help_text, fix)

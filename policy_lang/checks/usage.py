"""Which declared names a policy uses.

In: `Survey`. Out: `Usage`: names with what they name (`("group", "readers")`), by full name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policy_lang import ast
from policy_lang.bound import Bound, BoundBody, Namespace
from policy_lang.checks.survey import Survey
from policy_lang.conditions import leaves
from policy_lang.gather import LoadedFile

Space = Namespace | str


@dataclass(slots=True)
class Usage:
    """The names in use. Labels count apart as `tested` and as `marked`."""

    bound: Bound
    names: set[tuple[Space, str]] = field(default_factory=set[tuple[Space, str]])

    def name(self, file: LoadedFile, space: Namespace, written: str) -> None:
        """A name as a file writes it."""
        full = self.bound.full(file, space, written)
        if full is not None:
            self.names.add((space, full))

    def tools(self, file: LoadedFile, *sets: ast.ToolSet | None) -> None:
        """The groups that tool sets name."""
        for tools in sets:
            for item in (*tools.items, *tools.excepted) if tools is not None else ():
                if isinstance(item, ast.GroupRef):
                    self.name(file, "group", item.name)

    def operand(self, operand: ast.Operand) -> None:
        """The context fact that an operand reads."""
        if operand.root == "session" and operand.path:
            self.names.add(("context", operand.path[0]))


def usage(survey: Survey) -> Usage:
    """Everything that bodies, declarations and tests name."""
    used = Usage(survey.bound, {*survey.bound.kept.used})
    _bodies(used, (view.body for view in survey.bodies()))
    for file in survey.bound.gathered.files:
        for declaration in file.file.declarations:
            _declaration(used, declaration, file)
    return used


def names_used_in(bound: Bound, bodies: Iterable[BoundBody]) -> set[tuple[Space, str]]:
    """What these bodies name."""
    used = Usage(bound)
    _bodies(used, bodies)
    return used.names


def _bodies(used: Usage, bodies: Iterable[BoundBody]) -> None:
    for body in bodies:
        for placed in body.statements:
            if placed.via is None:
                if isinstance(placed.node, ast.Rule):
                    _rule(used, placed.node, placed.file)
                else:
                    _statement(used, placed.node, placed.file)
        used.names.update(("profile", name) for name in body.uses)


def _rule(used: Usage, node: ast.Rule, file: LoadedFile) -> None:
    used.tools(file, node.tools)
    if node.label is not None:
        used.names.add(("marked", node.label.text))
    for leaf, _ in leaves(node):
        _leaf(used, leaf, file)


def _statement(used: Usage, node: ast.Statement, file: LoadedFile) -> None:
    for tools in _sets(node):
        used.tools(file, tools)
    match node:
        case ast.Connect(bundles=names):
            space: Namespace = "bundle"
        case ast.Skills(names=names):
            space = "skill"
        case ast.Memory(read=read, write=write):
            used.names.update(("scope", name.text) for name in (*(read or ()), *(write or ())))
            return
        case _:
            return
    for name in names:
        used.name(file, space, name.text)


def _sets(node: ast.Statement) -> Iterator[ast.ToolSet | None]:
    match node:
        case ast.Only(tools=tools) | ast.Limit(tools=tools):
            yield tools
        case ast.Require(earlier=earlier, later=later):
            yield earlier
            yield later
        case _:
            return


def _leaf(used: Usage, leaf: ast.Condition, file: LoadedFile) -> None:
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


def _declaration(used: Usage, node: ast.Declaration, file: LoadedFile) -> None:
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

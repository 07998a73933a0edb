"""Every name that a statement mentions, bound or reported.

In: a `Bound` whose tables are filled, and the binder of tool sets. Out: bound tool sets (in the binder), findings
for unknown names, and which declarations were used.
"""

from policy_lang import ast, codes
from policy_lang.bound import Bound, BoundBody, Namespace, Placed
from policy_lang.conditions import leaves
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.gather import LoadedFile
from policy_lang.names.references import Binder, unknown_name
from policy_lang.names.scope import Scopes
from policy_lang.nearest import nearest
from zcpolicy.combine import REASONS

FACTS = ("cwd", "server_cwd", "interactive", "home")
"""What `given` may state besides the facts that `context` declares."""

OUTCOMES = (*REASONS, "asked", "allowed")
"""The reasons that a test may expect."""


class Mentions:
    """One pass over all bodies, groups and tests; each statement is visited once, however many bodies use it."""

    def __init__(self, bound: Bound, scopes: Scopes, binder: Binder) -> None:
        self.bound, self.scopes, self.binder = bound, scopes, binder
        self.found: list[Diagnostic] = []
        self._seen: set[tuple[int, bool]] = set()

    def visit(self) -> None:
        """Visit every body, then what is declared beside them."""
        for body in (*self.bound.bodies(), *self.bound.profiles.values()):
            for placed in body.statements:
                self._statement(placed, body)
        for node, file in self.bound.groups.values():
            self.binder.bind(node.tools, file)
        for file in self.bound.gathered.files:
            for declaration in file.file.declarations:
                if isinstance(declaration, ast.TestBlock):
                    self._test(declaration, file)

    def _statement(self, placed: Placed, body: BoundBody) -> None:
        key = (id(placed.node), body.kind in ("ceiling", "skill"))
        if key in self._seen:
            return
        self._seen.add(key)
        node, file = placed.node, placed.file
        restricts = body.kind in ("ceiling", "skill")
        match node:
            case ast.Rule():
                self.binder.bind(node.tools, file, restricts=restricts)
                self._rule(node, file)
            case ast.Only(tools=tools) | ast.Limit(tools=tools):
                if tools is not None:
                    self.binder.bind(tools, file, restricts=restricts)
            case ast.Require(earlier=earlier, later=later):
                self.binder.bind(earlier, file, restricts=restricts)
                self.binder.bind(later, file, restricts=restricts)
            case ast.Connect(bundles=names):
                self._names("bundle", names, file)
            case ast.Skills(names=names):
                self._names("skill", names, file)
            case ast.Delegate(agents=names):
                self._names("agent", names, file)
            case ast.Memory(read=read, write=write):
                self._scopes((*(read or ()), *(write or ())), file)
            case _:
                pass

    def _rule(self, node: ast.Rule, file: LoadedFile) -> None:
        if node.label is not None:
            self._label(node.label, file)
        for leaf, _ in leaves(node):
            if isinstance(leaf, ast.Marked):
                self._label(leaf.label, file)
            elif isinstance(leaf, ast.Test) and isinstance(leaf.right, ast.LetRef):
                ref = leaf.right
                if self.bound.full(file, "let", ref.name) is None:
                    known = [*self.scopes.candidates(file, "let"), "true", "false"]
                    self.found.append(unknown_name(codes.UNKNOWN_NAME, "let", ref.name, ref.span, file, known))

    def _names(self, space: Namespace, names: tuple[ast.Name, ...], file: LoadedFile) -> None:
        for name in names:
            if self.bound.full(file, space, name.text) is None:
                known = self.scopes.candidates(file, space)
                self.found.append(unknown_name(codes.UNKNOWN_NAME, space, name.text, name.span, file, known))

    def _label(self, name: ast.Name, file: LoadedFile) -> None:
        if name.text not in self.bound.labels:
            self.found.append(
                unknown_name(codes.UNKNOWN_NAME, "label", name.text, name.span, file, list(self.bound.labels))
            )

    def _scopes(self, names: tuple[ast.Name, ...], file: LoadedFile) -> None:
        for name in names:
            if (
                name.text != "own"
                and name.text not in self.bound.scopes
                and self.bound.full(file, "agent", name.text) is None
            ):
                known = ["own", *self.bound.scopes, *self.scopes.candidates(file, "agent")]
                self.found.append(unknown_name(codes.UNKNOWN_NAME, "scope", name.text, name.span, file, known))

    def _test(self, block: ast.TestBlock, file: LoadedFile) -> None:
        early = next((step for step in block.steps if isinstance(step, ast.Call | ast.TestAgent)), None)
        if isinstance(early, ast.Call):
            message = "no `agent` is named before this call"
            help_text = "say who makes it: write `agent NAME` first in the test"
            self.found.append(Diagnostic(codes.MISPLACED_STATEMENT, message, file.source, early.span, help=help_text))
        for step in block.steps:
            match step:
                case ast.TestAgent(agent=agent, parents=parents, skills=skills):
                    self._names("agent", (agent, *parents), file)
                    self._names("skill", skills, file)
                case ast.Given(facts=facts, marked=marked):
                    for label in marked:
                        self._label(label, file)
                    for name, _ in facts:
                        self._fact(name, file)
                case ast.Call(tool=tool, reason=reason):
                    self._called(tool, file)
                    if reason is not None and reason.text not in OUTCOMES:
                        self._reason(reason, file)
                case ast.Wait():
                    pass

    def _fact(self, name: ast.Name, file: LoadedFile) -> None:
        known = [*FACTS, *self.bound.context]
        if name.text not in known:
            self.found.append(unknown_name(codes.UNKNOWN_NAME, "context fact", name.text, name.span, file, known))

    def _reason(self, name: ast.Name, file: LoadedFile) -> None:
        near = nearest(name.text, OUTCOMES)
        fix = Fix((Edit(file.source, name.span, near),), safe=False) if near else None
        advice = f"did you mean `{near}`?" if near else "such as `denied`, `not-granted`, `malformed` or `budget`"
        message = f"no decision has the reason `{name.text}`"
        self.found.append(Diagnostic(codes.UNKNOWN_NAME, message, file.source, name.span, (), advice, fix))

    def _called(self, ref: ast.ToolRef, file: LoadedFile) -> None:
        """An unknown tool in a test is a warning: such a test shows that it is denied."""
        if (
            self.bound.catalogue.find((ref.server.text if ref.server else None, ref.name.text)) is not None
            or ref.name.quoted
        ):
            return
        written = file.source.at(ref.span)
        near = nearest(ref.name.text, self.bound.catalogue.ids.get(ref.server.text if ref.server else None, {}))
        shown = f"{ref.server.text}/{near}" if ref.server and near else near
        fix = Fix((Edit(file.source, ref.span, shown),), safe=False) if shown else None
        help_text = f"did you mean `{shown}`?" if shown else "an unknown tool is denied"
        self.found.append(
            Diagnostic(
                codes.UNKNOWN_TOOL_CALLED, f"`{written}` is not a tool", file.source, ref.span, (), help_text, fix
            )
        )

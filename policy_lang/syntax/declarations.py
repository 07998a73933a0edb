"""What the rules for declarations and tests make: the whole file.

In: the values of a rule's parts, and the place of their text. Out: nodes of `ast`.
A method per rule or alias of the grammar's sections on files and tests; with its bases, of the whole grammar.
"""

from collections.abc import Callable
from keyword import iskeyword
from typing import Any, Final

from policy_lang import ast, codes
from policy_lang.source import Span
from policy_lang.syntax.statements import Statements
from policy_lang.syntax.tokens import Parts

RESERVED_LETS: Final = frozenset({
    "and", "or", "not", "some", "every", "has", "marked", "true", "false", "null",
    "args", "session", "tool", "agent", "paths", "urls",
})  # fmt: skip

Make = Callable[[Parts, int, int], Any]
MakeToken = Callable[[str, int, int], Any]


class Declarations(Statements):
    """Makes every node of a file."""

    def of_rule(self, name: str) -> Make:
        """The method of a rule or alias of the grammar."""
        make: Make = getattr(self, f"{name}_" if iskeyword(name) or name in {"list", "object"} else name)
        return make

    def of_terminal(self, name: str) -> MakeToken | None:
        """The method of a terminal that carries text; None where the text itself will do."""
        make: MakeToken | None = getattr(self, f"token_{name.lower()}", None)
        return make

    start = Statements.first

    # --- files and catalogues ---

    def edition(self, parts: Parts, start: int, end: int) -> ast.Edition:
        return ast.Edition(parts[1], Span(start, end))

    def lock_file(self, parts: Parts, start: int, end: int) -> ast.Catalog:
        return ast.Catalog(parts[1], None, Span(start, end))

    def catalog(self, parts: Parts, start: int, end: int) -> ast.Catalog:
        return ast.Catalog(parts[1], parts[3], Span(start, end))

    def import_(self, parts: Parts, start: int, end: int) -> ast.Import:
        if parts[2] is not None:
            self.not_reserved(parts[2])
        return ast.Import(parts[1], parts[2], Span(start, end))

    def agents_allowed(self, parts: Parts, start: int, end: int) -> ast.AgentsAllowed:
        return ast.AgentsAllowed(Span(start, end))

    def bare_server(self, parts: Parts, start: int, end: int) -> ast.Pattern:
        return ast.Pattern(parts[0].text)

    def quoted_server(self, parts: Parts, start: int, end: int) -> ast.Pattern:
        text = parts[0].value
        if not text:
            self.report(codes.UNEXPECTED, "a name in quotes may not be empty", Span(start, end))
        return ast.Pattern(self.bounded(text, Span(start, end)), True)

    # --- tools ---

    def tool(self, parts: Parts, start: int, end: int) -> ast.Tool:
        ref: ast.ToolRef = parts[1]
        self.exact(ref)
        seen: dict[str, Span] = {}
        for parameter in parts[3]:
            self.once(parameter.name, parameter.span, seen)
        flags: dict[str, Any] = {}
        places: dict[str, Span] = {}
        for key, value, span in parts[5]:
            self.once(key, span, places)
            flags.setdefault(key, value)
        return ast.Tool(ref, tuple(parts[3]), "runs tools" in flags, flags.get("risk"), Span(start, end))

    def exact(self, ref: ast.ToolRef) -> None:
        """Report a pattern where one tool is meant."""
        if ref.name.is_pattern or (ref.server is not None and ref.server.is_pattern):
            text = self.source.at(ref.span)
            help_ = "write the tool's name; in quotes a `*` is literal"
            self.report(codes.PATTERN_AS_NAME, f"`{text}` is a pattern, one tool is meant here", ref.span, help_)

    def runs_tools(self, parts: Parts, start: int, end: int) -> tuple[str, Any, Span]:
        return "runs tools", True, Span(start, end)

    def tool_risk(self, parts: Parts, start: int, end: int) -> tuple[str, Any, Span]:
        return "risk", parts[1], Span(start, end)

    parameters = default = Statements.first

    def parameter(self, parts: Parts, start: int, end: int) -> ast.Parameter:
        key: ast.Name | ast.String = parts[0]
        quoted = isinstance(key, ast.String)
        name = key.value if isinstance(key, ast.String) else key.text
        return ast.Parameter(name, quoted, parts[1], parts[3], parts[4], Span(start, end))

    def kind(self, parts: Parts, start: int, end: int) -> ast.Kind:
        return ast.Kind(parts[0], None, Span(start, end))

    def list_kind(self, parts: Parts, start: int, end: int) -> ast.Kind:
        made = ast.Kind("list", parts[2], Span(start, end))
        inner: ast.Kind = parts[2]
        return made if self.nested(inner, made) else inner

    bare_key = quoted_key = Statements.first

    # --- servers, risk, names ---

    server_items = Statements.first

    def server(self, parts: Parts, start: int, end: int) -> ast.Server:
        return ast.Server(parts[1], parts[3], Span(start, end))

    def risk(self, parts: Parts, start: int, end: int) -> ast.Risk:
        return ast.Risk(parts[1], parts[3], Span(start, end))

    def label(self, parts: Parts, start: int, end: int) -> ast.Label:
        return ast.Label(tuple(parts[1]), Span(start, end))

    def scope(self, parts: Parts, start: int, end: int) -> ast.Scope:
        for name in parts[1]:
            self.not_none(name)
        return ast.Scope(tuple(parts[1]), Span(start, end))

    def let(self, parts: Parts, start: int, end: int) -> ast.Let:
        self.not_reserved(parts[1])
        self.not_empty(parts[3])
        return ast.Let(parts[1], parts[3], Span(start, end))

    def group(self, parts: Parts, start: int, end: int) -> ast.Group:
        return ast.Group(parts[1], parts[3], Span(start, end))

    def not_reserved(self, name: ast.Name) -> None:
        """Report a name that begins an operand or is a word of conditions."""
        if name.text in RESERVED_LETS:
            self.report(codes.RESERVED_NAME, f"`{name.text}` is a word of conditions", name.span, "choose another name")

    def not_none(self, name: ast.Name) -> None:
        """Report a name that a list of such names would read as no name at all."""
        if name.text == "none":
            self.report(codes.RESERVED_NAME, "`none` stands for no name at all", name.span, "choose another name")

    # --- bundles and context ---

    bundle_items = context_items = Statements.first

    def bundle(self, parts: Parts, start: int, end: int) -> ast.Bundle:
        self.not_none(parts[1])
        if not parts[3]:
            help_ = "name a server, as in `server github`; an agent without servers says `connect none`"
            self.report(codes.EMPTY_LIST, f"bundle `{parts[1].text}` holds nothing", Span(start, end), help_)
        return ast.Bundle(parts[1], tuple(parts[3]), Span(start, end))

    def whole_server(self, parts: Parts, start: int, end: int) -> ast.BundleItem:
        return ast.BundleItem(parts[1], None, None, Span(end, end), Span(start, end))

    def part_of_server(self, parts: Parts, start: int, end: int) -> ast.BundleItem:
        names, span = self.tool_names(parts[3])
        return ast.BundleItem(parts[1], names, None, span, Span(start, end))

    def rest_of_server(self, parts: Parts, start: int, end: int) -> ast.BundleItem:
        names, span = self.tool_names(parts[3])
        return ast.BundleItem(parts[1], None, names, span, Span(start, end))

    def tool_names(self, refs: list[ast.ToolRef]) -> tuple[tuple[ast.Pattern, ...], Span]:
        for ref in refs:
            if ref.server is not None:
                help_ = "in a bundle the names are that server's tools: write the name alone"
                text = self.source.at(ref.span)
                self.report(codes.UNEXPECTED, f"`{text}` names a server a second time", ref.span, help_)
        return tuple(ref.name for ref in refs), Span(refs[0].span.start, refs[-1].span.end)

    def context(self, parts: Parts, start: int, end: int) -> ast.Context:
        return ast.Context(tuple(parts[2]), Span(start, end))

    def context_field(self, parts: Parts, start: int, end: int) -> ast.ContextField:
        return ast.ContextField(parts[0], parts[2], Span(start, end))

    # --- bodies by name ---

    def skill(self, parts: Parts, start: int, end: int) -> ast.Skill:
        self.not_none(parts[1])
        return ast.Skill(parts[1], parts[2], Span(start, end))

    def profile(self, parts: Parts, start: int, end: int) -> ast.Profile:
        return ast.Profile(parts[1], parts[2], Span(start, end))

    def agent(self, parts: Parts, start: int, end: int) -> ast.Agent:
        self.not_none(parts[1])
        return ast.Agent(parts[1], parts[2], parts[3], Span(start, end))

    def ceiling(self, parts: Parts, start: int, end: int) -> ast.Ceiling:
        return ast.Ceiling(parts[1], Span(start, end))

    # --- tests ---

    def test(self, parts: Parts, start: int, end: int) -> ast.TestBlock:
        return self._test(parts[1], tuple(parts[3]), start, end)

    def test_with_last(self, parts: Parts, start: int, end: int) -> ast.TestBlock:
        return self._test(parts[1], (*parts[3], parts[4]), start, end)

    def _test(self, name: ast.String, steps: tuple[ast.TestStep, ...], start: int, end: int) -> ast.TestBlock:
        """Strings of a test may hold anything, as the arguments of a hostile call do."""
        after = name.span.end
        self.surrogates[:] = [span for span in self.surrogates if not after <= span.start < end]
        return ast.TestBlock(name, steps, Span(start, end))

    def test_agent(self, parts: Parts, start: int, end: int) -> ast.TestAgent:
        parents = [name for role, names in parts[2] if role == "child" for name in names]
        skills = [name for role, names in parts[2] if role == "skill" for name in names]
        return ast.TestAgent(parts[1], tuple(parents), tuple(skills), Span(start, end))

    def parent(self, parts: Parts, start: int, end: int) -> tuple[str, list[ast.Name]]:
        return "child", [parts[3]]

    def with_skills(self, parts: Parts, start: int, end: int) -> tuple[str, list[ast.Name]]:
        return "skill", parts[2]

    def given(self, parts: Parts, start: int, end: int) -> ast.Given:
        facts: list[tuple[ast.Name, ast.Value]] = []
        marked: list[ast.Name] = []
        bare_is_label = False
        for name, kind, value in parts[1]:
            if kind == "fact":
                facts.append((name, value))
                bare_is_label = False
            elif kind == "label" or bare_is_label:
                marked.append(name)
                bare_is_label = True
            else:
                help_ = f"write `{name.text} = VALUE`, or `marked {name.text}` for a label"
                self.report(codes.UNEXPECTED, f"`{name.text}` is given no value", name.span, help_)
        return ast.Given(tuple(facts), tuple(marked), Span(start, end))

    def fact(self, parts: Parts, start: int, end: int) -> tuple[ast.Name, str, Any]:
        return parts[0], "fact", parts[2]

    def given_mark(self, parts: Parts, start: int, end: int) -> tuple[ast.Name, str, Any]:
        return parts[1], "label", None

    def given_more(self, parts: Parts, start: int, end: int) -> tuple[ast.Name, str, Any]:
        return parts[0], "bare", None

    def call(self, parts: Parts, start: int, end: int) -> ast.Call:
        self.exact(parts[1])
        return ast.Call(parts[1], tuple(parts[3]), parts[6], parts[7], parts[8], Span(start, end))

    arguments = reason = Statements.first

    def argument(self, parts: Parts, start: int, end: int) -> tuple[str, ast.Value]:
        key: ast.Name | ast.String = parts[0]
        return key.value if isinstance(key, ast.String) else key.text, parts[2]

    def wait(self, parts: Parts, start: int, end: int) -> ast.Wait:
        return ast.Wait(parts[1], Span(start, end))

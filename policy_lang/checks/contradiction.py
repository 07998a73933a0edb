"""Conditions that can never hold, always hold, or name a value that never occurs.

In: `Survey`. Out: ZC3001 (never), ZC3002 (a value outside what the operand can be), ZC3103 (always), ZC3104 (a branch
of an `or` that never holds).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from policy_lang import ast, codes
from policy_lang.checks.literals import Lit, arms, branches, leaf_key, operand_span, parts_of, single
from policy_lang.checks.operands import OPEN, Operands, Range, Scalar, right_values, scalar, show_scalar
from policy_lang.checks.survey import RuleAt, Survey, text_of, tool_names
from policy_lang.checks.together import Constraint, together
from policy_lang.checks.witness import Witnesses
from policy_lang.conditions import Leaf, leaves, stands_for_granting, walk
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label
from policy_lang.nearest import nearest, or_list
from policy_lang.source import Span

MAX_COMPARED = 32
"""So many literals on one operand are compared with each other; further ones are not."""

MAX_SHOWN = 6
"""The most values that a help lists."""

DROP = "drop this test"
DEPTH = frozenset({"depth"})
PARTS = frozenset({"host", "scheme", "port", "null"})
"""Kinds of which nothing may be there although the argument is sent."""


class Clash(NamedTuple):
    """Why a branch cannot hold: `second` alone, or with `first`; `whole` where it takes all tests on its operand."""

    second: Lit
    first: Lit | None = None
    whole: bool = False


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every rule once."""
    operands, witnesses = Operands(survey.bound), Witnesses(survey)
    for view, rule in survey.written_in():
        if not rule.always and rule.ids:
            for finding in _Judge(survey, operands, rule).judge():
                shown = (
                    witnesses.of_rule(view, rule)
                    if finding.code == codes.ALWAYS_TRUE and finding.help != DROP
                    else None
                )
                yield replace(finding, witness=shown)


class _Judge:
    """One rule's condition."""

    def __init__(self, survey: Survey, operands: Operands, rule: RuleAt) -> None:
        self.survey, self.bound, self.rule = survey, survey.bound, rule
        self.operands, self.file = operands, rule.placed.file
        self.granting = stands_for_granting(rule.node.effect)

    def judge(self) -> Iterator[Diagnostic]:
        """Values first: where one is impossible, the tests around it are not judged as well."""
        found = list(self._values())
        if found:
            yield from found
            return
        parts = parts_of(self.rule.node)
        never = self._never(parts)
        if never is not None:
            yield self._contradiction(never)
            return
        yield from self._dead_branches(parts)
        yield from self._always(parts)

    # --- ZC3002 ---

    def _values(self) -> Iterator[Diagnostic]:
        for leaf, _ in leaves(self.rule.node):
            if (
                isinstance(leaf, ast.Test)
                and leaf.op in ("==", "!=", "in", "not in")
                and not isinstance(leaf.right, ast.Operand)
            ):
                yield from self._value(leaf)

    def _value(self, test: ast.Test) -> Iterator[Diagnostic]:
        allowed = self._range(test.left, each=test.each is not None).values
        given = right_values(self.bound, self.file, test.right)
        if allowed is None or given is None or not allowed:
            return
        letters = {kind for kind, _ in allowed}
        outside = [item for item in given if scalar(item) not in allowed and scalar(item)[0] in letters]
        shared = isinstance(test.right, ast.LetRef)
        if shared and len(outside) < len(given):
            return
        for item in outside[:1] if shared else outside:
            span = test.right.span if shared else item.span
            if self._is_error(test.left, item):
                yield self._impossible(test, item, span, allowed)

    def _is_error(self, operand: ast.Operand, item: ast.Literal_) -> bool:
        """A tool's or a server's name that nothing here has may be meant for a catalogue to come; elsewhere it is wrong."""
        if operand.root != "tool" or operand.path not in (("name",), ("server",)):
            return True
        text = str(scalar(item)[1])
        position = 1 if operand.path == ("name",) else 0
        known = {tool.key[position] for tool in self.bound.catalogue.tools if tool.key[position] is not None}
        return text in known or nearest(text, [str(name) for name in known]) is not None or self.file.is_root

    def _impossible(self, test: ast.Test, item: ast.Literal_, span: Span, allowed: frozenset[Scalar]) -> Diagnostic:
        source = self.rule.source
        written, value = text_of(source, test.left.span), show_scalar(scalar(item))
        texts = sorted(str(value) for _, value in allowed)
        near = nearest(str(scalar(item)[1]), texts) if isinstance(item, ast.String) else None
        shown = or_list(show_scalar(value) for value in sorted(allowed, key=str)[:MAX_SHOWN])
        more = f" or {len(allowed) - MAX_SHOWN} more" if len(allowed) > MAX_SHOWN else ""
        fix = None
        if near is not None and not isinstance(test.right, ast.LetRef):
            fix = Fix((Edit(source, span, show_scalar(("s", near))),), safe=False)
        help_text = f"did you mean `{show_scalar(('s', near))}`?" if near is not None else f"it can be {shown}{more}"
        message = f"`{written}` is never `{value}` on {tool_names(self.bound, self.rule.ids)}"
        return Diagnostic(codes.IMPOSSIBLE_VALUE, message, source, span, (), help_text, fix)

    # --- ZC3001 ---

    def _never(self, parts: Sequence[tuple[ast.Condition, bool]]) -> Clash | None:
        """The first reason why the parts cannot all hold; `None` where they can, or where it is not decided."""
        ways = branches(parts)
        if not ways:
            return None
        first: Clash | None = None
        for way in ways:
            clash = self._clash(way)
            if clash is None:
                return None
            first = first or clash
        return first

    def _clash(self, way: list[Lit]) -> Clash | None:
        seen: dict[object, Lit] = {}
        by_operand: dict[tuple[str, ...], list[Lit]] = {}
        elements: dict[tuple[str, ...], list[Lit]] = {}
        for lit in way:
            if len(way) > 1:
                earlier = seen.setdefault(leaf_key(self.bound, self.file, lit.leaf), lit)
                if earlier.positive != lit.positive:
                    return Clash(lit, earlier)
            operand = single(lit.leaf)
            if operand is not None:
                by_operand.setdefault((operand.root, *operand.path), []).append(lit)
            elif isinstance(lit.leaf, ast.Test):
                elements.setdefault((lit.leaf.left.root, *lit.leaf.left.path), []).append(lit)
        for lits in by_operand.values():
            clash = self._on_one_operand(lits[:MAX_COMPARED])
            if clash is not None:
                return clash
        return next(
            (clash for lits in elements.values() if (clash := self._on_elements(lits[:MAX_COMPARED])) is not None), None
        )

    def _on_elements(self, lits: list[Lit]) -> Clash | None:
        """Of a list some element must satisfy a test, and so must every: the same one both."""
        if len(lits) < 2:
            return None
        made = [(lit, *found) for lit in lits if (found := self._of_elements(lit)) is not None]
        for number, (second, its_each, b) in enumerate(made):
            for first, each, a in made[:number]:
                if "some" in (its_each, each) and its_each != each:
                    operand = second.leaf.left if isinstance(second.leaf, ast.Test) else None
                    if operand is not None and not together([a, b], self._range(operand, each=True)):
                        return Clash(second, first)
        return None

    def _of_elements(self, lit: Lit) -> tuple[str, Constraint] | None:
        """The quantifier and the test of an element; `not some` is `every not`."""
        leaf = lit.leaf
        if not isinstance(leaf, ast.Test) or leaf.each is None:
            return None
        values = right_values(self.bound, self.file, leaf.right)
        if not values:
            return None
        inside = leaf.op not in ("!=", "not in")
        op = "==" if leaf.op in ("==", "!=", "in", "not in") else leaf.op
        each = leaf.each if lit.holds else {"some": "every", "every": "some"}[leaf.each]
        return each, Constraint(op, tuple(map(scalar, values)), inside == lit.holds)

    def _on_one_operand(self, lits: list[Lit]) -> Clash | None:
        operand = single(lits[0].leaf)
        range_ = self._range(operand) if operand is not None else OPEN
        if len(lits) == 1 and range_.values is None and range_.kinds != DEPTH and not isinstance(lits[0].leaf, ast.Has):
            return None  # alone, such a test holds for some value
        presence = self._presence(lits, range_)
        if presence is not None:
            return presence
        tests = [(lit, made) for lit in lits if (made := self._constraint(lit)) is not None]
        if not tests or together([made for _, made in tests], range_):
            return None
        for lit, made in tests:
            if not together([made], range_):
                return Clash(lit)
        for number, (second, b) in enumerate(tests):
            for first, a in tests[:number]:
                if not together([a, b], range_):
                    return Clash(second, first)
        return Clash(tests[-1][0], tests[0][0], whole=True)

    def _presence(self, lits: list[Lit], range_: Range) -> Clash | None:
        """`not has x` where x is always sent, or is tested for granting as well."""
        absent = next((lit for lit in lits if isinstance(lit.leaf, ast.Has) and not lit.holds), None)
        present = next((lit for lit in lits if isinstance(lit.leaf, ast.Has) and lit.holds), None)
        if present is not None and range_.lacking and not range_.kinds:
            return Clash(present)
        if absent is None:
            return None
        if range_.kinds and not range_.optional and not range_.lacking and not range_.kinds & PARTS:
            return Clash(absent)
        tested = next((lit for lit in lits if not isinstance(lit.leaf, ast.Has)), None)
        return Clash(tested, absent) if tested is not None and self.granting else None

    def _constraint(self, lit: Lit) -> Constraint | None:
        leaf = lit.leaf
        if isinstance(leaf, ast.Bare):
            return Constraint("==", (("b", True),), lit.holds)
        if not isinstance(leaf, ast.Test):
            return None
        values = right_values(self.bound, self.file, leaf.right)
        if not values:
            return None
        op = "==" if leaf.op in ("==", "!=", "in", "not in") else leaf.op
        return Constraint(op, tuple(map(scalar, values)), lit.positive)

    def _contradiction(self, clash: Clash) -> Diagnostic:
        rule, source = self.rule, self.rule.source
        surely = self.granting or all(self._certain(lit.leaf) for lit in (clash.second, clash.first) if lit is not None)
        effect = f"this `{rule.node.effect}` never applies" if surely else "no value satisfies that"
        second = clash.second.text(source)
        if clash.first is None:
            message = f"`{second}` never holds on {tool_names(self.bound, rule.ids)}"
            return Diagnostic(
                codes.CONTRADICTION,
                message,
                source,
                clash.second.leaf.span,
                (),
                f"{effect}: drop the test, or the rule",
            )
        first = clash.first
        label = Label(
            source, first.leaf.span, f"the other test: `{first.text(source)}`" if not first.holds else "the other test"
        )
        if clash.whole:
            written = text_of(source, operand_span(clash.second.leaf))
            message = f"no value of `{written}` satisfies all tests of this condition"
        else:
            message = f"`{first.text(source)}` and `{second}` never hold together"
        help_text = f"{effect}: keep one of the tests, or join them with `or`"
        return Diagnostic(codes.CONTRADICTION, message, source, clash.second.leaf.span, (label,), help_text)

    # --- ZC3104, ZC3103 ---

    def _dead_branches(self, parts: Sequence[tuple[ast.Condition, bool]]) -> Iterator[Diagnostic]:
        for node, holds in parts:
            for arm, side in arms(node, holds):
                clash = self._never([(arm, side)])
                if clash is not None:
                    found = self._contradiction(clash)
                    help_text = "this part of the condition has no effect: correct it or drop it"
                    yield Diagnostic(
                        codes.DEAD_BRANCH, found.message, found.source, found.span, found.labels, help_text
                    )

    def _always(self, parts: Sequence[tuple[ast.Condition, bool]]) -> Iterator[Diagnostic]:
        """Where the negation can never hold, and no test can be UNKNOWN."""
        source = self.rule.source
        for node, holds in parts:
            if not all(self._certain(leaf) for leaf, _ in walk(node, True)) or self._never([(node, not holds)]) is None:
                yield from self._always_present(node, holds)
                continue
            written = text_of(source, node.span)
            message = f"`{written}` {'always' if holds else 'never'} holds on {tool_names(self.bound, self.rule.ids)}"
            help_text = f"this `{self.rule.node.effect}` applies to every call: drop `{'when' if holds else 'unless'}`, or correct the test"
            yield Diagnostic(codes.ALWAYS_TRUE, message, source, node.span, (), help_text)

    def _always_present(self, node: ast.Condition, holds: bool) -> Iterator[Diagnostic]:
        """`has x and …` where x is always sent."""
        if not isinstance(node, ast.And) or not holds:
            return
        for item in node.items:
            if isinstance(item, ast.Has) and self._certain(item):
                written = text_of(self.rule.source, item.operand.span)
                message = f"`{written}` is always sent to {tool_names(self.bound, self.rule.ids)}"
                yield Diagnostic(codes.ALWAYS_TRUE, message, self.rule.source, item.span, help=DROP)

    def _certain(self, leaf: Leaf) -> bool:
        """Whether a leaf is TRUE or FALSE on every call."""
        match leaf:
            case ast.Has(operand=operand):
                range_ = self._range(operand)
                return bool(range_.kinds) and not range_.optional and not range_.lacking and not range_.kinds & PARTS
            case ast.Marked():
                return True
            case ast.Bare(operand=operand):
                return self._range(operand).certain
            case ast.Test(each=None, right=right, op="==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in"):
                return self._range(leaf.left).certain and not isinstance(right, ast.Operand)
            case _:
                return False

    def _range(self, operand: ast.Operand, *, each: bool = False) -> Range:
        range_ = self.operands.range(self.rule.ids, operand, each=each)
        if operand.root == "tool" and operand.path == ("risk",) and self._names_its_tools():
            return range_._replace(values=frozenset(("s", self.bound.classes[number]) for number in self.rule.ids))
        return range_

    def _names_its_tools(self) -> bool:
        """Whether a rule of an agent spells out its tools: then their classes are known. Elsewhere a test of the class
        is meant for tools to come.
        """
        refs = [item for item in self.rule.node.tools.items if isinstance(item, ast.ToolRef)]
        plain = not any(ref.name.is_pattern or (ref.server is not None and ref.server.is_pattern) for ref in refs)
        return plain and len(refs) == len(self.rule.node.tools.items) and self.file.is_root

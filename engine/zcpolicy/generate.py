"""The function that decides one tool's calls for one stack: generated once per shape, bound to its constants.

In: a `Plan`. Out: `decide(arguments, run)`. It judges well-formed arguments inline and works out the bits of the
plan's conditions; whatever is odd it hands to `Plan.slowly`, which is the definition that it must agree with.

INVARIANT: the source holds no text of a policy or a call: names and operands come in as bound variables.
"""

from __future__ import annotations

from zcpolicy.call import MISFIT, Malformed, fits_quickly, judge_value, sound
from zcpolicy.combine import ALWAYS, INTERACTIVE
from zcpolicy.condition import AllOf, Not
from zcpolicy.decision import Decision
from zcpolicy.exact import is_row, plain
from zcpolicy.leaves import Test
from zcpolicy.operands import Call
from zcpolicy.program import head_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from zcpolicy.combine import Verdict
    from zcpolicy.condition import Node
    from zcpolicy.plan import Plan
    from zcpolicy.shapes import Schema

MAX_FAST_FIELDS: Final = 32
"""Arguments of a tool whose calls are judged by generated code."""
MAX_FAST_CHARACTERS: Final = 65_536
"""Characters of one string that is judged inline: 32 of them stay within the bounds of a call."""
MAX_FAST_NUMBER: Final = 2**53
"""Whole numbers below it are exact as floats, so that a float and they compare as their decimals do."""
MAX_FAST_QUESTIONS: Final = 256
"""Conditions about one tool that are asked by generated code; beyond, compiling it would take longer than it saves."""
MAX_SOURCE_CHARACTERS: Final = 100_000
"""Characters of one generated function."""
MAX_SHAPES: Final = 4_096
"""Shapes of generated functions that are remembered."""

_TEXT_KINDS: Final = ("string", "path", "url", "shell", "command")
_shapes: dict[str, Any] = {}


def generate(plan: Plan, verdicts: dict[int, Verdict]) -> Callable[[Any, Any], Decision]:
    """The plan's function. A tool with too many arguments or conditions gets the plain one."""
    schema = plan.tool["schema"]
    fields = schema.get("fields", {})
    if len(fields) > MAX_FAST_FIELDS or sum(map(len, fields)) > MAX_FAST_CHARACTERS:
        return plan.slowly
    if any(name not in fields for name in schema.get("required", ())):  # an argument that is required and not described
        return plan.slowly
    shape = _Shape(plan, verdicts)
    source = shape.source() if len(plan.questions) <= MAX_FAST_QUESTIONS else ""
    if not 0 < len(source) <= MAX_SOURCE_CHARACTERS:
        return plan.slowly
    made = _shapes.get(source)
    if made is None:
        space: dict[str, Any] = {}
        try:
            code = compile(source, "<decision>", "exec")
        except (SyntaxError, RecursionError, MemoryError):  # it nests deeper than the compiler of this Python goes
            return plan.slowly
        exec(code, space)  # noqa: S102 - our own text, see INVARIANT
        made = space["make"]
        if len(_shapes) >= MAX_SHAPES:
            _shapes.clear()
        _shapes[source] = made
    function: Callable[[Any, Any], Decision] = made(**shape.bound)
    return function


class _Shape:
    """Source text under construction, and what its variables are bound to."""

    def __init__(self, plan: Plan, verdicts: dict[int, Verdict]) -> None:
        self.plan = plan
        self.schema = plan.tool["schema"]
        self.fields: dict[str, tuple[int, Schema]] = {
            name: (index, field) for index, (name, field) in enumerate(self.schema.get("fields", {}).items())
        }
        self.required = {name for name in self.schema.get("required", ()) if name in self.fields}
        self.defaults = {name: _default(field) for name, (_, field) in self.fields.items() if "default" in field}
        self.undefaulted = {name for name, default in self.defaults.items() if default is MISFIT}
        self.bound: dict[str, Any] = {
            "Decision": Decision, "Call": Call, "slowly": plan.slowly, "recall": verdicts.get, "verdict_of": plan.verdict,
            "settled": plan.settled, "facts_bits": plan.facts_bits, "sound": sound, "MISFIT": MISFIT, "tool": plan.tool,
        }  # fmt: skip
        self.needs_call = bool(plan.requires or plan.protects)

    def bind(self, value: object) -> str:
        name = f"c{len(self.bound)}"
        self.bound[name] = value
        return name

    # --- the text ------------------------------------------------------------------------------------------------

    def source(self) -> str:
        guards, reads, keys = self._arguments()
        bits = self._bits()
        lines = ["def decide(args, run):", " if type(args) is dict:", *(f"  {read}" for read in reads)]
        lines += [f"  if {' and '.join(guards)}:", "   session = run.session", "   labels = session.labels"]
        lines += [f"   {line}" for line in self._judged(keys)]
        if self.needs_call:
            lines.append("   call = Call(judged, session, labels, tool)")
        lines.append(
            f"   bits = {' | '.join([f'({ALWAYS | INTERACTIVE} if session.interactive else {ALWAYS})', *bits])}"
        )
        if self.plan.requires or self.plan.protects:
            lines.append("   bits |= facts_bits(call, run)")
        lines += ["   verdict = recall(bits)", "   if verdict is None: verdict = verdict_of(bits)"]
        if self.plan.limits:
            lines += self._settled()
        lines += ["   return Decision(verdict, judged, run, labels)", " return slowly(args, run)"]
        inner = "\n".join(f" {line}" for line in lines)
        return f"def make({', '.join(self.bound)}):\n{inner}\n return decide\n"

    def _settled(self) -> list[str]:
        """A look at the limits; not needed where each has room for one call and nothing was ever charged."""
        roomy = all(one.fits for one in self.plan.limits)
        quick = f"{self.bind(self.plan.ledger)}.charged or not session.ledger" if roomy else "True"
        return [f"   if {quick}: return settled(verdict, judged, run, labels)"]

    def _arguments(self) -> tuple[list[str], list[str], dict[str, str]]:
        count = ["len(args) == 0" if not self.fields else ""]
        guards: list[str] = []
        reads: list[str] = []
        keys: dict[str, str] = {}
        sent: list[str] = []
        for name, (index, field) in self.fields.items():
            keys[name] = self.bind(name)
            reads.append(f"v{index} = args.get({keys[name]})")
            required = (name in self.required and "default" not in field) or name in self.undefaulted
            guard = self._guard(f"v{index}", field)
            guards.append(guard if required else f"(v{index} is None or {guard})")
            if not required:
                sent.append(f"(v{index} is not None)")
        fixed = len(self.fields) - len(sent)
        if self.fields:
            count = [f"len(args) == {' + '.join([str(fixed), *sent])}"]
        if has_default(self.schema):
            guards.append("run.session.supplies_defaults")
        if head_of(self.plan.stack.program)["skills"]:  # the session may have loaded one in another run
            guards.append(f"run.session.skills <= {self.bind(frozenset(self.plan.stack.own.skills))}")
        return count + guards, reads, keys

    def _guard(self, variable: str, field: Schema) -> str:
        kind = field["kind"]
        if "enum" not in field:
            if kind in _TEXT_KINDS:
                return (
                    f"type({variable}) is str and ({variable}.isascii() or sound({variable})) "
                    f"and len({variable}) < {MAX_FAST_CHARACTERS}"
                )
            bounds = f"-{MAX_FAST_NUMBER} < {variable} < {MAX_FAST_NUMBER}"
            if kind == "integer":
                return f"type({variable}) is int and {bounds}"
            if kind == "number":
                return f"(type({variable}) is int or type({variable}) is float) and {bounds}"
            if kind == "boolean":
                return f"({variable} is True or {variable} is False)"
        fit = self.bind(fits_quickly(field))
        return f"{variable} is not None and ({variable} := {fit}({variable})) is not MISFIT"

    def _judged(self, keys: dict[str, str]) -> list[str]:
        lines: list[str] = []
        always: list[str] = []
        later: list[str] = []
        for name, (index, _) in self.fields.items():
            variable = f"v{index}"
            if name in self.defaults:
                if name not in self.undefaulted:
                    lines.append(f"if {variable} is None: {variable} = {self.bind(self.defaults[name])}")
                always.append(f"{keys[name]}: {variable}")
            elif name in self.required:
                always.append(f"{keys[name]}: {variable}")
            else:
                later.append(f"if {variable} is not None: judged[{keys[name]}] = {variable}")
        return [*lines, f"judged = {{{', '.join(always)}}}", *later]

    def _bits(self) -> list[str]:
        parts: list[str] = []
        for question in self.plan.questions.values():
            for bit, must in ((question.must, True), (question.may, False)):
                if bit:
                    test = self.expression(question.node, must)
                    parts.append({"True": str(bit), "False": "0"}.get(test, f"({bit} if {test} else 0)"))
        return parts

    # --- conditions ----------------------------------------------------------------------------------------------

    def expression(self, node: Node, must: bool) -> str:
        """`must`: whether the condition is TRUE; else whether it is not FALSE."""
        if isinstance(node, Test):
            return self._test(node, must)
        if isinstance(node, Not):
            return _not(self.expression(node.part, not must))
        parts = [self.expression(part, must) for part in node.parts]
        joins, absorbs = ("and", "False") if isinstance(node, AllOf) else ("or", "True")
        if absorbs in parts:
            return absorbs
        left = [part for part in parts if part not in ("True", "False")]
        return f"({f' {joins} '.join(left)})" if left else _not(absorbs)

    def _test(self, test: Test, must: bool) -> str:
        leaf: Any = test.leaf
        if "marked" in leaf:
            return f"{self.bind(leaf['marked'])} in labels"
        if test.constant:
            truth = test.ask(Call({}, _NO_SESSION, frozenset(), self.plan.tool))
            return str(truth is True if must else truth is not False)
        found = self._has(leaf) if "has" in leaf else self._inline(leaf, must)
        if found is not None:
            return found
        self.needs_call = True
        return f"{self.bind(test.ask)}(call) {'is True' if must else 'is not False'}"

    def _has(self, leaf: Any) -> str | None:
        path = leaf["has"]
        if len(path) == 1 and path[0] in self.fields and _simple(self.fields[path[0]][1]):
            return f"v{self.fields[path[0]][0]} is not None"
        return None

    def _inline(self, leaf: Any, must: bool) -> str | None:
        """A test of one argument of a plain kind against constants; None where that is not what it is."""
        path = leaf["left"]
        if len(path) != 2 or path[0] != "args" or path[1] not in self.fields or "each" in leaf:
            return None
        index, field = self.fields[path[1]]
        if not is_row(leaf["right"]) or not _simple(field):
            return None
        negate = bool(leaf.get("negate"))
        must = must != negate
        variable = f"v{index}"
        items = tuple(plain(value) for value in leaf["right"])
        test = self._of_kind(leaf["test"], variable, field["kind"], items, must)
        if test is None:
            return None
        if "default" not in field and path[1] not in self.required:
            test = f"({variable} is not None and {test})" if must else f"({variable} is None or {test})"
        return _not(test) if negate else test

    def _of_kind(self, test: str, variable: str, kind: str, items: tuple[Any, ...], must: bool) -> str | None:
        if kind == "string":
            return self._text(test, variable, items, must)
        if kind == "boolean" and test == "==" and all(type(item) is bool for item in items):
            return f"({' or '.join(f'{variable} is {item}' for item in items)})"
        if kind not in ("integer", "number") or test not in _COMPARISONS:
            return None
        if not all(type(item) is int and abs(item) < MAX_FAST_NUMBER for item in items):
            return None
        if test == "==" and len(items) > 1:
            return f"{variable} in {self.bind(frozenset(items))}"
        return f"({' or '.join(f'{variable} {test} {self.bind(item)}' for item in items)})"

    def _text(self, test: str, variable: str, items: tuple[Any, ...], must: bool) -> str | None:
        if not all(type(item) is str for item in items):
            return None
        if test == "==":
            if len(items) == 1:
                return f"{variable} == {self.bind(items[0])}"
            return f"{variable} in {self.bind(frozenset(items))}"
        try:
            quick = _quick_text(test, items, must)
        except Exception:  # noqa: BLE001 - an unusable pattern is UNKNOWN, which the plain way says
            return None
        return None if quick is None else f"{self.bind(quick)}({variable})"


_COMPARISONS: Final = ("==", "<", "<=", ">", ">=")


def _quick_text(test: str, items: tuple[str, ...], must: bool) -> Callable[[object], bool] | None:
    if test == "like":
        from zcpolicy.predicates.text import may_like, must_like

        return must_like(items) if must else may_like(items)
    if test == "in_domain":
        from zcpolicy.predicates.net import may_in_domain, must_in_domain

        return must_in_domain(items) if must else may_in_domain(items)
    return None


def _not(expression: str) -> str:
    return {"True": "False", "False": "True"}.get(expression, f"(not {expression})")


def _simple(field: Schema) -> bool:
    return field["kind"] in (*_TEXT_KINDS, "integer", "number", "boolean")


def _default(field: Schema) -> object:
    """The judged default of a plain argument; MISFIT: leave calls without this argument to the plain way."""
    try:
        return judge_value(field, plain(field.get("default"))) if _simple(field) else MISFIT
    except Malformed:
        return MISFIT


def has_default(schema: Schema) -> bool:
    """Whether a call of this schema may have a default written into it."""
    if "default" in schema:
        return True
    below = [*schema.get("fields", {}).values()]
    extra = schema.get("extra", "deny")
    below += [] if isinstance(extra, str) else [extra]
    below += [schema["item"]] if "item" in schema else []
    return any(map(has_default, below))


_NO_SESSION: Any = None

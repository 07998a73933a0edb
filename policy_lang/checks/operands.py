"""What the operands of a rule can be, by the tools that the rule names.

In: `Bound`, sets of tools, operands. Out: `Range`s, memoised by tools and operand.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from policy_lang import ast
from policy_lang.bound import Bound
from policy_lang.gather import LoadedFile
from policy_lang.kinds.operands import URL_PARTS, argument
from zcpolicy.program import Schema, Value

Scalar = tuple[str, object]
"""A literal without its place: its kind's letter and its value; equal literals are equal, `1` and `1.0` too."""

CERTAIN = frozenset({"string", "integer", "number", "boolean"})
"""The kinds on which equality and order always have an answer, once the value is there."""


class Range(NamedTuple):
    """What an operand can be.

    `values`: the only ones, or `None` for any number of them. `certain`: present and answerable on every tool.
    `optional`: ids of tools that declare it and whose calls may leave it out, without a default.
    `lacking`: ids of the tools that do not declare it. `kinds`: on the tools that do.
    """

    values: frozenset[Scalar] | None
    certain: bool
    optional: frozenset[int]
    lacking: frozenset[int]
    kinds: frozenset[str]


class _Field(NamedTuple):
    """An argument's schema; `part`: it is this part of a url."""

    schema: Schema
    optional: bool
    part: str | None = None


OPEN = Range(None, certain=False, optional=frozenset(), lacking=frozenset(), kinds=frozenset())


def scalar(node: ast.Literal_) -> Scalar:
    """A literal as a comparable value."""
    match node:
        case ast.String(value=text):
            return ("s", text)
        case ast.Number(value=number):
            return ("n", Decimal(number))
        case ast.Boolean(value=flag):
            return ("b", flag)
        case ast.Null():
            return ("z", None)


def show_scalar(value: Scalar) -> str:
    """As the language writes it."""
    kind, content = value
    if kind == "s":
        return f'"{content}"'
    return "null" if kind == "z" else str(content).lower()


def right_values(bound: Bound, file: LoadedFile, right: ast.Right) -> tuple[ast.Literal_, ...] | None:
    """The literals on the right of a test; `None` for an operand or an unknown `let`."""
    match right:
        case ast.Operand():
            return None
        case ast.LetRef(name=name):
            return bound.let_items(file, name)
        case ast.ListValue(items=items):
            return tuple(item for item in items if not isinstance(item, ast.ListValue | ast.ObjectValue))
        case _:
            return (right,)


@dataclass(slots=True)
class Operands:
    """`range` of each operand under each set of tools, looked up once."""

    bound: Bound
    _memo: dict[tuple[frozenset[int], tuple[str, ...], bool], Range] = field(
        default_factory=dict["tuple[frozenset[int], tuple[str, ...], bool]", Range]
    )
    _fields: dict[tuple[int, tuple[str, ...]], _Field | None] = field(
        default_factory=dict["tuple[int, tuple[str, ...]]", "_Field | None"]
    )

    def range(self, ids: frozenset[int], operand: ast.Operand, *, each: bool = False) -> Range:
        """What an operand can be on these tools; with `each`, what an element of the list can be."""
        key = (ids, (operand.root, *operand.path), each)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = self._range(ids, operand, each=each)
        return known

    def field(self, tool: int, path: tuple[str, ...]) -> Schema | None:
        """The schema of an argument of a tool; `None` where the tool does not declare it."""
        found = self._field(tool, path)
        return found.schema if found else None

    def _range(self, ids: frozenset[int], operand: ast.Operand, *, each: bool) -> Range:
        match operand.root:
            case "args":
                return self._arguments(ids, operand.path, each=each)
            case "tool" if len(operand.path) == 1:
                return self._of_tools(ids, operand.path[0])
            case "agent" if operand.path == ("depth",):
                return Range(None, True, frozenset(), frozenset(), frozenset({"depth"}))
            case "paths" | "urls":
                kind = operand.path[0] if operand.path else operand.root.removesuffix("s")
                return OPEN._replace(kinds=frozenset({kind}))
            case "session" if operand.path == ("interactive",):
                return Range(
                    frozenset({("b", True), ("b", False)}), True, frozenset(), frozenset(), frozenset({"boolean"})
                )
            case _:
                return OPEN

    def _of_tools(self, ids: frozenset[int], what: str) -> Range:
        tools = self.bound.catalogue.tools
        none = frozenset[int]()
        if what == "name":
            return Range(frozenset(("s", tools[i].key[1]) for i in ids), True, none, none, frozenset({"string"}))
        if what == "server":
            servers = frozenset(
                ("s", tools[i].key[0] or "") for i in ids
            )  # of the host's own tools it is the empty text
            return Range(servers, True, none, none, frozenset({"string"}))
        if what == "risk":
            return Range(frozenset(("s", name) for name in ast.RISK_CLASSES), True, none, none, frozenset({"risk"}))
        return Range(frozenset({("b", True), ("b", False)}), False, none, none, frozenset({"boolean"}))

    def _arguments(self, ids: frozenset[int], path: tuple[str, ...], *, each: bool) -> Range:
        values: set[Scalar] | None = set()
        optional: set[int] = set()
        lacking: set[int] = set()
        kinds: set[str] = set()
        certain = True
        for tool in ids:
            found = self._field(tool, path)
            if found is None:
                lacking.add(tool)
                continue
            schema = found.schema.get("item", found.schema) if each else found.schema
            kinds.add(found.part or schema["kind"])
            if found.optional:
                optional.add(tool)
            certain = certain and not found.optional and schema["kind"] in CERTAIN and found.part is None
            only = _only_values(schema)
            values = None if only is None or values is None else values | only
        if not kinds:
            return Range(None, False, frozenset(), frozenset(lacking), frozenset())
        fixed = None if values is None else frozenset(values)
        return Range(fixed, certain and not lacking, frozenset(optional), frozenset(lacking), frozenset(kinds))

    def _field(self, tool: int, path: tuple[str, ...]) -> _Field | None:
        key = (tool, path)
        if key not in self._fields:
            self._fields[key] = _find(self.bound.catalogue.tools[tool].schema, path)
        return self._fields[key]


def _find(schema: Schema, path: tuple[str, ...]) -> _Field | None:
    """The schema at a path below an object; below a url, its parts; below what is open, nothing is known."""
    found = argument(schema, path)
    if found is None:
        return None
    optional, part, at = False, None, schema
    for step in path:
        inner = at.get("fields", {}).get(step)
        if inner is None:
            of_url = at["kind"] == "url" or at.get("item", {}).get("kind") == "url"
            part = step if of_url and step in URL_PARTS else part
            optional = optional or part is None
            break
        optional = (
            optional or (step not in at.get("required", []) and "default" not in inner) or inner.get("nullable", False)
        )
        at = inner
    return _Field(found, optional, part)


def _only_values(schema: Schema) -> frozenset[Scalar] | None:
    if "enum" in schema:
        return frozenset(value for value in map(_encoded, schema["enum"]) if value is not None and value[0] != "z")
    if schema["kind"] == "boolean":
        return frozenset({("b", True), ("b", False)})
    return None


def _encoded(value: Value) -> Scalar | None:
    """An enum's value as the program holds it; `None` for lists and objects, which no test can be equal to."""
    if value is None:
        return ("z", None)
    if isinstance(value, bool):
        return ("b", value)
    if isinstance(value, str):
        return ("s", value)
    number = value.get("n")
    return ("n", Decimal(number)) if isinstance(number, str) else None

"""JSON Schema to kinds: what each keyword means, and that nothing is ever an error."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy_lang.catalog.schema import MAX_DEPTH, schema_to_kinds
from policy_lang.catalog.values import canonical, fits, number_text
from zcpolicy.program import Schema, Value

STRING = {"kind": "string", "unreviewed": True}
ANY = {"kind": "any", "unreviewed": True, "nullable": True}
ANY_NOT_NULL = {"kind": "any", "unreviewed": True}
OPEN: dict[str, Any] = {"kind": "object", "fields": {}, "required": [], "extra": "allow"}


def kind_of(node: object, **document: object) -> Any:
    """The kind of one optional field `x`."""
    top = {"type": "object", "properties": {"x": node}, **document}
    return schema_to_kinds(top).get("fields", {})["x"]


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        ({"type": "string"}, STRING),
        ({"type": "string", "format": "uri"}, STRING),
        ({"type": "string", "pattern": "^a", "minLength": 1}, STRING),
        ({"type": "integer", "minimum": 1}, {"kind": "integer"}),
        ({"type": "number"}, {"kind": "number"}),
        ({"type": "boolean"}, {"kind": "boolean"}),
        ({"type": "null"}, {"kind": "null"}),
        ({"type": ["string", "null"]}, {**STRING, "nullable": True}),
        ({"type": ["integer", "number"]}, {"kind": "number"}),
        ({"type": ["string", "integer"]}, ANY_NOT_NULL),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"kind": "integer", "nullable": True}),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, {**STRING, "nullable": True}),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, {**STRING, "enum": ["a", "b"]}),
        ({"anyOf": [{"const": "a"}, {"type": "string"}]}, STRING),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, ANY_NOT_NULL),
        ({"allOf": [{"type": "boolean"}]}, {"kind": "boolean"}),
        ({"allOf": [{"type": "boolean"}, {"default": True}]}, ANY),
        ({"enum": ["b", "a", "a"]}, {**STRING, "enum": ["a", "b"]}),
        ({"type": "string", "enum": ["a", 7, None]}, {**STRING, "enum": ["a"]}),
        ({"type": ["string", "null"], "enum": ["a", None]}, {**STRING, "nullable": True, "enum": ["a"]}),
        ({"type": ["string", "null"], "enum": ["a"]}, {**STRING, "enum": ["a"]}),
        ({"type": "string", "enum": [7]}, {**STRING, "enum": [{"n": "7"}]}),
        ({"enum": []}, ANY),
        ({"const": Decimal("1.50")}, {"kind": "number", "enum": [{"n": "1.5"}]}),
        ({"const": None}, {"kind": "null", "nullable": True, "enum": [None]}),
        ({"type": "array", "items": {"type": "integer"}}, {"kind": "list", "item": {"kind": "integer"}}),
        ({"type": "array"}, {"kind": "list", "item": ANY}),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": {}}, {"kind": "list", "item": ANY}),
        ({"type": "object"}, OPEN),
        ({"type": "object", "additionalProperties": False}, {**OPEN, "extra": "deny"}),
        ({"type": "object", "additionalProperties": {}}, OPEN),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {**OPEN, "extra": STRING}),
        (
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"kind": "object", "fields": {"a": STRING}, "required": ["a"], "extra": "allow"},
        ),
        ({}, ANY),
        (True, ANY),
        (False, ANY),
        ({"type": "file"}, ANY),
        ({"type": 7}, ANY),
        ({"$ref": "https://example.org/x.json"}, ANY),
        ({"$ref": "#/$defs/missing"}, ANY),
        ({"$ref": 7}, ANY),
    ],
)
def test_kind_of_a_field(node: object, kind: object) -> None:
    assert kind_of(node) == kind


@pytest.mark.parametrize(
    ("node", "default"),
    [
        ({"type": "string", "default": "a"}, "a"),
        ({"type": "integer", "default": 5000}, {"n": "5000"}),
        ({"type": "integer", "default": Decimal("5.0")}, {"n": "5"}),
        ({"type": "number", "default": Decimal("1E+2")}, {"n": "100"}),
        ({"type": "boolean", "default": False}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, None),
        ({"type": "array", "items": {"type": "string"}, "default": ["a"]}, {"list": ["a"]}),
        ({"type": "object", "default": {"a": 1}}, {"object": {"a": {"n": "1"}}}),
        ({"$ref": "#/$defs/mode", "default": "fast"}, "fast"),
    ],
)
def test_default_is_kept_as_a_typed_value(node: object, default: Value) -> None:
    assert kind_of(node, **{"$defs": {"mode": {"enum": ["fast", "slow"]}}})["default"] == default


@pytest.mark.parametrize(
    "node",
    [
        {"type": "string", "default": 7},
        {"type": "string", "default": None},
        {"type": "integer", "default": Decimal("1.5")},
        {"type": "integer", "default": True},
        {"enum": ["a"], "default": "b"},
        {"type": "number", "default": Decimal("1E+999999")},
        {"type": "string", "default": "\ud800"},
    ],
)
def test_default_that_does_not_fit_is_dropped(node: object) -> None:
    assert "default" not in kind_of(node)


@pytest.mark.parametrize(
    ("node", "extra"),
    [
        ({"type": "object"}, "deny"),
        ({}, "deny"),
        ({"type": "object", "additionalProperties": False}, "deny"),
        ({"type": "object", "additionalProperties": True}, "allow"),
        ({"type": "object", "additionalProperties": {}}, "allow"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, {"kind": "boolean"}),
        ({"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": False}, "allow"),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, "deny"),
        ({"type": "object", "anyOf": [{"properties": {"a": True}}]}, "allow"),
        ({"anyOf": [{"type": "object"}, {"type": "object", "required": ["a"]}]}, "allow"),
        ({"type": "array"}, "allow"),
        ({"type": ["object", "null"]}, "allow"),
        ({"$ref": "#"}, "allow"),
        (None, "allow"),
        ([], "allow"),
    ],
)
def test_top_level_is_an_object_and_closed_unless_it_says_otherwise(node: object, extra: object) -> None:
    top = schema_to_kinds(node)
    assert (top["kind"], top.get("extra")) == ("object", extra)


def test_required_field_with_a_default_is_never_missing() -> None:
    properties = {"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}
    assert schema_to_kinds({"type": "object", "properties": properties, "required": ["a", "b"]}).get("required") == [
        "b"
    ]


def test_required_name_that_is_not_described_is_any() -> None:
    assert schema_to_kinds({"type": "object", "required": ["a"]}).get("fields") == {"a": ANY}


def test_reference_into_definitions_with_escapes() -> None:
    assert kind_of({"$ref": "#/definitions/a~1b%20c"}, definitions={"a/b c": {"type": "boolean"}}) == {
        "kind": "boolean"
    }


def test_reference_that_contains_itself_ends_in_any() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    once = kind_of({"$ref": "#/$defs/node"}, **{"$defs": {"node": node}})
    assert once["fields"]["next"]["fields"]["next"] == ANY


def test_references_that_double_are_bounded() -> None:
    definitions = {
        f"d{level}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/d{level + 1}"} for side in "ab"}}
        for level in range(MAX_DEPTH)
    }
    assert kind_of({"$ref": "#/$defs/d0"}, **{"$defs": definitions})["kind"] == "object"


def test_deep_nesting_is_any_below_the_bound() -> None:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        node = {"type": "array", "items": node}
    levels, kind = 0, kind_of(node)
    while kind["kind"] == "list":
        levels, kind = levels + 1, kind["item"]
    assert (kind, levels) == (ANY, MAX_DEPTH)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (-0, "0"), (Decimal("-0.00"), "0"), (Decimal("1.50"), "1.5"), (Decimal("1E-3"), "0.001"), (10, "10")],
)
def test_numbers_have_one_spelling(number: int | Decimal, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize("number", [Decimal("NaN"), Decimal("Infinity"), Decimal("1E+500"), Decimal("1E-500")])
def test_numbers_beyond_the_bound_have_none(number: Decimal) -> None:
    assert number_text(number) is None


_KEYS = [
    *["type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref", "$defs", "required"],
    *["additionalProperties", "default", "patternProperties", "prefixItems", "format", "x"],
]
_WORDS = ["string", "integer", "object", "array", "null", "#", "#/$defs/x", "#/properties/x", "x", "\ud800", ""]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals() | st.sampled_from(_WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*_KEYS, "\ud800"]), inner, max_size=6),
    max_leaves=30,
)


def unreviewed_everywhere(schema: Schema) -> bool:
    extra = schema.get("extra")
    parts = [*schema.get("fields", {}).values(), *([schema["item"]] if "item" in schema else [])]
    parts += [extra] if isinstance(extra, dict) else []
    own = schema["kind"] not in ("string", "any") or schema.get("unreviewed", False)
    return own and all(map(unreviewed_everywhere, parts))


@settings(max_examples=300, deadline=None)
@given(_JSON)
def test_any_value_maps_to_a_closed_shape(node: object) -> None:
    made = schema_to_kinds({"type": "object", "properties": {"x": node}, "$defs": {"x": node}})
    canonical(made).encode()
    assert unreviewed_everywhere(made)
    for field in made.get("fields", {}).values():
        assert "default" not in field or fits(field["default"], field)
    assert schema_to_kinds(node)["kind"] == "object"

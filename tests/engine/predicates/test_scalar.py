"""Scalars: no coercion, exact numbers, Kleene membership."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcpolicy.predicates.refs import Truth
from zcpolicy.predicates.scalar import MAX_NUMBER_BITS, among, compare, equal, is_in

if TYPE_CHECKING:
    from zcpolicy.predicates.scalar import Operator


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("EUR", "EUR", True),
        ("EUR", "eur", False),
        ("EUR", "EUR ", False),
        ("caf\u00e9", "cafe\u0301", False),
        (True, True, True),
        (True, False, False),
        (100, 100, True),
        (100, Decimal("100.000001"), False),
        (100, Decimal("1.00E2"), True),
        (0.1, Decimal("0.1"), True),
        (0.1 + 0.2, Decimal("0.3"), False),
        (0.30000000000000004, Decimal("0.30000000000000004"), True),
        (1.0, 1, True),
        (-0.0, 0, True),
        (2**53 + 1, float(2**53), False),
        # two kinds
        (100, "100", None),
        (True, 1, None),
        (1, True, None),
        (0, False, None),
        ("true", True, None),
        # no scalars
        (None, None, None),
        (None, "x", None),
        ([1], [1], None),
        ({}, {}, None),
        # no numbers
        (float("nan"), float("nan"), None),
        (float("inf"), float("inf"), None),
        (Decimal("NaN"), Decimal("NaN"), None),
        (Decimal("sNaN"), 1, None),
        (Decimal("Infinity"), 1, None),
    ],
)
def test_equality_has_no_coercion(a: object, b: object, expected: Truth) -> None:
    assert equal(a, b) is expected
    assert equal(b, a) is expected
    assert compare("==", a, b) is expected
    assert compare("!=", a, b) is (None if expected is None else not expected)


def test_a_number_beyond_the_bound_is_unknown() -> None:
    assert equal(1 << MAX_NUMBER_BITS, Decimal("1.5")) is None
    assert equal(1 << MAX_NUMBER_BITS - 1, Decimal("1.5")) is False
    assert compare("<", 1, 1 << MAX_NUMBER_BITS) is True


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("<=", 100, 100, True),
        ("<=", Decimal("100.000001"), 100, False),
        ("<", 1, 2.5, True),
        (">", Decimal("1e400"), 10**399, True),
        (">=", Decimal("1e999999"), 5, True),
        ("<", -1, Decimal("-0.5"), True),
        ("<", "a", "b", True),
        ("<", "B", "a", True),
        (">", "", "", False),
        ("<", "1", 2, None),
        ("<", True, 2, None),
        ("<", False, True, None),
        (">=", None, 1, None),
        ("<", float("nan"), 1, None),
        ("<", [1], [2], None),
    ],
)
def test_order(op: Operator, a: object, b: object, expected: Truth) -> None:
    assert compare(op, a, b) is expected


@pytest.mark.parametrize(
    ("value", "items", "expected"),
    [
        ("EUR", ("USD", "EUR"), True),
        ("eur", ("USD", "EUR"), False),
        (7, ("USD", "EUR"), None),
        (7, ("USD", 7), True),
        (8, ("USD", 7), None),
        (8, (6, Decimal("7.5")), False),
        ([1], (1,), None),
        (None, ("x",), None),
    ],
)
def test_membership(value: object, items: tuple[object, ...], expected: Truth) -> None:
    assert is_in(value, items) is expected
    assert among(items)(value) is expected


OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
numbers = st.one_of(
    st.integers(-(10**30), 10**30),
    st.decimals(allow_nan=False, allow_infinity=False, places=6),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)


def _fraction(number: float | Decimal) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


@given(numbers, numbers, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
@settings(max_examples=300, deadline=None)
def test_numbers_are_exact(a: float | Decimal, b: float | Decimal, op: Operator) -> None:
    assert compare(op, a, b) is OPERATORS[op](_fraction(a), _fraction(b))


@given(st.one_of(st.none(), st.booleans(), st.text(), numbers, st.lists(st.integers())), st.from_type(object))
@settings(max_examples=100, deadline=None)
def test_any_two_values_have_an_answer(a: object, b: object) -> None:
    assert equal(a, b) in {True, False, None}
    assert compare("<", a, b) in {True, False, None}

"""Literals as the program holds them.

In: literals of the syntax tree. Out: `zcpolicy.shapes.Value`s, numbers exact and in their shortest form.
"""

from decimal import Decimal
from typing import assert_never

from policy_lang import ast
from zcpolicy.exact import number_text
from zcpolicy.shapes import Value


def encode_number(number: int | Decimal) -> str:
    """The shortest decimal spelling without an exponent: equal numbers have equal spellings."""
    return number_text(number) if number else "0"  # also for `-0.0`


def encode(value: ast.Value) -> Value:
    """A literal as the program holds it."""
    match value:
        case ast.String(value=text):
            return text
        case ast.Number(value=number):
            return {"n": encode_number(number)}
        case ast.Boolean(value=flag):
            return flag
        case ast.Null():
            return None
        case ast.ListValue(items=items):
            return {"list": [encode(item) for item in items]}
        case ast.ObjectValue(items=members):
            return {"object": {key.value: encode(member) for key, member in members}}
        case _:
            assert_never(value)

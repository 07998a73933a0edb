"""Exact values: numbers without binary rounding, canonical JSON, and the values that a compiled policy holds.

In: JSON values. Out: `int`, `Decimal`, `str`, `bool`, `None`, lists and dictionaries of them; canonical text; JSON that
nobody alters.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal
    from typing import Any, Final, TypeGuard

    from zcpolicy.shapes import Value

    Number = int | Decimal

MAX_NUMBER_DIGITS: Final = 1_000
"""Digits of one number, and how far its exponent may reach: beyond, a number is out of bounds."""
MAX_INTEGER: Final = 10**MAX_NUMBER_DIGITS
"""Whole numbers of a call stay below it."""

ReadOnly: Any = type(type.__dict__)  # `types.MappingProxyType`, without the import


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return type(value) is dict


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is a list."""
    return type(value) is list


def frozen(value: Any) -> Any:
    """A JSON value that nobody alters: an object is read only, a list a tuple. What is frozen already is given back.

    It takes the value over, which nobody else may hold: to copy every object of a policy would be the dearer half of this.
    """
    if is_list(value):
        return tuple(map(frozen, value))
    if not is_object(value):
        return value
    for name, one in value.items():
        if type(one) is not str:
            value[name] = frozen(one)
    return ReadOnly(value)


def thawed(value: Any) -> Any:
    """A copy of a frozen value, as JSON has it."""
    if is_map(value):
        return {name: thawed(one) for name, one in value.items()}
    return [*map(thawed, value)] if is_row(value) else value


def is_map(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value of a policy is an object, frozen or not yet."""
    kind = type(value)
    return kind is ReadOnly or kind is dict


def is_row(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value of a policy is a list, frozen or not yet."""
    kind = type(value)
    return kind is tuple or kind is list


def exact(value: float) -> Decimal:
    """A float as the decimal that JSON would write for it: `0.1` is one tenth. Raises ValueError if not finite."""
    from decimal import Decimal

    number = Decimal(repr(value))
    if not number.is_finite():
        raise ValueError("a number is not finite")
    return number


def number_of(text: str) -> Number:
    """`"12"` is an int, everything else a Decimal. Raises ValueError for anything that is no bounded number."""
    if len(text) > MAX_NUMBER_DIGITS or not text.isascii():
        raise ValueError("a number is out of bounds")
    if text.lstrip("-").isdigit():
        return int(text)
    from decimal import Decimal, InvalidOperation

    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("not a number") from None
    if not number.is_finite() or abs(number.adjusted()) > MAX_NUMBER_DIGITS:
        raise ValueError("a number is out of bounds")
    return number


def added(left: Number, right: Number) -> Number:
    """The exact sum."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    from decimal import Context, Decimal

    return Context(prec=10 * MAX_NUMBER_DIGITS).add(Decimal(left), Decimal(right))


def plain(value: Value) -> object:
    """A value of the compiled form as the value it stands for."""
    return _plain(value)


def _plain(value: object) -> object:
    if is_map(value):
        if "n" in value:
            return number_of(value["n"])
        if "list" in value:
            return [_plain(item) for item in value["list"]]
        return {name: _plain(item) for name, item in value["object"].items()}
    return value


def number_text(number: Number) -> str:
    """The shortest exact spelling, without an exponent where it is short: `1.50` is `1.5`, `1E+2` is `100`."""
    if isinstance(number, int):
        return str(number)
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def canonical(value: object) -> str:
    """RFC 8785 text of a JSON value without numbers (the compiled form writes them as strings)."""
    from json import dumps

    text = dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if text.isascii() or max(text) < "\ud800":
        return text
    # RFC 8785 sorts names by UTF-16 code units, which differs from code points above the surrogates.
    return dumps(_sorted(value), ensure_ascii=False, separators=(",", ":"))


def _sorted(value: object) -> object:
    if is_object(value):
        names: list[str] = sorted(value, key=lambda name: str(name).encode("utf-16-be", "surrogatepass"))
        return {name: _sorted(value[name]) for name in names}
    if is_list(value):
        return [_sorted(item) for item in value]
    return value

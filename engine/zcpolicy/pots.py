"""Which pots of a limit one call counts in, and how much it takes of each (SPEC 8).

In: judged arguments, a path below args. Out: an amount, or the names of pots.
"""

from __future__ import annotations

from zcpolicy.exact import exact, is_list, is_object, number_text
from zcpolicy.operands import MISSING, dig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decimal import Decimal
    from typing import Any, Final

    from zcpolicy.stack import RuleRef


MAX_POTS_OF_CALL: Final = 1_000
"""Elements of a list that a limit keeps pots by: each pot is looked at, so that a longer list is denied."""


class Unpayable(Exception):
    """A call that a limit cannot count: its argument is missing, negative or no number. Holds the rule and why."""


def amount_of(path: tuple[str, ...], arguments: dict[str, Any], rule: RuleRef | None) -> int | Decimal:
    """The argument that is summed. Raises Unpayable."""
    value: Any = dig(arguments, path)
    if isinstance(value, float):
        value = exact(value)
    if isinstance(value, (bool, str, list, dict)) or value is MISSING:
        raise Unpayable(rule, "the argument that a limit sums is missing or no number")
    if value < 0:
        raise Unpayable(rule, "the argument that a limit sums is negative")
    number: int | Decimal = value
    return number


def pot_names(path: tuple[str, ...], arguments: dict[str, Any], rule: RuleRef | None) -> frozenset[str]:
    """The pots of `for each args.x`: one per value, folded; one per distinct element of a list. Raises Unpayable."""
    value = dig(arguments, path)
    if value is MISSING:
        raise Unpayable(rule, "the argument that a limit keeps pots by is missing")
    elements = value if is_list(value) else [value]
    if None in elements:
        raise Unpayable(rule, "the argument that a limit keeps pots by is missing")
    if len(elements) > MAX_POTS_OF_CALL:
        raise Unpayable(rule, f"the argument that a limit keeps pots by has more than {MAX_POTS_OF_CALL} elements")
    return frozenset(map(_folded, elements))


def _folded(value: Any) -> str:
    """Equal for values that differ in letter case, Unicode form, or how a number is written."""
    if isinstance(value, str):
        from unicodedata import normalize

        return "s" + normalize("NFC", normalize("NFC", value).casefold())
    if isinstance(value, bool) or value is None:
        return f"b{value}"
    if is_list(value):
        return f"l[{','.join(map(repr, map(_folded, value)))}]"
    if is_object(value):
        pairs = sorted((_folded(name), _folded(one)) for name, one in value.items())
        return f"o{pairs!r}"
    number = exact(value) if isinstance(value, float) else value
    return "n" + (number_text(number) if number else "0")  # `-0.0` as well

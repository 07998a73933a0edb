"""The tests of conditions: one compiled leaf becomes a function from a call to a `Truth`.

In: a leaf and its site. Out: a `Test`. Patterns that a predicate refuses (the checker lets none pass, but a
compiled file may be damaged) make the test UNKNOWN.
"""

from __future__ import annotations

from zcpolicy.exact import is_list, is_map
from zcpolicy.mentions import sources
from zcpolicy.operands import MISSING, Operand, operand
from zcpolicy.value_tests import asker, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from zcpolicy.operands import Call, Site
    from zcpolicy.shapes import Leaf
    from zcpolicy.value_tests import Ask, Truth


class Test:
    """A leaf, ready: `ask` gives its truth, `value` what it read. `looks`: whether it reads arguments.

    `constant`: whether it has the same truth for every call at its site.
    """

    __slots__ = ("ask", "constant", "leaf", "looks", "value")

    def __init__(
        self,
        leaf: Any,
        ask: Callable[[Call], Truth],
        looks: bool,
        value: Callable[[Call], object],
        constant: bool = False,
    ) -> None:
        self.constant = constant
        self.leaf = leaf
        self.ask = ask
        self.looks = looks
        self.value = value


def bind(leaf: Leaf, site: Site) -> Test:
    """The test of a leaf at a site."""
    left = operand(leaf["left"], site)
    right = leaf["right"]
    other = operand(right["operand"], site) if is_map(right) else None
    if other is not None and not other.declared:
        return _undeclared(leaf, left, other, site)
    each = leaf.get("each")
    try:
        ask = asker(leaf, left.item if each else left.kind, other)
    except Exception as error:  # whatever a predicate says of a damaged pattern, it grants nothing
        if isinstance(error, (MemoryError, RecursionError)):
            raise
        ask = unknown
    ask = _negated(ask) if leaf.get("negate") else ask
    whole = _quantified(leaf, each, ask, left, site) if each else _single(ask, left)
    if not left.declared:
        whole = _if_declared(whole, left, site, bool(leaf.get("negate")) and not each)
    never_sent = (left.constant and not left.declared) or (bool(each) and _mentions_nothing(left.kind, site))
    looks = not never_sent and (left.looks or (other is not None and other.looks))
    return Test(leaf, whole, looks, left.read, never_sent or (left.constant and (other is None or other.constant)))


def _undeclared(leaf: Leaf, left: Operand, right: Operand, site: Site) -> Test:
    truth: Truth = None if site.grants else bool(leaf.get("negate"))
    return Test(leaf, lambda call: truth, False, left.read, constant=True)


def _if_declared(whole: Callable[[Call], Truth], left: Operand, site: Site, negated: bool) -> Callable[[Call], Truth]:
    """An argument that the tool does not have: UNKNOWN where it could grant, else the positive test is FALSE."""
    otherwise: Truth = None if site.grants else negated
    read = left.read
    return lambda call: otherwise if read(call) is MISSING else whole(call)


def _negated(ask: Ask) -> Ask:
    def test(value: Any, call: Call) -> Truth:
        truth = ask(value, call)
        return None if truth is None else not truth

    return test


def _single(ask: Ask, left: Operand) -> Callable[[Call], Truth]:
    read = left.read

    def test(call: Call) -> Truth:
        value = read(call)
        return None if value is MISSING else ask(value, call)

    return test


# --- some, every -------------------------------------------------------------------------------------------------


def _quantified(leaf: Leaf, each: str, ask: Ask, left: Operand, site: Site) -> Callable[[Call], Truth]:
    fold = _some if each == "some" else _every
    read, kind = left.read, left.kind
    if kind not in ("paths", "urls"):

        def over_list(call: Call) -> Truth:
            values = read(call)
            return fold(values, ask, call) if is_list(values) else None

        return over_list
    stands_for_granting = leaf["grants"] != bool(leaf.get("negate"))
    limits = (
        _every_limits(kind, stands_for_granting, site) if each == "every" else _some_limits(site, stands_for_granting)
    )

    def over_mentioned(call: Call) -> Truth:
        return limits(fold(read(call), ask, call), call)

    return over_mentioned


def _mentions_nothing(kind: str, site: Site) -> bool:
    """Whether no call of the tool can mention a path or URL, so that a test of them all is the same for every call."""
    return kind in ("paths", "urls") and not any(sources(site.tool["schema"]))


def _every_limits(kind: str, stands_for_granting: bool, site: Site) -> Ask:
    """Where the whole list is not known, `every` is not known to be TRUE."""
    has_some = sources(site.tool["schema"])[0 if kind == "paths" else 1]

    def limit(truth: Any, call: Call) -> Truth:
        if truth is not True:
            return bool(truth) if truth is not None else None
        found = call.found
        listed, unsent = (found.paths, found.path_unsent) if kind == "paths" else (found.urls, found.url_unsent)
        if unsent or (stands_for_granting and found.partial):
            return None
        return None if site.grants and not has_some and not listed else True

    return limit


def _some_limits(site: Site, stands_for_granting: bool) -> Ask:
    """`not some …` that would grant is not known where there may be more than was found."""
    lower_bound = site.grants and not stands_for_granting

    def limit(truth: Any, call: Call) -> Truth:
        if lower_bound and truth is False and call.found.partial:
            return None
        return None if truth is None else bool(truth)

    return limit


def _some(values: list[Any], ask: Ask, call: Call) -> Truth:
    truth: Truth = False
    for value in values:
        one = None if value is None or value is MISSING else ask(value, call)
        if one:
            return True
        if one is None:
            truth = None
    return truth


def _every(values: list[Any], ask: Ask, call: Call) -> Truth:
    truth: Truth = True
    for value in values:
        one = None if value is None or value is MISSING else ask(value, call)
        if one is False:
            return False
        if one is None:
            truth = None
    return truth

"""The tests of conditions: one compiled leaf becomes a function from a call to a `Truth`.

In: a leaf and its site. Out: a `Test`. Patterns that a predicate refuses (the checker lets none pass, but a
compiled file may be damaged) make the test UNKNOWN.
"""

from __future__ import annotations

from zcpolicy.exact import is_list, plain
from zcpolicy.operands import MISSING, RISKS, Operand, operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from zcpolicy.operands import Call, Site
    from zcpolicy.shapes import Leaf

    Truth = bool | None
    Ask = Callable[[Any, Call], Truth]
    """One value and its call to a truth; the value is there and not null."""

TEXTS: Final = ("string", "host", "scheme", "risk")


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
    other = operand(right["operand"], site) if isinstance(right, dict) else None
    if other is not None and not other.declared:
        return _undeclared(leaf, left, other, site)
    each = leaf.get("each")
    try:
        ask = _asker(leaf, left.item if each else left.kind, other)
    except Exception as error:  # whatever a predicate says of a damaged pattern, it grants nothing
        if isinstance(error, (MemoryError, RecursionError)):
            raise
        ask = _unknown
    ask = _negated(ask) if leaf.get("negate") else ask
    whole = _quantified(leaf, each, ask, left, site) if each else _single(ask, left)
    if not left.declared:
        whole = _if_declared(whole, left, site, bool(leaf.get("negate")) and not each)
    never_sent = left.constant and not left.declared
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


def _unknown(value: Any, call: Call) -> Truth:
    return None


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


def _every_limits(kind: str, stands_for_granting: bool, site: Site) -> Ask:
    """Where the whole list is not known, `every` is not known to be TRUE."""
    from zcpolicy.mentions import sources

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


# --- one value ---------------------------------------------------------------------------------------------------


def _asker(leaf: Leaf, kind: str, other: Operand | None) -> Ask:
    """The test of one value of a declared kind. Raises what the predicates raise for unusable patterns."""
    test, grants = leaf["test"], leaf["grants"]
    if test in _ORDER:
        return _ordered(leaf, kind, other)
    if test == "in":
        return _member(kind, grants, other) if other is not None else _unknown
    right = leaf["right"]
    items = tuple(plain(value) for value in right) if isinstance(right, list) else ()
    maker = _MAKERS.get(test)
    return maker(items, kind, grants) if maker and items and other is None else _unknown


_ORDER: Final = ("==", "<", "<=", ">", ">=")


def _ordered(leaf: Leaf, kind: str, other: Operand | None) -> Ask:
    right, test, grants = leaf["right"], leaf["test"], leaf["grants"]
    items = tuple(plain(value) for value in right) if isinstance(right, list) else ()
    if kind in ("path", "url"):
        if test != "==":
            return _unknown
        return _same_as(kind, grants, other) if other is not None else _same(kind, items, grants)
    if kind == "risk":
        return _by_rank(test, items, other)
    if kind in ("host", "scheme"):
        items = tuple(_as_host(item) for item in items)
    from zcpolicy.predicates.scalar import compare

    op: Any = test
    if other is not None:
        if other.kind in ("path", "url"):
            return _unknown
        read = other.read

        def against(value: Any, call: Call) -> Truth:
            right_value = read(call)
            return None if right_value is MISSING else compare(op, value, right_value)

        return against
    if test == "==":
        from zcpolicy.predicates.scalar import is_in

        return lambda value, call: is_in(value, items)
    return lambda value, call: _any(compare(op, value, item) for item in items)


def _any(truths: Any) -> Truth:
    out: Truth = False
    for truth in truths:
        if truth:
            return True
        if truth is None:
            out = None
    return out


def _as_host(item: object) -> object:
    return item.lower().removesuffix(".") if isinstance(item, str) else item


def _by_rank(test: str, items: tuple[object, ...], other: Operand | None) -> Ask:
    """Risk classes compare by their order, not as text."""
    from zcpolicy.predicates.scalar import compare

    op: Any = test

    def rank(value: object) -> object:
        return RISKS.index(value) if isinstance(value, str) and value in RISKS else None

    def ask(value: Any, call: Call) -> Truth:
        against = (other.read(call),) if other is not None else items
        return _any(compare(op, rank(value), rank(one)) for one in against)

    return ask


def _same(kind: str, items: tuple[object, ...], grants: bool) -> Ask:
    operands = tuple(item for item in items if isinstance(item, str))
    if len(operands) != len(items):
        return _unknown
    if kind == "path":
        from zcpolicy.predicates.path import same_path

        return _on_path(same_path(operands, grants))
    from zcpolicy.predicates.url import same_url

    equal = same_url(operands, grants)
    return lambda value, call: equal(_url_text(value))


def _same_as(kind: str, grants: bool, other: Operand) -> Ask:
    """Two paths, or two URLs, of the same call."""
    if other.kind != kind:
        return _unknown
    read = other.read

    def ask(value: Any, call: Call) -> Truth:
        right = read(call)
        if type(right) is not str:
            return None
        try:
            return _same(kind, (right,), grants)(value, call)
        except ValueError:
            return None

    return ask


def _member(kind: str, grants: bool, other: Operand) -> Ask:
    """`left in operand`: an element of a list."""
    read, item = other.read, other.item
    typed = kind in ("path", "url") or item in ("path", "url")

    def ask(value: Any, call: Call) -> Truth:
        values = read(call)
        if not is_list(values) or (typed and kind != item):
            return None
        if typed:
            texts = [one for one in values if type(one) is str]
            return _any(
                [None] * (len(values) - len(texts)) + [_same(kind, (one,), grants)(value, call) for one in texts]
            )
        from zcpolicy.predicates.scalar import is_in

        return is_in(value, values)

    return ask


def _on_path(test: Callable[[Any, Any], Truth]) -> Ask:
    def ask(value: Any, call: Call) -> Truth:
        if type(value) is str:
            from zcpolicy.predicates.refs import PathRef

            value = PathRef((value,))
        return test(value, call.where)

    return ask


def _url_text(value: Any) -> object:
    """A URL's text, None where a part of it is not known."""
    if type(value) is str:
        return value
    parts: Any = value.parts
    return None if None in parts else "".join(parts)


def _under(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    if kind != "path":
        return _unknown
    from zcpolicy.predicates.path import under

    return _on_path(under(items, grants))


def _glob(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    if kind != "path":
        return _unknown
    from zcpolicy.predicates.path import glob

    return _on_path(glob(items, grants))


def _on_text(test: Callable[[Any], Truth], kind: str) -> Ask:
    if kind not in TEXTS and kind != "any":
        return _unknown
    return lambda value, call: test(value) if type(value) is str else None


def _like(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    from zcpolicy.predicates.text import like

    return _on_text(like(items), kind)


def _matches(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    from zcpolicy.predicates.text import matches

    return _on_text(matches(items), kind)


def _contains(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    from zcpolicy.predicates.text import contains

    test = contains(items)
    if kind not in (*TEXTS, "any", "list"):
        return _unknown
    return lambda value, call: test(value) if type(value) is str or is_list(value) else None


def _in_domain(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    from zcpolicy.predicates.net import in_domain

    return _on_text(in_domain(items), kind)


def _in_net(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    from zcpolicy.predicates.net import in_net

    return _on_text(in_net(items, grants), kind)


def _runs(which: str) -> Callable[[tuple[Any, ...], str, bool], Ask]:
    def make(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
        if kind != "shell":
            return _unknown
        from zcpolicy.predicates import shell

        test = shell.runs_only(items) if which == "only" else shell.runs_any(items)
        return lambda value, call: test(value)

    return make


_MAKERS: Final[dict[str, Callable[[tuple[Any, ...], str, bool], Ask]]] = {
    "like": _like,
    "matches": _matches,
    "contains": _contains,
    "under": _under,
    "glob": _glob,
    "in_domain": _in_domain,
    "in_net": _in_net,
    "runs only": _runs("only"),
    "runs any": _runs("any"),
}

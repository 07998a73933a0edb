"""The test of one value: which predicate a test means for a value of a declared kind.

In: a leaf, the kind of what it tests, the operand on its right if that is one. Out: an `Ask`.
"""

from __future__ import annotations

from zcpolicy.exact import is_list, is_row, plain
from zcpolicy.operands import MISSING, RISKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from zcpolicy.operands import Call, Operand
    from zcpolicy.shapes import Leaf

    Truth = bool | None
    Ask = Callable[[Any, Call], Truth]
    """One value and its call to a truth; the value is there and not null."""

TEXTS: Final = ("string", "host", "scheme", "risk")


def unknown(value: Any, call: Call) -> Truth:
    """What a test is that does not fit."""
    return None


def asker(leaf: Leaf, kind: str, other: Operand | None) -> Ask:
    """The test of one value of a declared kind. Raises what the predicates raise for unusable patterns."""
    test, grants = leaf["test"], leaf["grants"]
    if test in _ORDER:
        return _ordered(leaf, kind, other)
    if test == "in":
        return _member(kind, grants, other) if other is not None else unknown
    right = leaf["right"]
    items = tuple(plain(value) for value in right) if is_row(right) else ()
    if test != "contains" and not all(isinstance(item, str) for item in items):
        return unknown
    maker = _MAKERS.get(test)
    return maker(items, kind, grants) if maker and items else unknown


_ORDER: Final = ("==", "<", "<=", ">", ">=")


def _ordered(leaf: Leaf, kind: str, other: Operand | None) -> Ask:
    right, test, grants = leaf["right"], leaf["test"], leaf["grants"]
    items = tuple(plain(value) for value in right) if is_row(right) else ()
    if kind in ("path", "url"):
        if test != "==":
            return unknown
        return _same_as(kind, grants, other) if other is not None else _same(kind, items, grants)
    if kind == "risk":
        return _by_rank(test, items, other)
    if kind in ("host", "scheme"):
        items = tuple(_as_read(item, kind) for item in items)
    from zcpolicy.predicates.scalar import compare

    op: Any = test
    if other is not None:
        if other.kind in ("path", "url"):
            return unknown
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


def _as_read(item: object, kind: str) -> object:
    """A host or scheme as URLs have them; None, which is equal to nothing for certain, for a host that no URL has."""
    if not isinstance(item, str):
        return item
    if kind == "scheme":
        return item.lower()
    from zcpolicy.predicates.url import read_host

    return read_host(item)


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
        return unknown
    if kind == "path":
        from zcpolicy.predicates.path import same_path

        return _on_path(same_path(operands, grants))
    from zcpolicy.predicates.url import same_url

    equal = same_url(operands, grants)
    return lambda value, call: equal(_url_text(value))


def _same_as(kind: str, grants: bool, other: Operand) -> Ask:
    """Two paths, or two URLs, of the same call."""
    if other.kind != kind:
        return unknown
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
        return unknown
    from zcpolicy.predicates.path import under

    return _on_path(under(items, grants))


def _glob(items: tuple[Any, ...], kind: str, grants: bool) -> Ask:
    if kind != "path":
        return unknown
    from zcpolicy.predicates.path import glob

    return _on_path(glob(items, grants))


def _on_text(test: Callable[[Any], Truth], kind: str) -> Ask:
    if kind not in TEXTS and kind != "any":
        return unknown
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
        return unknown
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
            return unknown
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

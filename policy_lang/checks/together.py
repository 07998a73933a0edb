"""Whether tests on one operand can hold together.

In: literals on one operand, and what the operand can be. Out: whether some value satisfies all of them. `True` also
where that is not known: only evident contradictions are found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from posixpath import normpath
from typing import NamedTuple

from policy_lang.checks.operands import Range, Scalar
from policy_lang.risk import RANK

MAX_LISTED = 64
"""An interval of at most so many whole numbers is tried number by number."""

MAX_PAIRS = 4_096
"""Longer lists are not compared value by value."""

RANKS: dict[object, int] = dict(RANK.items())
RISK = frozenset({"risk"})
ORDERED = ("<", "<=", ">", ">=")


class Constraint(NamedTuple):
    """A test's operator and the values on its right, any of which will do; `holds`: whether it must or must not."""

    op: str
    values: tuple[Scalar, ...]
    holds: bool


@dataclass(slots=True)
class _Space:
    """What is left after some constraints."""

    values: frozenset[Scalar] | None
    whole: bool
    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False
    excluded: set[Scalar] = field(default_factory=set[Scalar])

    def at_most(self, bound: Decimal, *, open_end: bool) -> None:
        if self.high is None or bound < self.high or (bound == self.high and open_end):
            self.high, self.high_open = bound, open_end

    def at_least(self, bound: Decimal, *, open_end: bool) -> None:
        if self.low is None or bound > self.low or (bound == self.low and open_end):
            self.low, self.low_open = bound, open_end

    def holds_number(self, number: Decimal) -> bool:
        above = self.low is None or number > self.low or (number == self.low and not self.low_open)
        below = self.high is None or number < self.high or (number == self.high and not self.high_open)
        return above and below and not (self.whole and number != number.to_integral_value())

    def candidates(self) -> list[Scalar] | None:
        """Every value that is left, or `None` where they cannot be listed."""
        values = self.values
        if values is None and self.low is not None and self.high is not None:
            if self.low == self.high:
                values = frozenset({("n", self.low)})
            elif self.whole and self.high - self.low <= MAX_LISTED:
                first = int(self.low.to_integral_value())
                values = frozenset(("n", Decimal(first + step)) for step in range(-1, MAX_LISTED + 2))
        if values is None:
            return None
        return [
            v for v in values if v not in self.excluded and (not isinstance(v[1], Decimal) or self.holds_number(v[1]))
        ]

    @property
    def crossed(self) -> bool:
        """Whether the interval is empty."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


def together(constraints: Sequence[Constraint], range_: Range) -> bool:
    """Whether some value of the range may satisfy every constraint."""
    path = bool(range_.kinds) and range_.kinds <= {"path"}
    space = _Space(range_.values, bool(range_.kinds) and range_.kinds <= {"integer", "depth", "port"})
    if range_.kinds == frozenset({"depth"}):
        space.at_least(Decimal(0), open_end=False)
    rest = [constraint for constraint in constraints if not _narrow(space, _normal(constraint, range_))]
    if space.crossed:
        return False
    left = space.candidates()
    if (
        left is not None
        and len(left) * sum(len(c.values) for c in rest) <= MAX_PAIRS
        and not any(all(_admits(c, value, path=path) for c in rest) for value in left)
    ):
        return False
    wanted = [c for c in rest if c.holds]
    return not any(_disjoint(a, b) for number, a in enumerate(wanted) for b in wanted[:number]) and not any(
        _within(a, b) for a in wanted for b in rest if not b.holds
    )


def _normal(constraint: Constraint, range_: Range) -> Constraint:
    """Equality of paths, urls, hosts and schemes compares normal forms; classes compare by rank."""
    if not range_.kinds:
        return constraint
    if range_.kinds == RISK and constraint.op in ORDERED:
        return Constraint("==", tuple(_ranked(constraint)), constraint.holds)
    if constraint.op != "==":
        return constraint
    if range_.kinds <= {"url"}:
        return constraint._replace(values=tuple((k, _url(str(v))) for k, v in constraint.values))
    if range_.kinds <= {"path"}:
        return constraint._replace(values=tuple((k, _path(str(v))) for k, v in constraint.values))
    if range_.kinds <= {"host", "scheme"}:
        return constraint._replace(values=tuple((k, _host(str(v))) for k, v in constraint.values))
    return constraint


def _ranked(constraint: Constraint) -> Iterator[Scalar]:
    """The classes that a comparison admits."""
    for risk, rank in RANK.items():
        for _, bound in constraint.values:
            above = rank - RANKS.get(bound, 0)
            if {"<": above < 0, "<=": above <= 0, ">": above > 0, ">=": above >= 0}[constraint.op]:
                yield ("s", risk)


def _narrow(space: _Space, constraint: Constraint) -> bool:
    """Apply an equality or a comparison of numbers; `False` for any other test."""
    if constraint.op == "==":
        if not constraint.holds:
            space.excluded.update(constraint.values)
        else:
            given = frozenset(constraint.values)
            space.values = given if space.values is None else space.values & given
        return True
    numbers = [value for _, value in constraint.values if isinstance(value, Decimal)]
    if constraint.op not in ORDERED or len(numbers) != len(constraint.values) or not numbers:
        return constraint.op in ORDERED
    upwards = constraint.op in (">", ">=")
    bound = min(numbers) if upwards else max(numbers)
    open_end = constraint.op in ("<", ">")
    if upwards == constraint.holds:
        space.at_least(bound, open_end=open_end if constraint.holds else not open_end)
    else:
        space.at_most(bound, open_end=open_end if constraint.holds else not open_end)
    return True


def _admits(constraint: Constraint, value: Scalar, *, path: bool) -> bool:
    """Whether a value may satisfy a test that is no comparison. Equal values never satisfy a negated test they meet."""
    kind, text = value
    if kind != "s" or not isinstance(text, str):
        return True
    point = Constraint(constraint.op, (value,), holds=True)
    match constraint.op:
        case "under" if path and text.startswith("/"):
            return _covers(constraint, point) == constraint.holds
        case "in_domain":
            return _covers(constraint, point) == constraint.holds
        case "like" | "matches" | "contains":
            answer = _text_test(constraint.op, tuple(str(pattern) for _, pattern in constraint.values))(text)
            return answer is not (not constraint.holds)
        case _:
            return True


@lru_cache(maxsize=256)
def _text_test(op: str, patterns: tuple[str, ...]) -> Callable[[object], bool | None]:
    """The evaluator's own test; it is UNKNOWN where readings of the text disagree."""
    from zcpolicy.predicates import text

    return {"like": text.like, "matches": text.matches}.get(op, text.contains)(patterns)


def _disjoint(one: Constraint, other: Constraint) -> bool:
    """Whether two tests that must both hold have no value in common."""
    if one.op != other.op:
        return False
    if len(one.values) * len(other.values) > MAX_PAIRS:
        return False
    return not any(_meet(one.op, str(a), str(b)) for _, a in one.values for _, b in other.values)


def _meet(op: str, one: str, other: str) -> bool:
    match op:
        case "under":
            if not one.startswith("/") or not other.startswith("/"):
                return True
            return _inside(_path(one), _path(other), "/") or _inside(_path(other), _path(one), "/")
        case "in_domain":
            return _in_domain(one, other) or _in_domain(other, one)
        case "in_net":
            return _nets_meet(one, other)
        case "like":
            return _likes_meet(one, other)
        case "runs only":
            return _first_word(one) == _first_word(other)
        case _:
            return True


def _within(wanted: Constraint, forbidden: Constraint) -> bool:
    """Whether all that one test admits is forbidden by the negation of another."""
    return wanted.op == forbidden.op and wanted.op in ("under", "in_domain") and _covers(forbidden, wanted)


def _covers(wide: Constraint, narrow: Constraint) -> bool:
    if len(wide.values) * len(narrow.values) > MAX_PAIRS:
        return False
    inside = _in_domain if wide.op == "in_domain" else _under
    return all(any(inside(str(a), str(b)) for _, b in wide.values) for _, a in narrow.values)


def _under(inner: str, outer: str) -> bool:
    return inner.startswith("/") and outer.startswith("/") and _inside(_path(inner), _path(outer), "/")


def _in_domain(inner: str, outer: str) -> bool:
    inner, outer = _host(inner), _host(outer)
    return inner == outer or inner.endswith("." + outer)


def _inside(inner: str, outer: str, separator: str) -> bool:
    return inner == outer or inner.startswith(outer if outer.endswith(separator) else outer + separator)


def _path(text: str) -> str:
    """A path's normal form for comparison; case is folded, since a file system may fold it."""
    return "/" + normpath(text).lstrip("/").casefold() if text.startswith("/") else text


def _url(text: str) -> str:
    from zcpolicy.predicates.url import parse_url

    url = parse_url(text)
    return text if url is None or url.normal is None else url.normal


def _host(text: str) -> str:
    return text.lower().removesuffix(".")


def _first_word(pattern: str) -> str:
    return pattern.split(maxsplit=1)[0] if pattern.split() else ""


def _nets_meet(one: str, other: str) -> bool:
    a, b = _net(one), _net(other)
    if isinstance(a, IPv4Network) and isinstance(b, IPv4Network):
        return a.overlaps(b)
    if isinstance(a, IPv6Network) and isinstance(b, IPv6Network):
        return a.overlaps(b)
    return True  # addresses of both kinds are unwrapped into each other


def _net(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _ends(pattern: str) -> tuple[str, str]:
    """The text that a `like` pattern begins with, and the text that it ends with."""
    if "\\" in pattern:
        return "", ""
    marks = [number for number, letter in enumerate(pattern) if letter in "*?"]
    return (pattern[: marks[0]], pattern[marks[-1] + 1 :]) if marks else (pattern, pattern)


def _likes_meet(one: str, other: str) -> bool:
    (a_head, a_tail), (b_head, b_tail) = _ends(one), _ends(other)
    a_head, a_tail, b_head, b_tail = (text.casefold() for text in (a_head, a_tail, b_head, b_tail))
    heads = a_head.startswith(b_head) or b_head.startswith(a_head)
    tails = a_tail.endswith(b_tail) or b_tail.endswith(a_tail)
    return heads and tails

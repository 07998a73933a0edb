"""The texts in which a store keeps spenders, charges, tags and keys.

In: values. Out: ASCII texts, and the values again. What no ledger wrote raises LedgerUnavailable. Amounts are exact.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from json import dumps, loads
from typing import Any, Final

from zcpolicy.exact import number_of, number_text
from zcpolicy.ledgers.contract import Charge, LedgerUnavailable, Spender, Who
from zcpolicy.ledgers.reservations import ALL, sound

MAX_SPENDERS_READ: Final = 1_024
"""Spenders whose texts are remembered as values; those of one turn are alike."""


def spender_text(spender: Spender) -> str:
    """A spender as JSON text."""
    values = sorted((list(path), sorted(values)) for path, values in spender.values.items())
    return dumps([spender.tool, spender.line, sorted(spender.chains), sorted(spender.skills), values])


@lru_cache(MAX_SPENDERS_READ)
def spender_of(text: str) -> Spender:
    """The spender of a text."""
    try:
        tool, line, chains, skills, values = loads(text)
        return Spender(
            tool=tool if tool is None or isinstance(tool, str) else _pair(tool),
            line=tuple(Who(*_texts(who)) for who in line),
            chains=frozenset(_texts(chains)),
            skills=frozenset(_texts(skills)),
            values={_texts(path): frozenset(_texts(found)) for path, found in values},
        )
    except (ValueError, TypeError, RecursionError):
        raise odd() from None


def charges_text(charges: tuple[Charge, ...]) -> str:
    """Charges as JSON text."""
    return dumps([[one.unit, number_text(one.amount), one.currency, one.argument] for one in charges])


@lru_cache(MAX_SPENDERS_READ)
def charges_of(text: str) -> tuple[Charge, ...]:
    """The charges of a text."""
    try:
        return sound(_charge(*one) for one in loads(text))
    except (ValueError, TypeError, RecursionError, AttributeError):
        raise odd() from None


def tag_text(tag: str) -> str:
    """A short text for a tag of any length."""
    return tag if tag == ALL else blake2b(tag.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def odd() -> LedgerUnavailable:
    """For a store that holds or answers what no ledger wrote."""
    return LedgerUnavailable("the store holds what no ledger wrote")


def _charge(unit: Any, amount: Any, currency: Any, argument: Any) -> Charge:
    unit, amount, currency, *path = _texts([unit, amount, currency, *argument])
    return Charge(unit, number_of(amount), currency, tuple(path))


def _texts(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):  # pyright: ignore[reportUnknownVariableType] - read from a store
        raise TypeError
    return tuple(found)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - as above


def _pair(found: Any) -> tuple[str, str]:
    server, name = _texts(found)
    return server, name

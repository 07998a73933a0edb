"""What a line says of an event.

In: an `Event`. Out: the members of its line, secrets masked, in bounded size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from zcpolicy.call import read_json
from zcpolicy.daemon.log.line import moment, number
from zcpolicy.exact import is_list, is_object

if TYPE_CHECKING:
    from zcpolicy.daemon.log.mask import Masker
    from zcpolicy.events import Event

MAX_IDENTITY_TEXT: Final = 500
"""Characters of an agent, a client, a session on record."""
MAX_DELEGATORS: Final = 50
"""Executions above the acting one that a line names, the nearest first."""
MAX_DELEGATOR_TEXT: Final = 100
"""Characters of the agent and of the session of one of them."""
MAX_RULES: Final = 30
"""Rules of one decision on record."""
MAX_RULE_TEXT: Final = 200
"""Characters of the place of one of them."""

_JSON: Final = ("decision", "arguments")
_SAID_BY_IDENTITY: Final = ("agent", "client", "session")


def members_of(event: Event, masker: Masker) -> dict[str, Any]:
    """`kind`, `identity`, `data`, and `clock`: what the session's clock told, where it told a time."""
    identity = {name: _text(one, masker) for name, one in event.identity.to_json().items()}
    opened = _opened(event.data)
    members: dict[str, Any] = {"kind": str(event.kind), "identity": identity, "data": masker.fit(opened)}
    _keep_rules(opened, members["data"], masker)
    if event.at > 0:
        members["clock"] = moment(event.at)
    return members


def _text(value: Any, masker: Masker, limit: int = MAX_IDENTITY_TEXT) -> Any:
    if isinstance(value, str):
        return masker.cut(value, value, limit)
    if is_list(value):
        return [_text(one, masker, MAX_DELEGATOR_TEXT) for one in value[:MAX_DELEGATORS]]
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _opened(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data with JSON texts as what they say, and without what the identity tells already."""
    made = dict(data)
    for name in _JSON:
        text = made.get(name)
        if isinstance(text, str):
            try:
                made[name] = read_json(text)
            except (ValueError, RecursionError):
                continue
    decision: Any = made.get("decision")
    if is_object(decision):
        made["decision"] = {name: one for name, one in decision.items() if name not in _SAID_BY_IDENTITY}
    return made


def _keep_rules(opened: Mapping[str, Any], data: Mapping[str, Any], masker: Masker) -> None:
    """Where the rules stand is the policy's own text: `tokens.zcpolicy:3` is no token."""
    from_, to = opened.get("decision"), data.get("decision")
    if is_object(from_) and is_object(to) and is_list(from_.get("rules")):
        to["rules"] = [_text(one, masker, MAX_RULE_TEXT) for one in from_["rules"][:MAX_RULES]]

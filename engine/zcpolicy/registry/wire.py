"""Wire names: how tools are called in requests to a model, which knows no servers.

In: structured names. Out: a table, one wire name for each. A wire name is looked up in it and never taken apart.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Final

from zcpolicy.facts import ToolName
from zcpolicy.registry.sources import AssemblyError
from zcpolicy.texts import escaped

MAX_WIRE_CHARACTERS: Final = 64
"""Characters of a tool's name that every provider of models takes."""

_TAKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_CHARACTERS: Final = 16


def wire_name(name: ToolName) -> str:
    """`name`, `server__name`; one that no provider takes is shortened, and a digest of the whole name tells it apart."""
    joined = name if isinstance(name, str) else "__".join(name)
    if _TAKEN.fullmatch(joined):
        return joined
    digest = hashlib.sha256(json.dumps(name).encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{_ODD.sub('_', joined)[: MAX_WIRE_CHARACTERS - _DIGEST_CHARACTERS - 1]}_{digest}"


def wire_table(names: Iterable[ToolName]) -> dict[str, ToolName]:
    """The tools by their wire names. Raises AssemblyError where two have one: nobody could tell which is meant."""
    table: dict[str, ToolName] = {}
    for name in names:
        wire = wire_name(name)
        other = table.setdefault(wire, name)
        if other != name:
            raise AssemblyError(f"{shown(other)} and {shown(name)} have one name on the wire, `{wire}`")
    return table


def shown(name: ToolName) -> str:
    """A tool in a message."""
    if isinstance(name, str):
        return f"`{escaped(name[:60])}`"
    return f"`{escaped(name[1][:60])}` of server `{escaped(name[0][:60])}`"

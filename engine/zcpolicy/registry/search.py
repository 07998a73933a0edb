"""Finding tools by words: only in what the registry may show.

In: specs and a query. Out: those that fit, best first; and `tool_search_tool`, the host tool that a model searches with.
"""

import re
from collections.abc import Iterable
from typing import Final

from zcpolicy.registry.sources import USUAL_FOUND, HostTool, Json, ToolContext, ToolResult, ToolSpec
from zcpolicy.registry.view import SEARCH

MAX_QUERY_CHARACTERS: Final = 1_000
"""Characters of a query that are read."""
MAX_FOUND: Final = 50
"""Tools that one search gives."""

_WORD: Final = re.compile(r"\w+")
_IN_NAME: Final = 3
_SHORT: Final = 2


def matching(specs: Iterable[ToolSpec], query: str, limit: int) -> tuple[ToolSpec, ...]:
    """The tools that have words of the query in name or description; a word in the name counts three times."""
    words = _words(query[:MAX_QUERY_CHARACTERS])
    ranked = [(_score(spec, words), spec) for spec in specs]
    found = sorted((one for one in ranked if one[0]), key=lambda one: (-one[0], one[1].wire))
    return tuple(spec for _, spec in found[: max(0, min(limit, MAX_FOUND))])


def _score(spec: ToolSpec, words: set[str]) -> int:
    name, told = _words(spec.wire), _words(spec.description)
    return sum(_IN_NAME * _begins(word, name) + _begins(word, told) for word in words)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold().replace("_", " ")))


def _begins(word: str, words: set[str]) -> bool:
    """Whether it is one of the words; a longer one may be the beginning of one (`issue`, `issues`)."""
    return word in words or (len(word) > _SHORT and any(one.startswith(word) for one in words))


def tool_search_tool() -> HostTool:
    """The host tool `tool_search(query: string, limit?: integer)`."""
    return HostTool(
        SEARCH,
        "Finds tools by words of their names and descriptions. Tools that it lists can be called from then on.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to look for."},
                "limit": {
                    "type": "integer",
                    "description": f"At most so many tools; {USUAL_FOUND} unless it is given.",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        _search,
    )


async def _search(arguments: dict[str, Json], context: ToolContext) -> ToolResult:
    limit = arguments.get("limit")
    found = context.registry.search(str(arguments["query"]), USUAL_FOUND if limit is None else int(limit))
    if not found:
        return ToolResult("no tool has these words")
    return ToolResult("\n".join(f"{spec.wire}: {spec.description}" for spec in found))

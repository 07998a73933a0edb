"""What the parameters of a tool can hold.

In: a tool, kinds. Out: whether a call of it can carry a value of such a kind.
"""

from policy_lang.tools import ToolInfo
from zcpolicy.program import Schema

COMMANDS = ("shell", "command")
"""The kinds of text that some shell runs."""


def takes(tool: ToolInfo, *kinds: str) -> bool:
    """Whether a parameter is of one of the kinds, or a list of them."""
    return any(_holds(schema, kinds) for schema in tool.schema.get("fields", {}).values())


def runs_text(tool: ToolInfo) -> bool:
    """Whether a tool takes the text of a command."""
    return takes(tool, *COMMANDS)


def _holds(schema: Schema, kinds: tuple[str, ...]) -> bool:
    if schema["kind"] in kinds:
        return True
    return schema["kind"] == "list" and "item" in schema and _holds(schema["item"], kinds)

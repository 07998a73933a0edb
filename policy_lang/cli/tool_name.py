"""A tool as it is written on the command line → the name that a program knows it by.

In: `github/get_me`, `'github/"odd name"'`. Out: as of `zcpolicy.tool_text`; what is none is an error of the command.
"""

from __future__ import annotations

from policy_lang.cli.errors import CommandError
from zcpolicy.tool_text import read_tool as _read
from zcpolicy.tool_text import written as written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zcpolicy.facts import ToolName


def read_tool(text: str) -> ToolName:
    """The tool that a reference of the language names.

    Raises:
        CommandError: the text is no reference, or a pattern.
    """
    try:
        return _read(text)
    except ValueError as error:
        raise CommandError(str(error)) from None

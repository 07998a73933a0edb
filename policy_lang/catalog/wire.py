"""The shapes of an MCP `tools/list` answer on the wire.

In: JSON values. Out: pydantic models. Imported only by `catalog.mcp`, and only once a catalogue is read.
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

MAX_TOOLS: Final = 10_000
"""Tools of one server."""
MAX_NAME: Final = 256
"""Characters of a tool's name."""


class WireTool(BaseModel):
    """One tool; further keys (`title`, `outputSchema`, `_meta`) are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    description: str | None = None
    input_schema: dict[str, Any] = Field(default_factory=dict[str, Any], alias="inputSchema")
    annotations: dict[str, Any] | None = None


class WireList(BaseModel):
    """The result of `tools/list`; further keys are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")

    tools: Annotated[list[WireTool], Field(min_length=1, max_length=MAX_TOOLS)]
    next_cursor: str | None = Field(default=None, alias="nextCursor")

"""A tool as the language writes it → the name that a program knows it by, and back.

In: `github/get_me`, `'github/"odd name"'`. Out: a string for a tool of the host, (server, name) for a tool of an MCP
server. Exact names only: no patterns, groups or `any`. Read by hand: no parser is needed for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zcpolicy.facts import ToolName


def read_tool(text: str) -> ToolName:
    """The tool that a reference of the language names.

    Raises:
        ValueError: the text is no reference, or a pattern.
    """
    first, rest = _part(text, text)
    if not rest:
        return first
    if not rest.startswith("/"):
        raise _no_tool(text)
    second, rest = _part(rest[1:], text)
    if rest:
        raise _no_tool(text)
    return (first, second)


def written(tool: ToolName | tuple[str | None, str]) -> str:
    """A tool as the language writes it."""
    parts = (tool,) if isinstance(tool, str) else tuple(part for part in tool if part is not None)
    return "/".join(part if _is_plain(part) else _quoted(part) for part in parts)


def _part(text: str, whole: str) -> tuple[str, str]:
    """One name at the start of the text, and what follows it."""
    if text.startswith('"'):
        from json import JSONDecodeError, JSONDecoder

        try:
            name, end = JSONDecoder(strict=False).raw_decode(text)
        except JSONDecodeError:
            raise ValueError(f"`{whole}` holds a string that is not closed") from None
        return str(name), text[end:]
    name = text.partition("/")[0]
    if "*" in name or name == "any" or name.startswith("@"):
        raise ValueError(f"`{whole}` means several tools; name one (a `*` in quotes is literal)")
    if not _is_plain(name):
        raise _no_tool(whole)
    return name, text[len(name) :]


def _is_plain(name: str) -> bool:
    return bool(name) and (name[0].isalpha() or name[0] == "_") and name.replace("-", "_").replace("_", "a").isalnum()


def _quoted(name: str) -> str:
    from json import dumps

    return dumps(name, ensure_ascii=not name.isprintable())


def _no_tool(text: str) -> ValueError:
    return ValueError(f"`{text}` names no tool; write `name`, `server/name`, and other characters in double quotes")

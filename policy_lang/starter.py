"""A starter policy for the tools of one server.

In: its list of tools, what to call the server, where the list lies. Out: policy text that compiles: every tool asks,
what the server says only reads is a group to look through; a test for one of each; suggestions as comments.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from policy_lang.catalog.mcp import ToolListing
from policy_lang.format import format_source
from policy_lang.source import Source
from zcpolicy.mentions import sources
from zcpolicy.program import Schema, Value

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_READING: Final = ("get_", "list_", "read_", "search_")
_SECRETS: Final = '["**/.env", "**/*.pem", "**/.ssh/**"] because "secrets are never touched"'
_UNREVIEWED: Final = "  # zcpolicy: allow ZC4008 text that nobody has reviewed is taken for a path"
_SUSPECTS: Final[dict[str, tuple[str, ...]]] = {
    "path": ("path", "file", "filename", "filepath", "directory", "folder", "dir", "paths", "files", "filenames"),
    "url": ("url", "uri", "urls", "uris", "href", "link"),
    "shell": ("command", "cmd", "shell"),
}


def starter(tools: Sequence[ToolListing], server: str, catalogue: str) -> str:
    """The text, as `zcpolicy fmt` prints it; `catalogue` is the path of the list as it stands in the policy, relative to the
    policy's folder. INVARIANT: it has no finding and its tests hold, whichever of its commented statements are taken.
    """
    name = written(server)
    reads = [tool for tool in tools if _only_reads(tool)]
    text = "\n".join(_lines(tools, reads, name, server, catalogue)) + "\n"
    return format_source(Source(catalogue, text))[0] or text


def _lines(
    tools: Sequence[ToolListing], reads: Sequence[ToolListing], name: str, server: str, catalogue: str
) -> Iterator[str]:
    yield "zcpolicy 1"
    yield ""
    yield f"# A starter policy for the tools of {name}. Nothing is allowed that no rule allows."
    yield f"catalog {quoted(catalogue)} as {name}"
    yield f"bundle offered {{ server {name} }}"
    if reads:
        yield ""
        yield "# What the server itself says only reads. Look through the list; what stays here runs without a question."
        yield f"group reads = {', '.join(written(server, tool.name) for tool in reads)}"
        yield "risk read = @reads"
    else:
        yield from _by_name(tools, name)
    yield from _suspects(tools, server)
    yield ""
    yield "agent assistant {"
    yield "    autonomy supervised  # reading is free, everything else asks"
    yield "    connect offered"
    yield f"    allow {name}/*"
    if any(map(_has_text, tools)):
        yield f"    # deny any when some paths glob {_SECRETS}{_UNREVIEWED}"
    yield "    # limit 100 calls per hour"
    yield "}"
    yield from _test(tools, reads, server)


def _by_name(tools: Sequence[ToolListing], name: str) -> Iterator[str]:
    """A commented `risk` for tools whose names say that they only read, where the server itself says nothing."""
    said = [verb for verb in _READING if any(tool.name.startswith(verb) for tool in tools)]
    if said:
        yield ""
        yield "# The server does not say what only reads. If these do, they can run without a question:"
        yield f"# risk read = {', '.join(f'{name}/{verb}*' for verb in said)}"


def _sounds_reading(tool: ToolListing) -> bool:
    return tool.name.startswith(_READING)


def _has_text(tool: ToolListing) -> bool:
    """Whether a call of it may mention a path."""
    return any(sources(tool.schema))


def _only_reads(tool: ToolListing) -> bool:
    return tool.hints.get("readOnlyHint", False) and not tool.hints.get("destructiveHint", False)


def _suspects(tools: Sequence[ToolListing], server: str) -> Iterator[str]:
    """Commented `tool` statements for strings whose names look like paths, URLs or commands."""
    written = [text for tool in tools if (text := _refinement(tool, server))]
    if written:
        yield ""
        yield "# Strings that look like paths, URLs or commands by their names. Say so where it is true,"
        yield "# and `under`, `glob`, `in_domain` and `runs only` can test them."
        yield from (f"# {line}" for line in written)


def _refinement(tool: ToolListing, server: str) -> str | None:
    required = tool.schema.get("required", [])
    parts: list[str] = []
    for field, schema in tool.schema.get("fields", {}).items():
        kind = _suspected(field, schema)
        if kind is not None:
            parts.append(f"{written(field)}{'' if field in required else '?'}: {kind}")
    return f"tool {written(server, tool.name)}({', '.join(parts)})" if parts else None


def _suspected(field: str, schema: Schema) -> str | None:
    """The kind that the name suggests, for strings and lists of strings that anything may stand in."""
    word = field.lower().replace("-", "_").rpartition("_")[2]
    kind = next((kind for kind, words in _SUSPECTS.items() if word in words), None)
    if kind is None or "default" in schema or schema.get("nullable"):
        return None
    if schema["kind"] == "string" and "enum" not in schema:
        return kind
    item = schema.get("item")
    return f"list<{kind}>" if item is not None and item["kind"] == "string" and "enum" not in item else None


def _test(tools: Sequence[ToolListing], reads: Sequence[ToolListing], server: str) -> Iterator[str]:
    others = [tool for tool in tools if tool not in reads and (reads or not _sounds_reading(tool))]
    calls = [(tool, answer) for part, answer in ((reads, "allow"), (others, "ask")) for tool in part[:1]]
    if not calls:
        return
    yield ""
    yield 'test "reading is free, everything else asks" {' if reads else 'test "everything asks" {'
    yield "    agent assistant"
    for tool, answer in calls:
        yield f"    call {written(server, tool.name)}({_arguments(tool.schema)}) => {answer}"
    yield "}"


def _arguments(schema: Schema) -> str:
    fields = schema.get("fields", {})
    named = [(name, _sample(fields.get(name, {"kind": "any"}))) for name in schema.get("required", [])]
    return ", ".join(f"{written(name)}: {value}" for name, value in named)


def _sample(schema: Schema) -> str:
    """Some value that the schema accepts, as the language writes it."""
    options = schema.get("enum")
    if options:
        return _written(options[0])
    match schema["kind"]:
        case "integer" | "number":
            return "1"
        case "boolean":
            return "true"
        case "null":
            return "null"
        case "list":
            return "[]"
        case "object":
            fields = schema.get("fields", {})
            parts = [(name, _sample(fields.get(name, {"kind": "any"}))) for name in schema.get("required", [])]
            return "{" + ", ".join(f"{quoted(name)}: {value}" for name, value in parts) + "}"
        case _:
            return '"x"'


def written(*parts: str) -> str:
    """A tool, a server or an argument as the language writes it; anything but a plain ASCII name in quotes."""
    return "/".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in parts)


def quoted(text: str) -> str:
    """A string literal; every character that is not ASCII is escaped, since it may be one that nobody sees."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _written(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case {"n": str(number)}:
            return number
        case {"list": list(items)}:
            return f"[{', '.join(_written(item) for item in items)}]"
        case {"object": dict(members)}:
            return "{" + ", ".join(f"{quoted(name)}: {_written(part)}" for name, part in members.items()) + "}"
        case _:
            return "null"

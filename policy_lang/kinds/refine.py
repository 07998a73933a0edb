"""A `tool` statement for a tool that a catalogue lists: it gives kinds, and never loosens.

In: the listed schema and the declared one. Out: the listed schema with the declared kinds, and findings.
"""

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.kinds.declared import show_kind
from policy_lang.nearest import nearest
from policy_lang.source import Source
from zcpolicy.shapes import Schema

STRICTER: dict[str, frozenset[str]] = {
    "any": frozenset({"string", "path", "url", "shell", "command", "integer", "number", "boolean", "list", "object"}),
    "string": frozenset({"path", "url", "shell", "command"}),
    "number": frozenset({"integer"}),
}
"""For each listed kind, the kinds that a statement may refine it to, besides itself."""


def refine(
    listed: Schema, declared: Schema, node: ast.Tool, source: Source, shown: str, *, below: bool = False
) -> tuple[Schema, tuple[Diagnostic, ...]]:
    """The listed schema as the statement refines it; parameters that it leaves out stay as listed.

    `below`: the statement stands in a lower layer than the catalogue. It then gives kinds, and takes no string out of
    what `paths` and `urls` read: a rule of the layer above may rely on them.
    """
    found: list[Diagnostic] = []
    fields = dict(listed.get("fields", {}))
    required = set(listed.get("required", []))
    for parameter in node.parameters:
        name = parameter.name
        old, new = fields.get(name), declared.get("fields", {}).get(name)
        if new is None:
            continue
        if old is None:
            near = nearest(name, fields)
            help_text = (
                f"did you mean `{near}`?" if near else "a statement refines the parameters that the catalogue lists"
            )
            found.append(
                Diagnostic(
                    codes.UNKNOWN_ARGUMENT,
                    f"`{shown}` has no parameter `{name}`",
                    source,
                    parameter.span,
                    help=help_text,
                )
            )
            continue
        if parameter.optional and name in required:
            message = f"`{name}` of `{shown}` is required by the catalogue; the statement would make it optional"
            found.append(
                Diagnostic(codes.LOOSENED_TOOL, message, source, parameter.span, help=f"write `{name}` without `?`")
            )
        merged = refined_kind(old, new, reviewed=not below)
        if merged is None:
            message = f"`{name}` of `{shown}` is `{show_kind(old)}` in the catalogue, `{show_kind(new)}` here"
            hint = "a statement may refine a kind, such as string to path, and never change it"
            found.append(Diagnostic(codes.LOOSENED_TOOL, message, source, parameter.span, help=hint))
            continue
        fields[name] = merged
        if not parameter.optional and parameter.default is None and "default" not in merged:
            required.add(name)
    return {**listed, "fields": fields, "required": sorted(required)}, tuple(found)


def refined_kind(old: Schema, new: Schema, *, reviewed: bool = True) -> Schema | None:
    """The listed schema with the declared kind, reviewed from now on or not; `None` where that is no refinement."""
    merged: Schema = {**old}
    if reviewed:
        merged.pop("unreviewed", None)
    if "default" in new:
        merged["default"] = new["default"]
    if old["kind"] == "list" and new["kind"] == "list":
        return _refined_list(old, new, merged, reviewed)
    if new["kind"] == old["kind"]:
        return merged
    if new["kind"] not in STRICTER.get(old["kind"], frozenset()):
        return None
    merged["kind"] = new["kind"]
    if new["kind"] == "list" and "item" in new:
        merged["item"] = new["item"] if reviewed else _unreviewed(new["item"])
    if new["kind"] == "object":
        merged["fields"], merged["extra"] = {}, "allow"
    return merged


def _refined_list(old: Schema, new: Schema, merged: Schema, reviewed: bool) -> Schema | None:
    if "item" not in new:
        return merged
    item = refined_kind(old.get("item", _ANY), new["item"], reviewed=reviewed)
    if item is None:
        return None
    merged["item"] = item
    return merged


_ANY: Schema = {"kind": "any", "unreviewed": True}


def _unreviewed(schema: Schema) -> Schema:
    """A declared kind of what was anything, whose strings go on to be read as anything."""
    marked: Schema = {**schema, "unreviewed": True}
    if "item" in schema:
        marked["item"] = _unreviewed(schema["item"])
    return marked

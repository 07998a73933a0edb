"""The risk class of every tool.

In: the catalogue and the `risk` statements. Out: a class per tool id; findings where a lower layer would loosen.
The order is SPEC 3's: `risk` statements (the highest that fits), the `tool` statement, trusted hints, `high`.
"""

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.gather import Gathered, LoadedFile
from policy_lang.names.references import Binder
from policy_lang.source import Source, Span
from policy_lang.tools import Catalogue, ToolInfo

RANK: dict[ast.RiskClass, int] = {risk: rank for rank, risk in enumerate(ast.RISK_CLASSES)}
"""The lowest is 0."""


def risk_classes(
    gathered: Gathered, catalogue: Catalogue, binder: Binder, found: list[Diagnostic]
) -> tuple[ast.RiskClass, ...]:
    """The class of each tool, by id. A `risk` statement of a lower layer counts only where it tightens."""
    classes: list[ast.RiskClass] = [_own_class(tool, catalogue.trusted, found) for tool in catalogue.tools]
    for number, layer in enumerate(gathered.layers):
        stated: dict[int, ast.RiskClass] = {}
        for file in layer:
            for node in file.file.declarations:
                if isinstance(node, ast.Risk):
                    ids = binder.bind(node.tools, file)
                    if number:
                        _loosening(classes, ids, node, file, found)
                    for tool in ids:
                        stated[tool] = _higher(stated.get(tool, "read"), node.risk)
        for tool, risk in stated.items():
            classes[tool] = risk if number == 0 else _higher(classes[tool], risk)
    return tuple(classes)


def _higher(one: ast.RiskClass, other: ast.RiskClass) -> ast.RiskClass:
    return max(one, other, key=lambda risk: RANK[risk])


def _own_class(tool: ToolInfo, trusted: frozenset[str], found: list[Diagnostic]) -> ast.RiskClass:
    if tool.risk is None:
        return _listed_class(tool, trusted)
    if tool.below:  # the statement stands in a lower layer than what it speaks of
        above = _listed_class(tool, trusted)
        if RANK[above] > RANK[tool.risk]:
            found.append(_loosened(above, tool.risk, tool.source, tool.span))
        return _higher(above, tool.risk)
    return tool.risk


def _listed_class(tool: ToolInfo, trusted: frozenset[str]) -> ast.RiskClass:
    if tool.key[0] is None or tool.key[0] not in trusted:
        return "high"
    destructive, read_only = tool.hints.get("destructiveHint"), tool.hints.get("readOnlyHint")
    if destructive:
        return "high"
    if read_only:
        return "read"
    return "medium" if destructive is False else "high"


def _loosening(
    classes: list[ast.RiskClass], ids: frozenset[int], node: ast.Risk, file: LoadedFile, found: list[Diagnostic]
) -> None:
    above: list[ast.RiskClass] = [classes[tool] for tool in ids if RANK[classes[tool]] > RANK[node.risk]]
    if above:
        highest = max(above, key=lambda risk: RANK[risk])
        found.append(_loosened(highest, node.risk, file.source, node.span))


def _loosened(above: ast.RiskClass, here: ast.RiskClass, source: Source, span: Span) -> Diagnostic:
    message = f"a layer below would lower the class of tools from `{above}` to `{here}`"
    return Diagnostic(codes.LOOSENED_BELOW, message, source, span, help="a lower layer may only raise a class")

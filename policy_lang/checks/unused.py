"""Declarations that nothing uses.

In: `Survey`. Out: ZC3110. Only the root file of the policy itself is judged, and only if it declares bodies: what an imported
file, a higher layer or a file of shared names declares is for others to use.
"""

from collections.abc import Iterator

from policy_lang import ast, codes
from policy_lang.bound import Namespace
from policy_lang.checks.edits import remove
from policy_lang.checks.survey import Survey, View
from policy_lang.checks.usage import Usage, usage
from policy_lang.diagnostics import Diagnostic, Fix
from policy_lang.gather import LoadedFile
from policy_lang.source import Span

SPACES: dict[type[ast.Declaration], Namespace] = {
    ast.Group: "group", ast.Let: "let", ast.Bundle: "bundle", ast.Skill: "skill", ast.Profile: "profile",
}  # fmt: skip

ADVICE: dict[Namespace, str] = {
    "bundle": "connect it in an agent, or drop it",
    "profile": "write `use` in an agent, or drop it",
    "skill": "name it in `skills` of an agent, or drop it",
}


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every declaration of the root file."""
    bound = survey.bound
    lowest = bound.gathered.layers[-1] if bound.gathered.layers else ()
    roots = [file for file in lowest if file.is_root]
    if not any(isinstance(node, ast.Agent | ast.Ceiling) for file in roots for node in file.file.declarations):
        return
    used = usage(survey)
    for file in roots:
        for declaration in file.file.declarations:
            yield from _unused(used, survey, declaration, file)


def _unused(used: Usage, survey: Survey, node: ast.Declaration, file: LoadedFile) -> Iterator[Diagnostic]:
    match node:
        case ast.Bundle():
            yield from _named(used, node, file, _connecting(survey, node, file))
        case ast.Group() | ast.Let() | ast.Skill() | ast.Profile():
            yield from _named(used, node, file)
        case ast.Server(name=name):
            if ("server", name.text) not in used.names:
                yield _server(node, file)
        case ast.Label(names=names):
            for each in names:
                yield from _label(used, each, file)
        case ast.Scope(names=names):
            unused = [each for each in names if ("scope", each.text) not in used.names]
            yield from (_finding(file, "scope", each, "drop it, or name it in `memory`", None) for each in unused)
        case ast.Context(fields=fields):
            facts = [item.name for item in fields if ("context", item.name.text) not in used.names]
            yield from (
                _finding(file, "context fact", name, f"drop it, or test `session.{name.text}`", None) for name in facts
            )
        case _:
            return


def _named(
    used: Usage, node: ast.Group | ast.Let | ast.Bundle | ast.Skill | ast.Profile, file: LoadedFile, advice: str = ""
) -> Iterator[Diagnostic]:
    space = SPACES[type(node)]
    if (space, used.bound.full(file, space, node.name.text)) not in used.names:
        help_text, whole = (advice, None) if advice else (ADVICE.get(space, "drop it, or use it"), node.span)
        yield _finding(file, space, node.name, help_text, whole)


def _connecting(survey: Survey, node: ast.Bundle, file: LoadedFile) -> str:
    """Where an agent allows tools of the bundle and connects nothing that has them: what to write there."""
    full = survey.bound.full(file, "bundle", node.name.text)
    tools = survey.bound.bundles[full].tools if full in survey.bound.bundles else frozenset[int]()
    for view in survey.agents.values():
        if any(rule.ids & tools for rule in view.rules["allow"]) and not _connects(survey, view, tools):
            return f"write `connect {node.name.text}` in `{view.body.name}`, which allows its tools"
    return ""


def _connects(survey: Survey, view: View, tools: frozenset[int]) -> bool:
    connected = survey.bound.connected(view.body)
    return connected is None or bool(connected & tools)


def _server(node: ast.Server, file: LoadedFile) -> Diagnostic:
    at = file.source.text.find(node.name.text, node.span.start, node.span.end)
    span = Span(at, at + len(node.name.text)) if at >= 0 else node.span
    help_text = f"its tools cannot be called until an agent connects a bundle with `server {node.name.text}`"
    return Diagnostic(codes.UNUSED_NAME, f"server `{node.name.text}` is in no bundle", file.source, span, (), help_text)


def _label(used: Usage, name: ast.Name, file: LoadedFile) -> Iterator[Diagnostic]:
    if ("tested", name.text) in used.names:
        return
    if ("marked", name.text) in used.names:
        message = f"label `{name.text}` is marked, and no rule tests it"
        help_text = f"write `ask … when marked {name.text}`, or drop the label"
        yield Diagnostic(codes.UNUSED_NAME, message, file.source, name.span, (), help_text)
    else:
        yield _finding(file, "label", name, "drop it, or `mark` and test it", None)


def _finding(file: LoadedFile, space: str, name: ast.Name, help_text: str, whole: Span | None) -> Diagnostic:
    fix = Fix((remove(file.source, whole),), safe=False) if whole is not None else None  # perhaps it was to be used
    return Diagnostic(
        codes.UNUSED_NAME, f"{space} `{name.text}` is never used", file.source, name.span, (), help_text, fix
    )

"""Bodies: what agents, ceilings and skills say once their profiles are put in, and what may not stand in them.

In: declarations, names, tool sets. Out: `BoundBody`s, and findings: profiles in circles, grants where only
restrictions may stand, statements that a body may have once.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.bound import BodyKind, BoundBody, Placed
from policy_lang.conditions import stands_for_granting
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label
from policy_lang.gather import LoadedFile
from policy_lang.names.references import unknown_name
from policy_lang.names.scope import Scopes
from policy_lang.source import Span

MAX_PROFILES_DEEP = 100
"""How deep profiles may use profiles."""

MAX_BROUGHT = 200_000
"""How many statements profiles may bring into all bodies of a policy together."""

GRANTS: dict[type[ast.Statement], str] = {ast.Delegate: "delegate to"}
"""Statements that stand only in a granting agent, besides the rules `allow` and `auto_approve`."""

ONCE: dict[type[ast.Statement], str] = {ast.Connect: "connect", ast.Skills: "skills", ast.Memory: "memory"}
"""Statements that a body has once, its profiles included."""

WHERE: dict[BodyKind, str] = {
    "narrows": "an agent that narrows another",
    "ceiling": "a ceiling",
    "skill": "a skill",
    "agent": "an agent",
    "profile": "a profile",
}


def granting_word(node: ast.Statement) -> str | None:
    """The word of a statement that grants, or `None` for one that only restricts."""
    if isinstance(node, ast.Rule):
        return node.effect if stands_for_granting(node.effect) else None
    return GRANTS.get(type(node))


@dataclass(slots=True)
class Bodies:
    """Expands profiles and judges what stands where; `found` the findings, `used` the profiles that somebody uses."""

    scopes: Scopes
    found: list[Diagnostic] = field(default_factory=list[Diagnostic])
    used: set[str] = field(default_factory=set[str])
    _brought: int = 0  # statements that profiles have brought so far; below 0 once there were too many
    _added: set[tuple[str, str, Span]] = field(default_factory=set[tuple[str, str, Span]])
    _circles: set[frozenset[str]] = field(default_factory=set[frozenset[str]])

    def build(
        self, kind: BodyKind, name: str, node: ast.Agent | ast.Ceiling | ast.Skill | ast.Profile, file: LoadedFile
    ) -> BoundBody:
        """A body with its profiles' statements, judged."""
        uses: list[str] = []
        statements = tuple(self._statements(node.body, file, None, [], uses))
        parent = None
        if isinstance(node, ast.Agent) and node.narrows is not None:
            parent = self.scopes.visible.get((id(file), "agent", node.narrows.text))
        body = BoundBody(kind, name, node, file, statements, tuple(dict.fromkeys(uses)), parent)
        if kind != "profile":
            self._judge(body)
        return body

    def _statements(
        self, body: ast.Body, file: LoadedFile, via: str | None, trail: list[str], uses: list[str]
    ) -> Iterator[Placed]:
        for node in body.statements:
            if not isinstance(node, ast.Use):
                self._brought += via is not None
                yield Placed(node, file, via)
                continue
            for name in node.profiles:
                full = self.scopes.visible.get((id(file), "profile", name.text))
                if full is None:
                    known = self.scopes.candidates(file, "profile")
                    self._add(unknown_name(codes.UNKNOWN_NAME, "profile", name.text, name.span, file, known))
                    continue
                self.used.add(full)
                if full in trail:
                    self._circle(trail[trail.index(full) :], name, file)
                    continue
                if len(trail) >= MAX_PROFILES_DEEP:
                    message = f"profiles use each other more than {MAX_PROFILES_DEEP} deep"
                    self._add(Diagnostic(codes.TOO_DEEP, message, file.source, name.span))
                    continue
                if full in uses or self._too_many(name, file):
                    continue
                uses.append(full)
                profile, owner = self.scopes.declared["profile"][full]
                if isinstance(profile, ast.Profile):
                    yield from self._statements(profile.body, owner, full, [*trail, full], uses)

    def _too_many(self, name: ast.Name, file: LoadedFile) -> bool:
        """One finding where profiles multiply beyond what is read: what follows it is no policy anyway."""
        if self._brought > MAX_BROUGHT:
            self._brought = -sys.maxsize
            message = f"profiles bring more than {MAX_BROUGHT:_} statements into bodies"
            self._add(Diagnostic(codes.TOO_LARGE, message, file.source, name.span))
        return self._brought < 0

    def _circle(self, circle: list[str], name: ast.Name, file: LoadedFile) -> None:
        """One finding for a circle, however many bodies walk into it."""
        if frozenset(circle) not in self._circles:
            self._circles.add(frozenset(circle))
            names = " → ".join(f"`{step}`" for step in [*circle, circle[0]])
            self._add(
                Diagnostic(codes.PROFILE_CYCLE, f"profiles use each other in a circle: {names}", file.source, name.span)
            )

    def _judge(self, body: BoundBody) -> None:
        if body.kind != "agent":
            for placed in body.statements:
                word = granting_word(placed.node)
                if word is not None:
                    self._granting(body, placed, word)
        for kind, word in ONCE.items():
            nodes = [placed for placed in body.statements if isinstance(placed.node, kind)]
            for extra in nodes[1:]:
                label = Label(nodes[0].file.source, nodes[0].node.span, "first said here")
                message = f"`{word}` is said twice in `{body.name}`"
                help_text = "put the names into one statement"
                self._add(
                    Diagnostic(codes.SAID_TWICE, message, extra.file.source, extra.node.span, (label,), help_text)
                )

    def _granting(self, body: BoundBody, placed: Placed, word: str) -> None:
        where = WHERE[body.kind]
        if placed.via is None:
            fix = None
            help_text = "only a granting agent grants; to keep less write `only A, B`, to forbid write `deny A`"
            if isinstance(placed.node, ast.Rule) and _is_plain(placed.node):
                start = placed.node.span.start
                fix = Fix(
                    (Edit(placed.file.source, placed.node.span._replace(end=start + len(word)), "only"),), safe=False
                )
            self._add(
                Diagnostic(
                    codes.GRANT_IN_RESTRICTION,
                    f"`{word}` cannot stand in {where}",
                    placed.file.source,
                    placed.node.span,
                    (),
                    help_text,
                    fix,
                )
            )
            return
        use = self._use_of(body, placed.via)
        label = Label(placed.file.source, placed.node.span, "it grants here")
        message = f"profile `{placed.via}` grants, and {where} may only restrict"
        help_text = "use a profile without `allow`, or write `only A, B` here"
        self._add(Diagnostic(codes.GRANTING_PROFILE, message, body.file.source, use, (label,), help_text))

    def _use_of(self, body: BoundBody, profile: str) -> Span:
        """The place in the body that brings a profile in, maybe through another."""
        for node in body.node.body.statements:
            if isinstance(node, ast.Use):
                for name in node.profiles:
                    if self.scopes.visible.get((id(body.file), "profile", name.text)) == profile:
                        return name.span
        uses = [node.span for node in body.node.body.statements if isinstance(node, ast.Use)]
        return uses[0] if uses else body.node.span

    def _add(self, finding: Diagnostic) -> None:
        """Once, however many bodies lead to it."""
        key = (finding.code.id, finding.source.name, finding.span)
        if key not in self._added:
            self._added.add(key)
            self.found.append(finding)


def _is_plain(node: ast.Rule) -> bool:
    return node.when is None and node.unless is None and not node.approval and node.because is None

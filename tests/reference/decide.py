"""Bodies, the minimum over them, and the reason: SPEC 5, 8 and 10, read aloud.

In: a policy, who acts for whom, the facts of a session, a call. Out: an `Answer`.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policy_lang import ast
from tests.reference import limits, reading
from tests.reference.arguments import Judged, judge, paths
from tests.reference.bodies import Bench, Effect, Part
from tests.reference.conditions import Circumstances, any_of, rule_truth
from tests.reference.host import Facts, HostNarrowing, Ran, statements_of
from tests.reference.limits import Charge
from tests.reference.values import Plain, ToolName
from tests.reference.written import Page, World
from zcpolicy.predicates import path
from zcpolicy.predicates.refs import PathRef, Truth, Where

REASONS: Final = (
    "unknown-agent", "not-canonical", "unknown-tool", "malformed", "stale-policy", "protected", "drift",
    "not-connected", "not-granted", "outside-only", "denied", "precondition", "autonomy", "no-approver",
    "ledger-unavailable", "budget",
)  # fmt: skip
"""The first that applies is the reason of a deny."""

REASONED: Final = (ast.Rule, ast.Only, ast.Require)


@dataclass(frozen=True)
class Answer:
    """`told`: every statement that decided, also for a reason that comes after the one named."""

    effect: Effect
    reason: str
    told: tuple[ast.Statement, ...] = ()

    @property
    def becauses(self) -> set[str]:
        """The texts that the deciding statements give."""
        return {one.because.value for one in self.told if isinstance(one, REASONED) and one.because is not None}


class Policy:
    """A policy that compiles."""

    def __init__(self, world: World) -> None:
        self.world = world

    @classmethod
    def read(cls, path: Path, layers: Sequence[Path] = ()) -> "Policy":
        """From files; layers highest first."""
        return cls(reading.read(path, tuple(layers)))

    @classmethod
    def loads(cls, text: str, folder: Path = Path()) -> "Policy":
        """From a text; `folder`: where relative imports and catalogues start."""
        return cls(reading.read_text(text, folder))

    def run(
        self,
        agent: str,
        facts: Facts,
        *,
        parents: Sequence[str] = (),
        skills: Sequence[str] = (),
        narrowing: HostNarrowing | None = None,
        ledger: list[Charge] | None = None,
        protected: Sequence[str] = (),
    ) -> "Execution":
        """An execution of an agent; `parents`: its delegators, the nearest first; `protected`: the host's files."""
        made = Execution(
            self.world, agent, facts, tuple(parents), tuple(skills), narrowing, [] if ledger is None else ledger
        )
        made.protected = tuple(protected)
        return made


class Execution:
    """One agent at work in one session."""

    def __init__(
        self,
        world: World,
        agent: str,
        facts: Facts,
        parents: tuple[str, ...],
        skills: tuple[str, ...],
        narrowing: HostNarrowing | None,
        ledger: list[Charge],
    ) -> None:
        self.world, self.agent, self.facts, self.parents = world, agent, facts, parents
        self.ledger = ledger
        self.narrowing = narrowing
        self.protected: tuple[str, ...] = ()
        self._everywhere = [Part(f"ceiling {number}", tuple(told)) for number, told in enumerate(world.ceilings())]
        self._everywhere += [Part(f"skill {name}", tuple(world.skill(name))) for name in skills]
        if narrowing is not None:
            self._everywhere.append(Part("narrowing", tuple(statements_of(narrowing))))

    def delegator(self) -> "Execution":
        """The execution above, in the same session and ledger; skills are loaded in this one alone."""
        agent, *parents = self.parents
        made = Execution(self.world, agent, self.facts, tuple(parents), (), self.narrowing, self.ledger)
        made.protected = self.protected
        return made

    # --- who is at work ---------------------------------------------------------------------------------

    def _own(self, agent: str) -> list[Part]:
        """The bodies of an agent: those that narrow, and the one that grants."""
        links = self.world.chain(agent)
        return [
            Part(f"agent {link.name.text}", tuple(self.world.told(link.body, page)), grants=link is links[-1][0])
            for link, page in links
        ]

    def _deciding(self) -> list[Part]:
        """The bodies whose minimum decides: the acting agent's, and its delegators' up to an independent delegation."""
        parts = self._own(self.agent)
        line = [self.agent, *self.parents]
        for number, parent in enumerate(self.parents):
            if self.independent(line[number], line[number + 1 :]):
                break
            parts += self._own(parent)
        return parts + self._everywhere

    def _charged(self) -> list[Part]:
        """The bodies whose limits count: those of every execution above as well."""
        return [part for agent in (self.agent, *self.parents) for part in self._own(agent)] + self._everywhere

    def independent(self, child: str, delegators: Sequence[str]) -> bool:
        """Whether the nearest delegator runs the child independently, and each that bounds that delegator says so too."""
        said = self._says_independent(delegators[0], child)
        if not said or len(delegators) == 1 or self.independent(delegators[0], delegators[1:]):
            return said
        return self.independent(child, delegators[1:])

    def _says_independent(self, delegator: str, child: str) -> bool:
        return any(
            statement.independent and child in [name.text for name in statement.agents]
            for part in self._own(delegator)
            for statement, _ in part.of(ast.Delegate)
        )

    # --- the decision -----------------------------------------------------------------------------------

    def decide(self, tool: ToolName, sent: object) -> Answer:
        """The answer to one call."""
        known = self.world.tool(tool)
        try:
            self.world.chain(self.agent)
        except KeyError:
            return Answer("deny", "unknown-agent")
        if not canonical(tool, [one.name for one in self.world.every_tool()]):
            return Answer("deny", "not-canonical")
        if known is None:
            return Answer("deny", "unknown-tool")
        call = judge(known, sent, supplies_defaults=self.facts.supplies_defaults)
        if call is None:
            return Answer("deny", "malformed")
        return self._judged(call)

    def _judged(self, call: Judged) -> Answer:
        parts = self._deciding()
        bench = Bench(self._circumstances(call), self.facts)
        touched = self._touches_protected(call)
        answers = [bench.ask(part) for part in parts]
        causes: dict[str, list[ast.Statement]] = {}
        for answer in answers:
            for reason, told in answer.causes.items():
                causes.setdefault(reason, []).extend(told)
        asking = [(part, one.asks) for part, one in zip(parts, answers, strict=True) if one.asks is not None]
        if touched is True:
            causes["protected"] = []
        elif touched is None:
            asking.append((Part("protected", ()), []))
        if asking and not causes and not self._can_ask(parts, [part for part, _ in asking]):
            causes["no-approver"] = [one for _, told in asking for one in told]
        if self._exhausted(call):
            causes["budget"] = []
        if not self.facts.ledger and any(True for _ in self._limits_of(call)):
            causes["ledger-unavailable"] = []
        for reason in REASONS:
            if reason in causes:
                return Answer("deny", reason, tuple(one for told in causes.values() for one in told))
        if asking:
            return Answer("ask", "asked", tuple(one for _, told in asking for one in told))
        return Answer("allow", "allowed", tuple(one for answer in answers for one in answer.allows))

    def _touches_protected(self, call: Judged) -> Truth:
        """Whether a path of the call is a protected file or lies below it; a tool of class `read` may read them."""
        if not self.protected or call.tool.risk == "read":
            return False
        where, mentioned = self._circumstances(call).where, paths(call)
        hits = path.under(self.protected, False)
        found = [hits(ref, where) for ref in mentioned.refs if isinstance(ref, PathRef)]
        return any_of([*found, *([None] if mentioned.unsupplied else [])])

    def _can_ask(self, parts: list[Part], asking: list[Part]) -> bool:
        if any(approval.none for part in parts for approval, _ in part.of(ast.Approval)):
            return False
        if self.facts.interactive:
            return True
        said = [[approval for approval, _ in part.of(ast.Approval)] for part in asking]
        return all(
            any(one.route is not None or isinstance(one.on_no_approver, ast.String) for one in told) for told in said
        )

    def _circumstances(self, call: Judged) -> Circumstances:
        facts, server = self.facts, call.tool.name[0]
        cwd = facts.cwd if server is None else facts.server_cwd.get(server)
        where = Where(cwd, facts.env.get("HOME"), facts.platform, facts.resolve, facts.env)
        session: dict[str, Plain] = {**facts.context, "cwd": facts.cwd, "interactive": facts.interactive}
        return Circumstances(self.world, call, where, self.agent, len(self.parents), session, frozenset(facts.labels))

    # --- limits, and what a permitted call leaves behind ------------------------------------------------

    def _limits_of(self, call: Judged) -> Iterator[tuple[Part, ast.Limit, Callable[[ToolName], bool]]]:
        """The limits that a call would be charged to, and which tools each is about."""
        for part in self._charged():
            for limit, page in part.of(ast.Limit):
                covers = self._covering(limit, page)
                if covers(call.tool.name):
                    yield part, limit, covers

    def _exhausted(self, call: Judged) -> bool:
        return any(
            limits.exhausted(limit, self._charge(call, frozenset({part.pot})), covers, self.ledger)
            for part, limit, covers in self._limits_of(call)
        )

    def _charge(self, call: Judged, pots: frozenset[str]) -> Charge:
        return Charge(call, pots, id(self.facts), self.agent, self.facts.now)

    def _covering(self, limit: ast.Limit, page: Page) -> Callable[[ToolName], bool]:
        tools = limit.tools
        return (lambda _: True) if tools is None else (lambda name: self.world.covers(tools, page, name))

    def permit(self, tool: ToolName, sent: object, *, ok: bool = True) -> None:
        """The call was permitted: it marks, is charged, runs, and is remembered."""
        known = self.world.tool(tool)
        assert known is not None
        call = judge(known, sent, supplies_defaults=self.facts.supplies_defaults)
        assert call is not None
        now = self._circumstances(call)
        marks = [
            rule.label.text
            for part in self._deciding()
            for rule, page in part.of(ast.Rule)
            if rule.label is not None
            and self.world.covers(rule.tools, page, tool)
            and rule_truth(rule, page, now) is not False
        ]
        pots = frozenset(part.pot for part in self._charged())
        self.ledger.append(self._charge(call, pots))
        if self.facts.history is not None:
            self.facts.history.append(Ran(tool, call.arguments, ok, self.facts.now))
        self.facts.labels.update(marks)


# --- plain functions ------------------------------------------------------------------------------------


def canonical(tool: ToolName, known: Sequence[ToolName]) -> bool:
    """Whether a name is NFC, without control or invisible characters and edge blanks, and mixes no scripts."""
    for part in tool:
        if part is None:
            continue
        if part != unicodedata.normalize("NFC", part) or part != part.strip() or not part:
            return False
        if any(unicodedata.category(one)[0] in "CZ" and one != " " for one in part):
            return False
        scripts = {unicodedata.name(one, "").split(" ")[0] for one in part if one.isalpha()}
        if len(scripts) > 1 and tool not in known:
            return False
    return True

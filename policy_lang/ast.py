"""What was written: the syntax tree of one policy file. Values only.

In: nothing. Out: the types that `parse` makes and `names`, `checks`, `format` and `lower` read.
Every node has the `span` of its text. Nothing here is resolved: names are as written, patterns unbound.
Closed unions (`Declaration`, `Statement`, `Condition`, …) are matched with `assert_never`.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

from policy_lang.source import Source, Span

Effect = Literal["allow", "ask", "deny", "auto_approve", "mark"]
RiskClass = Literal["read", "low", "medium", "high"]
Level = Literal["readonly", "supervised", "full"]
Answer = Literal["allow", "ask", "deny"]
Operator = Literal[
    "==", "!=", "<", "<=", ">", ">=", "in", "not in", "like", "matches", "contains",
    "under", "glob", "in_domain", "in_net", "runs only", "runs any",
]  # fmt: skip

RISK_CLASSES: tuple[RiskClass, ...] = get_args(RiskClass)
"""Every class, the lowest first."""


# --- names and literals ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written; with an import's prefix `base.readers` is one name with a dot."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class String:
    value: str
    raw: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """Exact: `int` where no point was written, `Decimal` otherwise. `text` is the spelling."""

    value: int | Decimal
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Null:
    span: Span


@dataclass(frozen=True, slots=True)
class Duration:
    """A whole number of seconds; `text` is the spelling, such as `61m`."""

    seconds: int
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount, at most six fractional digits, and a lower-case ISO 4217 code."""

    amount: Decimal
    currency: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ListValue:
    items: tuple["Value", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ObjectValue:
    items: tuple[tuple[String, "Value"], ...]
    span: Span


Literal_ = String | Number | Boolean | Null
Value = Literal_ | ListValue | ObjectValue


# --- tool references ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pattern:
    """A tool's or server's name, or a pattern. In quotes (`quoted`) a `*` is literal."""

    text: str
    quoted: bool = False

    @property
    def is_pattern(self) -> bool:
        """Whether `*` in it stands for any run of characters."""
        return not self.quoted and "*" in self.text


@dataclass(frozen=True, slots=True)
class ToolRef:
    """`name` (host tool, `server` is None), `server/name`; either part may be a pattern."""

    server: Pattern | None
    name: Pattern
    span: Span


@dataclass(frozen=True, slots=True)
class GroupRef:
    """`@readers`, `@base.readers`."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class AnyTool:
    """`any`."""

    span: Span


ToolItem = ToolRef | GroupRef | AnyTool


@dataclass(frozen=True, slots=True)
class ToolSet:
    """`A, B except C, D`: (A ∪ B) minus (C ∪ D)."""

    items: tuple[ToolItem, ...]
    excepted: tuple[ToolItem, ...]
    span: Span


# --- conditions ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operand:
    """`args.a.b`, `session.x`, `tool.risk`, `agent.depth`, `paths`, `urls`, `urls.host`.

    `path` is what follows the root, as written: whether a last `host`, `scheme` or `port` is a part of a
    url or a field is for the kinds to say. `args."odd"` is a component like any other.
    """

    root: Literal["args", "session", "tool", "agent", "paths", "urls"]
    path: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LetRef:
    """A `let` name on the right of a test; may carry a prefix (`base.secrets`)."""

    name: str
    span: Span


Right = Literal_ | ListValue | LetRef | Operand


@dataclass(frozen=True, slots=True)
class Test:
    """`LEFT OP RIGHT`, or with a quantifier `some|every LEFT OP RIGHT`."""

    left: Operand
    op: Operator
    right: Right
    each: Literal["some", "every"] | None
    span: Span


@dataclass(frozen=True, slots=True)
class Bare:
    """A bare boolean operand: `== true`."""

    operand: Operand
    span: Span


@dataclass(frozen=True, slots=True)
class Has:
    """`has args.x`."""

    operand: Operand
    span: Span


@dataclass(frozen=True, slots=True)
class Marked:
    """`marked LABEL`."""

    label: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Not:
    inner: "Condition"
    span: Span


@dataclass(frozen=True, slots=True)
class And:
    """Two or more operands, as written."""

    items: tuple["Condition", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more operands, as written."""

    items: tuple["Condition", ...]
    span: Span


Condition = Test | Bare | Has | Marked | Not | And | Or


# --- statements ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """`allow`, `ask`, `deny`, `auto_approve`, and `mark LABEL on`."""

    effect: Effect
    tools: ToolSet
    span: Span
    approval: bool = False  # `with approval`, only on allow
    label: Name | None = None  # only on mark
    when: Condition | None = None
    unless: Condition | None = None
    because: String | None = None
    unclear_ask: bool = False  # only on deny


@dataclass(frozen=True, slots=True)
class Only:
    """`only T`; `tools` is None for `only none`."""

    tools: ToolSet | None
    because: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class Autonomy:
    """`autonomy LEVEL`, or a table naming all four classes."""

    level: Level | None
    table: tuple[tuple[RiskClass, Answer], ...]  # as written; empty with a level
    span: Span


@dataclass(frozen=True, slots=True)
class Window:
    """`turn`, `session`, `minute`, `hour`, `day`, a duration, or `calendar day|month in "Zone"`."""

    kind: Literal["turn", "session", "rolling", "calendar"]
    seconds: int  # rolling only, else 0
    calendar: Literal["day", "month"] | None
    zone: String | None
    text: str  # the spelling of the window: `hour`, `90s`, `turn`
    span: Span


Unit = Literal[
    "calls", "concurrent calls", "iterations", "delegations", "tokens", "money", "time", "sum"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """`limit AMOUNT UNIT [to T] [per WINDOW] [for each …]`.

    `amount`: the count, the sum, the money, or for `time` the duration. `argument`: of `sum args.x.y`.
    `each`: `client`, `session`, `agent`, or the operand `args.x`; absent without `for each`.
    """

    amount: Number | Money | Duration
    unit: Unit
    argument: Operand | None
    tools: ToolSet | None
    window: Window | None  # None: the default, session
    each: Literal["client", "session", "agent"] | Operand | None
    span: Span


@dataclass(frozen=True, slots=True)
class Connect:
    """`connect A, B`; `bundles` is empty for `connect none`."""

    bundles: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Skills:
    """`skills A, B`; empty for `skills none`."""

    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Memory:
    """`memory read own, team write own` or `memory none` (both None)."""

    read: tuple[Name, ...] | None
    write: tuple[Name, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class Delegate:
    """`delegate to A, B [independent] [because "…"]`."""

    agents: tuple[Name, ...]
    independent: bool
    because: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class DelegateDepth:
    depth: Number
    span: Span


@dataclass(frozen=True, slots=True)
class DelegateNone:
    span: Span


@dataclass(frozen=True, slots=True)
class Approval:
    """`approval { … }`, or `approval none` (`none` true, everything else None)."""

    none: bool
    route: String | None
    timeout: Duration | None
    on_no_approver: Literal["deny"] | String | None  # a String: `on_no_approver route "other"`
    remember: Literal["never", "exact", "tool"] | None
    remember_for: Duration | None
    span: Span


RuntimeKey = Literal[
    "parallel_tools", "history", "context", "tool_result", "recall", "call_timeout", "turn_timeout"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuntimeItem:
    key: RuntimeKey
    value: Boolean | Number | Duration  # `on`/`off` are a Boolean
    span: Span


@dataclass(frozen=True, slots=True)
class Runtime:
    items: tuple[RuntimeItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Require:
    """`require T before U [within D] [same args.N, …] [by any agent] [because S]`."""

    earlier: ToolSet
    later: ToolSet
    within: Duration | None
    same: tuple[Operand, ...]
    by_any_agent: bool
    because: String | None
    span: Span


Drift = Literal["description", "schema", "launch", "any"]


@dataclass(frozen=True, slots=True)
class OnDrift:
    """`on drift [description|schema|launch|any] allow|ask|deny`; no kind written is `any`."""

    kind: Drift | None
    answer: Answer
    span: Span


@dataclass(frozen=True, slots=True)
class Use:
    profiles: tuple[Name, ...]
    span: Span


Statement = (
    Rule | Only | Autonomy | Limit | Connect | Skills | Memory | Delegate | DelegateDepth | DelegateNone
    | Approval | Runtime | Require | OnDrift | Use
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Body:
    """The statements between braces; `span` covers the braces."""

    statements: tuple[Statement, ...]
    span: Span


# --- declarations -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edition:
    """`zcpolicy 1`."""

    number: Number
    span: Span


@dataclass(frozen=True, slots=True)
class Catalog:
    """`catalog "file" as server`; `server` is None for the lock file."""

    path: String
    server: Pattern | None
    span: Span


@dataclass(frozen=True, slots=True)
class Import:
    path: String
    prefix: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Kind:
    """A parameter's kind as written: `list<string>` is `list` with an item."""

    name: Literal["string", "path", "url", "shell", "command", "integer", "number", "boolean", "list", "object", "any"]
    item: "Kind | None"
    span: Span


@dataclass(frozen=True, slots=True)
class Parameter:
    """`name?: kind = default`; `quoted` where the name was written in quotes."""

    name: str
    quoted: bool
    optional: bool
    kind: Kind
    default: Value | None
    span: Span


@dataclass(frozen=True, slots=True)
class Tool:
    """`tool [server/]name(params) [runs tools] [risk CLASS]`; the reference holds no pattern."""

    ref: ToolRef
    parameters: tuple[Parameter, ...]
    runs_tools: bool
    risk: RiskClass | None
    span: Span


@dataclass(frozen=True, slots=True)
class Server:
    name: Pattern
    trust_hints: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Risk:
    """`risk high = T`."""

    risk: RiskClass
    tools: ToolSet
    span: Span


@dataclass(frozen=True, slots=True)
class Label:
    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Scope:
    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    name: Name
    value: Literal_ | ListValue
    span: Span


@dataclass(frozen=True, slots=True)
class Group:
    name: Name
    tools: ToolSet
    span: Span


@dataclass(frozen=True, slots=True)
class BundleItem:
    """`server S [only …|except …]`; the names are that server's tools."""

    server: Pattern
    only: tuple[Pattern, ...] | None
    excepted: tuple[Pattern, ...] | None
    names_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Bundle:
    name: Name
    items: tuple[BundleItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ContextField:
    name: Name
    kind: Kind
    span: Span


@dataclass(frozen=True, slots=True)
class Context:
    fields: tuple[ContextField, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Skill:
    name: Name
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Profile:
    name: Name
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Agent:
    """`agent NAME [narrows PARENT] { … }`."""

    name: Name
    narrows: Name | None
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Ceiling:
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class AgentsAllowed:
    """`agents allowed`: a lower layer may declare granting agents."""

    span: Span


# --- tests --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TestAgent:
    """`agent A [as child of B]… [with skill S]`; nearest delegator first."""

    agent: Name
    parents: tuple[Name, ...]
    skills: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Given:
    """`given NAME = value, …` and `given marked L, …` (in `marked`)."""

    facts: tuple[tuple[Name, Value], ...]
    marked: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """`call T(name: value, …) => EFFECT [reason] [because "…"]`.

    `arguments` keep order and duplicates. The tool is exact; its names may be anything in quotes.
    """

    tool: ToolRef
    arguments: tuple[tuple[str, Value], ...]
    effect: Answer
    reason: Name | None
    because: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class Wait:
    duration: Duration
    span: Span


TestStep = TestAgent | Given | Call | Wait


@dataclass(frozen=True, slots=True)
class TestBlock:
    name: String
    steps: tuple[TestStep, ...]
    span: Span


Declaration = (
    Edition | Catalog | Import | Tool | Server | Risk | Label | Scope | Let | Group | Bundle | Context
    | Skill | Profile | Agent | Ceiling | AgentsAllowed | TestBlock
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comment:
    """`# text` to the end of the line; `text` without the `#`. `alone`: nothing stands before it on its line."""

    text: str
    alone: bool
    span: Span


@dataclass(frozen=True, slots=True)
class File:
    """One parsed file. `declarations` in the order written; `comments` likewise."""

    source: Source
    declarations: tuple[Declaration, ...]
    comments: tuple[Comment, ...]

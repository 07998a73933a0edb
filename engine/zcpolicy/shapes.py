"""The shapes of a compiled policy: the instruction set, the contract between the compiler and the resolver.

In: nothing. Out: types only; nothing here runs. All of it is JSON whose numbers are written as strings, keys
sorted, no blanks (RFC 8785), so equal policies have equal bytes.
"""

from typing import Literal, NotRequired, TypedDict, final

Effect = Literal["allow", "ask", "deny", "auto_approve", "mark"]
Answer = Literal["allow", "ask", "deny"]
RiskClass = Literal["read", "low", "medium", "high"]


@final
class NumberValue(TypedDict):
    """An exact number: `{"n": "1.50"}` is written in its shortest form, `{"n": "1.5"}`."""

    n: str


@final
class ListOf(TypedDict):
    list: list["Value"]


@final
class ObjectOf(TypedDict):
    object: dict[str, "Value"]


Value = str | bool | None | NumberValue | ListOf | ObjectOf


class Schema(TypedDict):
    """What a value must be. `kind` `null` is only the null. See SPEC 3 and 6.

    `unreviewed`: a string (or the strings inside `any` and open objects) whose kind nobody has given.
    `nullable`: null is accepted. `enum`: the only values. `item`: of a list. `fields`, `required`, `extra`: of
    an object; `extra` is `deny`, or `allow` (further members are unreviewed), or the schema of further members.
    `default` stands on fields only.
    """

    kind: Literal[
        "string", "path", "url", "shell", "command", "integer", "number", "boolean", "list", "object", "any", "null"
    ]
    unreviewed: NotRequired[bool]
    nullable: NotRequired[bool]
    enum: NotRequired[list[Value]]
    item: NotRequired["Schema"]
    fields: NotRequired[dict[str, "Schema"]]
    required: NotRequired[list[str]]
    extra: NotRequired["Literal['deny', 'allow'] | Schema"]
    default: NotRequired[Value]


class Hints(TypedDict):
    """A trusted server's hints; a hint that the server did not give is absent: UNKNOWN."""

    read_only: NotRequired[bool]
    destructive: NotRequired[bool]
    open_world: NotRequired[bool]


Tool = TypedDict(
    "Tool",
    {
        "server": str | None,  # None: the host's own tool
        "name": str,
        "class": RiskClass,
        "hints": NotRequired[Hints],  # only under `trust hints`
        "runs_tools": NotRequired[bool],
        "schema": Schema,  # of the arguments: kind `object`
    },
)
"""A tool of the catalogue. `Program.tools` is sorted by (server or "", name), host tools first: its index is its id."""

ToolIds = str
"""A bound set of tools: ids as decimal ranges, ascending: `"3,7-19"`; the empty set is `""`. See `pack`, `unpack`."""

Operand = list[str]
"""`["args", "a", "b"]`, `["session", "x"]`, `["tool", "risk"]`, `["agent", "depth"]`, `["paths"]`, `["urls"]`, `["urls", "host"]`.
A last `host`, `scheme` or `port` below a url argument is that part of the url."""


class OperandRight(TypedDict):
    operand: Operand


TestName = Literal[
    "==", "<", "<=", ">", ">=", "in", "like", "matches", "contains", "under", "glob", "in_domain", "in_net",
    "runs only", "runs any",
]  # fmt: skip


class Leaf(TypedDict):
    """One test. `right`: any of these values, or another operand.

    `in` stands only before an operand (membership); `in […]` is `==` any of the values. `negate`: the test is
    `not (left test right)` (of `!=` and `not in`), inside the quantifier `each`. `grants`: whether the positive test
    stands for granting (SPEC 7, polarity): true: TRUE only if every reading makes it so.
    """

    test: TestName
    left: Operand
    right: list[Value] | OperandRight
    grants: bool
    each: NotRequired[Literal["some", "every"]]
    negate: NotRequired[bool]


class Has(TypedDict):
    has: list[str]  # the path below args


class Marked(TypedDict):
    marked: str


class All(TypedDict):
    all: list["Condition"]


class Any_(TypedDict):
    any: list["Condition"]


Negation = TypedDict("Negation", {"not": "Condition"})

Condition = Leaf | Has | Marked | All | Any_ | Negation

Rule = TypedDict(
    "Rule",
    {
        "effect": Effect,
        "tools": ToolIds,
        "if": NotRequired[Condition],  # `when A unless B` is all of A and not B
        "because": NotRequired[str],
        "approval": NotRequired[bool],  # allow … with approval
        "label": NotRequired[str],  # mark
        "unclear": NotRequired[Literal["ask"]],  # deny … unclear ask
    },
)


class Only(TypedDict):
    tools: ToolIds
    because: NotRequired[str]


class Window(TypedDict):
    """`seconds` with `rolling`; `calendar` and `zone` with `calendar`."""

    kind: Literal["turn", "session", "rolling", "calendar"]
    seconds: NotRequired[str]
    calendar: NotRequired[Literal["day", "month"]]
    zone: NotRequired[str]


class Limit(TypedDict):
    """`amount`: a count, a sum, an amount of money, or seconds for `time`.

    `pot`: `ceiling` (one pot for all agents) or `agent:NAME` (one for that agent and those that narrow it) or
    `skill:NAME`. `each`: `["client"]`, `["session"]`, `["agent"]`, or `["args", "to"]`: one pot per value.
    """

    amount: str
    unit: Literal["calls", "concurrent calls", "iterations", "delegations", "tokens", "money", "time", "sum"]
    currency: NotRequired[str]
    argument: NotRequired[list[str]]  # the path below args, of `sum`
    tools: NotRequired[ToolIds]
    window: Window
    each: NotRequired[list[str]]
    pot: str


class Connect(TypedDict):
    """`servers` that may be connected; `tools` of them that are in the bundles."""

    servers: list[str]
    tools: ToolIds


class Memory(TypedDict):
    read: list[str]
    write: list[str]


class DelegateTo(TypedDict):
    independent: NotRequired[bool]
    because: NotRequired[str]


class Delegate(TypedDict):
    """`none` beats everything else. `depth` as written; absent means 1 where `to` is not empty."""

    to: dict[str, DelegateTo]
    depth: NotRequired[str]
    none: NotRequired[bool]


class Approval(TypedDict):
    """Combined over the body's statements: every route must say yes; the shortest times; the narrowest scope."""

    none: NotRequired[bool]
    routes: NotRequired[list[str]]
    timeout: NotRequired[str]
    fallback: NotRequired[list[str]]  # on_no_approver route "…"; absent: deny
    remember: NotRequired[Literal["never", "exact", "tool"]]
    remember_for: NotRequired[str]


class Require(TypedDict):
    earlier: ToolIds
    later: ToolIds
    within: NotRequired[str]
    same: NotRequired[list[list[str]]]  # paths below args
    by_any_agent: NotRequired[bool]
    because: NotRequired[str]


class Body(TypedDict):
    """SPEC 4: what one body says, its profiles included. Absent keys: nothing said.

    Lists are sorted by their canonical JSON and hold no duplicates.
    """

    kind: Literal["agent", "narrows", "ceiling", "skill", "narrowing"]
    name: str
    rules: NotRequired[list[Rule]]
    only: NotRequired[list[Only]]
    autonomy: NotRequired[dict[RiskClass, Answer]]  # all four classes: the strictest of all statements
    limits: NotRequired[list[Limit]]
    connect: NotRequired[Connect]  # always present in a granting agent
    skills: NotRequired[list[str]]  # likewise
    memory: NotRequired[Memory]  # likewise
    delegate: NotRequired[Delegate]
    approval: NotRequired[Approval]
    runtime: NotRequired[dict[str, str]]  # numbers, seconds, or `on`, `off`
    require: NotRequired[list[Require]]
    drift: NotRequired[dict[Literal["description", "schema", "launch"], Answer]]


class Agent(TypedDict):
    body: Body
    narrows: str | None


class ProgramData(TypedDict):
    """The whole program. All ceilings of all files and layers are one body: they combine alike."""

    semantics: str
    tools: list[Tool]
    servers: list[str]
    labels: list[str]
    scopes: list[str]
    context: dict[str, Schema]
    agents: dict[str, Agent]
    ceiling: Body
    skills: dict[str, Body]


Place = list[str]
"""`[file, line, text]`: where a part of a body was written; line from 1 as a string; text on one line, shortened."""


class BodyOrigins(TypedDict):
    """For each list of `Body`, parallel to it, the places of each element; for the other keys, their places."""

    rules: NotRequired[list[list[Place]]]
    only: NotRequired[list[list[Place]]]
    limits: NotRequired[list[list[Place]]]
    require: NotRequired[list[list[Place]]]
    other: NotRequired[dict[str, list[Place]]]  # autonomy, connect, … drift; `autonomy high` of several
    place: NotRequired[Place]  # of the body itself


class Origins(TypedDict):
    agents: dict[str, BodyOrigins]
    ceiling: BodyOrigins
    skills: dict[str, BodyOrigins]

"""What a host reports: about a session, about what was done in it, and what it takes away from one run.

In: values from the host. Out: `Session`, `Entry`, `Narrowing`. Nothing here decides anything.
"""

from __future__ import annotations

from _thread import RLock
from os import urandom

from zcpolicy.exact import ReadOnly
from zcpolicy.sealed import put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Final, Literal

    from zcpolicy.limit_text import TextLimit
    from zcpolicy.shapes import Answer, Limit, RiskClass

    Platform = Literal["posix", "windows"]
    Drift = Literal["description", "schema", "launch"]

Line = tuple[tuple[str, str], ...]
"""(agent, session) of executions, one above the other, nearest first."""

ToolName = str | tuple[str, str]
"""A tool: `name` of the host's own, `(server, name)` of an MCP server."""

_marking: Final = RLock()
"""Held while labels are put on: gates mark in threads, and none may be lost."""

MAX_HISTORY: Final = 100_000
"""Entries that a session keeps; the oldest go first, so that a `require` may then deny."""


class FactsError(ValueError):
    """Facts that are not what a host may report. The message says which."""


class Entry:
    """One call that ran. `at`: seconds of the session's clock. `ok`: whether the tool reported success.

    Raises FactsError.
    """

    __slots__ = ("agent", "arguments", "at", "ok", "tool")

    def __init__(
        self, tool: ToolName, arguments: Mapping[str, object], *, ok: bool = True, at: float = 0.0, agent: str = ""
    ) -> None:
        _is(hasattr(arguments, "keys"), "the arguments of an entry are an object")
        _is(type(ok) is bool, "`ok` of an entry is true or false")
        _is(type(at) in (int, float), "`at` of an entry is a number of seconds")
        self.tool = _tool(tool, "an entry")
        self.arguments = arguments
        self.ok = ok
        self.at = at
        self.agent = agent


class Session:
    """The facts of one session, as the host vouches for them. Whose it is stays as given; labels and skills only grow.

    `cwd`: the absolute directory of host tools' processes, or None. `server_cwd`: the same per MCP server.
    `interactive`: a person can be asked. `env`: values the host vouches for (HOME, PWD, TMPDIR).
    `supplies_defaults`: the host writes defaults into calls. `context`: the policy's `session.*`.
    `history`: calls that ran before, oldest first; None if it cannot be read. `resolve_link`: see
    `predicates.refs.Where.resolve`. `clock`: seconds since the epoch. `client`, `id`, `turn`: whose session it is.
    `above`: the session of the delegator. `ancestry`: (agent, session) of the delegators, nearest first, once it was a
    child's: for good. `lines`: (agent, whether it was independent, those above it) of every execution that was made in it: a
    ticket tells of no other. `origin`: the id that it spends under: its own, or that of the session it was once forked from.
    `never`: facts that this host will never supply (`"cwd"`, names of the context). `drift`: tools whose live
    definition differs from the policy's, and how. `ledger`: whether the ledger can be reached. Raises FactsError.
    """

    __slots__ = (
        "_drift",
        "_marks",
        "above",
        "ancestry",
        "client",
        "clock",
        "context",
        "cwd",
        "env",
        "history",
        "id",
        "interactive",
        "labels",
        "ledger",
        "lines",
        "never",
        "origin",
        "platform",
        "resolve_link",
        "server_cwd",
        "skills",
        "supplies_defaults",
        "turn",
    )  # fmt: skip

    def __init__(
        self,
        *,
        cwd: str | None = None,
        interactive: bool = False,
        platform: Platform = "posix",
        env: Mapping[str, str] | None = None,
        server_cwd: Mapping[str, str] | None = None,
        supplies_defaults: bool = True,
        context: Mapping[str, object] | None = None,
        labels: Iterable[str] = (),
        history: Iterable[Entry] | None = (),
        resolve_link: Callable[[str], str | None] | None = None,
        clock: Callable[[], float] | None = None,
        client: str = "",
        id: str = "",
        turn: str = "",
        above: Session | None = None,
        never: Iterable[str] = (),
        drift: Mapping[ToolName, Drift] | None = None,
        ledger: bool = True,
    ) -> None:
        _is(type(interactive) is bool, "`interactive` is true or false")
        _is(platform in ("posix", "windows"), '`platform` is "posix" or "windows"')
        _is(type(supplies_defaults) is bool, "`supplies_defaults` is true or false")
        _is(all(type(part) is str for part in (client, id, turn)), "`client`, `id` and `turn` are text")
        entries = None if history is None else list(history)
        _is(entries is None or all(type(one) is Entry for one in entries), "`history` holds what is no `Entry`")
        self.platform: Platform = platform
        self.cwd = cwd
        self.interactive = interactive
        self.env = _texts(env, "env")
        self.server_cwd = _texts(server_cwd, "server_cwd")
        _is(all(is_absolute(one, platform) for one in self.server_cwd.values()), "`server_cwd` holds absolute paths")
        self.supplies_defaults = supplies_defaults
        self.context = dict(context or {})
        _is(all(type(name) is str for name in self.context), "`context` holds what is no name")
        self.labels = _names(labels, "labels")
        self.history: list[Entry] | None = entries
        self.resolve_link = resolve_link
        self.clock = clock or _now
        self.client = client
        self.skills: frozenset[str] = frozenset()  # loaded so far; only grows
        self.id = id or f"session {urandom(8).hex()}"  # no other's, in any process that shares a store
        self.origin = self.id
        self.turn = turn
        self.above = above
        self.ancestry: Line = ()  # of a child's session: those above it; the resolver's
        self.lines: frozenset[tuple[str, bool, Line]] = frozenset()  # only grows; the resolver's
        self.never = _names(never, "never")
        self._drift: dict[ToolName, Drift] = dict(drift or {})
        self._marks: dict[str, int] = {}
        self.ledger = ledger
        if above is not None:
            put(self, "labels", self.labels | above.labels)

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            if name in _KEPT and hasattr(self, name):
                raise AttributeError(f"`{name}` of a session cannot be set{_KEPT[name]}")
            if name == "cwd":
                _is(value is None or type(value) is str, "`cwd` is the text of a path")
                _is(value is None or is_absolute(value, self.platform), "`cwd` is an absolute path")
            put(self, name, value)

    def mark(self, labels: Iterable[str]) -> None:
        """Adds labels, to the sessions above as well: what a child has seen, its delegator may hear of. None is taken off."""
        found = _names(labels, "labels")
        if not found:
            return
        with _marking:
            put(self, "labels", self.labels | found)
            for label in found:
                self._marks[label] = self._marks.get(label, 0) + 1
            if self.above is not None:
                self.above.mark(found)

    def marked(self, label: str) -> int:
        """How often a label was put on since the session is there, also when it had it already."""
        return self._marks.get(label, 0)

    @property
    def drift(self) -> Mapping[ToolName, Drift]:
        """Tools whose live definition differs, and how. See `drifted`."""
        found: Mapping[ToolName, Drift] = ReadOnly(self._drift)
        return found

    def drift_of(self, tool: ToolName) -> frozenset[Drift]:
        """How a tool differs, as this session and those above it know."""
        found: set[Drift] = set()
        one: Session | None = self
        while one is not None:
            if tool in one.drift:
                found.add(one.drift[tool])
            one = one.above
        return frozenset(found)

    def drifted(self, tool: ToolName, how: Drift) -> None:
        """The host has seen that a tool's live definition is another one now: from the next call on it counts."""
        _is(how in ("description", "schema", "launch"), '`how` is "description", "schema" or "launch"')
        self._drift[_tool(tool, "`drift`")] = how
        from zcpolicy.authority import plan_anew

        plan_anew(self)

    def record(self, entry: Entry) -> None:
        """Adds a call that ran to the history."""
        if self.history is not None:
            self.history.append(entry)
            if len(self.history) > MAX_HISTORY:
                del self.history[: MAX_HISTORY // 10]


_KEPT: Final = {
    "labels": ": `mark` adds to them",
    "skills": ": `load_skill` adds to them",
    **dict.fromkeys(("_drift", "_marks", "above", "ancestry", "client", "id", "lines", "origin"), ""),
}
"""What nobody takes off a session, or makes another's; and what to do instead."""


class Narrowing:
    """What a host takes away from one run: it never gives. Tools are exact names, `"shell"` or `("server", "name")`.

    `only`: nothing else may be called; an empty one means nothing at all. `deny`, `ask`: tools. `autonomy`:
    `readonly`, `supervised`, `full`, or an answer for each class. `limits`: as the language writes them, without the first
    word: `"20 calls to shell per hour"`; or compiled ones, whose `tools` are left out or packed ids of the program.
    `exclude_memory`: no memory at all. Raises FactsError; a name that is no tool of the policy is a ResolveError at `resolve`.
    """

    __slots__ = ("ask", "autonomy", "deny", "exclude_memory", "limits", "only")

    def __init__(
        self,
        *,
        only: Iterable[ToolName] | None = None,
        deny: Iterable[ToolName] = (),
        ask: Iterable[ToolName] = (),
        autonomy: str | Mapping[RiskClass, Answer] | None = None,
        limits: Iterable[str | Limit | TextLimit] = (),
        exclude_memory: bool = False,
    ) -> None:
        self.only = None if only is None else _tools(only, "only")
        self.deny = _tools(deny, "deny")
        self.ask = _tools(ask, "ask")
        self.autonomy = _autonomy(autonomy)
        self.limits = _limits(limits)
        _is(type(exclude_memory) is bool, "`exclude_memory` is true or false")
        self.exclude_memory = exclude_memory


AUTONOMY: Final[Mapping[str, dict[RiskClass, Answer] | None]] = {
    "readonly": {"read": "allow", "low": "deny", "medium": "deny", "high": "deny"},
    "supervised": {"read": "allow", "low": "ask", "medium": "ask", "high": "ask"},
    "full": None,
}
"""What the three named levels say of each class; `full` caps nothing."""


def is_absolute(path: str, platform: Platform = "posix") -> bool:
    """Whether a path starts at a root: `/…`, on Windows also that of a drive or a share."""
    if path.startswith("/"):
        return True
    drive = path[1:2] == ":" and path[:1].isalpha() and path[2:3] in ("/", "\\")
    return platform == "windows" and (drive or path.startswith("\\\\"))


def _autonomy(value: object) -> dict[RiskClass, Answer] | None:
    if value is None:
        return None
    if isinstance(value, str):
        _is(value in AUTONOMY, "`autonomy` is `readonly`, `supervised`, `full` or an answer for each class")
        named = AUTONOMY[value]
        return None if named is None else {**named}
    classes: tuple[RiskClass, ...] = ("read", "low", "medium", "high")
    answers: Any = value
    _is(
        hasattr(answers, "keys")
        and set(answers.keys()) == set(classes)
        and all(answers[one] in ("allow", "ask", "deny") for one in classes),
        "`autonomy` names an answer for each of `read`, `low`, `medium`, `high`",
    )
    return {one: answers[one] for one in classes}


def _limits(limits: Iterable[str | Limit | TextLimit]) -> tuple[Limit | TextLimit, ...]:
    _is(not isinstance(limits, str) and not hasattr(limits, "keys"), "`limits` is a list of limits")
    return tuple(map(_limit, limits))


def _limit(limit: Any) -> Limit | TextLimit:
    from zcpolicy.validate import LIMIT

    text = limit if isinstance(limit, str) else getattr(limit, "text", None)
    if isinstance(text, str):
        from zcpolicy.limit_text import read_limit

        try:
            return read_limit(text)
        except ValueError as error:
            raise FactsError(str(error)) from None
    from copy import deepcopy

    compiled: Any = limit
    _is(LIMIT(compiled, 0), "`limits` holds what is no limit")
    found: Limit = deepcopy(compiled)
    return found


def _tools(names: Iterable[ToolName], what: str) -> frozenset[ToolName]:
    """A server's tool may come as a list of two, as JSON writes it."""
    _is(not isinstance(names, str), f"`{what}` is a list of tools")
    return frozenset(_tool(name, what) for name in names)


def _tool(name: object, what: str) -> ToolName:
    if isinstance(name, str):
        return name
    parts: list[Any] = [*name] if isinstance(name, (list, tuple)) else []
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise FactsError(f"`{what}` holds what is no tool")
    return (str(parts[0]), str(parts[1]))


def _names(names: Iterable[str], what: str) -> frozenset[str]:
    _is(not isinstance(names, str), f"`{what}` is a list of names")
    found = frozenset(names)
    _is(all(type(name) is str for name in found), f"`{what}` holds what is no name")
    return found


def _texts(values: Mapping[str, str] | None, what: str) -> dict[str, str]:
    found = dict(values or {})
    _is(all(type(one) is str for pair in found.items() for one in pair), f"`{what}` holds what is no text")
    return found


def _is(condition: bool, message: str) -> None:
    if not condition:
        raise FactsError(message)


def _now() -> float:
    from time import time

    return time()

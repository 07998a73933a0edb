"""What a host reports and takes away, as the oracle is told it.

In: values. Out: `Facts` of one session, a `HostNarrowing`, and the statements that a narrowing amounts to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from policy_lang import ast
from tests.reference import reading
from tests.reference.values import Plain, ToolName
from tests.reference.written import Told


@dataclass(frozen=True)
class Ran:
    """A call that ran, as the history of a session has it. `at`: seconds."""

    tool: ToolName
    arguments: Mapping[str, Plain]
    ok: bool
    at: float


@dataclass(eq=False)
class Facts:
    """What a host says of one session; `labels` and `history` grow.

    `history` None: it cannot be read. `above`: the session of the delegator. `drift`: tools whose live definition
    differs, and how. `ledger` False: it cannot be reached.
    """

    cwd: str | None = None
    interactive: bool = True
    platform: Literal["posix", "windows"] = "posix"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    server_cwd: Mapping[str, str] = field(default_factory=dict[str, str])
    supplies_defaults: bool = True
    context: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    labels: set[str] = field(default_factory=set[str])
    history: list[Ran] | None = field(default_factory=list[Ran])
    above: "Facts | None" = None
    drift: Mapping[ToolName, ast.Drift] = field(default_factory=dict[ToolName, ast.Drift])
    ledger: bool = True
    resolve: Callable[[str], str | None] | None = None
    now: float = 0.0


@dataclass(frozen=True)
class HostNarrowing:
    """The host's restriction of one run. `only` None: nothing said; empty: nothing is callable."""

    only: tuple[ToolName, ...] | None = None
    deny: tuple[ToolName, ...] = ()
    ask: tuple[ToolName, ...] = ()
    autonomy: ast.Level | None = None
    limits: tuple[str, ...] = ()


def statements_of(narrowing: HostNarrowing) -> list[Told]:
    """The host's narrowing as the statements of a body."""
    lines: list[str] = []
    if narrowing.only is not None:
        lines.append("only " + (", ".join(map(_spelled, narrowing.only)) or "none"))
    lines += [f"deny {_spelled(tool)}" for tool in narrowing.deny]
    lines += [f"ask {_spelled(tool)}" for tool in narrowing.ask]
    lines += [f"autonomy {narrowing.autonomy}"] if narrowing.autonomy else []
    lines += [f"limit {limit}" for limit in narrowing.limits]
    world = reading.read_text("zcpolicy 1\nceiling {\n" + "\n".join(lines) + "\n}\n")
    return world.ceilings()[0]


def _spelled(tool: ToolName) -> str:
    return "/".join(f'"{part}"' for part in tool if part is not None)

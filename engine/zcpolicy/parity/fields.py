"""What an execution holds, field by field, as JSON in which two paths can be compared.

In: a resolved execution. Out: a dictionary without what belongs to one path alone: ids, depth, surface, delegators.
"""

from collections.abc import Iterable
from json import dumps, loads
from typing import Any

from zcpolicy.authority import genuine
from zcpolicy.exact import thawed
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.parity.seen import named

Json = Any


def resolved(run: ResolvedAgentExecution) -> dict[str, Json]:
    """The fields that reach a loop. Raises SealError for what no resolver made."""
    state = genuine(run)
    bodies = [thawed(body.data) for level in state.stack.counted for body in level.bodies]
    memory, rights = run.memory, run.rights
    return {
        "agent": run.identity.agent,
        "tools": sorted(map(named, run.registry.names())),
        "runtime": run.runtime._asdict(),
        "memory": {"read": [str(one.name) for one in memory.read], "write": [str(one.name) for one in memory.write]},
        "skills": {"active": sorted(run.session.skills), "loadable": list(run.loadable)},
        "delegation": {"to": dict(sorted(rights.to.items())), "depth": rights.depth_left},
        "limits": _once(limit for body in bodies for limit in body.get("limits", [])),
        "approval": _once(body["approval"] for body in bodies if "approval" in body),
        "autonomy": _once(body["autonomy"] for body in bodies if "autonomy" in body),
        "labels": sorted(run.session.labels),
        "directory": run.session.cwd,
        "interactive": run.session.interactive,
        "digest": run.resolver.program.digest,
    }


def _once(said: Iterable[Json]) -> list[Json]:
    """Each once, however many bodies say it: a ceiling stands over every execution of a line."""
    return [loads(text) for text in sorted({dumps(one, sort_keys=True) for one in said})]

"""The world that every setting is shown in: its tools, servers, skills and agents, as policy text.

In: what a setting says of the agent `worker`, and beside it. Out: the text of a whole policy. `front` may do everything
and hand everything on, so that an agent below it is bounded by nothing but its own policy.
"""

from typing import Final

AGENT: Final = "worker"
"""The agent whose turn a path builds."""
FRONT: Final = "front"
"""An agent that may do everything and hand it all on: what stands above `worker` where a path needs a delegator."""
TASK: Final = "parity task"
"""How the text of every turn begins; its number follows."""
DONE: Final = "parity done"
"""What an agent says at the end of a turn that was not stopped."""

TOOLS: Final = """\
zcpolicy 1

tool look(note?: string)                                     risk read
tool pick(note?: string)                                     risk read
tool edit(path: path)                                        risk medium
tool send(to: string, amount?: number)                       risk low
tool wipe(note?: string)                                     risk high
tool fetch(note?: string)                                    risk read
tool wait(note?: string)                                     risk read
tool tell(note?: string)                                     risk read
tool spend(note?: string)                                    risk read
tool both(note?: string) runs tools                          risk read
tool tool_search(query: string, limit?: integer)             risk read
tool hand_over(to: string, task: string, free?: boolean)     risk read
tool learn(skill: string)                                    risk read
tool recall(query: string)                                   risk read
tool remember(text: string, scope: string)                   risk read
tool deliver(text: string)                                   risk read
tool lamp(note?: string)                                     risk read
tool sweep(note?: string)                                    risk read
tool mcp_resources(server: string, uri?: string)             risk read
tool turn_to(level: integer = 1)                             risk read
tool forge/read(path: path)                                  risk read
tool forge/peek(note?: string)                               risk read
tool forge/push(note?: string)                               risk read
tool depot/fill(note?: string)                               risk read

label untrusted
scope team, board
context { role: string }
bundle forge  { server forge }
bundle depot  { server depot }
bundle everything { server forge; server depot }
"""
"""What there is. `both` runs `look` and then `wipe`; `wait` ends only when it is cut off; `tell` tells a long story."""

CAREFUL: Final = "skill careful { deny wipe }\n"
"""A skill, for settings that do not bring one."""

AGENTS: Final = """\
agent front {
    autonomy full
    allow any
    connect everything
    skills careful
    memory read own, worker, team, board write own, worker, team, board
    delegate to worker independent because "both ways are paths"
    delegate to helper, third, reader, auditor independent because "what worker may, front may"
    delegate depth 6
    on drift any allow
}

agent helper  { autonomy full; allow look, hand_over; delegate to third }
agent third   { autonomy full; allow look }
agent auditor { autonomy full; allow wipe }
agent reader  { autonomy full; allow fetch; mark untrusted on fetch }
"""
"""Who stands above `worker`, and whom it may hand work to."""


def policy(worker: str, beside: str = "") -> str:
    """The whole text. `worker`: statements of that agent; `beside`: top-level statements."""
    skill = "" if "skill careful" in beside else CAREFUL
    body = worker if worker.startswith("agent ") else f"agent worker {{\n{_indented(worker)}\n}}\n"
    return "\n".join((TOOLS, skill + beside.strip(), AGENTS, body))


def _indented(text: str) -> str:
    return "\n".join(f"    {line.strip()}" for line in text.strip().splitlines())

"""`test` blocks, run by the oracle alone.

In: a policy's page and one block. Out: the calls whose answer is not the one expected.
"""

from dataclasses import dataclass
from typing import cast

from policy_lang import ast
from tests.reference.decide import Answer, Execution, Policy
from tests.reference.host import Facts
from tests.reference.values import plain, tool_name


@dataclass(frozen=True)
class Missed:
    """A call, as written, and the answer it got instead."""

    block: str
    line: int
    wanted: str
    got: Answer


def missed(policy: Policy, tree: ast.File) -> list[Missed]:
    """The calls of all blocks of a file that do not hold."""
    found: list[Missed] = []
    for block in tree.declarations:
        if isinstance(block, ast.TestBlock):
            found += _of_block(policy, tree, block)
    return found


def _of_block(policy: Policy, tree: ast.File, block: ast.TestBlock) -> list[Missed]:
    """A block is one session: permitted calls run, succeed, mark and charge in order; asked calls do not run."""
    found: list[Missed] = []
    run = _execution(policy, block)
    for step in block.steps:
        if isinstance(step, ast.Wait):
            run.facts.now += step.duration.seconds
        if not isinstance(step, ast.Call):
            continue
        name, arguments = tool_name(step.tool), arguments_of(step)
        got = run.decide(name, arguments)
        if got.effect == "allow":
            run.permit(name, arguments)
        if not _holds(step, got):
            line = tree.source.position(step.span.start).line
            text = tree.source.text[step.span.start : step.span.end]
            found.append(Missed(block.name.value, line, text, got))
    return found


def _execution(policy: Policy, block: ast.TestBlock) -> Execution:
    who = next(step for step in block.steps if isinstance(step, ast.TestAgent))
    facts = Facts()
    for step in block.steps:
        if isinstance(step, ast.Given):
            facts.labels.update(label.text for label in step.marked)
            given = {name.text: plain(value) for name, value in step.facts}
            facts.cwd = cast("str | None", given.pop("cwd", facts.cwd))
            facts.interactive = cast(bool, given.pop("interactive", facts.interactive))
            facts.context = {**facts.context, **given}
    parents = [name.text for name in who.parents]
    return policy.run(who.agent.text, facts, parents=parents, skills=[name.text for name in who.skills])


def _holds(call: ast.Call, got: Answer) -> bool:
    if got.effect != call.effect or (call.reason is not None and got.reason != call.reason.text):
        return False
    return call.because is None or call.because.value in got.becauses


def arguments_of(call: ast.Call) -> object:
    """The arguments of a `call`; duplicate names make it what no call can hold."""
    made = {name: plain(value) for name, value in call.arguments}
    return made if len(made) == len(call.arguments) else cast(object, "duplicate keys")

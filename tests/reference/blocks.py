"""`test` blocks, run by the oracle alone.

In: a policy's page and one block. Out: the calls whose answer is not the one expected.
"""

from dataclasses import dataclass
from typing import cast

from policy_lang import ast
from tests.reference.decide import Answer, Execution, Policy
from tests.reference.host import Facts
from tests.reference.limits import Charge
from tests.reference.values import plain, tool_name
from tests.reference.written import World


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
    facts, ledger = Facts(), list[Charge]()
    run: Execution | None = None
    for step in block.steps:
        match step:
            case ast.TestAgent():
                parents, skills = ([name.text for name in names] for names in (step.parents, step.skills))
                run = policy.run(step.agent.text, facts, parents=parents, skills=skills, ledger=ledger)
            case ast.Given():
                _given(facts, step, policy.world)
            case ast.Wait():
                facts.now += step.duration.seconds
            case ast.Call():
                assert run is not None, "a test names its agent first"
                got = _called(run, step)
                if not _holds(step, got):
                    line = tree.source.position(step.span.start).line
                    found.append(Missed(block.name.value, line, tree.source.text[step.span.start : step.span.end], got))
    return found


def _called(run: Execution, step: ast.Call) -> Answer:
    name, arguments = tool_name(step.tool), arguments_of(step)
    got = run.decide(name, arguments)
    if got.effect == "allow":
        run.permit(name, arguments)
    return got


def _given(facts: Facts, step: ast.Given, world: World) -> None:
    facts.labels.update(label.text for label in step.marked)
    given = {name.text: plain(value) for name, value in step.facts}
    facts.cwd = cast("str | None", given.pop("cwd", facts.cwd))
    facts.interactive = cast(bool, given.pop("interactive", facts.interactive))
    if (
        "home" in given and world.context_kind("home") is None
    ):  # not a fact of `context`: HOME, as the host vouches for it
        facts.env = {**facts.env, "HOME": cast(str, given.pop("home"))}
    if "server_cwd" in given and world.context_kind("server_cwd") is None:  # the directory of every server
        servers = {known.name[0] for known in world.every_tool()}
        facts.server_cwd = dict.fromkeys(
            (one for one in servers if one is not None), cast(str, given.pop("server_cwd"))
        )
    facts.context = {**facts.context, **given}


def _holds(call: ast.Call, got: Answer) -> bool:
    if got.effect != call.effect or (call.reason is not None and got.reason != call.reason.text):
        return False
    return call.because is None or call.because.value in got.becauses


def arguments_of(call: ast.Call) -> object:
    """The arguments of a `call`; duplicate names make it what no call can hold."""
    made = {name: plain(value) for name, value in call.arguments}
    return made if len(made) == len(call.arguments) else cast(object, "duplicate keys")

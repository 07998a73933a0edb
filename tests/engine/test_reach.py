"""What can be reached from what a host is handed, and altered: whatever is done to it, no call is answered otherwise.

The walk goes along every attribute that `getattr` gives, the items of every container, and what functions close over.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import pytest

import policy_lang
from zcpolicy import Narrowing, PermitError, ResolvedAgentExecution, Resolver, Session, load_compiled, program, stack
from zcpolicy.combine import Verdict, plan_behind
from zcpolicy.execution import plan_of
from zcpolicy.facts import Entry
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.gate import Admitted, Refused, admit
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import HostTool, SkillSource, ToolContext, ToolSources
from zcpolicy.stack import Stack, deciders_of, plans_of

POLICY = """zcpolicy 1
tool look(at: string)                            risk read
tool shell(command: shell)                       risk high
tool write(path: path, text?: string = "x")      risk medium
tool mail(to: string, kind: string)              risk medium
tool pay(amount: integer)                        risk medium
tool file(at: object)                            risk low
tool never()                                     risk high
label untrusted
context { channel: string }
skill tidy { deny write }
ceiling { deny never; deny shell when args.command runs any ["rm ..."]; limit 3 calls to pay per session }
agent a {
    autonomy { read allow; low allow; medium allow; high ask }
    skills tidy
    allow look, never, file
    allow shell
    auto_approve shell when args.command runs only ["ls ..."]
    allow write when every paths under "/w"
    allow mail when args.kind == "note" and session.channel == "ops"
    deny mail when marked untrusted or args.to like "*@evil"
    allow pay
    deny pay when args.amount > 10
    mark untrusted on look when args.at == "web"
    require look before pay by any agent
    limit 100 calls per hour
    delegate to b
    approval { route "ops" }
}
agent b narrows a { deny look when args.at == "b"; delegate none }
"""
SAID: Final = load_compiled(policy_lang.loads(POLICY).dump()).dump()
CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("pay", {"amount": 1}),
    ("never", {}),
    ("shell", {"command": "rm -r /"}),
    ("shell", {"command": "ls -l"}),
    ("shell", {"command": "make"}),
    ("write", {"path": "/w/a"}),
    ("write", {"path": "/etc/a"}),
    ("write", {"path": "/w/held/policy"}),
    ("mail", {"to": "me", "kind": "note"}),
    ("mail", {"to": "you@evil", "kind": "note"}),
    ("mail", {"to": "me", "kind": "other"}),
    ("file", {"at": {"b": [1, "c"]}}),
    ("look", {"at": "b"}),
    ("look", {"at": "x"}),
    ("pay", {"amount": 1}),
    ("pay", {"amount": 11}),
    ("look", {"at": "web"}),
    ("mail", {"to": "me", "kind": "note"}),
    ("loook", {}),
    ("lооk", {}),
]
"""Of every effect, for as many reasons as a policy has; the last one is spelled with letters that only look like `o`."""


@dataclass
class World:
    """`above`, `below`: the execution of `a`, and one of `b` below it."""

    resolver: Resolver
    above: ResolvedAgentExecution
    below: ResolvedAgentExecution
    registry: ScopedToolRegistry
    decisions: list[Any]

    def roots(self) -> dict[str, object]:
        return {
            "above": self.above, "below": self.below, "resolver": self.resolver, "program": self.resolver.program,
            "registry": self.registry, "decisions": self.decisions, "body": self.above.stack.own.root,
            "again": self.resolver.decide("a", "shell", {"command": "rm x"}, session=Session(client="c")),
        }  # fmt: skip


async def _work(_arguments: dict[str, Any], _context: ToolContext) -> str:
    return "done"


async def made() -> World:
    """Everything of its own: nothing of it was ever altered. Every tool was asked for once."""
    resolver = Resolver(load_compiled(SAID), protected=["/w/held/policy"])
    told: dict[str, Any] = {"cwd": "/w", "interactive": True, "client": "c", "context": {"channel": "ops"}}
    above = resolver.resolve("a", session=Session(id="s1", **told), narrowing=Narrowing(deny=["file"]))
    below = resolver.resolve("b", session=Session(id="s2", **told), parent=above)
    tools = tuple(HostTool(str(name), "works", {"type": "object"}, _work) for name in resolver.program.tools)
    registry = await ScopedToolRegistry.assemble(
        below, ToolSources(builtins=tools, skills={"tidy": SkillSource("tidies", "tidy up")})
    )
    decisions = [run.decide(tool, arguments) for run in (above, below) for tool, arguments in CALLS]
    return World(resolver, above, below, registry, decisions)


async def answers(world: World) -> list[Any]:
    """What `decide`, `permit` and the gate say of every call, one after the other."""
    found: list[Any] = []
    for run in (world.below, world.above):
        for tool, arguments in CALLS:
            found.append(
                (run.agent, tool, arguments, _permitted(run, tool, arguments), await _gate(run, tool, arguments))
            )
    found.append(
        (world.below.tools(), world.registry.names(), world.below.rights, world.below.runtime, world.above.loadable)
    )
    world.below.load_skill("tidy")  # every plan is made anew
    found += [_permitted(world.below, tool, arguments) for tool, arguments in CALLS]
    world.resolver.publish(load_compiled(SAID))
    return [
        *found,
        *(_permitted(run, tool, arguments) for run in (world.below, world.above) for tool, arguments in CALLS),
    ]


def _permitted(run: ResolvedAgentExecution, tool: str, arguments: dict[str, Any]) -> Any:
    decision = run.decide(tool, arguments)
    said = (decision.effect, decision.reason, [rule.to_json() for rule in decision.rules])
    try:
        run.permit(decision)
    except PermitError as error:
        return said, str(error)
    return said, sorted(run.session.labels)


async def _gate(run: ResolvedAgentExecution, tool: str, arguments: dict[str, Any]) -> Any:
    got = await admit(run, tool, arguments, ResolvedIo())
    if isinstance(got, Admitted):
        await got.abandon()
        return "admitted", got.decision.wire()
    return got.reason if isinstance(got, Refused) else "paused"


# --- the walk --------------------------------------------------------------------------------------------------------

ENDS: Final = (Session, Narrowing, Entry, ModuleType, type, str, bytes, int, float, type(None))
"""What a host reports, and may alter; and what is no part of an object."""
OF_FUNCTIONS: Final = ("__closure__", "__self__", "__func__")
NOT_OURS: Final = ("_field_defaults",)
"""Of a class: the walk ends there, but a named tuple gives it too."""

Path = tuple[str, ...]


def reached(roots: dict[str, object]) -> Iterator[tuple[Path, Any]]:
    """Everything, each once, with the way there."""
    seen: dict[int, object] = {}
    left: list[tuple[Path, object]] = [((name,), one) for name, one in roots.items()]
    while left:
        path, one = left.pop(0)
        if id(one) in seen or isinstance(one, ENDS) or type(one).__module__.startswith("zcpolicy.ledgers"):
            continue
        seen[id(one)] = one  # held, so that no other gets its id
        yield path, one
        left += [((*path, name), part) for name, part in _parts(one)]


def _parts(one: Any) -> Iterator[tuple[str, object]]:
    for name in dir(one):
        if (name.startswith("__") and name not in OF_FUNCTIONS) or name in NOT_OURS:
            continue
        try:
            yield f".{name}", getattr(one, name)
        except Exception:  # noqa: BLE001 - what raises gives nothing to alter
            continue
    if type(one).__name__ == "cell":
        yield "()", one.cell_contents
    if hasattr(one, "items") and hasattr(one, "keys"):
        yield from (("key", key) for key in [*one])
        yield from ((f"[{key!r}]", one[key]) for key in [*one])
    elif hasattr(one, "__iter__") and hasattr(one, "__len__"):
        yield from ((f"[{number}]", item) for number, item in enumerate([*one]))


def is_alterable(one: Any) -> bool:
    return isinstance(one, (dict, list, set, bytearray)) or (hasattr(one, "clear") and hasattr(one, "pop"))


# --- the damage ------------------------------------------------------------------------------------------------------


def _clear(one: Any) -> None:
    one.clear()


def _pop(one: Any) -> None:
    one.popitem() if hasattr(one, "popitem") else one.pop()


def _exchange(one: Any) -> None:
    """Every value in the place of another, and one more."""
    if hasattr(one, "keys"):
        values: list[object] = [*one.values()]
        one.update(zip([*one], values[1:] + values[:1], strict=True))
        one["loook"] = values[0] if values else "x"
    elif hasattr(one, "add"):
        one.add("x")
    else:
        one[:] = [*one[1:], *one[:1], *one[:1]]


DAMAGE: Final[dict[str, Callable[[Any], None]]] = {"clear": _clear, "pop": _pop, "exchange": _exchange}


def damage(one: Any, how: str) -> None:
    try:
        DAMAGE[how](one)
    except (KeyError, IndexError):  # it is empty
        return


def kind(path: Path) -> str:
    """The way to it, without which of several."""
    return re.sub(r"\d+", "", "".join(path))


async def kept() -> list[str]:
    """What can be altered and is there when it is asked for again: of all else everybody gets one of his own."""
    world = await made()
    first, again = dict(reached(world.roots())), dict(reached(world.roots()))
    return sorted({kind(path) for path, one in first.items() if is_alterable(one) and again.get(path) is one})


async def story(how: str, only: str = "") -> list[Any]:
    """The answers after everything was altered that can be reached, or one kind of thing alone."""
    world = await made()
    for path, one in [*reached(world.roots())]:
        if is_alterable(one) and only in ("", kind(path)):
            damage(one, how)
    return await answers(world)


@pytest.fixture(scope="module")
def wanted() -> list[Any]:
    """What is answered where nobody altered anything."""

    async def untouched() -> list[Any]:
        return await answers(await made())

    return asyncio.run(untouched())


def test_there_is_something_to_deny(wanted: list[Any]) -> None:
    told = " ".join(map(repr, wanted))
    for reason in (
        "denied",
        "not-granted",
        "protected",
        "precondition",
        "budget",
        "unknown-tool",
        "not-canonical",
        "asked",
    ):
        assert f"'{reason}'" in told or f": {reason}" in told, reason


@pytest.mark.parametrize("how", DAMAGE)
def test_whatever_is_altered_at_once_the_answers_stand(how: str, wanted: list[Any]) -> None:
    assert asyncio.run(story(how)) == wanted


def test_whatever_is_altered_one_by_one_the_answers_stand(wanted: list[Any]) -> None:
    for only in asyncio.run(kept()):
        for how in DAMAGE:
            assert asyncio.run(story(how, only)) == wanted, (only, how)


def test_what_is_kept_and_can_be_altered() -> None:
    """The answers that a host was given."""
    assert {re.sub(r"^\w+", "", one) for one in asyncio.run(kept())} == {
        "", "[].arguments", "[].arguments['at']", "[].arguments['at']['b']",
    }  # fmt: skip


def test_no_attribute_can_be_set() -> None:
    """But those of an answer, and of what looks its execution up before it acts."""
    found = {f"{type(one).__name__}.{name}" for one, name in asyncio.run(_settable())}
    assert found == {
        "ApprovalManager._run", "Decision.arguments", "Decision.effect",
        "Decision.labels", "Decision.run", "Decision.verdict", "Verdict.bits", "Verdict.resolver", "Verdict.said",
    }  # fmt: skip


async def _settable() -> list[tuple[object, str]]:
    world = await made()
    ours = [one for _, one in reached(world.roots()) if type(one).__module__.startswith("zcpolicy.")]
    return [(one, name) for one in ours for name in dir(one) if not name.startswith("__") and _sets(one, name)]


def _sets(one: object, name: str) -> bool:
    try:
        setattr(one, name, getattr(one, name))
    except Exception:  # noqa: BLE001 - whatever it says, it is not set
        return False
    return True


LEAKS: dict[str, tuple[type, Callable[[Any], object]]] = {
    "what decides a tool": (ResolvedAgentExecution, lambda run: deciders_of(run.stack)),
    "a plan": (ResolvedAgentExecution, lambda run: plan_of(run, "shell")),
    "plans": (Stack, plans_of),
    "the plan behind an answer": (Verdict, plan_behind),
}


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("how", DAMAGE)
def test_the_walk_finds_what_is_an_attribute(
    leak: str, how: str, wanted: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, gives = LEAKS[leak]
    monkeypatch.setattr(owner, "leak", property(gives), raising=False)
    assert asyncio.run(_answers_or_fault(how)) != wanted


@pytest.mark.parametrize("how", DAMAGE)
def test_the_walk_finds_what_is_not_frozen(how: str, wanted: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (program, stack):
        monkeypatch.setattr(module, "frozen", _as_it_is)
    assert asyncio.run(_answers_or_fault(how)) != wanted


def _as_it_is(value: object) -> object:
    return value


async def _answers_or_fault(how: str) -> object:
    """So much may be altered that nothing answers any more."""
    try:
        return await story(how)
    except Exception as fault:  # noqa: BLE001 - of any kind
        return fault

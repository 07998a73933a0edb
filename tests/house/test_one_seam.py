"""There is no seventh way: what makes executions and registries, runs turns, calls models and runs tools is named in few places.

The scan reads every file of both packages, and looks at names, whether they are called, handed on, imported or spelt out. One that
is said where it does not belong fails, and so does a place that is listed and does not say it any more. import-linter
(pyproject.toml) holds the same by imports. It stops mistakes and second thoughts; who wants to hide something can.
"""

from functools import cache

import pytest

from zcpolicy.parity import reference

from .blocks import ROOT
from .said import FOREIGN, UNKNOWN, said

HOST = "zcpolicy/daemon/host.py"
DIRECT = "zcpolicy/parity/direct.py"  # what the harness compares every path with
NAMES = "zcpolicy/__init__.py"  # the table of what hosts are offered
RESOLVER, EXECUTION, TICKETS = "zcpolicy/resolver.py", "zcpolicy/execution.py", "zcpolicy/tickets.py"
GATE, BATCH, CONTEXT, LOOP = (f"zcpolicy/loop/{one}.py" for one in ("gate", "batch", "context", "loop"))
ASSEMBLY, SCOPED = "zcpolicy/registry/assemble.py", "zcpolicy/registry/scoped.py"
PATHS = {f"zcpolicy/daemon/paths/{one}.py" for one in ("channel", "rpc", "gateway", "run", "delegate", "step")}
DECIDING = {  # programs of the command line and of the tests in policy files, searches over HTTP: they decide, and run nothing
    "zcpolicy/hosts/authzen/search.py", "policy_lang/testing.py", "policy_lang/checks/witness.py", "policy_lang/cli/decide.py", "policy_lang/cli/resolve.py",
    "zcpolicy/hosts/hook/deciding.py",  # other people's agents: they run what it permits
}  # fmt: skip
FILES = {  # of the file system: `Path.resolve`, and links that a session resolves
    "policy_lang/cli/compile_.py", "policy_lang/cli/tools.py", "policy_lang/fixes.py", "policy_lang/gather.py", "policy_lang/syntax/tables.py",
    "zcpolicy/predicates/path.py", "zcpolicy/predicates/path_shapes.py",
}  # fmt: skip
TURNS = {  # the `turn` of a session, of a charge, of an identity: its name
    EXECUTION, LOOP, "zcpolicy/facts.py", "zcpolicy/identity.py", "zcpolicy/ledgers/book.py", "zcpolicy/loop/turn.py", "zcpolicy/pots.py",
    "zcpolicy/hosts/hook/deciding.py", "zcpolicy/hosts/hook/kept.py",
}  # fmt: skip
RUNS = {  # the `run` of a decision, of a reader, of an event loop
    EXECUTION, LOOP, GATE, BATCH, CONTEXT, "zcpolicy/approvals/ask.py", "zcpolicy/approvals/asking.py", "zcpolicy/approvals/binding.py",
    "zcpolicy/approvals/hearing.py", "zcpolicy/approvals/outcome.py", "zcpolicy/approvals/settling.py", "zcpolicy/budgets.py",
    "zcpolicy/decision.py", "zcpolicy/loop/admitted.py", "zcpolicy/loop/report.py", "zcpolicy/loop/unbroken.py",
    "zcpolicy/memory.py", "zcpolicy/parity/suite.py", "zcpolicy/parity/tools.py", "zcpolicy/permits.py", "zcpolicy/registry/host_tools.py",
    "zcpolicy/registry/view.py", "zcpolicy/predicates/shell_dress.py", "zcpolicy/predicates/shell_lexer.py",
    "zcpolicy/predicates/shell_reader.py", "zcpolicy/trace.py", "policy_lang/cli/decide.py", "policy_lang/cli/decision_text.py", "policy_lang/cli/parity.py", "policy_lang/cli/serve.py", "policy_lang/cli/server_tools.py",
    "policy_lang/parse.py",
}  # fmt: skip
SEALED = {  # the makers of sealed objects
    EXECUTION, RESOLVER, "zcpolicy/approvals/outcome.py", "zcpolicy/loop/admitted.py", "zcpolicy/memory.py", "zcpolicy/program.py", "zcpolicy/reload/carried.py",
}  # fmt: skip

CALLER, TWO_CLIENTS = "zcpolicy/state/caller.py", "zcpolicy/state/two_clients.py"
SEALED_STATE = {CALLER, "zcpolicy/state/contract.py"}

LOOKED_INTO = "policy_lang/serving/modules.py"
PLACES: dict[str, set[str]] = {
    # executions
    ".resolve": {HOST, DIRECT, *DECIDING, *FILES},
    "_resolve": {RESOLVER},
    "remade": {RESOLVER, TICKETS},
    ".resume": {HOST},
    ".resumed": {"zcpolicy/daemon/paths/run.py"},
    "import resumed": {RESOLVER},
    ".again": {EXECUTION},
    ".execution": {HOST, "zcpolicy/daemon/approvals.py", "zcpolicy/daemon/paths/step.py", GATE, LOOP, "policy_lang/testing.py"},
    "import execution": {RESOLVER},
    "unlisted": {EXECUTION, RESOLVER},
    "enrol": {EXECUTION},
    "State": {"zcpolicy/authority.py", EXECUTION, RESOLVER, "zcpolicy/ledgers/contract.py", "zcpolicy/ledgers/reservations.py"},
    "executions_of": {RESOLVER, "zcpolicy/parity/stage.py"},
    "ticket_of": {EXECUTION},
    "ticket_for": {CONTEXT},
    "redeemed": {HOST},
    # callers
    "import caller_for": {CONTEXT, TWO_CLIENTS},
    "import whose": {"zcpolicy/state/contract.py"},
    "import shown_to": {"zcpolicy/state/contract.py"},
    # registries
    "assemble": {HOST, DIRECT},
    "ScopedToolRegistry": {NAMES, HOST, DIRECT, SCOPED, EXECUTION, "zcpolicy/authority.py"},
    # turns
    "run_tool_call_loop": {NAMES, LOOP, HOST, DIRECT},
    ".turn": {HOST, "zcpolicy/parity/reference.py", *PATHS, *TURNS},
    "._turn": {HOST, "zcpolicy/daemon/paths/gateway.py", "zcpolicy/daemon/paths/rpc.py"},
    # models: `stream` is also the body of a request or of an answer over HTTP
    ".stream": {"zcpolicy/loop/asked_model.py", "zcpolicy/daemon/paths/gateway.py", "zcpolicy/hosts/authzen/http.py", "policy_lang/cli/server_url.py"},
    # calls and tools
    ".permit": {"zcpolicy/registry/capabilities.py", "policy_lang/cli/decide.py", "policy_lang/testing.py", "zcpolicy/hosts/hook/deciding.py"},
    ".approvals": {"zcpolicy/authority.py", EXECUTION, GATE, "zcpolicy/daemon/approvals.py"},
    "admit": {NAMES, GATE, BATCH, CONTEXT},
    "admit_all": {NAMES, GATE, CONTEXT},
    "perform": {NAMES, GATE, BATCH, CONTEXT},
    "import admitted": {GATE},
    "to_run": {GATE},
    "Batch": {LOOP},
    "runner_of": {GATE},
    ".run": {  # sources, lifecycle: what kind of function it is; toolset: wrapped, so that it runs while its tool is executing
        ASSEMBLY, SCOPED, "zcpolicy/registry/sources.py", "zcpolicy/state/lifecycle.py", "zcpolicy/state/toolset.py", TWO_CLIENTS, *RUNS,
    },
    ".call": {ASSEMBLY, "zcpolicy/approvals/outcome.py", "zcpolicy/approvals/settling.py", "zcpolicy/daemon/approvals.py", "policy_lang/cli/test.py"},
    ".offers": {ASSEMBLY, "zcpolicy/registry/view.py"},
    ".builtins": {TWO_CLIENTS, ASSEMBLY, "zcpolicy/daemon/factories.py"},
    ".peripherals": {ASSEMBLY, "zcpolicy/parity/tools.py"},
    ".sources": {TWO_CLIENTS, HOST, DIRECT, "zcpolicy/daemon/factories.py", "zcpolicy/daemon/serving.py", "zcpolicy/parity/daemon.py", "zcpolicy/parity/probe.py", "zcpolicy/parity/reference.py", "zcpolicy/parity/stage.py"},
    # what is private, sealed or on record
    FOREIGN: {RESOLVER, "zcpolicy/operands.py", "zcpolicy/program.py", "policy_lang/cli/hook.py"},
    "_records": {SCOPED},
    "_all_held": {"zcpolicy/loop/admitted.py"},
    ".__new__": {*SEALED, *SEALED_STATE, "zcpolicy/state/secret.py", SCOPED, TICKETS, "zcpolicy/records.py"},
    ".__setattr__": {"zcpolicy/sealed.py"},
    "import put": {*SEALED, *SEALED_STATE, "zcpolicy/authority.py", "zcpolicy/combine.py", "zcpolicy/facts.py", "zcpolicy/lineage.py", "zcpolicy/sessions.py", "zcpolicy/stack.py"},
    # ways to a name that is not said
    UNKNOWN: {
        "zcpolicy/state/secret.py",  # looks for secrets in whatever it is given
        NAMES, "zcpolicy/call.py", "zcpolicy/daemon/factories.py", "zcpolicy/operands.py", "zcpolicy/parity/probe.py", "zcpolicy/program.py", "zcpolicy/records.py",
        "zcpolicy/sealed.py", "zcpolicy/sessions.py", "policy_lang/__init__.py", "policy_lang/cli/parity.py", "policy_lang/format.py",
        "policy_lang/syntax/declarations.py",
    },
    "importlib": {
        NAMES, "zcpolicy/daemon/factories.py", "zcpolicy/daemon/log/shapes.py", "zcpolicy/predicates/regex.py", "zcpolicy/prices.py", "policy_lang/cli/app.py", "policy_lang/cli/parity.py",
        "policy_lang/render/sarif.py",
        "policy_lang/serving/operators.py", "policy_lang/serving/secrets.py", "policy_lang/serving/settings.py", "policy_lang/serving/supplies.py", LOOKED_INTO,
    },
    "import_module": {NAMES, "zcpolicy/daemon/factories.py", "zcpolicy/daemon/log/shapes.py", "zcpolicy/predicates/regex.py", "policy_lang/cli/app.py", "policy_lang/cli/parity.py"},
    "__import__": {"zcpolicy/program.py"},
    "vars": {"zcpolicy/prices.py", "zcpolicy/state/trees.py", LOOKED_INTO},  # the last two: looked for in the text of tools
    "globals": {NAMES, "zcpolicy/state/trees.py", LOOKED_INTO},  # the last two: looked for in the text of tools
    "exec": {"zcpolicy/generate.py", "zcpolicy/predicates/shell_launch.py", LOOKED_INTO},  # the second: a command of the shell; the last: looked for
    "eval": {"zcpolicy/predicates/shell_dress.py"},  # likewise
    "gc": {"policy_lang/collector.py"},
    "inspect": {"zcpolicy/approvals/hearing.py", "zcpolicy/awaited.py", "zcpolicy/state/guard.py", "zcpolicy/state/inspection.py"},
    "ctypes": {"zcpolicy/state/guard.py"},  # the names of events that are refused
    "pkgutil": {"policy_lang/syntax/tables.py"},
    "pickle": {"policy_lang/cache.py"},
    ".modules": {"policy_lang/cache.py"},
    "__dict__": {"zcpolicy/exact.py", "zcpolicy/sealed.py", "zcpolicy/state/secret.py", "zcpolicy/state/trees.py"},
    "import hidden": {
        "zcpolicy/budgets.py", "zcpolicy/combine.py", "zcpolicy/execution.py", "zcpolicy/program.py", "zcpolicy/resolver.py", "zcpolicy/stack.py",
        "zcpolicy/state/secret.py",
    },
    "import deciders_of": {"zcpolicy/execution.py", "zcpolicy/resolver.py"},
    "__getattribute__": {"zcpolicy/combine.py"},
    **{
        nowhere: set[str]()
        for nowhere in (
            "import *", "import builtins", "__builtins__", ".__getattr__", "__globals__", "__closure__", "__subclasses__", "_getframe",
            "attrgetter", "methodcaller", "locals", "runpy", "FunctionType",
        )
    },
}  # fmt: skip
"""What is said (`said.said`), and the files that may say it, each of which does."""


@cache
def sayings() -> dict[str, set[str]]:
    """What every file of both packages says."""
    return {
        str(path.relative_to(root)): said(path.read_text("utf-8"))
        for root, folder in ((ROOT / "engine", "zcpolicy"), (ROOT, "policy_lang"))
        for path in sorted((root / folder).rglob("*.py"))
    }


@pytest.mark.parametrize("what", PLACES)
def test_it_is_said_where_it_belongs_and_nowhere_else(what: str) -> None:
    assert {name for name, words in sayings().items() if what in words} == PLACES[what]


def test_every_path_is_driven_with_every_setting() -> None:
    """A file that is put beside the paths is one: the parity harness has to know it by its name."""
    files = {path.stem for path in (ROOT / "engine/zcpolicy/daemon/paths").glob("*.py")} - {"__init__"}
    assert {f"zcpolicy/daemon/paths/{name}.py" for name in files} == PATHS
    assert files <= {path.name for path in reference.PATHS}


SEVENTH: dict[str, tuple[str, str]] = {
    "an execution of its own": ("def f(r, s):\n  return r.resolve('a', session=s)", ".resolve"),
    "by another name": ("def f(r, s):\n  go = r.resolve\n  return go('a', session=s)", ".resolve"),
    "the agent by name": ("def f(r):\n  return r.resolve(agent='a')", ".resolve"),
    "in part": ("from functools import partial\ndef f(r, s):\n  return partial(r.resolve, 'a', session=s)()", ".resolve"),
    "spelt out": ("def f(r, s):\n  return getattr(r, 'resolve')('a', session=s)", ".resolve"),
    "arguments in one": ("def f(r, k):\n  return r.resolve(**k)", ".resolve"),
    "without a charge": ("def f(r, s, p):\n  return r.remade('a', session=s, parent=p)", "remade"),
    "of the class": ("from zcpolicy import Resolver\ndef f(r, k):\n  return Resolver.resolve(r, **k)", ".resolve"),
    "matched": ("from zcpolicy import Resolver\ndef f(r):\n  match r:\n    case Resolver(resolve=go):\n      return go('a')", ".resolve"),
    "what is behind it": ("def f(r, s):\n  return r._resolve('a', session=s)", "_resolve"),
    "an execution again": ("def f(r, st):\n  return r.again(st, 'a')", ".again"),
    "resumed": ("def review(resolver, ticket):\n  return resolver.resume(ticket, {}.get)", ".resume"),
    "resumed by name": ("def f(r, t):\n  return r.resume(ticket=t, sessions={}.get)", ".resume"),
    "resumed by hand": ("from zcpolicy.tickets import resumed\ndef f(*a):\n  return resumed(*a)", "import resumed"),
    "of a decision": ("def f(r, s):\n  return r.decide('a', 't', {}, session=s).run", ".run"),
    "of a ticket": ("from zcpolicy.tickets import redeemed\ndef f(t):\n  return redeemed(t)[0]", "redeemed"),
    "somebody else's": ("from zcpolicy.authority import executions_of\ndef f(r):\n  return executions_of(r)[0]", "executions_of"),
    "a permit without the gate": ("def f(run, d):\n  return run.permit(d)", ".permit"),
    "an answer": ("async def f(run, q, a):\n  await run.approvals.answer(q, a)", ".approvals"),
    "of the host": ("def f(host, o):\n  return host.execution(o)", ".execution"),
    "a forged record": ("from zcpolicy.authority import State\ndef f(*a):\n  return execution(State(*a))", "State"),
    "a forged record, renamed": ("from zcpolicy.authority import State as S\ndef f(*a):\n  return S(*a)", "State"),
    "its maker": ("from zcpolicy.execution import execution as e\ndef f(s):\n  return e(s)", "import execution"),
    "its maker, of the module": ("import zcpolicy.execution as e\ndef f(s):\n  return e.execution(s)", ".execution"),
    "an object without its maker": ("def f():\n  return object.__new__(ResolvedAgentExecution)", ".__new__"),
    "an object altered": ("def f(run, p):\n  object.__setattr__(run, 'parent', p)", ".__setattr__"),
    "an object altered, shortly": ("from zcpolicy.sealed import put\ndef f(run, p):\n  put(run, 'parent', p)", "import put"),
    "a registry of its own": ("async def f(run, s):\n  return await ScopedToolRegistry.assemble(run, s)", "assemble"),
    "a registry by another name": ("from zcpolicy.daemon.host import ScopedToolRegistry\nasync def f(r, s):\n  a = ScopedToolRegistry.assemble\n  return await a(r, s)", "assemble"),
    "a review in the background": ("async def review(run, model, io):\n  await run_tool_call_loop(run, model, io, [])", "run_tool_call_loop"),
    "of a module": ("import zcpolicy.loop.loop as l\nasync def f(*a):\n  await l.run_tool_call_loop(*a)", "run_tool_call_loop"),
    "by its module's name": ("import importlib\nasync def f(*a):\n  m = importlib.import_module('zcpolicy.loop.loop')\n  return await getattr(m, 'run_tool_call_loop')(*a)", "run_tool_call_loop"),
    "in pieces": ("import importlib\nasync def f(*a):\n  m = importlib.import_module('zcpolicy.loop' + '.loop')\n  return await getattr(m, 'run_tool' + '_call_loop')(*a)", UNKNOWN),
    "of another's names": ("from zcpolicy.daemon import host as h\nasync def f(*a):\n  return await vars(h)['run_tool_call_loop'](*a)", "run_tool_call_loop"),
    "from what hosts are offered": ("import zcpolicy\nasync def f(*a):\n  return await zcpolicy.admit(*a)", "admit"),
    "everything": ("from zcpolicy.loop.loop import *", "import *"),
    "a model that is asked directly": ("def f(model, request):\n  return model.stream(request)", ".stream"),
    "a model by name": ("def f(m, q):\n  return m.stream(request=q)", ".stream"),
    "a model by another name": ("def f(m, q):\n  s = m.stream\n  return s(q)", ".stream"),
    "an offer that is run": ("async def f(o, a, c):\n  return await o.run(a, c)", ".run"),
    "a tool of the host that is run": ("async def f(host, a, c):\n  return await host.sources.builtins[0].run(a, c)", ".builtins"),
    "a server that is called": ("async def f(conn):\n  return await conn.call('t', {})", ".call"),
    "a batch": ("from zcpolicy.loop.batch import Batch\nasync def f(run, io, c):\n  await Batch(run, io, 'k', 9e9, print).run(c, (), parallel=False)", "Batch"),
    "the gate from where it is used": ("from zcpolicy.loop.batch import admit, perform\nasync def f(run, io, c, x):\n  return await perform(await admit(run, 't', {}, io), c, x)", "perform"),
    "the host's own turn": ("async def f(host, o):\n  return await host._turn(o)", "._turn"),
    "of a host below it": ("class H(Host):\n  async def f(self, o):\n    return await self._turn(o)", "._turn"),
    "a turn by another name": ("async def f(host, o):\n  t = host.turn\n  return await t(o)", ".turn"),
    "a turn of another name": ("async def f(h, o):\n  return await h.turn(o)", ".turn"),
    "a private record": ("from zcpolicy.registry import scoped\ndef f(g):\n  return scoped._records[g].offers['t'].run", "_records"),
    "a private name": ("from zcpolicy.loop.admitted import _Held\ndef f(g):\n  return _Held(g)", FOREIGN),
    "a getter": ("from operator import attrgetter\ndef f(r):\n  return attrgetter('resol' + 've')(r)('a')", "attrgetter"),
    "getattr, handed on": ("def f(r, n):\n  g = getattr\n  return g(r, n)('a')", UNKNOWN),
    "getattr, of the module": ("import builtins\ndef f(r, n):\n  return builtins.getattr(r, n)('a')", UNKNOWN),
    "getattr, imported": ("from builtins import getattr as g\ndef f(r, n):\n  return g(r, n)('a')", UNKNOWN),
    "by all modules": ("import sys\ndef f(n):\n  return sys.modules[n]", ".modules"),
    "as text": ("def f(r):\n  return eval('r.resol' + 've')('a')", "eval"),
}  # fmt: skip
"""Ways past the seam that a text of nobody's may take, and what of it is seen."""


@pytest.mark.parametrize("case", SEVENTH)
def test_a_seventh_way_is_seen(case: str) -> None:
    text, what = SEVENTH[case]
    assert what in said(text)
    assert "zcpolicy/seventh.py" not in PLACES[what]


INNOCENT = {
    "a method of its own": "class A:\n  def f(self):\n    return self._own\n",
    "a named tuple": "def f(a):\n  return a._replace(b=1)._asdict()\n",
    "attributes by name": "def f(a):\n  return getattr(a, 'name'), hasattr(a, 'x')\n",
    "a sentence": "WHY = 'the host must resolve it. turn it on, and assemble'\n",
}


@pytest.mark.parametrize("case", INNOCENT)
def test_what_is_no_way(case: str) -> None:
    assert not said(INNOCENT[case]) & PLACES.keys()

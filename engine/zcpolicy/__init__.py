"""zcpolicy, the engine: a compiled policy and a host's facts in, decisions out. It needs no parser.

>>> resolver = Resolver(load_compiled("team.zcpc"))
>>> run = resolver.resolve("coder", session=Session(cwd="/w"))
>>> run.decide("shell", {"command": "git status"}).effect
"""

from zcpolicy.call import Malformed
from zcpolicy.decision import Decision
from zcpolicy.facts import Entry, FactsError, Narrowing, Session
from zcpolicy.program import CompiledError, Program, load_compiled
from zcpolicy.resolver import PermitError, ResolvedAgentExecution, ResolveError, Resolver, UnknownAgent

__all__ = [
    "CompiledError",
    "Decision",
    "Entry",
    "FactsError",
    "Malformed",
    "Narrowing",
    "PermitError",
    "Program",
    "ResolveError",
    "ResolvedAgentExecution",
    "Resolver",
    "Session",
    "UnknownAgent",
    "load_compiled",
]

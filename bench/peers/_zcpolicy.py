"""The engine's side of the adapters: executions by agent, and one decision."""

import zcpolicy


class Engine:
    """A resolver, and the executions of the agents seen so far, as a host holds one per session.

    The session is interactive: the workload's `ask` is an answer, not a deny for want of a person.
    """

    __slots__ = ("resolver", "runs", "session")

    def __init__(self, program):
        self.resolver = zcpolicy.Resolver(program)
        self.runs = {}
        self.session = zcpolicy.Session(interactive=True)


def decide(engine, req):
    agent, tool, args = req
    run = engine.runs.get(agent)
    if run is None:
        run = engine.runs[agent] = engine.resolver.resolve(agent, session=engine.session)
    return run.decide(tool, args).effect

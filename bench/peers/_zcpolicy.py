"""The engine's side of the adapters: executions by agent, and one decision."""

import zcpolicy


class Engine:
    """A resolver, and the executions of the agents seen so far, as a host holds one per session."""

    __slots__ = ("resolver", "runs")

    def __init__(self, program):
        self.resolver = zcpolicy.Resolver(program)
        self.runs = {}


def decide(engine, req):
    agent, tool, args = req
    run = engine.runs.get(agent)
    if run is None:
        run = engine.runs[agent] = engine.resolver.resolve(agent)
    return run.decide(tool, args).effect

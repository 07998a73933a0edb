"""The parity harness: drives every path of a host with every setting, and tells from what ran which holds where.

In: a host's paths (`ParityPath`: a name and a function), and how to compile text. Out: a `Matrix` of what ran.

A host's path is one async function that takes a `Probe` and returns what its caller was told:

    async def drive(probe: Probe) -> list[str]:
        return [await my_turn(probe, task) for task in probe.tasks]
"""

"""The oracle: what SPEC says about a call, decided straight from the syntax tree by the plainest code.

In: policy text. Out: an `Answer`. No index, no cache, no lowering; every question walks the whole tree again.
Names, tool references, classes, arguments, combination, history, limits, labels, delegation and the order of reasons
are its own. Of the engine it uses the leaf predicates alone (they have oracles of their own), of the compiler the
parser and the reading of catalogues. It speaks only of policies that compile: it checks nothing.

reading.py      the files of a policy
values.py       literals, kinds and names as plain values
written.py      names, tools and bodies, looked up in the files
arguments.py    the judged arguments of one call, and what operands, `paths` and `urls` mean in them
conditions.py   conditions in three-valued logic
host.py         what a host reports and takes away
bodies.py       one body's answer
limits.py       one limit's answer
decide.py       the minimum, who acts for whom, the reason
blocks.py       `test` blocks, run by the oracle alone
"""

from tests.reference.decide import Answer, Execution, Policy
from tests.reference.host import Facts, HostNarrowing, Ran

__all__ = ["Answer", "Execution", "Facts", "HostNarrowing", "Policy", "Ran"]

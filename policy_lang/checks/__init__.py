"""Checks of logic and security: one file each, all run over one bound policy.

In: `Bound`. Out: findings with the codes ZC3xxx, ZC4xxx. A check is a function from a `Survey`, or from what agents can
reach, to findings.
"""

from collections.abc import Callable, Iterator

from policy_lang.bound import Bound
from policy_lang.checks import (
    absence,
    agents,
    bundles,
    caps,
    commands,
    comments,
    contradiction,
    dead,
    delegation,
    exfiltration,
    grants,
    limits,
    lower_bounds,
    narrowing,
    preconditions,
    redundant,
    unused,
    whole_text,
)  # fmt: skip
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import Survey, survey
from policy_lang.diagnostics import Diagnostic

OF_STATEMENTS: tuple[Callable[[Survey], Iterator[Diagnostic]], ...] = (
    contradiction.check, narrowing.check, redundant.check, limits.check, unused.check, absence.check,
    commands.check, comments.check, whole_text.check,
)  # fmt: skip
"""Checks that look at what is written."""

OF_REACH: tuple[Callable[[Reach], Iterator[Diagnostic]], ...] = (
    bundles.check, delegation.check, dead.check, caps.check, agents.check, grants.check, lower_bounds.check, exfiltration.check,
    preconditions.check,
)  # fmt: skip
"""Checks that look at what agents can call."""


def run_checks(bound: Bound) -> tuple[Diagnostic, ...]:
    """The findings of every check, in their order."""
    surveyed = survey(bound)
    reach = Reach(surveyed)
    found = [finding for check in OF_STATEMENTS for finding in check(surveyed)]
    found += [finding for check in OF_REACH for finding in check(reach)]
    return tuple(found)

"""Checks of logic and security: one file each, all run over one bound policy.

In: `Bound`. Out: findings with the codes ZC3xxx, ZC4xxx. A check is a function from a `Survey` to findings.
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
    redundant,
    unused,
)  # fmt: skip
from policy_lang.checks.survey import Survey, survey
from policy_lang.diagnostics import Diagnostic

Check = Callable[[Survey], Iterator[Diagnostic]]

ALL_CHECKS: tuple[Check, ...] = (
    contradiction.check, bundles.check, narrowing.check, delegation.check,
    dead.check, redundant.check, caps.check, limits.check, agents.check, unused.check,
    absence.check, grants.check, lower_bounds.check, commands.check, comments.check, exfiltration.check,
)  # fmt: skip


def run_checks(bound: Bound) -> tuple[Diagnostic, ...]:
    """The findings of every check, in their order."""
    surveyed = survey(bound)
    return tuple(finding for check in ALL_CHECKS for finding in check(surveyed))

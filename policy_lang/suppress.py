"""Silencing a warning on one statement: `# zcpolicy: allow ZC3102 reason`.

In: findings and the files they are about. Out: the findings that nobody silenced. Errors cannot be silenced.
"""

from collections.abc import Iterable, Iterator

from policy_lang.diagnostics import Diagnostic
from policy_lang.gather import Gathered


def unsuppressed(found: Iterable[Diagnostic], gathered: Gathered) -> Iterator[Diagnostic]:
    raise AssertionError

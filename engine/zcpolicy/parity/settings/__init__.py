"""Every setting that reaches an execution, each with a policy in which it makes a difference.

In: nothing. Out: `SETTINGS`, in the order of the matrix.
"""

from typing import Final

from zcpolicy.parity.settings import approvals, budgets, host, sessions, surfaces, tools
from zcpolicy.parity.settings.setting import Setting

__all__ = ["SETTINGS", "Setting"]

SETTINGS: Final[tuple[Setting, ...]] = (
    *tools.SETTINGS, *approvals.SETTINGS, *budgets.SETTINGS, *surfaces.SETTINGS, *sessions.SETTINGS,
    *host.SETTINGS,
)  # fmt: skip

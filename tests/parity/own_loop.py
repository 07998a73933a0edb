"""What the example of a loop of one's own leaves out: it keeps no transcript in bounds, counts no requests, looks at no clock."""

from examples.own_registry.host import PATHS
from zcpolicy.parity.matrix import Status

__all__ = ["DIVERGING", "PATHS"]

NOT_COUNTED = ("limit iterations", "limit tokens", "limit money of the model")
NOT_BOUNDED = ("parallel_tools on", "history", "context", "tool_result")
ALMOST = ("turn_timeout", "limit concurrent calls", "limit money of tools", "limit time", "exclude_memory")

DIVERGING: dict[tuple[str, str], Status] = {
    **{("own loop", setting): "not applied" for setting in (*NOT_COUNTED, *NOT_BOUNDED)},
    **{("own loop", setting): "partly" for setting in ALMOST},
}

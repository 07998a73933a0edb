"""The handles that a host needs, a file each, and all of them at once.

In: the versions of a host, what its configuration says of rates, credentials and connections. Out: `shipped`, the list that a
daemon makes once, shows to its operators, and lends to the factories of its tools (`Lifecycle(handles, versions)`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zcpolicy.state.audit import Handles
from zcpolicy.state.handles.canvas import CanvasStore
from zcpolicy.state.handles.channel_map import ChannelMap
from zcpolicy.state.handles.connections import Connector, ThreadConnector
from zcpolicy.state.handles.credentials import Credentials, Load
from zcpolicy.state.handles.parent_tools import ParentTools
from zcpolicy.state.handles.pool import ConnectionPool
from zcpolicy.state.handles.rate_limiter import RateLimiter
from zcpolicy.state.handles.rates import Rate
from zcpolicy.state.handles.session_cache import SessionCache
from zcpolicy.state.handles.tool_channels import PerToolChannels
from zcpolicy.state.versions import SourceVersions


def shipped(
    versions: SourceVersions,
    *,
    rates: Callable[[], Mapping[str, Rate]] | None = None,
    load: Load | None = None,
    connector: Connector[Any] | ThreadConnector[Any] | None = None,
    sending: Iterable[str] = (),
) -> Handles:
    """One of each, under its own name. Makes them, and touches nothing of the outside.

    `rates`: by name, as configured now; None: nothing is limited by them. `load`: gives a client's credential; None: there are none. `connector`: makes
    connections; None: there is no pool. `sending`: tools that may send through channels, each with a map of its own, which
    is called `TOOL channels`.
    """
    made = Handles(
        parent_tools=ParentTools(),
        channel_map=ChannelMap(versions),
        canvas=CanvasStore(versions),
        session_cache=SessionCache(versions),
    )
    if rates is not None:
        made.declare("rate_limiter", RateLimiter(versions, rates))
    if load is not None:
        made.declare("credentials", Credentials(versions, load))
    if connector is not None:
        made.declare("pool", ConnectionPool(versions, connector))
    for tool in sending:
        made.declare(f"{tool} channels", PerToolChannels(versions))
    return made

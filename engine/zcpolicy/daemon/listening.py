"""An HTTP server for the gateway (extra `gateway`).

In: an application. Out: a port on which it answers, for as long as the caller wants.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from zcpolicy.extras import missing

try:
    import uvicorn
    from starlette.applications import Starlette
except ImportError:
    raise missing("the gateway's server", "gateway") from None


@asynccontextmanager
async def served(application: Starlette, *, address: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[int]:
    """Serves an application on an address of this machine, and gives the port. Raises OSError where it is taken."""
    server = _Server(uvicorn.Config(application, log_config=None, lifespan="off"))
    with socket.create_server((address, port)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


class _Server(uvicorn.Server):
    """Leaves signals to the program that it runs in."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

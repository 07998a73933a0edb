"""An HTTP server for the gateway (extra `gateway`).

In: an application. Out: a port on which it answers, for as long as the caller wants.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from zcpolicy.extras import missing

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise missing("the gateway's server", "gateway") from None

MAX_CONNECTIONS: Final = 500
"""Connections over HTTP at a time; more are answered with 503."""
MAX_HEADER_BYTES: Final = 32_768
"""Bytes of the headers of one request."""
MAX_HEADER_SECONDS: Final = 10.0
"""Seconds in which the headers of a request have to come, and until the next request of a connection begins."""
MAX_CLOSING_SECONDS: Final = 5
"""Seconds in which requests that are answered just now have to end when the server closes."""


_FAULTS: Final = logging.getLogger("zcpolicy.http")
"""Faults of the host. Bytes that are no request are told to whoever sent them alone: nobody else's log is filled by them."""
_FAULTS.setLevel(logging.ERROR)


@asynccontextmanager
async def served(application: Any, *, address: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[int]:
    """Serves an ASGI application on an address of this machine, and gives the port. Raises OSError where it is taken."""
    config = uvicorn.Config(
        application, log_config=None, access_log=False, lifespan="off", ws="none", http=_Patient, loop="none",
        proxy_headers=False, server_header=False, limit_concurrency=MAX_CONNECTIONS, timeout_keep_alive=int(MAX_HEADER_SECONDS),
        h11_max_incomplete_event_size=MAX_HEADER_BYTES, timeout_graceful_shutdown=MAX_CLOSING_SECONDS,
    )  # fmt: skip
    server = _Server(config)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as listening:
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


class _Patient(H11Protocol):
    """Waits for the headers of a request only so long: a connection that sends a byte now and then holds nothing for ever."""

    _slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.logger = _FAULTS
        # asyncio leaves it to sockets that name their protocol: without it every answer waits for the client's delayed acknowledgement
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        if self._slow is None and getattr(before, "response_complete", True):  # before the first request there is none
            self._wait()
        super().data_received(data)
        if self.cycle is not before:
            self._stop()

    def on_response_complete(self) -> None:
        before = self.cycle
        super().on_response_complete()
        if self.cycle is before and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop()
        self._slow = self.loop.call_later(MAX_HEADER_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

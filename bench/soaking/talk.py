"""HTTP and JSON-RPC as plainly as they go, so that the clients of a soak take little of the machine.

In: a port, or a socket. Out: answers; `Broke` where the connection ends early.
"""

import asyncio
import json
from time import monotonic
from typing import Any, Final

IDLE_SECONDS: Final = 5.0
"""After which a connection is opened anew: servers close what is idle."""


class Broke(Exception):
    """The connection could not be made, or ended before the answer was there."""


class Http:
    """One connection, which is opened when it is needed."""

    def __init__(self, port: int, token: str = "") -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def once(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """On a connection for this request alone."""
        try:
            return await self.ask(method, path, body)
        finally:
            self.close()

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status, and the JSON of the answer. Raises Broke. What was sent is never sent again: it may have been done."""
        if monotonic() - self._used > IDLE_SECONDS:
            self.close()
        try:
            return await self._asked(method, path, body)
        except BaseException:
            self.close()
            raise
        finally:
            self._used = monotonic()

    async def _asked(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        token = f"authorization: Bearer {self._token}\r\n" if self._token else ""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\n{token}content-type: application/json\r\n"
            f"content-length: {len(data)}\r\n\r\n"
        )
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
            reader, writer = self._streams
            writer.write(head.encode() + data)
            await writer.drain()
            first = await reader.readline()
            if not first:
                raise Broke("closed")
            status, length, closes = int(first.split()[1]), 0, False
            while line := (await reader.readline()).strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                closes |= name.lower() == b"connection" and value.strip().lower() == b"close"
            said = await reader.readexactly(length)
        except (OSError, EOFError, IndexError, ValueError) as error:
            raise Broke(repr(error)) from None
        if closes:
            self.close()
        return status, json.loads(said) if said else None

    def close(self) -> None:
        """Lets go of it."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Rpc:
    """One connection over the Unix socket, with its session."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._number = 0

    @property
    def is_open(self) -> bool:
        return self._streams is not None

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The response. Raises Broke."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_unix_connection(self._path, limit=1 << 22)
            reader, writer = self._streams
            self._number += 1
            asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
            writer.write(json.dumps(asked).encode() + b"\n")
            await writer.drain()
            while line := await reader.readline():
                said: dict[str, Any] = json.loads(line)
                if said.get("id") == self._number:
                    return said
            raise Broke("closed")
        except (OSError, ValueError) as error:
            raise Broke(repr(error)) from None
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            if self._streams is not None and self._streams[0].at_eof():
                self.close()

    def close(self) -> None:
        """Lets go of it, and with it of the session."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

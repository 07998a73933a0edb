"""An MCP server over Streamable HTTP, listened to within bounds.

In: a URL and headers. Out: a transport of the official client, and afterwards what was wrong with the server.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from policy_lang.cli.server_process import MAX_SENT

_WHO: Final = ": `--header` says who asks"
_WHERE: Final = ": is that its path, and does it speak Streamable HTTP, not the older HTTP with SSE"
_HINTS: Final = {401: _WHO, 403: _WHO, 404: _WHERE, 405: _WHERE}


class ServerUrl:
    """A server at a URL, as a transport; entered once. `headers` go with every request; the client follows no redirect to
    another origin. `complaint`: what was wrong with it, "" for nothing that could be seen from here. `last_words`: what else
    is known where it gave no list.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.complaint = ""
        self.last_words = ""
        self._left = MAX_SENT
        self._opened = self._streams(url, {**headers, "accept-encoding": "identity"})  # what is counted is what is kept

    async def __aenter__(self) -> Any:
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opened.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _streams(self, url: str, headers: dict[str, str]) -> AsyncGenerator[Any]:
        async with create_mcp_http_client(headers=headers) as http:
            http.event_hooks = {"response": [self._bound]}
            async with streamable_http_client(url, http_client=http, max_sse_event_size=MAX_SENT) as streams:
                yield streams

    async def _bound(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":  # the others are for what no list needs
            status = response.status_code
            told = f"; its HTTP status is {status}{_HINTS.get(status, '')}"
            self.last_words = told if status >= HTTPStatus.BAD_REQUEST else ""
        if response.headers.get("content-encoding", "identity") != "identity":
            self.complaint = "it sends compressed answers, though it was asked for plain ones"
            raise httpx2.DecodingError(self.complaint)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream, self._count)

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            self.complaint = f"it sent more than {MAX_SENT:_} bytes"
            raise httpx2.ReadError(self.complaint)


class _Counted(httpx2.AsyncByteStream):
    """A body; every piece of it is counted before it is handed on."""

    def __init__(self, body: httpx2.AsyncByteStream, count: Callable[[int], None]) -> None:
        self._body = body
        self._count = count

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            self._count(len(piece))
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()

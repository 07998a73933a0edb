"""Bytes that are no request, and requests that are none: no crash, and no way in."""

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .desk import lay, serving, token

LINES = (
    b"POST /turn HTTP/1.1\r\n", b"GET /status HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\n", b"GET http://evil.example/status HTTP/1.1\r\n",
    b"DELETE /tokens/root HTTP/1.1\r\n", b"OPTIONS * HTTP/1.1\r\n", b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n", b"GET /%00 HTTP/1.1\r\n", b"GET /healthz?/../status HTTP/1.1\r\n", b"GET /status HTTP/1.0\r\n", b"\r\n\r\n",
    b"Host: 127.0.0.1\r\n", b"Host: x\r\nHost: 127.0.0.1\r\n", b"Authorization: Bearer \r\n", b"Authorization: Bearer zcp_x\r\n",
    b"Content-Type: application/json\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked, identity\r\nContent-Length: 4\r\n", b"Expect: 100-continue\r\n",
    b"Connection: keep-alive, upgrade\r\nUpgrade: websocket\r\n", b"X: \x00\r\n", b"\tfolded\r\n", b"\r\n", b"{}", b"0\r\n\r\n", b"5\r\nhello\r\n",
    b"ffffffffffffffffff\r\n", b"\x16\x03\x01\x00\xa5\x01\x00", b"\x00" * 50,
)  # fmt: skip
"""Pieces of requests, right and wrong; a story is some of them in a row."""

STORIES = st.lists(st.one_of(st.sampled_from(LINES), st.binary(max_size=30)), min_size=1, max_size=8).map(b"".join)


def sent(port: int, data: bytes) -> bytes:
    """What comes back until the other side closes, or has nothing more to say."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        said = b""
        with suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.5)
            while piece := connection.recv(65_536):
                said += piece
        return said


def test_bytes_that_are_no_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")
    file = lay(tmp_path / "desk")
    root = token(file, "root", "operator")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            port = client.base_url.port
            assert port is not None

            @settings(max_examples=150, deadline=None)
            @given(STORIES)
            def tried(data: bytes) -> None:
                for answer in sent(port, data).split(b"HTTP/1.1 ")[1:]:
                    assert answer[:3] in (
                        b"400",
                        b"401",
                        b"403",
                        b"405",
                        b"408",
                        b"413",
                        b"414",
                        b"415",
                        b"421",
                        b"431",
                    ) or (answer[:3] in (b"100", b"200") and (b"alive" in answer or answer.startswith(b"100"))), (
                        data,
                        answer,
                    )

            await asyncio.to_thread(tried)
            assert (await client.get("/status", headers=root)).status_code == 200
            assert len(daemon.host.sessions) == 0
        assert caplog.records == []  # nobody fills the log with bytes

    asyncio.run(story())


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inside: st.one_of(st.lists(inside, max_size=2), st.dictionaries(st.text(max_size=4), inside, max_size=2)),
    max_leaves=4,
)
NAMES = st.sampled_from(["agent", "text", "session", "resume", "name", "role", "question", "answer", "scope"])
BODIES = st.one_of(
    st.binary(max_size=40),
    st.dictionaries(NAMES, st.one_of(VALUES, st.sampled_from(["helper", "aide", "go"])), max_size=4).map(json.dumps).map(str.encode),
    VALUES.map(json.dumps).map(str.encode),
    st.sampled_from([b"[" * 10_000, b'{"agent": "helper", "agent": "aide", "text": ""}', b'{"text": "\xed\xa0\x80"}', b"\xef\xbb\xbf{}"]),
)  # fmt: skip


def test_bodies_that_are_none(tmp_path: Path) -> None:
    """An operator's token reaches every route: whatever its body is, it is answered, and with no fault of the host."""
    file = lay(tmp_path / "desk")
    root = {**token(file, "root", "operator"), "content-type": "application/json"}
    routes = st.sampled_from([
        ("POST", "/turn"), ("POST", "/tokens"), ("DELETE", "/tokens/nobody"), ("DELETE", "/tokens/%00"), ("GET", "/tools?agent=%ff"),
        ("GET", "/handles?client=%00"), ("POST", "/turn?x=y"), ("GET", "/approvals"), ("POST", "/approvals/nothing"),
    ])  # fmt: skip

    async def story() -> None:
        async with serving(file) as (_, client):
            url = str(client.base_url)

            @settings(max_examples=150, deadline=None)
            @given(routes, BODIES)
            def tried(route: tuple[str, str], body: bytes) -> None:
                with httpx.Client(base_url=url, timeout=10) as asking:
                    answer = asking.request(*route, content=body, headers=root)
                assert answer.status_code < 500, (route, body, answer.text)

            await asyncio.to_thread(tried)

    asyncio.run(story())


def test_lines_that_are_no_request_on_the_socket(tmp_path: Path) -> None:
    file = lay(tmp_path / "desk")

    async def story() -> None:
        async with serving(file) as (daemon, _):
            path = daemon.addresses["rpc"]

            @settings(max_examples=100, deadline=None)
            @given(st.lists(st.one_of(BODIES, _requests()), min_size=1, max_size=4))
            def tried(lines: list[bytes]) -> None:
                for answer in _spoken(path, b"\n".join(lines) + b"\n"):
                    assert answer["jsonrpc"] == "2.0"
                    assert answer.get("error", {}).get("code") != -32603, (lines, answer)

            await asyncio.to_thread(tried)
            assert daemon.host.doors.turns == 0

    asyncio.run(story())


def _requests() -> st.SearchStrategy[bytes]:
    made = st.fixed_dictionaries(
        {
            "jsonrpc": st.just("2.0"),
            "id": VALUES,
            "method": st.sampled_from(["tools", "approve", "cancel", "turn", "_turn", ""]),
        },
        optional={"params": st.one_of(VALUES, st.dictionaries(NAMES, st.one_of(VALUES, st.just("aide")), max_size=3))},
    )
    return made.map(json.dumps).map(str.encode)


def _spoken(path: str, data: bytes) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        connection.settimeout(5)
        said = b""
        with suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65_536):
                said += piece
    return [json.loads(line) for line in said.splitlines()]

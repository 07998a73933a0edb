"""Who is let in over HTTP, and with what."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from re import sub
from typing import Any

import httpx
import pytest

from zcpolicy.daemon.guard import MAX_HEADERS
from zcpolicy.daemon.serving import Daemon
from zcpolicy.daemon.settings import HttpSettings
from zcpolicy.daemon.tokens import Tokens

from .desk import lay, serving, token

TURN = {"agent": "helper", "text": "go"}
ROUTES = (
    "/turn", "/tools", "/status", "/reload", "/tokens", "/tokens/ann", "/handles", "/approvals", "/healthz", "/readyz", "/", "/nothing",
    "/healthz/", "//healthz", "/healthz/../status", "/%68ealthz", "/HEALTHZ",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "ODD")


def served(daemon: Daemon) -> list[str]:
    """Every route that there is."""
    guard: Any = daemon.application(daemon.host, HttpSettings(), lambda: 80)
    found = [sub(r"\{.*?\}", "x", route.path) for route in guard.application.routes]
    assert {"/turn", "/status", "/tokens/x", "/approvals", "/healthz"} <= set(found)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return lay(tmp_path / "desk")


def test_without_credentials_nothing_but_health_answers(file: Path) -> None:
    token(file, "ann")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            for path in (*ROUTES, *served(daemon)):
                for method in METHODS:
                    answer = await client.request(method, path, json=TURN)
                    is_health = path in ("/healthz", "/readyz", "/%68ealthz") and method in ("GET", "HEAD")
                    assert answer.status_code == (200 if is_health else 401), (method, path)
                    if is_health and method == "GET":
                        assert answer.json() in ({"alive": True}, {"ready": True})

    asyncio.run(story())


def test_an_operators_routes_take_an_operators_token(file: Path) -> None:
    ann, root = token(file, "ann"), token(file, "root", "operator")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            for path in (*ROUTES, *served(daemon)):
                for method in METHODS:
                    answer = await client.request(method, path, json=TURN, headers=ann)
                    ours = path in ("/turn", "/tools", "/healthz", "/readyz", "/%68ealthz")
                    assert ours or answer.status_code == 403, (method, path)
            assert (await client.get("/status", headers=root)).status_code == 200
            assert (await client.post("/turn", headers=root, json=TURN)).status_code == 200
            assert (await client.get("/nothing", headers=root)).status_code == 404
            assert (await client.post("/status", headers=root, json={})).status_code == 405

    asyncio.run(story())


CREDENTIALS: dict[str, Mapping[str, str]] = {
    "none": {},
    "another scheme": {"authorization": "Basic Og=="},
    "no token": {"authorization": "Bearer"},
    "the prefix": {"authorization": "Bearer zcp_"},
    "another token": {"authorization": "Bearer zcp_AAAA"},
    "the digest": {"authorization": "Bearer {digest}"},
    "a header of another name": {"x-authorization": "{token}"},
    "a cookie": {"cookie": "authorization={token}"},
}


@pytest.mark.parametrize("what", CREDENTIALS)
def test_what_is_no_token_lets_nobody_in(file: Path, what: str) -> None:
    given = token(file, "ann")["authorization"]
    digest = (file.parent / "var/tokens.json").read_text().split('"digest": "')[1][:64]
    headers = {name: value.format(token=given, digest=digest) for name, value in CREDENTIALS[what].items()}

    async def story() -> None:
        async with serving(file) as (_, client):
            answer = await client.post("/turn", json=TURN, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"

    asyncio.run(story())


BROWSERS: dict[str, tuple[Mapping[str, str], int]] = {
    "nothing odd": ({}, 200),
    "by name": ({"host": "localhost:{port}"}, 200),
    "a name that was pointed here": ({"host": "evil.example:{port}"}, 421),
    "that name without a port": ({"host": "evil.example"}, 421),
    "another port": ({"host": "127.0.0.1:1"}, 421),
    "a name that ends in ours": ({"host": "127.0.0.1.evil.example:{port}"}, 421),
    "a name with a user": ({"host": "127.0.0.1@evil.example:{port}"}, 421),
    "no name": ({"host": ""}, 421),
    "another site": ({"origin": "https://evil.example"}, 403),
    "no site": ({"origin": "null"}, 403),
    "another port as site": ({"origin": "http://127.0.0.1:1"}, 403),
    "our own site": ({"origin": "http://127.0.0.1:{port}"}, 200),
    "a browser says so": ({"sec-fetch-site": "cross-site"}, 403),
    "a browser says it is near": ({"sec-fetch-site": "same-site"}, 403),
    "a form": ({"content-type": "application/x-www-form-urlencoded"}, 415),
    "plain text": ({"content-type": "text/plain"}, 415),
    "JSON in plain text": ({"content-type": "text/plain; application/json"}, 415),
    "JSON with a character set": ({"content-type": "application/json; charset=utf-8"}, 200),
}


@pytest.mark.parametrize("headers", [{}, {"content-length": "0"}, {"content-type": "application/json"}], ids=str)
def test_what_has_no_body_needs_no_kind_of_it(file: Path, headers: Mapping[str, str]) -> None:
    root = token(file, "root", "operator")
    token(file, "ann")

    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.post("/reload", headers={**root, **headers})).status_code == 200
            assert (await client.delete("/tokens/ann", headers={**root, **headers})).status_code == 200
            for odd in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
                assert (await client.post("/reload", headers={**root, **headers, **odd})).status_code == 403
            assert (await client.post("/reload", headers=root, content=b"{}")).status_code == 415

    asyncio.run(story())


@pytest.mark.parametrize("what", BROWSERS)
def test_a_page_of_somebody_elses_gets_nothing_done(file: Path, what: str) -> None:
    """Nobody has a token, so that only this machine is let in: then a browser on it is the way for others."""
    headers, expected = BROWSERS[what]

    async def story() -> None:
        async with serving(file) as (_, client):
            port = str(client.base_url.port)
            given = {name: value.replace("{port}", port) for name, value in headers.items()}
            sent = {"content-type": "application/json", **given}
            answer = await client.post("/turn", content=b'{"agent": "helper", "text": "go"}', headers=sent)
            assert answer.status_code == expected, answer.text

    asyncio.run(story())


def test_without_tokens_nobody_is_an_operator(file: Path) -> None:
    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.get("/status")).status_code == 403
            assert (await client.post("/tokens", json={"name": "me", "role": "operator"})).status_code == 403

    asyncio.run(story())


def test_the_first_token_closes_the_door_to_those_without(file: Path) -> None:
    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.get("/tools?agent=helper")).status_code == 200
            ann = token(file, "ann")
            assert (await client.get("/tools?agent=helper")).status_code == 401
            assert (await client.get("/tools?agent=helper", headers=ann)).status_code == 200
            (file.parent / "var/tokens.json").unlink()
            assert (await client.get("/tools?agent=helper", headers=ann)).status_code == 503
            assert (await client.get("/readyz")).status_code == 503

    asyncio.run(story())


def test_a_token_is_given_out_and_taken_back_over_http(file: Path) -> None:
    root = token(file, "root", "operator")

    async def story() -> None:
        async with serving(file) as (_, client):
            made = await client.post("/tokens", headers=root, json={"name": "ben"})
            assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
            ben = {"authorization": f"Bearer {made.json()['token']}"}
            assert (await client.post("/turn", headers=ben, json=TURN)).status_code == 200
            listed = (await client.get("/tokens", headers=root)).json()["tokens"]
            assert [(one["name"], one["role"], one["revoked"]) for one in listed] == [
                ("root", "operator", None), ("ben", "client", None),
            ]  # fmt: skip
            assert (
                await client.delete("/tokens/ben", headers={**root, "content-type": "application/json"})
            ).json() == {"revoked": "ben"}
            assert (await client.post("/turn", headers=ben, json=TURN)).status_code == 401
            noted = [line["data"] for line in _lines(file) if line["kind"] == "host" and "by" in line["data"]]
            assert [(one["did"], one["what"], one["by"]) for one in noted] == [
                ("token of client", "ben", "root"), ("token revoked", "ben", "root"),
            ]  # fmt: skip
            for wrong in (
                {"name": "a b"},
                {"name": "x", "role": "king"},
                {"name": "root"},
                {},
                {"name": "x", "more": 1},
            ):
                assert (await client.post("/tokens", headers=root, json=wrong)).status_code == 400, wrong

    asyncio.run(story())


def _lines(file: Path) -> list[dict[str, Any]]:
    (log,) = (file.parent / "var/log").glob("decisions-*.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_clients_do_not_reach_each_others_sessions(file: Path) -> None:
    ann, ben = token(file, "ann"), token(file, "ben")

    async def story() -> None:
        async with serving(file) as (_, client):
            session = (await client.post("/turn", headers=ann, json=TURN)).json()["session"]
            assert (await client.post("/turn", headers=ben, json={**TURN, "session": session})).status_code == 404
            assert (await client.post("/turn", headers=ann, json={**TURN, "session": session})).status_code == 200

    asyncio.run(story())


def test_what_is_too_large_is_turned_away(file: Path) -> None:
    file.write_text(file.read_text().replace("port = 0", 'port = 0\nbody = "2 kB"'))

    async def story() -> None:
        async with serving(file) as (_, client):
            whole: Any = {**TURN, "text": "x" * 3_000}
            assert (await client.post("/turn", json=whole)).status_code == 413

            async def pieces() -> AsyncIterator[bytes]:
                for _ in range(30):
                    yield b" " * 100

            json = {"content-type": "application/json"}
            with suppress(httpx.ReadError, httpx.WriteError):  # it may close before the client has sent all
                assert (await client.post("/turn", content=pieces(), headers=json)).status_code == 413
            many = {f"x-{number}": "y" for number in range(MAX_HEADERS)}
            assert (await client.post("/turn", json=TURN, headers=many)).status_code == 431
            assert (await client.get(f"/tools?agent={'x' * 9_000}")).status_code == 414
            assert (await client.post("/turn", json=TURN)).status_code == 200

    asyncio.run(story())


def test_headers_that_stand_there_twice(file: Path) -> None:
    ann = token(file, "ann")["authorization"]

    async def story() -> None:
        async with serving(file) as (_, client):
            twice = [("authorization", ann), ("authorization", "Bearer zcp_x")]
            assert (await client.get("/tools?agent=helper", headers=twice)).status_code == 400

    asyncio.run(story())


def test_a_request_with_two_lengths_is_none(file: Path) -> None:
    """A proxy that goes by the other one would take the rest for a part of the body, and not for a second request."""
    health = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    two = b"Content-Type: application/json\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"

    def said(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"POST /turn HTTP/1.1\r\nHost: 127.0.0.1\r\n" + two + health)
            heard = b""
            with suppress(ConnectionError):
                while piece := connection.recv(65_536):
                    heard += piece
            return heard

    async def story() -> None:
        async with serving(file) as (_, client):
            heard = await asyncio.to_thread(said, client.base_url.port or 0)
            assert heard.startswith(b"HTTP/1.1 400 ")
            assert heard.count(b"HTTP/1.1 ") == 1

    asyncio.run(story())


def test_whoever_asks_for_health_without_credentials_keeps_nobody_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger hangs, and many ask whether the daemon is ready: that takes one thread, and not all that there are."""
    root = token(file, "root", "operator")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            goes_on, begun, asked = threading.Event(), threading.Event(), list[float]()

            def hangs(now: float) -> float:
                asked.append(now)
                begun.set()
                goes_on.wait(20)
                return now

            monkeypatch.setattr(daemon.operating().kept.ledger, "now", hangs)
            waiting = [asyncio.create_task(client.get("/readyz")) for _ in range(40)]
            await asyncio.to_thread(begun.wait, 20)
            try:
                assert (await client.get("/status", headers=root)).status_code == 200
                assert (await client.get("/healthz")).status_code == 200
                assert len(asked) == 1
            finally:
                goes_on.set()
            assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}

    asyncio.run(story())


SLOW = {
    "says nothing": b"",
    "half a line": b"POST /tu",
    "half the headers": b"POST /turn HTTP/1.1\r\nHost: x\r\n",
    "half the body": b"POST /turn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
}


@pytest.mark.parametrize("what", SLOW)
def test_a_slow_client_is_cut_off(file: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zcpolicy.daemon.listening.MAX_HEADER_SECONDS", 1.0)
    file.write_text(file.read_text().replace("port = 0", 'port = 0\ntimeout = "1s"'))

    async def story() -> None:
        async with serving(file) as (_, client):
            began = time.monotonic()
            port = client.base_url.port
            assert port is not None
            said = await asyncio.to_thread(_held, port, SLOW[what])
            assert time.monotonic() - began < 5
            assert said == b"" or b" 408 " in said

    asyncio.run(story())


def _held(port: int, sent: bytes) -> bytes:
    """Sends what there is, and waits until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent)
        said = b""
        while piece := connection.recv(1_000):
            said += piece
        return said


def test_one_client_has_only_so_many_turns_at_a_time(file: Path) -> None:
    later = [{"calls": [{"tool": "workflow", "arguments": {"steps": [{"prompt": "x"}] * 3}}]}, "done"]
    lay(file.parent, steps=later, http="turns = 1")
    ann, ben = token(file, "ann"), token(file, "ben")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            host = daemon.host
            with host.doors.turn(host.sessions.client("gateway", "token ann")):
                busy = await client.post("/turn", headers=ann, json=TURN)
                assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
                assert (await client.post("/turn", headers=ben, json=TURN)).status_code == 200
            assert (await client.post("/turn", headers=ann, json=TURN)).status_code == 200

    asyncio.run(story())


def test_a_fault_of_the_host_tells_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = token(file, "root", "operator")

    def broken(_self: Tokens) -> None:
        raise RuntimeError("/secret/path")

    async def story() -> None:
        async with serving(file) as (_, client):
            monkeypatch.setattr(Tokens, "holders", broken)
            answer = await client.get("/tokens", headers=root)
            assert (answer.status_code, answer.json()) == (500, {"error": "the host failed"})

    asyncio.run(story())


def test_what_cannot_be_put_on_record_is_not_done_and_told_as_that(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The folder of the log has vanished: no fault of the host's with its insides in the log, and it says that it is not ready."""
    ann, root = token(file, "ann"), token(file, "root", "operator")

    async def story() -> None:
        async with serving(file) as (daemon, client):
            (file.parent / "var/log").rename(file.parent / "away")
            assert (await client.post("/turn", headers=ann, json=TURN)).json()["reason"] == "host-failed"
            for method, path, body in (
                ("POST", "/reload", {}), ("POST", "/tokens", {"name": "eve"}), ("DELETE", "/tokens/ann", {}),
                ("POST", "/turn", {"agent": "helper", "resume": True}),
            ):  # fmt: skip
                answer = await client.request(method, path, headers=root, json=body)
                assert answer.status_code == 503, path
                assert answer.json() == {"error": "it cannot be put on record, and is not done"}
            assert [one.revoked for one in daemon.operating().kept.tokens.holders()] == [None, None]
            ready = await client.get("/readyz", headers=root)
            assert ready.status_code == 503
            assert ready.json()["reasons"][0].startswith("nothing is permitted: the log in ")
            (file.parent / "away").rename(file.parent / "var/log")
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.post("/turn", headers=ann, json=TURN)).json()["text"] == "kept"

    asyncio.run(story())
    assert [one for one in caplog.records if one.name != "zcpolicy"] == []


def test_a_socket_of_the_web_is_not_answered(file: Path) -> None:
    async def story() -> None:
        async with serving(file) as (_, client):
            upgrade = {
                "connection": "upgrade",
                "upgrade": "websocket",
                "sec-websocket-version": "13",
                "sec-websocket-key": "x",
            }
            assert (await client.get("/turn", headers=upgrade)).status_code == 405
            assert httpx.codes.is_success((await client.get("/healthz")).status_code)

    asyncio.run(story())

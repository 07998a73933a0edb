"""Who is let in, what a request has to be, and that nothing that is sent makes the decision point fail."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcpolicy.daemon.wire import MAX_REQUEST_BYTES
from zcpolicy.hosts.authzen import application

from .pdp import OTHER, TOKEN, URL, agent, asked, resolver_of, told, tool

ONE = "/access/v1/evaluation"
MANY = "/access/v1/evaluations"
SEARCHES = tuple(f"/access/v1/search/{kind}" for kind in ("subject", "resource", "action"))
GOOD = asked("lookup", order=1)


def test_nothing_is_told_without_a_token() -> None:
    refused: list[Any] = [
        {},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer é".encode()},
    ]

    async def story(client: httpx.AsyncClient) -> None:
        del client.headers["authorization"]
        for path in (ONE, MANY, *SEARCHES):
            for headers in refused:
                answer = await client.post(path, json=GOOD, headers=headers)
                assert answer.status_code == 401
                assert answer.json() == {"error": "a token of this decision point is needed"}
                assert answer.headers["www-authenticate"] == "Bearer"
        twice = [("authorization", f"Bearer {TOKEN}"), ("authorization", f"Bearer {OTHER}")]
        assert (await client.post(ONE, json=GOOD, headers=twice)).status_code == 401
        for token in (TOKEN, OTHER):
            headers = {"authorization": f"bearer {token}"}
            assert (await client.post(ONE, json=GOOD, headers=headers)).json()["decision"] is True

    told(story)


def test_the_metadata_is_open_and_names_what_answers() -> None:
    async def story(client: httpx.AsyncClient) -> None:
        headers = {"authorization": f"Bearer {TOKEN}"}
        del client.headers["authorization"]
        answer = await client.get("/.well-known/authzen-configuration")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        metadata = answer.json()
        assert metadata.pop("policy_decision_point") == URL
        assert sorted(metadata.values()) == sorted(f"{URL}{path}" for path in (ONE, MANY, *SEARCHES))
        for url in metadata.values():
            found = await client.post(url, json={**GOOD, "page": {}}, headers=headers)
            assert found.status_code == 200

    told(story)


def test_a_decision_point_below_a_path_has_its_metadata_where_the_api_says() -> None:
    async def story(client: httpx.AsyncClient) -> None:
        metadata = (await client.get("/.well-known/authzen-configuration/team")).json()
        assert metadata["policy_decision_point"] == f"{URL}/team"
        assert metadata["access_evaluation_endpoint"] == f"{URL}/team{ONE}"

    told(story, url=f"{URL}/team/")


WRONG: dict[str, tuple[str, Any, str]] = {
    "no JSON": (ONE, b"{", "the request is not well-formed JSON"),
    "no UTF-8": (ONE, b'{"a": "\xff"}', "the request is not well-formed JSON"),
    "nothing": (ONE, b"", "the request is not well-formed JSON"),
    "a name twice": (ONE, json.dumps(GOOD).replace('"order": 1', '"order": 2, "order": 1').encode(), "the request is not well-formed JSON"),
    "not a number": (ONE, b'{"a": NaN}', "the request is not well-formed JSON"),
    "half a letter": (ONE, b'{"a": "\\ud800"}', "the request nests too deep, is too large, or holds text that is none"),
    "too deep": (ONE, b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "the request is not well-formed JSON"),
    "rather deep": (ONE, b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", "the request nests too deep, is too large, or holds text that is none"),
    "no object": (ONE, b"[]", "the request is not an object"),
    "no subject": (ONE, {"action": {"name": "call"}, "resource": tool("lookup")}, "`subject` is missing, or no object"),
    "no id": (ONE, {**GOOD, "subject": {"type": "agent"}}, "`subject`: `id` is missing, or no text"),
    "no type": (ONE, {**GOOD, "resource": {"id": "lookup"}}, "`resource`: `type` is missing, or no text"),
    "no name": (ONE, {**GOOD, "action": {}}, "`action`: `name` is missing, or no text"),
    "an id that is a number": (ONE, {**GOOD, "subject": {"type": "agent", "id": 1}}, "`subject`: `id` is missing, or no text"),
    "properties that are a list": (ONE, {**GOOD, "resource": {"type": "tool", "id": "lookup", "properties": []}}, "`properties` of `resource` is no object"),
    "a context that is text": (ONE, {**GOOD, "context": "x"}, "`context` is no object"),
    "a fact that is misspelt": (ONE, {**GOOD, "context": {"label": ["untrusted"]}}, "`context`: did you mean `labels`?"),
    "labels that are text": (ONE, {**GOOD, "context": {"labels": "untrusted"}}, "`context`: `labels` must be a list"),
    "a directory that is relative": (ONE, {**GOOD, "context": {"cwd": "x"}}, "`context`: `cwd` is an absolute path"),
    "a client without a name": (ONE, {**GOOD, "context": {"client": ""}}, "`context`: `client` must be text that is not empty"),
    "an entry of something else": (ONE, {**GOOD, "context": {"history": [{"tool": "a", "arguments": {}}]}}, "`context`: history: an entry has `tool`, `args`, `ok`, `at`, and nothing else"),
    "evaluations that are none": (MANY, {**GOOD, "evaluations": {}}, "`evaluations` is no list"),
    "too many": (MANY, {**GOOD, "evaluations": [{}] * 101}, "a request has at most 100 evaluations"),
    "a semantic that is none": (MANY, {**GOOD, "evaluations": [{}], "options": {"evaluations_semantic": "all"}}, "`evaluations_semantic` is one of `execute_all`, `deny_on_first_deny`, `permit_on_first_permit`"),
    "options that are none": (MANY, {**GOOD, "options": 1}, "`options` is no object"),
    "no subject of a search": (SEARCHES[0], {"action": {"name": "call"}, "resource": tool("lookup")}, "`subject` is missing, or no object"),
    "no action of a search": (SEARCHES[1], {"subject": agent(), "resource": {"type": "tool"}}, "`action` is missing, or no object"),
    "no resource of a search": (SEARCHES[2], {"subject": agent()}, "`resource` is missing, or no object"),
    "a page that is none": (SEARCHES[1], {**GOOD, "page": []}, "`page` is no object"),
    "a limit below 0": (SEARCHES[1], {**GOOD, "page": {"limit": -1}}, "`limit` of `page` is no whole number, or below 0"),
    "a limit that is true": (SEARCHES[1], {**GOOD, "page": {"limit": True}}, "`limit` of `page` is no whole number, or below 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case: str) -> None:
    path, body, message = WRONG[case]

    async def story(client: httpx.AsyncClient) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await client.post(path, content=data, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()) == (400, {"error": message})

    told(story)


def test_bounds_of_http() -> None:
    async def story(client: httpx.AsyncClient) -> None:
        json_type = {"content-type": "application/json"}
        large = await client.post(ONE, content=b" " * (MAX_REQUEST_BYTES + 1), headers=json_type)
        form = await client.post(ONE, content=b"{}", headers={"content-type": "text/plain"})
        got, lost = await client.get(ONE), await client.post("/access/v1/search")
        charset = await client.post(
            ONE, content=json.dumps(GOOD), headers={"content-type": "application/json; charset=utf-8"}
        )
        assert [one.status_code for one in (large, form, got, lost, charset)] == [413, 400, 405, 404, 200]
        assert all(one.json().keys() == {"error"} for one in (large, form, got, lost))
        assert charset.headers["cache-control"] == "no-store"

    told(story)


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zcpolicy.hosts.authzen.http.MAX_BODY_SECONDS", 0.05)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async def story(client: httpx.AsyncClient) -> None:
        answer = await client.post(ONE, content=never(), headers={"content-type": "application/json"})
        assert answer.status_code == 408

    told(story)


def test_every_answer_has_the_id_of_its_request() -> None:
    sent = "bfe9eb29-ab87-4ca3-be83-a1d5d8305716"

    async def story(client: httpx.AsyncClient) -> None:
        requests = [
            await client.post(ONE, json=GOOD, headers={"x-request-id": sent}),
            await client.post(ONE, json={}, headers={"x-request-id": sent}),
            await client.post(ONE, json=GOOD, headers={"x-request-id": sent, "authorization": ""}),
            await client.post("/nowhere", headers={"x-request-id": sent}),
            await client.get("/.well-known/authzen-configuration", headers={"x-request-id": sent}),
        ]
        assert [one.headers["x-request-id"] for one in requests] == [sent] * 5
        assert [one.status_code for one in requests] == [200, 400, 401, 404, 200]
        assert "x-request-id" not in (await client.post(ONE, json=GOOD)).headers
        for odd in ("x" * 1001, "a\x01b"):
            answer = await client.post(ONE, json=GOOD, headers={"x-request-id": odd})
            assert (answer.status_code, "x-request-id" in answer.headers) == (400, False)

    told(story)


def test_a_fault_permits_nothing_and_tells_nothing_of_the_insides(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Any:
        raise RuntimeError("the database of ann")

    async def story(client: httpx.AsyncClient) -> None:
        answer = await client.post(ONE, json=GOOD)
        assert (answer.status_code, answer.json()) == (500, {"error": "the decision point failed"})

    told(story, broken)
    assert "the database of ann" in caplog.text


TOKENS: dict[str, Collection[str]] = {
    "none": [],
    "one text": TOKEN,
    "an empty one": [TOKEN, ""],
    "a short one": [TOKEN, "secret"],
    "one with a space": [f"{TOKEN} x"],
}


@pytest.mark.parametrize("case", TOKENS)
def test_tokens_that_let_in_too_many_are_refused(case: str) -> None:
    with pytest.raises(ValueError, match="token"):
        application(resolver_of(), tokens=TOKENS[case], url=URL)


@pytest.mark.parametrize(
    "url",
    ["", "pdp.example", "http://pdp.example", "https://", "https://a/?b", "https://a/#b", "https://u@a", "ftp://a"],
)
def test_an_address_that_hosts_cannot_trust_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        application(resolver_of(), tokens=[TOKEN], url=url)


# --- whatever is sent ------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["agent", "tool", "call", "coder", "lookup", "refund", "github/get_issue", "*", '"', "", "execute_all", "posix", "/", "\x00", "é"]
)  # fmt: skip
KEYS = st.sampled_from(
    "subject action resource context type id name properties arguments evaluations options evaluations_semantic page token limit"
    " cwd interactive platform env server_cwd supplies_defaults labels history client tool args ok at order amount".split()
) | st.text(max_size=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | WORDS
    | st.text(max_size=6)
    | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
SHAPED: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "subject": st.fixed_dictionaries(
            {"type": st.just("agent") | WORDS, "id": WORDS}, optional={"properties": VALUES}
        ),
        "action": st.fixed_dictionaries({"name": st.just("call") | WORDS}),
        "resource": st.fixed_dictionaries(
            {"type": st.just("tool") | WORDS, "id": WORDS | st.text(max_size=8)},
            optional={"properties": st.fixed_dictionaries({"arguments": VALUES}) | VALUES},
        ),
    },
    optional={
        "context": st.dictionaries(KEYS, VALUES, max_size=4),
        "page": st.dictionaries(KEYS, VALUES, max_size=3) | VALUES,
        "evaluations": st.lists(VALUES, max_size=3),
        "options": VALUES,
    },
)
BODIES: st.SearchStrategy[bytes] = (
    (SHAPED | VALUES | st.dictionaries(KEYS, VALUES)).map(lambda one: json.dumps(one).encode())
    | st.binary(max_size=40)
)  # fmt: skip


@settings(max_examples=100)
@given(path=st.sampled_from((ONE, MANY, *SEARCHES)), body=BODIES, sent=st.binary(max_size=8))
def test_whatever_is_sent_is_answered(path: str, body: bytes, sent: bytes) -> None:
    async def story(client: httpx.AsyncClient) -> None:
        headers = [(b"content-type", b"application/json"), (b"x-request-id", sent)]
        answer = await client.post(path, content=body, headers=headers)
        found = answer.json()
        assert answer.status_code in (200, 400), found
        if answer.status_code == 400:
            assert found.keys() == {"error"}
        for one in found.get("evaluations", [found] if "decision" in found else []):
            assert one["decision"] is (one["context"]["effect"] == "allow")

    told(story)

"""Searches and their pages: what is found would be allowed, and a token is good for its own search alone."""

from typing import Any

import httpx
import pytest

from policy_lang import loads

from .pdp import POLICY, agent, answers, resolver_of, told, tool

CALL = {"name": "call"}
TOOLS = {"subject": agent(), "action": CALL, "resource": {"type": "tool"}}
BARE = {"type": "tool", "id": "lookup"}

SUBJECTS: dict[str, tuple[Any, list[str]]] = {
    "who may look up": ({"subject": {"type": "agent"}, "action": CALL, "resource": tool("lookup", order=1)}, ["coder", "reader"]),
    "with an id that is passed over": ({"subject": agent("x"), "action": CALL, "resource": BARE}, ["coder", "reader"]),
    "small refunds": ({"subject": {"type": "agent"}, "action": CALL, "resource": tool("refund", order=1, amount=1)}, ["coder"]),
    "refunds that ask": ({"subject": {"type": "agent"}, "action": CALL, "resource": tool("refund", order=1, amount=15), "context": {"interactive": True}}, []),
    "refunds at all": ({"subject": {"type": "agent"}, "action": CALL, "resource": {"type": "tool", "id": "refund"}}, ["coder"]),
    "users": ({"subject": {"type": "user"}, "action": CALL, "resource": BARE}, []),
    "no tool": ({"subject": {"type": "agent"}, "action": CALL, "resource": {"type": "tool", "id": "x"}}, []),
    "no action": ({"subject": {"type": "agent"}, "action": {"name": "x"}, "resource": BARE}, []),
}  # fmt: skip
RESOURCES: dict[str, tuple[Any, list[str]]] = {
    "what may be shown": ({**TOOLS, "context": {"context": {"region": "eu"}}}, ['"odd name"', "lookup", "refund", "github/create_issue", "github/get_issue"]),
    "with arguments": ({**TOOLS, "resource": tool("", order=1)}, ["lookup"]),
    "of nobody": ({**TOOLS, "subject": agent("nobody")}, []),
    "of an agent that is none": ({**TOOLS, "subject": agent("x")}, []),
    "documents": ({**TOOLS, "resource": {"type": "document"}}, []),
}  # fmt: skip
ACTIONS: dict[str, tuple[Any, list[str]]] = {
    "may": ({"subject": agent(), "resource": tool("lookup", order=1)}, ["call"]),
    "may at all": ({"subject": agent(), "resource": BARE}, ["call"]),
    "may not": ({"subject": agent("nobody"), "resource": BARE}, []),
    "not so": ({"subject": agent(), "resource": tool("lookup", order="x")}, []),
}


@pytest.mark.parametrize("case", SUBJECTS)
def test_which_agents_may(case: str) -> None:
    request, names = SUBJECTS[case]
    (answer,) = answers("search/subject", request)
    assert answer["results"] == [agent(name) for name in names]
    assert answer["page"] == {"next_token": "", "count": len(names)}


@pytest.mark.parametrize("case", RESOURCES)
def test_which_tools(case: str) -> None:
    request, names = RESOURCES[case]
    (answer,) = answers("search/resource", request)
    assert sorted(one["id"] for one in answer["results"]) == sorted(names)
    assert {one["type"] for one in answer["results"]} <= {"tool"}


@pytest.mark.parametrize("case", ACTIONS)
def test_which_actions(case: str) -> None:
    request, names = ACTIONS[case]
    (answer,) = answers("search/action", request)
    assert answer["results"] == [{"name": name} for name in names]


def test_what_may_be_shown_is_what_an_execution_shows() -> None:
    resolver = resolver_of()
    (answer,) = answers("search/resource", TOOLS, resolver=resolver)
    shown = resolver.resolve("coder").tools()
    assert [one["id"] for one in answer["results"]] == [
        {"odd name": '"odd name"'}.get(one, one) if isinstance(one, str) else "/".join(one) for one in shown
    ]
    assert answer["context"] == {"arguments": "any"}


def test_every_result_is_a_decision_that_is_true() -> None:
    (found,) = answers("search/subject", SUBJECTS["who may look up"][0])
    every = {**SUBJECTS["who may look up"][0], "evaluations": [{"subject": one} for one in found["results"]]}
    (answer,) = answers("evaluations", every)
    assert [one["decision"] for one in answer["evaluations"]] == [True, True]


async def page(client: httpx.AsyncClient, request: Any, kind: str = "resource", **asked: Any) -> httpx.Response:
    return await client.post(f"/access/v1/search/{kind}", json={**request, "page": asked})


def test_pages_follow_each_other_until_a_token_is_empty() -> None:
    async def story(client: httpx.AsyncClient) -> None:
        whole = (await page(client, TOOLS)).json()["results"]
        both: tuple[dict[str, Any], ...] = ({"limit": 2}, {})
        for limits in both:  # the limit may be said again, or not
            found, told = [], (await page(client, TOOLS, limit=2)).json()
            while True:
                assert told["page"]["count"] == len(told["results"]) <= 2
                found += told["results"]
                if not told["page"]["next_token"]:
                    break
                told = (await page(client, TOOLS, token=told["page"]["next_token"], **limits)).json()
            assert found == whole
        empty = (await page(client, TOOLS, limit=0)).json()
        assert empty["results"] == []
        assert empty["page"]["next_token"]

    told(story)


def test_a_token_is_good_for_the_search_that_it_came_from() -> None:
    resolver = resolver_of()

    async def story(client: httpx.AsyncClient) -> None:
        token = (await page(client, TOOLS, limit=1)).json()["page"]["next_token"]
        others: list[httpx.Response] = [
            await page(client, {**TOOLS, "subject": agent("reader")}, token=token),
            await page(client, {**TOOLS, "context": {"labels": ["untrusted"]}}, token=token),
            await page(client, {**TOOLS, "action": CALL | {"properties": {}}}, token=token),
            await page(client, {**TOOLS, "resource": BARE}, "subject", token=token),
            await page(client, TOOLS, token=token, limit=2),
            await page(client, TOOLS, token="A" + token[1:] if token[0] != "A" else "B" + token[1:]),
            await page(client, TOOLS, token="é"),
            await page(client, TOOLS, token="A" * 300),
        ]
        assert [one.status_code for one in others] == [400] * len(others)
        assert (await page(client, TOOLS, token=token)).status_code == 200
        resolver.publish(loads(POLICY.replace("1 calls", "2 calls"), name="team.zcpolicy"))
        changed = await page(client, TOOLS, token=token)
        assert (changed.status_code, "begin again" in changed.json()["error"]) == (400, True)

    told(story, resolver)


@pytest.mark.parametrize(("bound", "pages"), [("MAX_SCANNED", 2), ("MAX_SEARCH_SECONDS", 3)])
def test_a_page_ends_when_it_has_looked_enough_and_another_one_follows(
    bound: str, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"zcpolicy.hosts.authzen.search.{bound}", 2 if bound == "MAX_SCANNED" else -1.0)

    async def story(client: httpx.AsyncClient) -> None:
        request: Any = {"subject": {"type": "agent"}, "action": CALL, "resource": BARE}
        token, found, count = "", list[str](), 0
        while token or not count:
            one = (await page(client, request, "subject", token=token)).json()
            token, count = one["page"]["next_token"], count + 1
            found += [agent["id"] for agent in one["results"]]
        assert (found, count) == (["coder", "reader"], pages)

    told(story)

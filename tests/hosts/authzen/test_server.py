"""A real server and a real client: what the API's own examples send, carried over to agents and tools."""

import asyncio
from typing import Any

import httpx

from zcpolicy.daemon.listening import served
from zcpolicy.hosts.authzen import application

from .pdp import TOKEN, agent, asked, resolver_of, tool


def test_a_host_finds_out_what_there_is_and_asks() -> None:
    async def story() -> None:
        holder: list[Any] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await holder[0](scope, receive, send)

        async with served(app) as port:
            base = f"http://127.0.0.1:{port}"
            holder.append(application(resolver_of(), tokens=[TOKEN], url=base))
            async with httpx.AsyncClient(base_url=base) as client:
                await speak(client, base)

    asyncio.run(asyncio.wait_for(story(), 60))


async def speak(client: httpx.AsyncClient, base: str) -> None:
    metadata = (await client.get("/.well-known/authzen-configuration")).json()
    assert metadata["policy_decision_point"] == base
    headers = {"authorization": f"Bearer {TOKEN}", "x-request-id": "r-1"}

    async def post(endpoint: str, body: Any) -> Any:
        answer = await client.post(metadata[endpoint], json=body, headers=headers)
        assert (answer.status_code, answer.headers["x-request-id"]) == (200, "r-1")
        return answer.json()

    assert (await post("access_evaluation_endpoint", asked("lookup", order=1)))["decision"] is True
    many = {
        "subject": agent(),
        "action": {"name": "call"},
        "evaluations": [{"resource": tool("lookup", order=n)} for n in "12"],
    }
    told = await post("access_evaluations_endpoint", many)
    assert [one["context"]["reason"] for one in told["evaluations"]] == ["malformed", "malformed"]
    found = await post("search_resource_endpoint", {**asked(), "resource": {"type": "tool"}, "page": {"limit": 1}})
    assert found["page"]["count"] == 1
    assert await post("search_action_endpoint", asked("shell", command="ls")) == {
        "page": {"next_token": "", "count": 0},
        "context": {"arguments": "given"},
        "results": [],
    }
    everybody = await post("search_subject_endpoint", asked("lookup", order=1))
    assert [one["id"] for one in everybody["results"]] == ["coder", "reader"]
    many_at_once = await asyncio.gather(
        *(post("access_evaluation_endpoint", asked("lookup", order=n)) for n in range(40))
    )
    assert {one["decision"] for one in many_at_once} == {True}

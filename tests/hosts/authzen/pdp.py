"""A decision point to speak to, and how the tests speak to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx

from policy_lang import loads
from zcpolicy import Resolver
from zcpolicy.hosts.authzen import application

TOKEN = "of-the-host-" + "a" * 32
OTHER = "of-another-host-" + "b" * 32
URL = "https://pdp.example"
POLICY = """\
zcpolicy 1

tool lookup(order: integer)                                 risk read
tool refund(order: integer, amount: number, note?: string) risk medium
tool shell(command: shell)                                  risk high
tool "odd name"(x?: integer = 7)                           risk read
tool github/create_issue(title: string)                    risk medium
tool github/get_issue(number: integer)                     risk read
server github {}
bundle github { server github }
label untrusted
context { region: string }

agent coder {
    connect github
    autonomy full
    allow lookup, github/get_issue, "odd name"
    allow refund when args.amount <= 20
    ask   refund when args.amount > 10 because "large refunds are a person's business"
    deny  refund when marked untrusted because "no money on a stranger's word"
    allow github/create_issue when session.region == "eu"
    limit 1 calls to lookup per hour
}

agent reader {
    allow lookup
}

agent nobody {
}
"""

Story = Callable[[httpx.AsyncClient], Awaitable[None]]


PROGRAM = loads(POLICY, name="team.zcpolicy")


def resolver_of() -> Resolver:
    return Resolver(PROGRAM)


def told(story: Story, resolver: Any = None, tokens: Sequence[str] = (TOKEN, OTHER), url: str = URL) -> None:
    """Runs a story with a client that has the token; faults of the application are raised."""
    app = application(resolver or resolver_of(), tokens=tokens, url=url)

    async def run() -> None:
        transport = httpx.ASGITransport(app)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url=URL, headers=headers) as client:
            await story(client)

    asyncio.run(asyncio.wait_for(run(), 60))


def answers(path: str, *bodies: Any, resolver: Any = None) -> list[Any]:
    """What a decision point answers to requests, one after the other; each is answered with 200."""
    found: list[Any] = []

    async def story(client: httpx.AsyncClient) -> None:
        for body in bodies:
            answer = await client.post(f"/access/v1/{path}", json=body)
            assert answer.status_code == 200, answer.text
            found.append(answer.json())

    told(story, resolver)
    return found


def agent(name: str = "coder") -> Any:
    return {"type": "agent", "id": name}


def tool(name: str, **arguments: Any) -> Any:
    return {"type": "tool", "id": name, "properties": {"arguments": arguments}}


def asked(name: str = "lookup", context: Any = None, subject: Any = None, **arguments: Any) -> Any:
    """An evaluation of one call."""
    found = {"subject": subject or agent(), "action": {"name": "call"}, "resource": tool(name, **arguments)}
    return found if context is None else {**found, "context": context}

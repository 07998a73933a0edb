"""Tools on the shipped handles, run as two clients, two agents and two sessions: nothing crosses where it must not."""

import asyncio
from typing import Any

import pytest

from tests.state.handles import tools
from tests.state.handles.cast import SPEC, Talk, Wires, who
from tests.state.stage import acting
from zcpolicy.state.audit import Handles
from zcpolicy.state.handles import shipped
from zcpolicy.state.handles.channel_map import ChannelMap
from zcpolicy.state.handles.parent_tools import ParentTools
from zcpolicy.state.handles.rates import Rate
from zcpolicy.state.handles.tool_channels import PerToolChannels
from zcpolicy.state.lifecycle import Lifecycle
from zcpolicy.state.two_clients import Call, crossings
from zcpolicy.state.versions import SourceVersions

CALLS: dict[str, tuple[Any, list[Call]]] = {
    "of clients": (
        tools.OfClients,
        [
            ("draw", {"text": "{marker}"}), ("draw", {"text": "again {marker}"}), ("drawn", {}), ("clear", {}), ("search", {}),
            ("query", {"text": "{marker}"}), ("log_in", {}), ("send", {"text": "{marker}"}),
        ],
    ),
    "of sessions": (tools.OfSessions, [("remember", {"text": "{marker}"}), ("ask", {"text": "{marker}?"})]),
    "of all": (tools.OfAll, [("parents", {})]),
}  # fmt: skip


class Echo(Talk):
    """Answers with all that it has heard."""

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        self.heard.append(question)
        return ", ".join(self.heard)


class Box:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.got: list[str] = []

    async def send(self, text: str) -> None:
        self.got.append(text)


def host() -> Handles:
    """With a channel and a conversation for everybody who is tried."""
    made = shipped(
        SourceVersions(), rates=lambda: {"search": Rate(4, 3600.0)}, load=lambda _client, name: f"{name} of its own",
        connector=Wires(), sending=("send",),
    )  # fmt: skip
    made.find(ParentTools)[1].push(SPEC)
    for client in "ab":
        made.find(PerToolChannels)[1].open(who(client), "phone", Box().send)
        for agent in ("one", "two"):
            for session in "12":
                made.find(ChannelMap)[1].open(who(client, agent, session), "chat", Echo())
    return made


@pytest.mark.parametrize("case", CALLS)
def test_r14_nothing_crosses_by_way_of_the_shipped_handles(case: str) -> None:
    factory, calls = CALLS[case]
    assert asyncio.run(crossings(factory, host, acting, calls, agents=("one", "two"))) == ()


def test_r07_tools_on_the_shipped_handles_register_without_a_finding() -> None:
    async def story() -> None:
        async with Lifecycle(host()) as living:
            for name, (factory, _) in CALLS.items():
                living.add(name, factory)
            assert await living.register() == {}
            assert {name: one["phase"] for name, one in living.status().items()} == dict.fromkeys(CALLS, "executing")

    asyncio.run(story())

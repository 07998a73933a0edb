"""The channels that one tool may send through: a map for each tool, in it a part for each client.

In: ways to send text, which the host opens for a client. Out: sending, by the channel's name, to whoever the call is for.
Addresses stay with the host: a tool names a channel, and nobody.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, owners
from zcpolicy.state.handles.named import Named
from zcpolicy.state.handles.outside import reached, reached_in_thread
from zcpolicy.state.versions import SourceVersions, Versions

MAX_SENT_CHARACTERS: Final = 100_000
"""Characters that a tool sends at once."""
SEND_SECONDS: Final = 30.0
"""How long a channel may take to send."""

Send = Callable[[str], Coroutine[Any, Any, object]]
"""Sends text to one client, wherever that is."""


class _Channel(NamedTuple):
    send: Send
    loop: asyncio.AbstractEventLoop


class PerToolChannels(Handle["ToolChannels"]):
    """Of one tool: the host makes one for each. `open`, `replace` and `close` are the host's, in its event loop."""

    contract = Contract(
        holds="the channels that one tool may send through",
        owner="daemon",
        concurrency="read-write lock",
        isolation="client",
        reload="replaced",
        depends=frozenset({"config", "policy"}),
    )

    def __init__(self, versions: SourceVersions) -> None:
        self._channels: Named[_Channel] = Named("channel", self.contract, versions)

    @owners
    def as_of_now(self) -> Versions:
        """To be taken before the configuration is read that channels are made of, and given with them."""
        return self._channels.as_of_now()

    @owners
    def open(self, who: Who, name: str, send: Send, as_of: Versions | None = None) -> None:
        """Adds a channel, or puts another in its place. Raises Full, TypeError, ValueError."""
        self._channels.put(who, name, _Channel(send, asyncio.get_running_loop()), as_of)

    @owners
    def replace(self, who: Who, channels: Mapping[str, Send], as_of: Versions | None = None) -> None:
        """These, and no others: after a reload. Raises as `open`."""
        loop = asyncio.get_running_loop()
        self._channels.replace(who, {name: _Channel(send, loop) for name, send in channels.items()}, as_of)

    @owners
    def close(self, who: Who) -> None:
        """Takes out all channels of a client."""
        self._channels.drop(who)

    def _view(self, scope: Scope) -> "ToolChannels":
        return ToolChannels(self._channels, scope)

    def _held(self) -> Iterable[Held]:
        return self._channels.held()


class ToolChannels:
    """What one caller may send through. Everything raises PermitError once the call is over."""

    def __init__(self, channels: Named[_Channel], scope: Scope) -> None:
        self._channels = channels
        self._scope = scope

    def names(self) -> tuple[str, ...]:
        """Channels that are open now."""
        return self._channels.names(self._scope.key)

    async def send(self, name: str, text: str) -> None:
        """Raises Missing for a channel that is not open, Unreachable, TypeError for what is no text, ValueError for too much."""
        channel = self._channel(name, text)
        await reached(f"channel `{name}`", partial(channel.send, text), SEND_SECONDS)

    def send_in_thread(self, name: str, text: str) -> None:
        """The same for threads."""
        channel = self._channel(name, text)
        reached_in_thread(f"channel `{name}`", partial(channel.send, text), SEND_SECONDS, channel.loop)

    def _channel(self, name: str, text: str) -> _Channel:
        channel = self._channels.get(self._scope.key, name)
        if not _is_text(text):
            raise TypeError("what is sent is text")
        if len(text) > MAX_SENT_CHARACTERS:
            raise ValueError(f"this is more than the {MAX_SENT_CHARACTERS:,} characters that are sent at once")
        return channel


def _is_text(given: object) -> bool:
    return isinstance(given, str)

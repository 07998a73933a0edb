"""Tools and chats of the operator's own, by the names of the functions that make them.

In: `module:function` as settings name them. Out: tools that have registered; chats that are listened to. A module is found as Python
finds it, and beside the settings. Whatever it raises is the operator's to hear, on one line.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

from zcpolicy.daemon.host import Host
from zcpolicy.daemon.paths.channel import Channel
from zcpolicy.daemon.settings import ChannelSettings, FactorySettings, SettingsError
from zcpolicy.registry.sources import HostTool
from zcpolicy.state.audit import Handles
from zcpolicy.state.guard import constructed
from zcpolicy.state.lifecycle import Lifecycle
from zcpolicy.state.releasing import traced
from zcpolicy.state.toolset import Unfit

AGAIN_SECONDS: Final = 5.0
"""After which a chat that broke off is listened to again."""

Receive = Callable[[str, str], Awaitable[None]]
"""Takes a message in: the sender, as the chat vouches for them, and the text."""


class Chat(Protocol):
    """What a channel's factory makes of `Receive`."""

    async def listen(self) -> None:
        """Listens, and hands every message to `Receive` in a task of its own: it returns when that message is answered."""
        ...

    async def send(self, sender: str, text: str) -> None:
        """Sends text to a sender."""
        ...


def named(written: str) -> Callable[..., Any]:
    """The function of a `module:function`. Raises SettingsError."""
    module, _, name = written.partition(":")
    try:
        found: Any = getattr(import_module(module), name, None)
    except Exception as error:  # noqa: BLE001 - the operator's code, which runs here for the first time
        raise SettingsError(f"`{written}` cannot be loaded: {_on_one_line(traced(error))}") from None
    if not callable(found):
        raise SettingsError(f"`{module}` has no function or class `{name}`")
    made: Callable[..., Any] = found
    return made


async def registered(
    factories: Sequence[FactorySettings], handles: Handles, tools: Lifecycle, taken: Sequence[HostTool]
) -> tuple[HostTool, ...]:
    """The tools of the factories, once all of them have registered. `handles`: all of them, which theirs are added to; `taken`: tools
    whose names are no other's.

    Raises SettingsError; whoever gave the life cycle shuts it down.
    """
    for one in factories:
        for written in one.handles:
            _declare(handles, written)
        try:
            tools.add(one.make, named(one.make), one.settings)
        except Unfit as unfit:
            raise SettingsError(_on_one_line(str(unfit))) from None
    failed = await tools.register()
    if failed:
        raise SettingsError("; ".join(map(_on_one_line, failed.values())))
    made = tools.sources().builtins
    twice = sorted({one.name for one in made} & {one.name for one in taken})
    if twice:
        raise SettingsError(f"there is a tool `{twice[0]}` already")
    return made


def _declare(handles: Handles, written: str) -> None:
    """A handle of the operator's own, unless another factory has named it as well."""
    if any(name == written for name, _ in handles):
        return
    kind = named(written)
    try:
        handles.declare(written, constructed(kind))
    except Exception as error:  # noqa: BLE001 - the operator's code
        raise SettingsError(f"the handle `{written}` cannot be made: {_on_one_line(traced(error))}") from None


async def listen(
    host: Host, channels: Mapping[str, ChannelSettings], told: Callable[[str], None]
) -> list[asyncio.Task[None]]:
    """A task for each chat, which goes on until it is cancelled. Raises SettingsError."""
    made = {name: (one, _chat(host, name, one)) for name, one in channels.items()}
    return [asyncio.create_task(_kept_up(name, chat, told)) for name, (_, chat) in made.items()]


def _chat(host: Host, name: str, settings: ChannelSettings) -> Chat:
    receiving: list[Channel] = []

    async def receive(sender: str, text: str) -> None:
        await receiving[0].receive(sender, text)

    try:
        chat: Chat = named(settings.factory)(receive)
        receiving.append(Channel(host, settings.agent, chat.send, name=name))
    except SettingsError:
        raise
    except Exception as error:  # noqa: BLE001 - the operator's code
        raise SettingsError(f"the chat `{name}` cannot be made: {_on_one_line(traced(error))}") from None
    return chat


async def _kept_up(name: str, chat: Chat, told: Callable[[str], None]) -> None:
    while True:
        try:
            await chat.listen()
            told(f"the chat {name} has ended; it is listened to again in {AGAIN_SECONDS:g} seconds")
        except Exception as error:  # noqa: BLE001 - the operator's code: one chat ends, the daemon does not
            told(f"the chat {name} broke off: {type(error).__name__}: {_short(error)}")
        await asyncio.sleep(AGAIN_SECONDS)


def _short(error: Exception) -> str:
    return _on_one_line(str(error))[:300]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())

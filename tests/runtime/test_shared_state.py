"""State that tools share, scenarios 37 to 39: whose it is, when the outside may be touched, what is released at the end."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clock import SLOW_SECONDS
from tests.daemon.world import World, turn
from tests.runtime.loading import loaded
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import HostTool
from zcpolicy.state.given import Given
from zcpolicy.state.lifecycle import Lifecycle
from zcpolicy.state.releasing import Owned
from zcpolicy.state.toolset import Unfit

TOOL = '''
"""A tool of somebody's."""
from zcpolicy.registry.sources import HostTool

class Tool:
    def __init__(self):
        self.profiles = {{}}

    def tools(self):
        return [HostTool("fetch", "Fetches.", {{"type": "object", "properties": {{"url": {{"type": "string"}}}}}}, self.fetch)]

    async def fetch(self, arguments, context):
        {text}
        return "fetched"

def make(given):
    return Tool()
'''

MADE_OF = {
    "an IP address": "client_id = arguments['remote_addr']",
    "a header": "client = sha256(self.request.headers['X-User'].encode()).hexdigest()",
    "a user name": "user_key = f'user:{self.message.user_name}'",
    "a sender string": "session_id = hash(self.message.sender)",
    "a table of its own": "self.profiles[arguments['url']] = 1",
    "the daemon's type": "return Identity('worker', arguments['url'], '', '', '', 0, ())",
}
FETCH = "agent worker { allow fetch }\nagent free { allow fetch }"


@pytest.mark.parametrize("case", [*MADE_OF, "nothing of the kind"])
def test_37_identity_made_of_a_transport(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Identity made from an IP address, a header, a user name or a sender string is refused at registration."""

    async def story() -> None:
        world = World(FETCH, tmp_path)
        async with Lifecycle() as tools:
            tools.add("fetching", module.make)
            failed = await tools.register()
            world.host.sources = tools.sources()
            world.script("worker", calls(("fetch", {"url": "x"})), "done")
            await turn("channel", world)
            if case in MADE_OF:
                assert failed["fetching"].startswith("`fetching`: keeps state of its own:\n")
                assert f"{tmp_path}/somebodys.py:13: " in failed["fetching"]
                assert world.shown("worker") == set()
            else:
                assert failed == {}
                assert world.shown("worker") == {"fetch"}

    module = loaded(tmp_path / "somebodys.py", TOOL.format(text=MADE_OF.get(case, "pass")), monkeypatch)
    asyncio.run(story())


class Opens:
    """A tool that does something when it is constructed."""

    def __init__(self, does: Callable[[], object]) -> None:
        self.made = does()

    def tools(self) -> Sequence[HostTool]:
        return []


OUTSIDE: dict[str, tuple[Callable[[], object], str]] = {
    "a socket": (lambda: __import__("socket").create_connection(("127.0.0.1", 9)), r'`socket\.getaddrinfo\("127\.0\.0\.1"\)`'),
    "a file": (lambda: Path("/etc/hostname").read_text(), r'`open\("/etc/hostname"\)`'),
    "a program": (lambda: subprocess.run(["true"], check=True), r'`subprocess\.Popen\("true"\)`'),
    "a question about a file": (lambda: Path("/etc/hostname").exists(), r"`os\.stat`"),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTSIDE)
def test_38_what_opens_something_while_it_is_constructed(case: str) -> None:
    """A tool that opens a socket or a file while it is being constructed is refused."""
    does, named = OUTSIDE[case]
    tools = Lifecycle()
    with pytest.raises(
        Unfit, match=f"^`opens` cannot be constructed: {named} while a tool is constructed at .*: do it in `register`$"
    ):
        tools.add("opens", lambda _given: Opens(does))
    assert tools.status() == {}
    tools.add("opens", lambda _given: Opens(dict[str, str]))


class Holds:
    """A tool that holds two things of the outside, and may fail when it has them."""

    def __init__(self, name: str, fails: bool, log: list[str]) -> None:
        self.name, self.fails, self.log = name, fails, log

    def tools(self) -> Sequence[HostTool]:
        return []

    async def register(self, owned: Owned) -> None:
        for thing in "ab":
            self.log.append(f"+{self.name}{thing}")
            owned.on_shut_down(self.released(thing))
        if self.fails:
            raise OSError("no network")

    def released(self, thing: str) -> Callable[[], Any]:
        async def release() -> None:
            self.log.append(f"-{self.name}{thing}")

        return release

    async def shut_down(self) -> None:
        self.log.append(f"-{self.name}")


def holding(name: str, fails: bool, log: list[str]) -> Callable[[Given], Holds]:
    return lambda _given: Holds(name, fails, log)


WHOLE = ["+1a", "+1b", "+2a", "+2b", "-2", "-2b", "-2a", "+3a", "+3b", "-3", "-3b", "-3a", "-1", "-1b", "-1a"]
"""The first and the third register, the second does not."""


def test_39_what_is_owned_is_released() -> None:
    """Shutdown releases every owned resource once, also after a failed registration."""

    async def story() -> None:
        async with Lifecycle() as tools:
            for name, fails in (("1", False), ("2", True), ("3", False)):
                tools.add(name, holding(name, fails, log))
            failed = await tools.register()
            assert [*failed] == ["2"]
            assert failed["2"].startswith("`2`: OSError: no network, at ")
            await tools.shut_down()

    log: list[str] = []
    asyncio.run(story())
    assert log == WHOLE


PROCESS = """
import asyncio, signal, sys
from tests.runtime.test_shared_state import holding
from zcpolicy.state.lifecycle import Lifecycle

class Told(list):
    def append(self, line):
        print(line, flush=True)

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Lifecycle() as tools:
        for name, fails in (("1", False), ("2", True), ("3", False)):
            tools.add(name, holding(name, fails, Told()))
        await tools.register()
        print("ready", flush=True)
        await stop.wait()

asyncio.run(main())
"""


def test_39_a_process_that_is_told_to_end() -> None:
    """Shutdown releases every owned resource once, also after a failed registration."""
    paths = f"import sys; sys.path[:0] = {sys.path!r}\n"
    with subprocess.Popen([sys.executable, "-c", paths + PROCESS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] != "ready":
            line = process.stdout.readline()
            assert line, lines
            lines.append(line.strip())
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=SLOW_SECONDS)
    assert [one for one in (*lines, *rest.split()) if one != "ready"] == WHOLE
    assert process.returncode == 0

"""State that tools share, in a `zcpolicy serve` process (R1 to R18): one tool of the operator's own, two clients over HTTP."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from .desk import Process, token

TOOL = '''
"""A tool with a canvas, a rate limiter of its own, a derived value, and two things of the outside."""
from pathlib import Path
from zcpolicy import HostTool
from zcpolicy.state.handles.canvas import CanvasStore
from zcpolicy.state.handles.rate_limiter import RateLimiter
from zcpolicy.state.handles.rates import Rate, RateLimited
from zcpolicy.state.versions import SourceVersions

def note(file, text):
    with Path(file).open("a") as out:
        out.write(text + "\\n")

def released(name):
    async def release():
        note("released.txt", name)
    return release

class Board:
    def __init__(self, canvas, rates, word):
        self._canvas, self._rates, self._word = canvas, rates, word

    async def register(self, owned):
        for name in ("first", "second"):
            owned.on_shut_down(released(name))

    async def shut_down(self):
        note("released.txt", "board")

    def tools(self):
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        none = {"type": "object", "properties": {}}
        given = (("draw", text, self.draw), ("close", none, self.close), ("look", none, self.look), ("take", none, self.take), ("word", none, self.word))
        return [HostTool(name, "Does it.", schema, run) for name, schema, run in given]

    async def draw(self, arguments, context):
        self._canvas.scoped(context.caller).render("board", arguments["text"], "text/plain")
        return said("drawn")

    async def close(self, arguments, context):
        self._canvas.scoped(context.caller).close("board")
        return said("closed")

    async def look(self, arguments, context):
        own = self._canvas.scoped(context.caller)
        return said(", ".join(frame.content for frame in own.frames("board")) if "board" in own.names() else "nothing")

    async def take(self, arguments, context):
        try:
            self._rates.scoped(context.caller).take("take")
        except RateLimited:
            return said("too often")
        return said("taken")

    async def word(self, arguments, context):
        return said(self._word.get())

def said(text):
    note("said.txt", text)
    return text

def make(given):
    rates = RateLimiter(SourceVersions(), lambda: {"take": Rate(2, 3600.0)})
    return Board(given.handle(CanvasStore), rates, given.derived(["policy"], lambda: Path("word.txt").read_text()))
'''

DOES: dict[str, tuple[str, dict[str, str]]] = {
    "draws_ann": ("draw", {"text": "of ann"}),
    "draws_ben": ("draw", {"text": "of ben"}),
    "closes": ("close", {}),
    "looks": ("look", {}),
    "takes": ("take", {}),
    "reads": ("word", {}),
}
"""What each agent does in a turn, one call each."""

POLICY = (
    "zcpolicy 1\ntool draw(text: string) risk low\n"
    + "".join(f"tool {name}() risk low\n" for name in ("close", "look", "take", "word"))
    + "".join(f"agent {agent} {{ autonomy full; allow {tool} }}\n" for agent, (tool, _) in DOES.items())
)


def lay_out(folder: Path, *factories: str) -> Path:
    """The files of the daemon; the path of its settings."""
    folder.mkdir()
    (folder / "team.zcpolicy").write_text(POLICY)
    (folder / "board.py").write_text(TOOL)
    (folder / "word.txt").write_text("one")
    written = ", ".join(f'"{one}"' for one in ("board:make", *factories))
    parts = [
        '[policy]\nlayers = ["team.zcpolicy"]\n[state]\nfolder = "var"\n[http]\nport = 0\n[rpc]\n',
        f"[tools]\nfactories = [{written}]\n",
    ]
    for agent, (tool, arguments) in DOES.items():
        steps = [{"calls": [{"tool": tool, "arguments": arguments}]}, "done"]
        (folder / f"{agent}.json").write_text(json.dumps({"steps": steps, "repeat": True}))
        parts.append(f'[agents.{agent}]\nmodel = "scripted:{agent}.json"\nsurfaces = ["gateway"]\n')
    file = folder / "daemon.toml"
    file.write_text("".join(parts))
    return file


class Client:
    """One client of the daemon. Each `does` is a turn in a session of its own; it gives what the tool said."""

    def __init__(self, client: httpx.Client, folder: Path, headers: dict[str, str]) -> None:
        self._client, self._said, self.headers = client, folder / "said.txt", headers

    def does(self, agent: str) -> str:
        before = self._lines()
        answer = self._client.post("/turn", json={"agent": agent, "text": "go"}, headers=self.headers)
        assert (answer.status_code, answer.json()["text"]) == (200, "done"), answer.text
        (said,) = self._lines()[len(before) :]
        return said

    def _lines(self) -> list[str]:
        return self._said.read_text().splitlines() if self._said.exists() else []


def test_two_clients_of_a_process_share_a_tool_and_nothing_else(tmp_path: Path) -> None:
    file = lay_out(tmp_path / "desk")
    folder = file.parent
    root = token(file, "root", "operator")
    with Process(file) as served, served.client() as http:
        ann, ben = (Client(http, folder, token(file, name)) for name in ("ann", "ben"))

        # neither reads what is the other's
        assert [ann.does("draws_ann"), ben.does("looks"), ben.does("draws_ben")] == ["drawn", "nothing", "drawn"]
        assert [ann.does("looks"), ben.does("looks")] == ["of ann", "of ben"]
        # nor exhausts it
        assert [ann.does("takes") for _ in range(3)] == ["taken", "taken", "too often"]
        assert [ben.does("takes") for _ in range(3)] == ["taken", "taken", "too often"]
        # nor resets it
        assert ben.does("closes") == "closed"
        assert [ann.does("looks"), ben.does("looks"), ann.does("takes")] == ["of ann", "nothing", "too often"]

        # an operator sees whose everything is, and no value
        canvases = http.get("/handles", headers=root).json()["canvas"]["entries"]
        assert [(one["name"], one["client"] != "") for one in canvases] == [("board", True)]
        assert "of ann" not in http.get("/handles", headers=root).text

        # what was derived is valid, or worked out again: a reload makes it fresh, and keeps what is not derived
        assert ann.does("reads") == "one"
        (folder / "word.txt").write_text("two")
        assert ben.does("reads") == "one"
        (folder / "team.zcpolicy").write_text(f"{POLICY}agent other {{ autonomy supervised; allow look }}\n")
        assert http.post("/reload", json={}, headers=root).json()["new"] is True
        assert [ann.does("reads"), ben.does("reads"), ann.does("looks")] == ["two", "two", "of ann"]

        # what is owned is released once, the last first
        assert not (folder / "released.txt").exists()
        served.signal(signal.SIGTERM)
        assert served.ends() == 0
    assert (folder / "released.txt").read_text().split() == ["board", "second", "first"]


OTHER = """
from pathlib import Path
from zcpolicy import HostTool
class Other:
    def __init__(self, given):
        {begins}
    async def register(self, owned):
        owned.on_shut_down(self.release)
        {registers}
    async def release(self):
        with Path("released.txt").open("a") as out:
            out.write("other ")
    def tools(self):
        return [HostTool("other", "Does it.", {{"type": "object", "properties": {{}}}}, self.run)]
    async def run(self, arguments, context):
        {runs}
        return "done"
def make(given): return Other(given)
"""
REFUSED: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "a file that is opened while it is constructed": (
        {"begins": "self.words = open('word.txt').read()"}, r"`open\(", []
    ),
    "an identity table of its own": (
        {"begins": "self.profiles = {}", "runs": "self.profiles[arguments['from']] = context"},
        "keeps state of its own: .*other.py:", ["board", "second", "first"],
    ),
    "a failure as it registers": (
        {"registers": "raise OSError('no network')"}, "OSError: no network", ["other", "board", "second", "first"]
    ),
}  # fmt: skip
"""What the other tool does, why it is refused, and what had been taken by then, and is released."""


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_process_refuses_at_start_leaves_nothing(tmp_path: Path, what: str) -> None:
    given, why, released = REFUSED[what]
    file = lay_out(tmp_path / "desk", "other:make")
    parts: dict[str, Any] = {"begins": "pass", "registers": "pass", "runs": "pass", **given}
    (file.parent / "other.py").write_text(OTHER.format(**parts))
    with pytest.raises(AssertionError, match="it does not serve: status 2: ") as raised:
        Process(file)
    assert re.search(f"zcpolicy: the daemon cannot start: `other:make`.*{why}", str(raised.value))
    assert "Traceback" not in str(raised.value)
    assert not (file.parent / "var/zcpolicy.sock").exists()
    held = file.parent / "released.txt"
    assert (held.read_text().split() if held.exists() else []) == released
    file.write_text(file.read_text().replace(', "other:make"', ""))
    with Process(file):  # nothing is in the way of the next start
        pass

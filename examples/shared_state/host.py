"""State that tools share: one canvas store and one rate limiter in the process, and of each a part that is one client's."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import policy_lang
from zcpolicy import HostTool, ResolvedModelAccess, Resolver, ScriptedModel, ToolContext, ToolResult, calls
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.paths.channel import Channel
from zcpolicy.state.given import Given
from zcpolicy.state.handles import shipped
from zcpolicy.state.handles.canvas import CanvasStore
from zcpolicy.state.handles.rate_limiter import RateLimiter
from zcpolicy.state.handles.rates import Rate, RateLimited
from zcpolicy.state.lifecycle import Lifecycle
from zcpolicy.state.versions import SourceVersions


class Board:
    """Owns nothing, knows nobody: handles come at construction, and whose they are opened for comes with each call."""

    def __init__(self, given: Given) -> None:
        self._canvas = given.handle(CanvasStore)
        self._rates = given.handle(RateLimiter)

    def tools(self) -> Sequence[HostTool]:
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return [HostTool("draw", "Draws.", text, self.draw), HostTool("look", "Looks.", {"type": "object"}, self.look)]

    async def draw(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            self._rates.scoped(context.caller).take("draw")
        except RateLimited:
            print("    [draw: too often]")
            return ToolResult("Too often. Do something else.", ok=False)
        frame = self._canvas.scoped(context.caller).render("board", arguments["text"], "text/plain")
        print(f"    [draw: frame {frame.number}, {frame.content}]")
        return ToolResult("drawn")

    async def look(self, _arguments: dict[str, Any], context: ToolContext) -> str:
        frames = self._canvas.scoped(context.caller).frames("board")
        print("    [look:", ", ".join(frame.content for frame in frames) or "nothing", end="]\n")
        return f"{len(frames)} frames"


def _wishes(text: str) -> tuple[Any, str]:  # of a script that stands in for a model
    return calls(("draw", {"text": text}) if text else ("look", {})), "Done."


TEXTS = ("a house", "a tree", "a dog", "a cat", "", "", "a bird", "a fish", "")
SCRIPT = ScriptedModel(*(part for text in TEXTS for part in _wishes(text)))


async def main() -> None:
    versions, rates = SourceVersions(), {"draw": Rate(2, 3600.0)}
    handles = shipped(versions, rates=lambda: rates)
    async with Lifecycle(handles, versions) as tools:
        tools.add("board", Board)
        print("could not start:", await tools.register() or "none")
        resolver = Resolver(policy_lang.load(Path(__file__).with_name("board.zcpolicy")))
        chat = Channel(Host(resolver, tools.sources(), {"sketcher": ResolvedModelAccess(SCRIPT)}), "sketcher", _answer)
        for sender in ("ann", "ann", "ann", "ben", "ann", "ben"):
            await chat.receive(sender, "go on")
        rates["draw"] = Rate(
            3, 3600.0
        )  # the configuration is read again: what was drawn counts, frames are still there
        versions.bump("config")
        for sender in ("ann", "ann", "ann"):
            await chat.receive(sender, "go on")
        print({name: one["count"] for name, one in handles.to_json().items()})  # what operators may list


async def _answer(sender: str, _text: str) -> None:
    print(f"  {sender} is answered")


if __name__ == "__main__":
    asyncio.run(main())

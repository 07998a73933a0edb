"""Channels: those that one tool may send through, and the conversations in which tools ask, poll and react."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.state.handles.cast import ANN, BEN, Call, Talk, called, who
from zcpolicy import PermitError
from zcpolicy.state.handles import named, questions, tool_channels
from zcpolicy.state.handles.apart import Full
from zcpolicy.state.handles.channel_map import ChannelMap
from zcpolicy.state.handles.named import Missing
from zcpolicy.state.handles.outside import Unreachable
from zcpolicy.state.handles.tool_channels import PerToolChannels
from zcpolicy.state.secret import secret
from zcpolicy.state.versions import SourceVersions


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await asyncio.wait_for(story(), 20)

    asyncio.run(whole())


class Box:
    """Where a client's messages arrive."""

    def __init__(self) -> None:
        self.got: list[str] = []

    async def send(self, text: str) -> None:
        self.got.append(text)


# --- of one tool ---------------------------------------------------------------------------------------------------------


def test_r14_a_tool_sends_to_whoever_the_call_is_for() -> None:
    async def story() -> None:
        made, anns, bens = PerToolChannels(SourceVersions()), Box(), Box()
        made.open(who(*ANN), "phone", anns.send)
        made.open(who(*BEN), "phone", bens.send)
        made.open(who(*BEN), "mail", bens.send)
        ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
        await ann.send("phone", "hello ann")
        await asyncio.to_thread(ben.send_in_thread, "phone", "hello ben")
        with pytest.raises(Missing, match="there is no channel `mail`; there is `phone`"):
            await ann.send("mail", "hello")
        assert (ann.names(), ben.names()) == (("phone",), ("phone", "mail"))
        assert (anns.got, bens.got) == (["hello ann"], ["hello ben"])

    run(story)


def test_one_tool_s_channels_are_not_another_s() -> None:
    async def story() -> None:
        versions = SourceVersions()
        sends, posts = PerToolChannels(versions), PerToolChannels(versions)
        sends.open(who(), "phone", Box().send)
        assert (sends.scoped(called()).names(), posts.scoped(called()).names()) == (("phone",), ())

    run(story)


@pytest.mark.parametrize("source", ["config", "policy"])
def test_r17_after_a_reload_there_are_the_channels_that_the_host_has_opened_since(source: Any) -> None:
    async def story() -> None:
        versions, old, new = SourceVersions(), Box(), Box()
        made = PerToolChannels(versions)
        view = made.scoped(called())
        made.replace(who(), {"phone": old.send, "mail": old.send})
        as_of = made.as_of_now()
        versions.bump(source)
        assert view.names() == ()
        with pytest.raises(Missing, match="there is no channel `phone`; there is none"):
            await view.send("phone", "hello")
        made.replace(who(), {"phone": old.send}, as_of)  # made of the configuration before
        assert view.names() == ()
        made.replace(who(), {"phone": new.send})
        await view.send("phone", "hello")
        assert (view.names(), old.got, new.got) == (("phone",), [], ["hello"])
        made.close(who())
        assert view.names() == ()

    run(story)


def test_what_a_channel_says_when_it_fails_is_not_told() -> None:
    async def story() -> None:
        async def fails(_text: str) -> None:
            raise ConnectionError("+49 170 1234567")

        made = PerToolChannels(SourceVersions())
        made.open(who(), "phone", fails)
        view = made.scoped(called())
        for sending in (view.send("phone", "x"), asyncio.to_thread(view.send_in_thread, "phone", "x")):
            with pytest.raises(Unreachable, match=r"^channel `phone` failed: ConnectionError$") as told:
                await sending
            assert told.value.__context__ is None

    run(story)


def test_a_channel_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_channels, "SEND_SECONDS", 0.02)

    async def story() -> None:
        async def hangs(_text: str) -> None:
            await asyncio.Event().wait()

        made = PerToolChannels(SourceVersions())
        made.open(who(), "phone", hangs)
        with pytest.raises(Unreachable, match="channel `phone` failed: TimeoutError"):
            await made.scoped(called()).send("phone", "x")

    run(story)


def test_a_thread_whose_loop_is_gone_is_told_so() -> None:
    made = PerToolChannels(SourceVersions())

    async def opens() -> None:
        made.open(who(), "phone", Box().send)
        with pytest.raises(PermitError, match="this would hold up the event loop"):
            made.scoped(called()).send_in_thread("phone", "x")

    run(opens)
    with pytest.raises(PermitError, match="its event loop has ended"):
        made.scoped(called()).send_in_thread("phone", "x")


def test_channels_are_bounded() -> None:
    async def story() -> None:
        made = PerToolChannels(SourceVersions())
        for number in range(named.MAX_NAMES):
            made.open(who(), f"c{number}", Box().send)
        with pytest.raises(Full, match="there is room for 64 of `channel`, and no more"):
            made.open(who(), "one more", Box().send)
        made.open(who(), "c3", Box().send)
        made.open(who(*BEN), "c3", Box().send)
        with pytest.raises(TypeError, match="what is sent is text"):
            await made.scoped(called()).send("c3", secret("s"))  # type: ignore[arg-type]  # that is what is tried
        with pytest.raises(ValueError, match="more than the 100,000 characters"):
            await made.scoped(called()).send("c3", "x" * 100_001)
        for name in ("", "x" * 201):
            with pytest.raises(ValueError, match="a name has 1 to 200 characters"):
                made.open(who(), name, Box().send)

    run(story)


# --- of a session --------------------------------------------------------------------------------------------------------


def test_r14_a_question_goes_to_the_conversation_of_its_session() -> None:
    async def story() -> None:
        made, anns, bens = ChannelMap(SourceVersions()), Talk("blue"), Talk("red")
        made.open(who(*ANN), "chat", anns)
        made.open(who(*BEN), "chat", bens)
        ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
        assert await ann.ask("chat", "which colour?", ["red", "green"]) == "blue"
        assert await asyncio.to_thread(ben.ask_in_thread, "chat", "which colour?") == "red"
        assert await ann.poll("chat", "which?", ["red", "blue"]) == {"red": 1, "blue": 1}
        assert await asyncio.to_thread(ann.poll_in_thread, "chat", "which?", ["red"]) == {"red": 1}
        await ann.react("chat", "+1")
        await asyncio.to_thread(ben.react_in_thread, "chat", "-1")
        assert (anns.heard, bens.heard) == (["which colour?", "+1"], ["which colour?", "-1"])
        with pytest.raises(Missing):
            await made.scoped(called("ann", "one", "another")).ask("chat", "which colour?")

    run(story)


class Slow(Talk):
    """Says nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__("late")
        self.go_on = asyncio.Event()

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        await self.go_on.wait()
        return self.says


def meanwhile(change: Callable[[ChannelMap, Call, SourceVersions], object]) -> Callable[[], Awaitable[None]]:
    async def story() -> None:
        versions = SourceVersions()
        made, slow, call = ChannelMap(versions), Slow(), Call()
        made.open(who(), "chat", slow)
        waiting = asyncio.create_task(made.scoped(call.caller).ask("chat", "still there?"))
        await asyncio.sleep(0.01)
        change(made, call, versions)
        slow.go_on.set()
        await waiting

    return story


CHANGES: dict[str, tuple[Callable[[ChannelMap, Call, SourceVersions], object], type[Exception], str]] = {
    "the call ends": (lambda _made, call, _versions: call.end(), PermitError, "the call is over"),
    "it is closed": (lambda made, _call, _versions: made.close(who()), Missing, "there is no conversation `chat`"),
    "a reload": (lambda _made, _call, versions: versions.bump("config"), Missing, "there is no conversation `chat`"),
    "it is replaced": (
        lambda made, _call, _versions: made.replace(who(), {"chat": Talk()}), Unreachable, "conversation `chat` was replaced meanwhile",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_an_answer_that_comes_too_late_is_nobody_s(case: str) -> None:
    change, error, said = CHANGES[case]
    with pytest.raises(error, match=said):
        run(meanwhile(change))


def test_people_who_say_nothing_are_waited_for_so_long_and_no_longer() -> None:
    async def story() -> None:
        made = ChannelMap(SourceVersions())
        made.open(who(), "chat", Slow())
        view = made.scoped(called())
        with pytest.raises(Unreachable, match="conversation `chat` failed: TimeoutError"):
            await view.ask("chat", "still there?", seconds=0.02)
        with pytest.raises(Unreachable, match="conversation `chat` failed: TimeoutError"):
            await asyncio.to_thread(view.ask_in_thread, "chat", "still there?", seconds=0.02)

    run(story)


class Odd(Talk):
    """Answers what cannot be."""

    async def ask(self, question: str, options: tuple[str, ...]) -> Any:
        return secret("s") if question == "who?" else "x" * (questions.MAX_ANSWER_CHARACTERS + 1)

    async def poll(self, question: str, options: tuple[str, ...]) -> Any:
        return 7 if question == "who?" else {"a": -3, "b": "many", "none of them": 7}


def test_what_a_conversation_answers_is_text_and_counts_and_bounded() -> None:
    async def story() -> None:
        made = ChannelMap(SourceVersions())
        made.open(who(), "chat", Odd())
        view = made.scoped(called())
        with pytest.raises(Unreachable, match="something that is no text"):
            await view.ask("chat", "who?")
        assert len(await view.ask("chat", "how long?")) == questions.MAX_ANSWER_CHARACTERS
        with pytest.raises(Unreachable, match="something that is no table"):
            await view.poll("chat", "who?", ["a"])
        assert await view.poll("chat", "which?", ["a", "b", "c"]) == {"a": 0, "b": 0, "c": 0}

    run(story)


ASKED: list[tuple[str, list[Any], float, str]] = [
    ("", [], 1.0, "a text of 1 to 4,000 characters"),
    ("x" * 4_001, [], 1.0, "a text of 1 to 4,000 characters"),
    ("which?", [""], 1.0, "a text of 1 to 4,000 characters"),
    ("which?", [7], 1.0, "a text of 1 to 4,000 characters"),
    ("which?", ["x"] * 21, 1.0, "up to 20 options"),
    ("which?", [], -1.0, "from 0 to 86,400 seconds"),
    ("which?", [], float("nan"), "from 0 to 86,400 seconds"),
]


@pytest.mark.parametrize(("question", "options", "seconds", "said"), ASKED)
def test_what_cannot_be_asked(question: str, options: list[Any], seconds: float, said: str) -> None:
    async def story() -> None:
        made = ChannelMap(SourceVersions())
        made.open(who(), "chat", Talk())
        with pytest.raises(ValueError, match=said):
            await made.scoped(called()).ask("chat", question, options, seconds)
        with pytest.raises(ValueError, match="a poll has options"):
            await made.scoped(called()).poll("chat", "which?", [])

    run(story)


def test_a_thread_that_waits_is_not_left_when_the_loop_ends() -> None:
    """Whoever waits in a thread hears of it when the task that does its work is cancelled with the loop."""

    async def story() -> None:
        made = ChannelMap(SourceVersions())
        made.open(who(), "chat", Slow())
        view = made.scoped(called())
        waiting = asyncio.get_running_loop().run_in_executor(None, lambda: _said(view))
        await asyncio.sleep(0.05)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        assert await waiting == "conversation `chat` failed: CancelledError"

    asyncio.run(story())


def _said(view: Any) -> str:
    try:
        return str(view.ask_in_thread("chat", "still there?"))
    except Unreachable as error:
        return str(error)

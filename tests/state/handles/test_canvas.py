"""Canvases: frames for one client's eyes, subscribers that keep up or are dropped, and what a reload leaves of them."""

import asyncio
import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.state.handles.cast import ANN, BEN, Call, called, who
from zcpolicy import PermitError
from zcpolicy.state.handles import canvas as module
from zcpolicy.state.handles import frames as parts
from zcpolicy.state.handles.apart import Full
from zcpolicy.state.handles.canvas import CanvasStore
from zcpolicy.state.handles.frames import Dropped, Frame
from zcpolicy.state.secret import secret
from zcpolicy.state.versions import SourceVersions

NAMES = st.sampled_from(["plan", "map"])
CLIENTS = st.sampled_from(["ann", "ben"])


class Canvases(RuleBasedStateMachine):
    """Beside a model of lists: frames by client and name, and for each subscriber what it has not been told yet."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        for name, bound in (("MAX_BEHIND", 3), ("MAX_FRAMES", 4), ("MAX_CANVAS_CHARACTERS", 20)):
            self.patch.setattr(parts, name, bound)
        self.patch.setattr(module, "MAX_CANVASES", 1)
        self.patch.setattr(module, "MAX_SUBSCRIBERS", 2)
        self.versions = SourceVersions()
        self.store = CanvasStore(self.versions)
        self.views = {client: self.store.scoped(called(client)) for client in ("ann", "ben")}
        self.shown: dict[tuple[str, str], list[Frame]] = {}
        self.numbers: dict[tuple[str, str], int] = {}
        self.subscribers: list[tuple[tuple[str, str], Any, list[Frame | Dropped]]] = []

    def teardown(self) -> None:
        self.patch.undo()

    def model(self, client: str, name: str) -> bool:
        """Makes the canvas. False: there is no room."""
        if (client, name) not in self.numbers and sum(one == client for one, _ in self.numbers) >= 1:
            return False
        self.shown.setdefault((client, name), [])
        self.numbers.setdefault((client, name), 0)
        return True

    def drop(self, key: tuple[str, str], why: str) -> None:
        self.numbers.pop(key, None)
        self.shown.pop(key, None)
        for one, _, untold in self.subscribers:
            if one == key and not _is_dropped(untold):
                untold[:] = [Dropped(why, len(untold))]

    @rule(client=CLIENTS, name=NAMES, text=st.sampled_from(["a", "bb", "c" * 12]))
    def render(self, client: str, name: str, text: str) -> None:
        if not self.model(client, name):
            with pytest.raises(Full):
                self.views[client].render(name, text)
            return
        key = client, name
        self.numbers[key] += 1
        frame = Frame(self.numbers[key], "text/html", text)
        assert self.views[client].render(name, text) == frame
        frames = self.shown[key]
        frames.append(frame)
        while len(frames) > 4 or sum(len(one.content) for one in frames) > 20:
            del frames[0]
        for one, _, untold in self.subscribers:
            if one == key and not _is_dropped(untold):
                untold[:] = [Dropped("too slow", 4)] if len(untold) == 3 else [*untold, frame]

    @rule(client=CLIENTS, name=NAMES)
    def close(self, client: str, name: str) -> None:
        self.views[client].close(name)
        self.drop((client, name), "the canvas is gone")

    @rule(client=CLIENTS)
    def end(self, client: str) -> None:
        self.store.end(who(client))
        for key in [key for key in self.numbers if key[0] == client]:
            self.drop(key, "the canvas is gone")

    @rule(source=st.sampled_from(["workspace", "config", "credentials", "policy", "provider"]))
    def reload(self, source: Any) -> None:
        self.versions.bump(source)
        if source == "workspace":
            for key in [*self.numbers]:
                self.drop(key, "the workspace has changed")

    @rule(client=CLIENTS, name=NAMES)
    def subscribe(self, client: str, name: str) -> None:
        is_full = sum(key == (client, name) and not _is_dropped(untold) for key, _, untold in self.subscribers) >= 2
        if not self.model(client, name) or is_full:
            with pytest.raises(Full):
                self.views[client].subscribe(name)
        else:
            self.subscribers.append(((client, name), self.views[client].subscribe(name), []))

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data())
    def next(self, data: st.DataObject) -> None:
        _, subscription, untold = data.draw(st.sampled_from(self.subscribers))
        if untold:
            assert subscription.next_in_thread(0) == untold[0]
            untold[:] = untold if _is_dropped(untold) else untold[1:]
        else:
            with pytest.raises(TimeoutError):
                subscription.next_in_thread(0)

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        _, subscription, untold = data.draw(st.sampled_from(self.subscribers))
        subscription.close()
        if not _is_dropped(untold):
            untold[:] = [Dropped("closed", len(untold))]

    @invariant()
    def shows_the_same(self) -> None:
        for client, view in self.views.items():
            assert sorted(view.names()) == sorted(name for one, name in self.numbers if one == client)
            for name in ("plan", "map"):
                assert view.frames(name) == tuple(self.shown.get((client, name), ()))


def _is_dropped(untold: list[Frame | Dropped]) -> bool:
    return bool(untold) and isinstance(untold[0], Dropped)


TestCanvases = Canvases.TestCase
TestCanvases.settings = settings(max_examples=max(120, settings().max_examples))


def test_a_subscriber_is_handed_frames_as_they_come_and_last_why_there_are_no_more() -> None:
    async def story() -> list[Frame | Dropped]:
        store = CanvasStore(SourceVersions())
        ann, ben = store.scoped(called(*ANN)), store.scoped(called(*BEN))
        with ann.subscribe("plan") as frames, ben.subscribe("plan") as bens:

            async def watches() -> list[Frame | Dropped]:
                return [one async for one in frames]

            watching = asyncio.create_task(watches())
            await asyncio.sleep(0)
            ann.render("plan", "first")
            await asyncio.to_thread(ann.render, "plan", "second")
            ann.close("plan")
            found = await asyncio.wait_for(watching, 5)
            with pytest.raises(TimeoutError):
                await bens.next(0.01)
        return found

    assert asyncio.run(story()) == [
        Frame(1, "text/html", "first"), Frame(2, "text/html", "second"), Dropped("the canvas is gone", 0),
    ]  # fmt: skip


def test_rendering_waits_for_nobody_and_who_is_slow_is_told() -> None:
    store = CanvasStore(SourceVersions())
    view = store.scoped(called())
    slow, keen = view.subscribe("plan"), view.subscribe("plan")
    for number in range(parts.MAX_BEHIND + 5):
        view.render("plan", str(number))
        assert keen.next_in_thread(1) == Frame(number + 1, "text/html", str(number))
    assert slow.next_in_thread(0) == slow.next_in_thread(0) == Dropped("too slow", parts.MAX_BEHIND + 1)


def test_what_was_handed_before_the_workspace_changed_is_not_seen_afterwards() -> None:
    versions = SourceVersions()
    view = CanvasStore(versions).scoped(called())
    subscription = view.subscribe("plan")
    view.render("plan", "stale")
    versions.bump("workspace")
    assert subscription.next_in_thread(0) == Dropped("the workspace has changed", 1)
    assert view.frames("plan") == ()


def test_a_subscription_ends_with_its_call_also_while_it_waits() -> None:
    async def story() -> None:
        store = CanvasStore(SourceVersions())
        call = Call()
        subscription = store.scoped(call.caller).subscribe("plan")
        waiting = asyncio.create_task(subscription.next(5))
        await asyncio.sleep(0)
        call.end()
        store.scoped(called()).render("plan", "late")
        with pytest.raises(PermitError, match="the call is over"):
            await waiting

    asyncio.run(story())


def test_subscribers_whose_calls_are_over_make_room() -> None:
    view = CanvasStore(SourceVersions())
    calls = [Call() for _ in range(module.MAX_SUBSCRIBERS)]
    for call in calls:
        view.scoped(call.caller).subscribe("plan")
    with pytest.raises(Full, match="there is room for 16 subscribers of one canvas, and no more"):
        view.scoped(called()).subscribe("plan")
    calls[3].end()
    view.scoped(called()).subscribe("plan")


def test_a_subscription_that_is_closed_is_handed_nothing_and_makes_room() -> None:
    view = CanvasStore(SourceVersions()).scoped(called())
    for _ in range(module.MAX_SUBSCRIBERS + 1):
        with view.subscribe("plan") as subscription:
            pass
        view.render("plan", "x")
        assert subscription.next_in_thread(0) == Dropped("closed", 0)


def test_whoever_stops_waiting_misses_nothing() -> None:
    async def story() -> None:
        view = CanvasStore(SourceVersions()).scoped(called())
        subscription = view.subscribe("plan")
        for number in range(1, 4):
            waiting = asyncio.create_task(subscription.next())
            await asyncio.sleep(0)
            waiting.cancel()
            view.render("plan", str(number))
            await asyncio.gather(waiting, return_exceptions=True)
            assert (await subscription.next(1)).number == number  # type: ignore[union-attr]  # a frame

    asyncio.run(story())


def test_a_thread_does_not_hold_up_an_event_loop() -> None:
    async def story() -> None:
        with pytest.raises(PermitError, match="this would hold up the event loop"):
            CanvasStore(SourceVersions()).scoped(called()).subscribe("plan").next_in_thread(1)

    asyncio.run(story())


def test_threads_that_render_and_threads_and_tasks_that_watch() -> None:
    async def story() -> list[list[int]]:
        view = CanvasStore(SourceVersions()).scoped(called())
        subscriptions = [view.subscribe("plan") for _ in range(4)]
        turn = threading.Semaphore(parts.MAX_BEHIND)

        async def task(number: int) -> list[int]:
            return [(await subscriptions[number].next(5)).number for _ in range(200)]  # type: ignore[union-attr]

        def thread(number: int) -> list[int]:
            found: list[int] = []
            for _ in range(200):
                found.append(subscriptions[number].next_in_thread(5).number)  # type: ignore[union-attr]
                if number == 3:
                    turn.release()
            return found

        def render() -> list[int]:
            for _ in range(100):
                turn.acquire()
                view.render("plan", "x")
            return []

        watching = [task(0), task(1), asyncio.to_thread(thread, 2), asyncio.to_thread(thread, 3)]
        found = await asyncio.gather(
            *watching, asyncio.to_thread(render), asyncio.to_thread(render), return_exceptions=True
        )
        return [one for one in found[:4] if not isinstance(one, BaseException)]

    for numbers in asyncio.run(story()):
        assert all(later == earlier + 1 for earlier, later in pairwise(numbers))


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (secret("s"), TypeError, "what is shown is text"),
        ("x" * parts.MAX_FRAME_CHARACTERS, ValueError, "a frame has up to 200,000 characters"),
    ],
)
def test_what_is_no_frame(content: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        CanvasStore(SourceVersions()).scoped(called()).render("plan", content)

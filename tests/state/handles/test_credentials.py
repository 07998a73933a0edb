"""Credentials: each client's own, loaded anew after a rotation, and told by nothing."""

import asyncio
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from tests.clock import SLOW_SECONDS
from tests.state.handles.cast import ANN, BEN, Call, called, who
from zcpolicy import PermitError
from zcpolicy.state.handles import credentials as module
from zcpolicy.state.handles.apart import Full
from zcpolicy.state.handles.credentials import Credentials
from zcpolicy.state.handles.named import Missing
from zcpolicy.state.handles.outside import Unreachable
from zcpolicy.state.secret import Secret, secret
from zcpolicy.state.versions import SourceVersions


class Vault:
    """What a host loads from: the same of each, with the number of the rotation."""

    def __init__(self) -> None:
        self.rotation = 1
        self.asked: list[str] = []

    def load(self, client: str, name: str) -> str:
        self.asked.append(f"{client} {name}")
        if name == "none":
            raise KeyError("hunter2")
        return f"{client}-{name}-{self.rotation}"


def test_r14_each_client_gets_its_own() -> None:
    vault = Vault()
    made = Credentials(SourceVersions(), vault.load)
    ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
    assert ann.get_in_thread("token").reveal() == "ann-token-1"
    assert asyncio.run(ben.get("token")).reveal() == "ben-token-1"
    assert ann.get_in_thread("token") == made.scoped(called("ann", "two", "later")).get_in_thread("token")
    assert vault.asked == ["ann token", "ben token"]


@pytest.mark.parametrize(("source", "rotation"), [("credentials", 2), ("config", 2), ("policy", 1), ("workspace", 1)])
def test_r12_a_stale_one_is_not_handed_out_after_a_rotation(source: Any, rotation: int) -> None:
    vault, versions = Vault(), SourceVersions()
    view = Credentials(versions, vault.load).scoped(called())
    view.get_in_thread("token")
    vault.rotation = 2
    assert view.get_in_thread("token").reveal() == "ann-token-1"
    versions.bump(source)
    assert view.get_in_thread("token").reveal() == f"ann-token-{rotation}"


def test_one_that_is_rotated_while_it_is_loaded_is_loaded_again() -> None:
    vault, versions = Vault(), SourceVersions()

    def load(client: str, name: str) -> str:
        found = vault.load(client, name)
        if vault.rotation == 1:
            vault.rotation = 2
            versions.bump("credentials")
        return found

    assert Credentials(versions, load).scoped(called()).get_in_thread("token").reveal() == "ann-token-2"


def test_threads_and_tasks_see_no_rotation_go_back() -> None:
    vault, versions = Vault(), SourceVersions()
    made = Credentials(versions, vault.load)
    over = threading.Event()

    def reads() -> list[int]:
        view, found = made.scoped(called()), [0]
        while not over.is_set():
            before = vault.rotation - 1  # the bump of the newest may be under way
            found.append(int(view.get_in_thread("token").reveal().rpartition("-")[2]))
            assert found[-1] >= max(before, found[-2])
        return found

    async def story() -> None:
        reading = [asyncio.create_task(asyncio.to_thread(reads)) for _ in range(4)]
        view = made.scoped(called())
        for rotation in range(2, 60):
            vault.rotation = rotation
            versions.bump("credentials")
            assert (await view.get("token")).reveal() == f"ann-token-{rotation}"
        over.set()
        await asyncio.gather(*reading)

    asyncio.run(story())


FAILING: dict[str, tuple[Callable[[str, str], Any], type[Exception], str]] = {
    "there is none": (Vault().load, Missing, "there is no credential `none`"),
    "the loader fails": (
        lambda _client, _name: 1 / 0,
        Unreachable,
        "loading credential `none` failed: ZeroDivisionError",
    ),
    "it is no text": (lambda _client, _name: b"hunter2", Unreachable, "loading credential `none` failed: TypeError"),
    "it is empty": (lambda _client, _name: "", Unreachable, "loading credential `none` failed: ValueError"),
}


@pytest.mark.parametrize("case", FAILING)
def test_r15_what_a_loader_says_when_it_fails_is_not_told(case: str) -> None:
    load, error, said = FAILING[case]
    view = Credentials(SourceVersions(), load).scoped(called())
    with pytest.raises(error) as told:
        view.get_in_thread("none")
    assert str(told.value) == said
    assert told.value.__context__ is None
    assert "hunter2" not in "".join(traceback.format_exception(told.value))


def test_nothing_tells_a_credential() -> None:
    made = Credentials(SourceVersions(), lambda client, name: secret("hunter2"))
    found = made.scoped(called()).get_in_thread("token")
    assert isinstance(found, Secret)
    for told in (repr(found), str(found), repr(made), repr(made.held()), f"{found}"):
        assert "hunter2" not in told


def test_what_is_loaded_after_the_call_has_ended_is_nobody_s() -> None:
    call = Call()

    def load(client: str, name: str) -> str:
        call.end()
        return "late"

    made = Credentials(SourceVersions(), load)
    view = made.scoped(call.caller)
    with pytest.raises(PermitError, match="the call is over"):
        view.get_in_thread("token")


def test_loading_holds_up_no_event_loop_and_no_other_client() -> None:
    async def story() -> None:
        go_on = threading.Event()

        def load(client: str, name: str) -> str:
            return client if client == "ben" or go_on.wait(10) else "nobody"

        made = Credentials(SourceVersions(), load)
        waiting = asyncio.create_task(made.scoped(called(*ANN)).get("token"))
        await asyncio.sleep(0.01)
        assert (await made.scoped(called(*BEN)).get("token")).reveal() == "ben"
        go_on.set()
        assert (await waiting).reveal() == "ann"
        with pytest.raises(PermitError, match="this would hold up the event loop"):
            made.scoped(called()).get_in_thread("token")

    asyncio.run(story())


def test_names_that_are_tried_take_no_room_and_those_that_are_held_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CREDENTIALS", 2)
    vault = Vault()
    made = Credentials(SourceVersions(), vault.load)
    view = made.scoped(called())
    for _ in range(5):
        with pytest.raises(Missing):
            view.get_in_thread("none")
    assert made.held() == ()
    for name in "ab":
        view.get_in_thread(name)
    with pytest.raises(Full, match="there is room for 2 credentials of one client, and no more"):
        view.get_in_thread("c")
    made.forget(who())
    assert view.get_in_thread("c").reveal() == "ann-c-1"


def test_what_is_forgotten_while_it_is_loaded_is_loaded_again() -> None:
    value, begun, go_on = ["old"], threading.Event(), threading.Event()

    def load(_client: str, _name: str) -> str:
        found = value[0]
        begun.set()
        assert go_on.wait(SLOW_SECONDS)
        return found

    made = Credentials(SourceVersions(), load)
    view, given = made.scoped(called()), list[str]()
    loading = threading.Thread(target=lambda: given.append(view.get_in_thread("token").reveal()))
    loading.start()
    assert begun.wait(SLOW_SECONDS)
    value[0] = "new"
    made.forget(who())
    go_on.set()
    loading.join(SLOW_SECONDS)
    assert [*given, view.get_in_thread("token").reveal()] == ["new", "new"]

"""Room for each: whoever fills theirs takes nothing from anybody."""

import pytest

from tests.state.handles.cast import who
from tests.state.stage import contract
from zcpolicy import PermitError
from zcpolicy.state.handles import apart as module
from zcpolicy.state.handles.apart import Apart, Full
from zcpolicy.state.handles.named import Missing, Named
from zcpolicy.state.secret import secret
from zcpolicy.state.versions import SourceVersions


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLIENTS", 3)
    monkeypatch.setattr(module, "MAX_PER_CLIENT", 2)


def apart() -> Apart[list[str]]:
    return Apart(list, lambda one: not one)


def test_sessions_of_one_client_take_no_room_of_another() -> None:
    made = apart()
    for session in ("1", "2"):
        made.of(("ben", "one", session)).append("x")
    with pytest.raises(Full, match="there is room for 2 of one client, and no more"):
        made.of(("ben", "one", "3"))
    made.of(("ann", "one", "1")).append("y")
    assert made.find(("ben", "one", "1")) == ["x"]


def test_for_one_client_too_many_nothing_is_kept_and_the_others_lose_nothing() -> None:
    made = apart()
    for client in "abc":
        made.of((client,)).append("x")
    with pytest.raises(Full, match="there is room for 3 clients, and no more"):
        made.of(("d",))
    assert made.all() == [["x"]] * 3
    made.drop(("b",))
    made.of(("d",)).append("x")
    assert made.drop(("d",)) == ["x"]
    assert made.drop(("nobody",)) is None


def test_what_holds_nothing_any_more_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOKED_AT", 1)
    made = apart()
    for client in "abc":
        made.of((client,)).append("x")
    made.of(("c",)).clear()
    for _ in range(2):  # a few are looked at each time, not the same ones
        with pytest.raises(Full):
            made.of(("d",))
    assert made.of(("d",)) == []
    made.of(("d", "1")).append("x")
    made.of(("d", "2"))
    made.of(("d", "3")).append("x")
    assert made.find(("d", "2")) is None


def test_what_is_everybody_s_stands_under_one_key() -> None:
    made = apart()
    made.of(()).append("x")
    assert made.of(()) == ["x"]


def test_r15_names_that_are_everybody_s_take_no_secret_unless_they_stand_under_the_daemon_s_ids() -> None:
    shared: Named[object] = Named("note", contract(isolation="shared"), SourceVersions())
    with pytest.raises(PermitError, match="state that all clients share takes no secret"):
        shared.put(who(), "token", [secret("s")])
    with pytest.raises(Missing, match="there is no note `token`; there is none"):
        shared.get((), "token")
    own: Named[object] = Named("note", contract(), SourceVersions())
    own.put(who(), "token", secret("s"))
    assert own.get(("ann",), "token") == secret("s")

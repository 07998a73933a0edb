"""Whether the harness would notice: one setting less on one path, and one thing that a host forgets to hand on."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

import policy_lang
from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order
from zcpolicy.events import nowhere
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.parity import reference
from zcpolicy.parity.matrix import matrix
from zcpolicy.parity.mutation import forgetful, unnoticed
from zcpolicy.parity.probe import ParityPath, Probe
from zcpolicy.parity.reference import PATHS
from zcpolicy.parity.settings import SETTINGS, Setting
from zcpolicy.parity.suite import Suite
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.site import OPEN

COMPILED = cache(policy_lang.loads)
BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}


def test_any_setting_that_any_path_forgets_is_noticed() -> None:
    escaped = asyncio.run(unnoticed(PATHS, COMPILED))
    assert [cell.id for cell in escaped] == []


@pytest.mark.parametrize("name", ["deny", "memory read", "narrowing only", "session cwd"])
@pytest.mark.parametrize("forgets", PATHS, ids=lambda path: path.name)
def test_both_are_named_and_no_other_path_is_blamed(forgets: ParityPath, name: str) -> None:
    setting = BY_NAME[name]
    paths = [forgetful(path, setting, COMPILED) if path is forgets else path for path in PATHS]
    suite = Suite(paths, COMPILED, settings=[setting])
    for path in paths:
        checked = suite.cell(path.name, name)
        if path.name != forgets.name:
            checked.check()
            continue
        with pytest.raises(AssertionError) as raised:
            checked.check()
        assert f"setting `{name}` on path `{path.name}` is not applied (as without it)" in str(raised.value)


# --- what a host hands on, left out of one path --------------------------------------------------------------------

Forget = Callable[[Host, Order], Order]
OVER_TURNS = tuple(setting.name for setting in SETTINGS if setting.area == "sessions")


def forget_the_session(host: Host, order: Order) -> Order:
    """Every message begins a conversation of the same client."""
    return replace(
        order, seat=host.sessions.open(order.seat.session.client, interactive=order.seat.session.interactive)
    )


FORGETTING: dict[str, tuple[Forget, tuple[str, ...]]] = {
    "the narrowing": (
        lambda _host, order: replace(order, narrowing=None),
        ("narrowing only", "narrowing limits"),
    ),
    "the delegator": (
        lambda _host, order: replace(order, parent=None, independent=None),
        ("narrowing only", "narrowing exclude_memory"),
    ),
    "the site": (
        lambda _host, order: replace(order, site=OPEN),
        ("connect_mcp", "deferred"),
    ),
    "whom to ask": (lambda _host, order: replace(order, approvers=Approvers()), ("ask", "approval route")),
    "the session": (forget_the_session, OVER_TURNS),
    "the record": (lambda _host, order: order, ("record",)),
}
"""What is left out, and the settings that go with it."""

TURNS = ("channel", "rpc", "gateway", "run")
LASTING = ("channel", "rpc", "gateway")
CHILDREN = ("delegate", "step", "scheduled")

OMISSIONS = [
    *((surface, what) for surface in TURNS for what in ("the narrowing", "the site", "whom to ask", "the record")),
    *((surface, "the session") for surface in LASTING),
    *((surface, what) for surface in CHILDREN for what in ("the delegator", "the site", "whom to ask", "the record")),
]


class Forgetful(Host):
    """A host that forgets something on one of its paths."""

    surface: str
    what: str

    def _left(self, order: Order) -> Order:
        return FORGETTING[self.what][0](self, order) if order.surface == self.surface else order

    def execution(self, order: Order) -> ResolvedAgentExecution:
        return super().execution(self._left(order))

    async def registry(self, run: ResolvedAgentExecution, order: Order, *, listing: bool = False) -> ScopedToolRegistry:
        return await super().registry(run, self._left(order), listing=listing)

    def io(self, order: Order) -> ResolvedIo:
        found = super().io(self._left(order))
        silent = self.what == "the record" and order.surface == self.surface
        return replace(found, record=nowhere) if silent else found


@pytest.mark.parametrize(("surface", "what"), OMISSIONS, ids=[f"{one} forgets {what}" for one, what in OMISSIONS])
def test_what_a_host_forgets_on_a_path_is_noticed_there_and_only_there(
    surface: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    def host_of(probe: Probe) -> Host:
        made = Forgetful(
            probe.resolver, probe.sources, probe.access,
            approvers={"": probe.approvers}, record=probe.record, place=probe.place,
        )  # fmt: skip
        made.surface, made.what = surface, what
        return made

    monkeypatch.setattr(reference, "host_of", host_of)
    blamed = {"delegate", "independent"} if surface == "delegate" else {surface}
    for name in FORGETTING[what][1]:
        cells = asyncio.run(matrix(PATHS, COMPILED, [BY_NAME[name]])).cells
        assert {cell.path for cell in cells if cell.status != "enforced"} == blamed, name
        if what == "the session":
            (note,) = {cell.note for cell in cells if cell.status != "enforced"}
            assert note == "as if each turn had a session of its own"

"""The table of settings: whatever reaches an execution has a setting that shows it, and each makes a difference."""

from collections.abc import Iterator
from dataclasses import fields
from inspect import signature
from typing import Any, get_args, get_type_hints

import pytest

import policy_lang
from zcpolicy.exact import thawed
from zcpolicy.facts import Narrowing, Session
from zcpolicy.parity.probe import Given
from zcpolicy.parity.settings import SETTINGS, Setting
from zcpolicy.program import agent_of, head_of
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.runtime import RuntimeKnobs
from zcpolicy.shapes import Approval, Body, Delegate, Effect, Limit, Memory, Require

IDENTITY = {"client", "id", "turn", "above"}
"""Of a session: minted by the path, never told."""
NOT_TOLD = {"clock", "history", "never", "interactive"}
"""`clock`, `history`: shown by the limits and `require`; `never`: refused at `resolve`; `interactive`: `ask the person`."""


def bodies(setting: Setting, *, dropped: bool) -> dict[str, Any]:
    """What every body of a setting's program says, by its name."""
    program = policy_lang.loads(setting.text(dropped=dropped))
    head = thawed(head_of(program))
    agents = {name: thawed(agent["body"]) for name in program.agents if (agent := agent_of(program, name)) is not None}
    return {**agents, "ceiling": head["ceiling"], **{f"skill {name}": skill for name, skill in head["skills"].items()}}


def touched(setting: Setting) -> Iterator[str]:
    """The parts of a body that a setting changes, spelled out to the kinds of rules, units, windows, pots and knobs."""
    kept, bare = bodies(setting, dropped=False), bodies(setting, dropped=True)
    for name in kept:
        for part, said in kept[name].items():
            if said != bare.get(name, {}).get(part):
                yield part
                yield from (f"{part} {word}" for word in words(part, said))


def words(part: str, said: Any) -> Iterator[str]:
    if part == "rules":
        yield from (rule["effect"] for rule in said)
        yield from (key for rule in said for key in rule)
    elif part == "limits":
        for limit in said:
            yield from (limit["unit"], limit["window"]["kind"], *limit)
    elif part == "require":
        yield from (key for one in said for key in one)
    elif isinstance(said, dict):
        yield from said


TOUCHED = {word for setting in SETTINGS for word in touched(setting)}


def keys(shape: Any) -> set[str]:
    return set(get_type_hints(shape)) if hasattr(shape, "__annotations__") else set()


WANTED = {
    *(keys(Body) - {"kind", "name"}),
    *(f"rules {effect}" for effect in get_args(Effect)),
    *(f"rules {key}" for key in ("if", "approval", "unclear", "label")),
    *(f"limits {unit}" for unit in get_args(get_type_hints(Limit)["unit"])),
    *(f"limits {window}" for window in ("turn", "session", "rolling", "calendar")),
    *(f"limits {key}" for key in ("tools", "each", "argument", "currency")),
    *(f"approval {key}" for key in keys(Approval)),
    *(f"memory {key}" for key in keys(Memory)),
    *(f"delegate {key}" for key in keys(Delegate)),
    *(f"require {key}" for key in keys(Require) - {"because"}),
    *(f"runtime {knob}" for knob in RuntimeKnobs._fields if knob != "iterations"),
}


@pytest.mark.parametrize("word", sorted(WANTED))
def test_every_part_of_a_body_has_a_setting(word: str) -> None:
    assert word in TOUCHED


def told(part: str) -> set[str]:
    """What settings tell a host of its session, or of its site."""
    return {name for setting in SETTINGS for name in getattr(setting.given, part)}


def test_every_narrowing_has_a_setting() -> None:
    given = [setting.given.narrowing for setting in SETTINGS if setting.given.narrowing is not None]
    plain = Narrowing()
    shown = {name for one in given for name in Narrowing.__slots__ if getattr(one, name) != getattr(plain, name)}
    assert shown == set(Narrowing.__slots__)


def test_everything_that_a_site_may_withhold_has_a_setting() -> None:
    assert told("site") == set(signature(ScopedToolRegistry.assemble).parameters) - {"execution", "sources"}


def test_every_fact_of_a_session_has_a_setting() -> None:
    assert told("facts") | NOT_TOLD | IDENTITY == set(signature(Session).parameters)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_makes_a_difference(setting: Setting) -> None:
    """In its text or in what the host is told, but not in both; and what is seen with it is not what is seen without."""
    by_text = setting.text() != setting.text(dropped=True)
    by_host = any(getattr(setting.given, one.name) != getattr(setting.bare, one.name) for one in fields(Given))
    assert by_text + by_host + (setting.agent != setting.bare_agent) == 1
    parts = {part for part in setting.expect if setting.expect[part] != setting.otherwise.get(part)}
    assert parts
    if setting.apart is not None:
        assert setting.apart.keys() == setting.expect.keys()
        assert all(setting.apart[part] not in (setting.expect[part], setting.otherwise[part]) for part in setting.apart)
    if setting.unattended is not None:
        assert dict(setting.unattended) != {part: setting.otherwise.get(part) for part in setting.unattended}


def test_names_are_told_apart() -> None:
    names = [setting.name for setting in SETTINGS]
    assert len(set(names)) == len(names)

"""Tools and chats of the operator's own: which functions make them, and what those are given.

In: tables of the settings. Out: `FactorySettings`, rates by name; findings. No module is imported: that would run it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from policy_lang import codes
from policy_lang.serving.modules import fault_of
from policy_lang.serving.reading import Table
from policy_lang.serving.secrets import no_secret
from policy_lang.serving.toml import Path as Place
from zcpolicy.daemon.settings import FactorySettings, SettingsError, rates_of
from zcpolicy.exact import is_list, is_object

_NAMED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_RATE: Final = re.compile(r"([0-9]{1,9}) per (?:([0-9]{1,9}) )?(second|minute|hour|day)s?")
_SECONDS: Final = {"second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0}


def factories_in(top: Table) -> tuple[FactorySettings, ...]:
    """Who makes the operator's own tools: names alone, and then tables with what each is given."""
    table = top.table("tools")
    if table is None:
        return ()
    found: list[FactorySettings] = []
    for number, one in enumerate(table.texts("factories")):
        named(table, one, ("factories", number))
        _add(found, FactorySettings(one), table, ("factories", number))
    for inside in table.several("factory"):
        made = _factory(inside)
        if made is not None:
            _add(found, made, inside, ("make",))
    table.done()
    return tuple(found)


def _add(found: list[FactorySettings], made: FactorySettings, table: Table, place: Place) -> None:
    if any(made.make == one.make for one in found):
        table.say(codes.CONFLICTING_SETTINGS, f"`{made.make}` stands here twice", place, help="keep one of the two")
    found.append(made)


def _factory(table: Table) -> FactorySettings | None:
    make, given, handles = table.text("make"), table.table("settings"), table.texts("handles")
    table.done()
    if "make" not in table.values:
        table.missing("make", 'write `make = "my_package.tools:make"`')
    if make is None:
        return None
    named(table, make, ("make",))
    for number, one in enumerate(handles):
        named(table, one, ("handles", number), what="class")
    settings = {} if given is None else given.values
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        table.wrong("settings", "a table of texts, numbers, flags, lists and tables")
    for place, text in _texts(settings, ("settings",)):
        no_secret(table, text, place)
    return FactorySettings(make, settings, handles)


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """The texts in a value, each with its place."""
    if type(value) is str:
        yield place, value
    inside: list[tuple[Any, Any]] = []
    if is_object(value):
        inside = [*value.items()]
    elif is_list(value):
        inside = [*enumerate(value)]
    for key, one in inside:
        yield from _texts(one, (*place, key))


def named(table: Table, written: str, place: Place, *, what: str = "function") -> None:
    """Reports what is no `module:function`, as far as can be seen without importing it."""
    if _NAMED.fullmatch(written) is None:
        table.say(
            codes.BAD_SETTING, f"`{written}` names no {what}", place,
            help=f"write MODULE:{what.upper()}: `my_package.tools:{'make' if what == 'function' else 'Notes'}`",
        )  # fmt: skip
        return
    module, _, name = written.partition(":")
    wrong = fault_of(table.folder, module, name, what)
    if wrong is not None:
        table.say(codes.UNUSABLE_FILE, wrong.message, place, help=wrong.help)


def rates_in(top: Table) -> dict[str, tuple[int, float]]:
    """How often tools may do what is limited, by name, as times and seconds: `draw = "2 per hour"`."""
    table = top.table("rates")
    found: dict[str, tuple[int, float]] = {}
    for name in table.values if table is not None else ():
        assert table is not None
        matched = _RATE.fullmatch(table.text(name) or "")
        if matched is not None:
            found[name] = int(matched[1]), int(matched[2] or 1) * _SECONDS[matched[3]]
        elif type(table.values[name]) is str:
            table.wrong(name, 'a rate such as `"2 per hour"` or `"10 per 5 minutes"`')
    try:
        rates_of(found)
    except SettingsError as error:
        top.say(codes.BAD_SETTING, str(error), ("rates",), on_key=True)
    return found

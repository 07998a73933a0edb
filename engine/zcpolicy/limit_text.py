"""A limit of a narrowing, as the language writes it without the first word: `20 calls to shell per hour`.

In: text. Out: a `TextLimit`: a compiled limit, and apart from it the names of its tools, since the program that they
are of is not known yet. Read by hand, so that no parser is needed; tools are exact names.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from zcpolicy.exact import number_text
from zcpolicy.tool_text import read_tool
from zcpolicy.validate import NO_TOOL_SPENDS

if TYPE_CHECKING:
    from zcpolicy.facts import ToolName
    from zcpolicy.shapes import Limit, Window

_TOKEN = re.compile(r'\s*(args(?:\.[^\W\d][\w-]*|\."(?:[^"\\]|\\.)*")+|(?:[\w.-]|"(?:[^"\\]|\\.)*"|/)+|,)')
_NUMBER = re.compile(r"[0-9]+(?:_[0-9]+)*(?:\.[0-9]+(?:_[0-9]+)*)?")
_DURATION = re.compile(r"([0-9]+)([smhd])")
_CURRENCY = re.compile(r"[a-z]{3}")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_NAMED: Final = {"minute": 60, "hour": 3_600, "day": 86_400}
_COUNTED: Final[dict[str, Literal["calls", "concurrent calls", "iterations", "delegations", "tokens"]]] = {
    "calls": "calls",
    "concurrent calls": "concurrent calls",
    "iterations": "iterations",
    "delegations": "delegations",
    "tokens": "tokens",
}
MAX_LIMIT: Final = 1_000
"""Characters of a limit."""


class TextLimit(NamedTuple):
    """`limit`: compiled, but for its tools. `tools`: those that it counts; None: any."""

    text: str
    limit: Limit
    tools: frozenset[ToolName] | None


def read_limit(text: str) -> TextLimit:
    """The limit that the text says. Raises ValueError."""
    reading = _Reading(text)
    amount = reading.next("an amount")
    made = _amount(amount, reading)
    tools = _tools(reading) if reading.takes("to") else None
    if reading.takes("per"):
        made["window"] = _window(reading)
    if reading.takes("for"):
        reading.expect("each")
        made["each"] = _each(reading)
    if reading.left:
        raise reading.wrong(f"`{reading.left[0]}` is too much")
    if made["unit"] in NO_TOOL_SPENDS and (tools is not None or made.get("each", [])[:1] == ["args"]):
        raise reading.wrong(f"no tool spends {made['unit']}")
    return TextLimit(text, made, tools)


class _Reading:
    """The words that are left."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.left: list[str] = []
        at = 0
        if len(text) > MAX_LIMIT:
            raise self.wrong(f"it has more than {MAX_LIMIT} characters")
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(f"`{text[at:].strip()[:1]}` is unexpected")
            self.left.append(found[1])
            at = found.end()

    def wrong(self, why: str) -> ValueError:
        """What to raise."""
        return ValueError(f"`{self.text[:80]}` is no limit: {why}; write `20 calls to shell per hour`")

    def next(self, wanted: str) -> str:
        if not self.left:
            raise self.wrong(f"{wanted} is missing")
        return self.left.pop(0)

    def takes(self, word: str) -> bool:
        if self.left[:1] != [word]:
            return False
        del self.left[0]
        return True

    def expect(self, word: str) -> None:
        if not self.takes(word):
            raise self.wrong(f"`{word}` is missing")


def _amount(amount: str, reading: _Reading) -> Limit:
    window: Window = {"kind": "session"}
    duration = _DURATION.fullmatch(amount)
    if duration:
        reading.expect("time")
        seconds = int(duration[1]) * _SECONDS[duration[2]]
        return {"amount": str(seconds), "unit": "time", "window": window, "pot": "narrowing"}
    if not _NUMBER.fullmatch(amount):
        raise reading.wrong(f"`{amount}` is no amount")
    number = Decimal(amount.replace("_", ""))
    unit = reading.next("a unit")
    if unit == "concurrent":
        reading.expect("calls")
        unit = "concurrent calls"
    made: Limit = {"amount": number_text(number), "unit": "sum", "window": window, "pot": "narrowing"}
    if unit == "sum":
        made["argument"] = _argument(reading)
        return made
    counted = _COUNTED.get(unit)
    if counted is not None:
        if number != int(number):
            raise reading.wrong(f"{unit} are counted in whole numbers")
        made["unit"] = counted
        return made
    if not _CURRENCY.fullmatch(unit):
        raise reading.wrong(f"`{unit}` is no unit")
    made["unit"], made["currency"] = "money", unit
    return made


def _tools(reading: _Reading) -> frozenset[ToolName]:
    found: set[ToolName] = set()
    while True:
        name = reading.next("a tool")
        try:
            found.add(read_tool(name))
        except ValueError as error:
            raise reading.wrong(str(error)) from None
        if not reading.takes(","):
            return frozenset(found)


def _window(reading: _Reading) -> Window:
    word = reading.next("a window")
    duration = _DURATION.fullmatch(word)
    if duration:
        return {"kind": "rolling", "seconds": str(int(duration[1]) * _SECONDS[duration[2]])}
    if word in _NAMED:
        return {"kind": "rolling", "seconds": str(_NAMED[word])}
    if word == "turn":
        return {"kind": "turn"}
    if word == "session":
        return {"kind": "session"}
    if word == "calendar":
        return _calendar(reading)
    raise reading.wrong(f"`{word}` is no window")


def _calendar(reading: _Reading) -> Window:
    span = reading.next("`day` or `month`")
    reading.expect("in")
    zone = reading.next("a time zone").strip('"')
    if span == "day":
        return {"kind": "calendar", "calendar": "day", "zone": _zone(zone, reading)}
    if span == "month":
        return {"kind": "calendar", "calendar": "month", "zone": _zone(zone, reading)}
    raise reading.wrong(f"`{span}` is neither `day` nor `month`")


def _zone(name: str, reading: _Reading) -> str:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise reading.wrong(f"there is no time zone `{name}`") from None
    return name


def _each(reading: _Reading) -> list[str]:
    word = reading.next("`client`, `session`, `agent` or an argument")
    if word in ("client", "session", "agent"):
        return [word]
    reading.left.insert(0, word)
    return ["args", *_argument(reading)]


def _argument(reading: _Reading) -> list[str]:
    """`args.a.b` as the path below `args`."""
    word = reading.next("an argument")
    parts = re.findall(r'\.([^\W\d][\w-]*|"(?:[^"\\]|\\.)*")', word)
    if not word.startswith("args.") or not parts:
        raise reading.wrong(f"`{word}` is no argument (`args.NAME`)")
    return [part.strip('"') for part in parts]

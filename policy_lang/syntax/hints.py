"""What is often written where it cannot stand, and what to write instead.

In: the text at the place of an error, what stands before and behind it, what could stand there. Out: a help, or nothing.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

_AMOUNT: Final = re.compile(r"([0-9]++(?:[_.][0-9]++)*+)([A-Za-z]{3,})")
_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_CODE: Final = 3
_CLAUSE_BEHIND: Final = re.compile(r",\s*(?:when|unless|because|with|unclear)\b")
_BARE: Final = re.compile(r"[/~.*][^\s,;\])}\"']*+")
_NAME_BEFORE: Final = re.compile(r"[\w\-]++\Z")
_MEMBER: Final = re.compile(r"\.([\w\-*]++)")
_MAX_QUOTED: Final = 40
_PATTERN_SIGNS: Final = re.compile(r'(?:=~|!~|~=|~|\^=|\$=|\*=)\s*+(?:r?"(?P<text>[^"\\\n]{1,40})")?+')
_PATTERN_CHARACTERS: Final = frozenset("^$.*+?()[]{}|")
_TOOL_BEHIND: Final = re.compile(r"[\w\-]++\s++([\w\-*@/]{1,80})")
APPROVAL_WORDS: Final = ("approval", "approvals", "confirmation", "consent", "permission")
"""What is asked for, and no tool."""
_OPERATORS: Final = (
    (re.compile(r"starts?_?-?(?:with)?|begins_?-?(?:with)?|prefix", re.IGNORECASE),
     'write `like "abc*"`, and for a path `under "/folder"`'),
    (re.compile(r"ends?_?-?(?:with)?|suffix", re.IGNORECASE), 'write `like "*abc"`, and for a path `glob "**/*.abc"`'),
    (re.compile(r"between", re.IGNORECASE), "write two comparisons, joined by `and`"),
)  # fmt: skip
_COUNTED: Final = "say what is counted, as in `limit 10 calls to TOOL per hour`, `limit 5.00 usd per day` or `limit 10m time per turn`"
_WINDOW: Final = (
    "a window is `turn`, `session`, `minute`, `hour`, `day`, a duration such as `7d`, or `calendar day in …`"
)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an error: the text there, the statement before it, the rest of the file, what could stand there."""

    text: str
    word: str | None
    head: str
    before: str
    behind: str
    words: Collection[str]
    terminals: Collection[str]
    statements: Collection[str]


def hint(place: Place) -> str | None:
    """The help for what is often written, where it fits."""
    return next(filter(None, (one(place) for one in _HINTS)), None)


def borrowed(place: Place) -> str | None:
    """The help for what looks like a misspelt word of the language and is none."""
    return _pattern_signs(place) or _approval_needed(place)


def _pattern_signs(at: Place) -> str | None:
    """`=~ "secret"`, `!~`, `~=`, `*=`: a pattern somewhere in a text."""
    found = _PATTERN_SIGNS.match(at.behind)
    if found is None or "under" not in at.words:
        return None
    searched, beside = found["text"], ", with `not` before the whole test" if found[0].startswith("!") else ""
    if searched is None:
        return f'write `contains "…"`, or `matches r"…"` for a pattern of the whole text{beside}'
    if _PATTERN_CHARACTERS.isdisjoint(searched):
        return f'write `contains "{searched}"`{beside}'
    left, right = (".*" * (not searched.startswith("^")), ".*" * (not searched.endswith("$")))
    whole = f"{left}{searched.removeprefix('^').removesuffix('$')}{right}"
    return f'write `matches r"{whole}"`, which reads the whole text{beside}'


def _approval_needed(at: Place) -> str | None:
    """`require approval for T`: a question, not a call that has to come first."""
    if at.head != "require" or at.before.split()[1:] not in ([word] for word in APPROVAL_WORDS):
        return None
    tool = _TOOL_BEHIND.match(at.behind)
    return f"`require` names a tool that has to run first; to be asked, write `ask {tool[1] if tool else 'TOOL'}`"


def _signs(at: Place) -> str | None:
    """Signs of other languages."""
    if at.behind.startswith(("//", "/*")):
        return "a comment begins with `#`"
    if at.text.startswith("'"):
        return 'text stands in double quotes: `"…"`'
    if at.text == ":" and "{" in at.words:
        return "a body stands in braces: `{ … }`"
    if _CLAUSE_BEHIND.match(at.behind):
        return "drop the `,`"
    return None


def _kinds(at: Place) -> str | None:
    if set(at.words) == {"any", "only"} and at.before.endswith("runs"):
        return "write `runs only` where its truth grants, `runs any` where it withholds"
    if at.head == "zcpolicy" and at.terminals == ["NUMBER"]:
        return "write `zcpolicy 1`"
    if at.words == ["<"] and at.before.endswith("list"):
        return "say what the list holds, as in `list<string>`"
    return None


def _limits(at: Place) -> str | None:
    amount = _AMOUNT.fullmatch(at.text)
    if amount is not None and "NUMBER" in at.terminals:
        return f"a blank stands between an amount and its unit: `{amount[1]} {amount[2].lower()}`"
    if "CURRENCY" in at.terminals and at.text.isupper() and len(at.text) == _CODE:
        return f"a currency stands in lower case: `{at.text.lower()}`"
    if at.head != "limit":
        return None
    if at.text == "time":
        return "`time` takes a duration, as in `limit 10m time per turn`"
    if "calls" in at.words or at.text in {"$", "€", "£"}:
        return _COUNTED
    if "calendar" in at.words:
        return _WINDOW
    return "a window follows `per`, as in `per day`" if "per" in at.words and (at.word or at.text[:1] == "/") else None


def _tools(at: Place) -> str | None:
    server, tool = _NAME_BEFORE.search(at.before), _MEMBER.match(at.behind)
    if server and tool and at.head in {"allow", "ask", "deny", "auto_approve", "only", "mark"}:
        return f"a tool of a server is written `{server[0][:_MAX_QUOTED]}/{tool[1][:_MAX_QUOTED]}`"
    asks = at.word is not None and ("approv" in at.word or at.word in {"needs", "requires"})
    return "write `with approval`" if asks and "with" in at.words else None


def _operands(at: Place) -> str | None:
    """Where a test begins."""
    if "OPERAND" not in at.terminals or "(" not in at.words or not (at.text[:1].isalnum() or at.text[:1] in {'"', "-"}):
        return None
    if at.word == "args":
        return "an argument is written `args.NAME`"
    if at.word is None or len(at.word) > _MAX_QUOTED or at.word in at.statements:
        return "a test begins with what it looks at: `args.NAME`, `paths`, `urls`, `session.NAME`, `tool.NAME`, `agent.NAME`"
    return f"an argument of the call is written `args.{at.word}`, a label `marked {at.word}`"


def _operators(at: Place) -> str | None:
    """Behind what a test looks at, and behind a test."""
    if at.text in _COMPARISONS and {"and", "or"} <= set(at.words):
        return "comparisons do not chain: write two tests, joined by `and`"
    if at.before.endswith(" not") and at.words == ["in"] and at.word is not None:
        return "`not` stands before the whole test, as in `not args.path under …`"
    if "under" not in at.words or at.word is None or at.word in at.statements:
        return None
    for pattern, help_ in _OPERATORS:
        if pattern.fullmatch(at.word):
            return help_
    return "expected a test such as `==`, `in` or `under`, or the end of the statement"


def _values(at: Place) -> str | None:
    """Text without quotes."""
    bare = _BARE.match(at.behind)
    if bare is None or "STRING" not in at.terminals:
        return None
    return f'text stands in double quotes: `"{bare[0] if len(bare[0]) <= _MAX_QUOTED else "…"}"`'


_HINTS: Final[tuple[Callable[[Place], str | None], ...]] = (
    _signs, _kinds, _limits, _tools, _operands, _operators, _values,
)  # fmt: skip

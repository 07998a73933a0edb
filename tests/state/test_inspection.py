"""State of a tool's own is found in its text, with the line and what to write instead; what is sound passes."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.state import leaking, sound
from tests.state.stage import tool
from zcpolicy.registry.sources import ToolContext
from zcpolicy.state.inspection import inspected
from zcpolicy.state.patterns import places

HANDLE = "keep it in a handle that the factory is given, and use `handle.scoped(context.caller)`"

FOUND: dict[str, tuple[str, list[tuple[int, str]]]] = {
    "a dictionary of the module": (
        "SEEN = {}\nasync def run(arguments, context):\n    SEEN[arguments['who']] = 1\n",
        [(3, "`SEEN` of the module is changed by a function: every client has the same")],
    ),
    "by a method of it": (
        "SEEN: list[str] = []\nasync def run(arguments, context):\n    SEEN.append('x')\n",
        [(3, "`SEEN` of the module is changed by a function: every client has the same")],
    ),
    "inside of it": (
        "SEEN = {}\ndef note(who):\n    SEEN['a'].setdefault(who, []).append(1)\n",
        [(3, "`SEEN` of the module is changed by a function: every client has the same")],
    ),
    "an object of the module": (
        "state = State()\ndef note(who):\n    state.last = who\n",
        [(3, "`state.last` of the module is changed by a function: every client has the same")],
    ),
    "taken out of it": (
        "SEEN = {}\ndef forget(who):\n    del SEEN[who]\n",
        [(3, "`SEEN` of the module is changed by a function: every client has the same")],
    ),
    "another module's": (
        "import os\nfrom store import CACHE\ndef note(who):\n    os.environ['WHO'] = who\n    CACHE.update(a=who)\n",
        [
            (4, "`os.environ` of the module is changed by a function: every client has the same"),
            (5, "`CACHE` of the module is changed by a function: every client has the same"),
        ],
    ),
    "in roundabout ways": (
        (
            "from heapq import heappush\nSEEN = {}\nQUEUE = []\nclass Tool:\n    seen = []\n"
            "def note(who):\n    SEEN.__setitem__(who, 1)\n    dict.update(SEEN, a=who)\n    heappush(QUEUE, who)\n"
            "    setattr(Tool, 'last', who)\n    globals()['LAST'] = who\n"
        ),
        [
            (7, "`SEEN` of the module is changed by a function: every client has the same"),
            (8, "`SEEN` of the module is changed by a function: every client has the same"),
            (9, "`QUEUE` of the module is changed by a function: every client has the same"),
            (10, "`Tool.last` of the class is changed by a function: every client has the same"),
            (11, "`globals()` of the module is changed by a function: every client has the same"),
        ],
    ),
    "counted in the tool": (
        (
            "class Tool:\n    def __init__(self):\n        self.count, self.by = 0, {'all': 0}\n"
            "        self.count += 1\n    def tools(self):\n        return []\n    async def run(self, arguments, context):\n"
            "        self.count += 1\n        self.by['all'] += 1\n        self.count = self.count + 1\n"
        ),
        [
            (8, "`self.count` of the tool goes on from the last call: every client's are counted in it"),
            (9, "`self.by` of the tool goes on from the last call: every client's are counted in it"),
            (10, "`self.count` of the tool goes on from the last call: every client's are counted in it"),
        ],
    ),
    "counted in the factory": (
        "def make(given):\n    count = 0\n    async def run(arguments, context):\n        nonlocal count\n        count += 1\n",
        [(5, "`count` of the factory goes on from the last call: every client's are counted in it")],
    ),
    "global": (
        "last = ''\ndef note(who):\n    global last\n    last = who\n",
        [(4, "`global last` is set by a function: every client has the same")],
    ),
    "a list of the class": (
        "class Tool:\n    seen = []\n    def note(self, who):\n        self.seen.append(who)\n",
        [(4, "`seen` of class `Tool` is changed: all its objects have the same")],
    ),
    "by the class": (
        "class Tool:\n    last = None\n    @classmethod\n    def note(cls, who):\n        cls.last = who\n",
        [(5, "`last` of class `Tool` is changed: all its objects have the same")],
    ),
    "by its type": (
        "class Tool:\n    def note(self, who):\n        type(self).last = who\n        self.__class__.next = who\n",
        [
            (3, "`last` of class `Tool` is changed: all its objects have the same"),
            (4, "`next` of class `Tool` is changed: all its objects have the same"),
        ],
    ),
    "by its name": (
        "class Tool:\n    seen = {}\ndef note(who):\n    Tool.seen[who] = 1\n",
        [(4, "`Tool.seen` of the class is changed by a function: every client has the same")],
    ),
    "a default that is changed": (
        "async def run(arguments, context, seen={}):\n    seen[arguments['who']] = 1\n",
        [(2, "the default of `seen` is changed: it is the same for all calls")],
    ),
    "a cache on a request": (
        ("from functools import cache, lru_cache\n@cache\ndef profile(client_id):\n    return load(client_id)\n"
        "class Tool:\n    @lru_cache(maxsize=10)\n    def find(self, word):\n        return word\n"),
        [
            (2, "`cache` keeps what `profile` gave to one call for all others"),
            (6, "`lru_cache` keeps what `find` gave to one call for all others"),
        ],
    ),
    "a table on the tool": (
        ("class Tool:\n    def __init__(self):\n        self.of = {}\n    def tools(self):\n        return []\n"
        "    async def run(self, arguments, context):\n        who = context.identity.client\n        self.of[who] = arguments['text']\n"),
        [(8, "`self.of` of the tool is filled with what a call was given: every client's is in it")],
    ),
    "the last one on the tool": (
        ("class Tool:\n    def tools(self):\n        return []\n"
        "    async def run(self, arguments, context):\n        text = arguments['text'].strip()\n        self.last = text\n"),
        [(6, "`self.last` of the tool is filled with what a call was given: every client's is in it")],
    ),
    "under another name": (
        ("SEEN = {}\nclass Tool:\n    def __init__(self):\n        self.log = []\n    def tools(self):\n        return []\n"
        "    async def run(self, arguments, context):\n        log = self.log\n        log.append(arguments['text'])\n"
        "        seen = SEEN\n        seen['last'] = 1\n        rows = self.of.get('a')\n        rows.append(arguments['text'])\n"),
        [
            (9, "`self.log` of the tool is filled with what a call was given: every client's is in it"),
            (11, "`SEEN` of the module is changed by a function: every client has the same"),
            (13, "`self.of` of the tool is filled with what a call was given: every client's is in it"),
        ],
    ),
    "in a table of the tool": (
        ("class Tool:\n    def tools(self):\n        return []\n    async def run(self, arguments, context):\n"
        "        self.of.setdefault('all', []).append(arguments['text'])\n        vars(self)['last'] = arguments['text']\n"
        "        with open(arguments['path']) as self.file:\n            pass\n"),
        [
            (5, "`self.of` of the tool is filled with what a call was given: every client's is in it"),
            (6, "`self.__dict__` of the tool is filled with what a call was given: every client's is in it"),
            (7, "`self.file` of the tool is filled with what a call was given: every client's is in it"),
        ],
    ),
    "by what it inherits": (
        ("class Noting:\n    def note(self, text):\n        self.last = text\n"
        "class Tool(Noting):\n    def tools(self):\n        return []\n"),
        [(3, "`self.last` of the tool is filled with what a call was given: every client's is in it")],
    ),
    "on what the tool holds": (
        ("class Table:\n    def __init__(self):\n        self.rows = {}\n    def put(self, key, value):\n        self.rows[key] = value\n"
        "class Tool:\n    def __init__(self):\n        self.table = Table()\n    def tools(self):\n        return []\n"),
        [(5, "`self.rows` of the tool is filled with what a call was given: every client's is in it")],
    ),
    "a table of the factory": (
        ("def make(given):\n    seen = {}\n    def note(who):\n        seen[who] = 1\n"
        "    async def run(arguments, context):\n        note(arguments['who'])\n    return run\n"),
        [(4, "`seen` of the factory is filled with what a call was given: every client's is in it")],
    ),
    "the last one of the factory": (
        "def make(given):\n    last = ''\n    async def run(arguments, context):\n        nonlocal last\n        last = arguments['who']\n    return run\n",
        [(5, "`last` of the factory is filled with what a call was given: every client's is in it")],
    ),
    "an identity of its own": (
        ("from zcpolicy.identity import Identity\nfrom zcpolicy.state.caller import caller_of\nasync def run(arguments, context):\n"
        "    return caller_of(Identity('a', arguments['who'], '', '', '', 0, ()))\n"),
        [
            (4, "`Identity` is the daemon's: a tool makes no identities"),
            (4, "`caller_of` is the daemon's: a tool makes no identities"),
        ],
    ),
    "an identity of a header": (
        "def who(request):\n    client_id = request.headers['X-Forwarded-For'].split(',')[0]\n    return client_id\n",
        [(2, "`client_id` is made of `headers`: text of a transport is no identity")],
    ),
    "of a sender, an address, a user's name": (
        ("def who(message, peer):\n    self = hash(message.sender)\n    user_key = sha256(message.sender)\n"
        "    session = peer.remote_addr\n    return find(client=message.user_name)\n"),
        [
            (3, "`user_key` is made of `sender`: text of a transport is no identity"),
            (4, "`session` is made of `remote_addr`: text of a transport is no identity"),
            (5, "`client` is made of `user_name`: text of a transport is no identity"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_r04_state_of_a_tools_own_is_found(case: str) -> None:
    text, wanted = FOUND[case]
    found = sorted((one.line, one.what) for one in places(text))
    assert found == sorted(wanted)
    assert all(one.instead for one in places(text))


SOUND = {
    "a constant": "WORDS = {'a': 1}\nasync def run(arguments, context):\n    return WORDS[arguments['word']]\n",
    "filled where it stands": "WORDS = {}\nfor word in ('a', 'b'):\n    WORDS[word] = 1\n",
    "a local of the same name": "seen = {}\ndef note(who):\n    seen = {}\n    seen[who] = 1\n    return seen\n",
    "a table of one call": (
        "async def run(arguments, context):\n    found = {}\n    def visit(x):\n        found[x] = 1\n    visit(arguments['x'])\n    return found\n"
    ),
    "a recursion": "def flat(tree):\n    out = []\n    def go(node):\n        out.append(node)\n    go(tree)\n    return out\n",
    "an object of one call": (
        "class Parser:\n    def __init__(self):\n        self.words = []\n    def read(self, text):\n        self.words.append(text)\n"
        "async def run(arguments, context):\n    return Parser().read(arguments['text'])\n"
    ),
    "a name of its own for what is read": (
        "WORDS = {}\nclass Tool:\n    def tools(self):\n        return []\n    async def run(self, arguments, context):\n"
        "        words = WORDS\n        known = self.known\n        words = [*words]\n        words.append(arguments['text'])\n        return known, words\n"
    ),
    "a count that is meant": (
        "class Tool:\n    def tools(self):\n        return []\n    async def run(self, arguments, context):\n"
        "        self.calls += 1  # zcpolicy: state how often, by anybody\n"
    ),
    "a count of a call's own": "class Tool:\n    def tools(self):\n        return []\n    async def run(self, arguments, context):\n        found = 0\n        found += 1\n",
    "what is registered": (
        "class Tool:\n    def tools(self):\n        return []\n    async def register(self, owned):\n        self.connection = await owned.enter(connect())\n"
    ),
    "a pure function that is cached": "from functools import cache\n@cache\ndef parsed(text):\n    return text.split()\n",
    "a default for each object": "class Tool:\n    seen = []\n    def __init__(self):\n        self.seen = []\n    def note(self, who):\n        self.seen.append(who)\n",
    "through a handle": (
        "class Tool:\n    def tools(self):\n        return []\n    async def run(self, arguments, context):\n"
        "        view = self.notes.scoped(context.caller)\n        view.add(arguments['text'])\n        self.notes.scoped(context.caller).update(arguments)\n"
    ),
    "a handle itself": (
        "class Notes(Handle[View]):\n    def __init__(self):\n        self.entries = {}\n    def put(self, key, value):\n        self.entries[key] = value\n"
        "def make():\n    notes = Notes()\n    async def run(a, c):\n        return notes\n    return run\n"
    ),
    "functions of modules": "import shutil, bisect\ndef go(x, items):\n    bisect.insort(items, x)\n    operator.add(x, x)\n",
    "meant": "CACHE = {}\ndef parsed(text):\n    CACHE[text] = 1  # zcpolicy: state texts of the product, no client's\n",
    "an address that is no identity": "def where(request):\n    address = request.remote_addr\n    return f'from {address}'\n",
}  # fmt: skip


@pytest.mark.parametrize("case", SOUND)
def test_what_is_sound_passes(case: str) -> None:
    assert places(SOUND[case]) == ()


def test_a_finding_names_file_and_line_and_what_to_write() -> None:
    found = inspected(leaking.make)
    text = Path(leaking.__file__).read_text(encoding="utf-8").splitlines()
    line = next(number for number, one in enumerate(text, 1) if "NOTES.append" in one)
    assert (
        str(found[0])
        == f"{leaking.__file__}:{line}: `NOTES` of the module is changed by a function: every client has the same; {HANDLE}"
    )


def test_r07_a_tool_that_ignores_identity_passes() -> None:
    assert inspected(sound.make) == ()


def test_functions_are_found_behind_what_wraps_them() -> None:
    class Called:
        async def __call__(self, _arguments: dict[str, Any], _context: ToolContext) -> str:
            return ""

    async def run(_more: int, _arguments: dict[str, Any], _context: ToolContext) -> str:
        return ""

    for one in (partial(run, 1), Called(), Called().__call__, Called):
        assert inspected(one) == ()
    assert tool("x", partial(run, 1)).name == "x"


def test_what_has_no_text_is_refused() -> None:
    made: dict[str, Any] = {"__name__": "nowhere"}
    exec("def make(given):\n    return given\n", made)
    (finding,) = inspected(made["make"])
    assert finding.what == "has no text that could be inspected"
    assert finding.instead == "read it, and say why it is sound with `vouched`"
    assert inspected(len) != ()


def test_the_packages_own_tools_are_held_by_the_projects_own_tests() -> None:
    from zcpolicy.registry.host_tools import tool_search_tool

    assert inspected(tool_search_tool) == ()

"""Kinds: which test reads which argument, on which side."""

import json
from pathlib import Path

import pytest

from tests.policy_lang.bound_case import Said, said

TOOLS = """zcpolicy 1
tool shell(command: shell) risk high
tool power(command: command) risk high
tool file(path: path, size?: integer) risk read
tool fetch(url: url, more?: list<url>) risk low
tool say(text: string, tags?: list<string>, loud?: boolean, extra?: object, odd?: any) risk read
tool pay(amount: number, times: integer) risk high
tool ping() risk read
label private
context { role: string, level: integer }
"""

WRONG: dict[str, tuple[str, Said]] = {
    "a misspelt argument": (
        'agent a { allow file when args.pth under "/w" }',
        Said("ZC2202", "args.pth", "`file` has no argument `args.pth`", "did you mean `args.path`?"),
    ),
    "an argument of a tool that has none": (
        "agent a { allow ping when args.x == 1 }",
        Said("ZC2202", "args.x", "`ping` has no argument `args.x`", "it takes no arguments"),
    ),
    "presence of a misspelt argument": (
        "agent a { allow file when has args.sise }",
        Said("ZC2202", "args.sise", "`file` has no argument `args.sise`", "did you mean `args.size`?"),
    ),
    "text compared with a number": (
        "agent a { allow say when args.text == 10 }",
        Said("ZC2201", "10", "`10` cannot stand here: `string` is never compared with this value", ""),
    ),
    "a number compared with text": (
        'agent a { allow pay when args.times == "10" }',
        Said("ZC2201", '"10"', '`"10"` cannot stand here: `integer` is never compared with this value', ""),
    ),
    "a whole number compared with a fraction": (
        "agent a { allow pay when args.times == 1.5 }",
        Said("ZC2201", "1.5", "`1.5` cannot stand here: `integer` is never compared with this value", ""),
    ),
    "null is absence": (
        "agent a { allow say when args.text == null }",
        Said("ZC2201", "null", "`null` cannot stand here: null is absence: write `has …` or `not has …`", "write `not has args.text`"),
    ),
    "an order of booleans": (
        "agent a { allow say when args.loud < true }",
        Said("ZC2201", "args.loud < true", "`<` cannot read `args.loud`: it is a `boolean`", ""),
    ),
    "a text test on a path": (
        'agent a { allow file when args.path like "/w/*" }',
        Said("ZC2205", 'args.path like "/w/*"', "`like` cannot read `args.path`: it is a `path`", 'write `args.path under "/w"`'),
    ),
    "a text test on a command, granting": (
        'agent a { allow shell when args.command matches r"git.*" }',
        Said("ZC2205", 'args.command matches r"git.*"', "`matches` cannot read `args.command`: it is a `shell`", 'write `args.command runs only ["git ..."]`'),
    ),
    "a text test on a command, withholding": (
        'agent a { deny shell when args.command contains "rm" }',
        Said("ZC2205", 'args.command contains "rm"', "`contains` cannot read `args.command`: it is a `shell`", 'write `args.command runs any ["rm ..."]`'),
    ),
    "a host test on a whole url": (
        'agent a { allow fetch when args.url in_domain "x.org" }',
        Said("ZC2205", 'args.url in_domain "x.org"', "`in_domain` cannot read `args.url`: it is a `url`", 'write `args.url.host in_domain "…"`'),
    ),
    "a text test on all paths": (
        'agent a { deny any when some paths like "*.env" }',
        Said("ZC2205", 'some paths like "*.env"', "`like` cannot read `paths`: it is a `list<path>`", 'write `some paths under "/folder"` or `some paths glob "**/.env"`'),
    ),
    "a text test on all urls": (
        'agent a { deny any when some urls contains "x.org" }',
        Said("ZC2205", 'some urls contains "x.org"', "`contains` cannot read `urls`: it is a `list<url>`", 'write `some urls.host in_domain "x.org"`'),
    ),
    "a text test on the elements of a list": (
        'agent a { allow fetch when every args.more like "https://x*" }',
        Said("ZC2205", 'every args.more like "https://x*"', "`like` cannot read `args.more`: it is a `list<url>`", 'write `every args.more.host in_domain "example.org"`'),
    ),
    "a text test on the working directory": (
        'agent a { allow ping when session.cwd like "/w/*" }',
        Said("ZC2205", 'session.cwd like "/w/*"', "`like` cannot read `session.cwd`: it is a `path`", 'write `session.cwd under "/w"`'),
    ),
    "the host of reviewed text": (
        'agent a { allow say when args.text.host in_domain "x.org" }',
        Said("ZC2201", 'args.text.host in_domain "x.org"', "`args.text` has no `.host`: it is a `string`", "declare the parameter as `text: url` in the `tool` statement of `say`"),
    ),
    "a path test on the elements of a reviewed list": (
        'agent a { allow say when every args.tags under "/w" }',
        Said("ZC2201", 'every args.tags under "/w"', "`under` cannot read `args.tags`: it is a `list<string>`", "declare the parameter as `tags?: list<path>`"),
    ),
    "a path test inside an open object": (
        'agent a { allow say when args.extra.file under "/w" }',
        Said("ZC2204", 'args.extra.file under "/w"', "nobody has said that `args.extra.file` of `say` is a path", "test this one as text"),
    ),
    "a name where a network is meant": (
        'agent a { deny fetch when args.url.host in_net "x.org" }',
        Said("ZC2208", '"x.org"', '`"x.org"` cannot stand here: ', 'write `args.url.host in_domain "x.org"`'),
    ),
    "a glob of names": (
        'agent a { deny file when args.path glob ".env" }',
        Said("ZC2208", '".env"', '`".env"` cannot stand here: ', 'write `"**/.env"`'),
    ),
    "a pattern where a folder is meant": (
        'agent a { deny file when args.path under "/w/*" }',
        Said("ZC2208", '"/w/*"', '`"/w/*"` cannot stand here: ', 'write `args.path glob "/w/*"`'),
    ),
    "equal arguments that no side has": (
        "agent a { require ping before pay same args.customer }",
        Said("ZC2202", "args.customer", "`ping` has no argument `args.customer`", "it takes no arguments"),
    ),
    "a path test on reviewed text": (
        'agent a { allow say when args.text under "/w" }',
        Said("ZC2201", 'args.text under "/w"', "`under` cannot read `args.text`: it is a `string`", "declare the parameter as `text: path` in the `tool` statement of `say`"),
    ),
    "one value of a list": (
        'agent a { allow say when args.tags == "x" }',
        Said("ZC2206", 'args.tags == "x"', "`args.tags` is a list, and `==` reads one value", "write `some args.tags …` or `every args.tags …`"),
    ),
    "every of one value": (
        'agent a { allow say when every args.text like "x" }',
        Said("ZC2206", 'every args.text like "x"', "`every` needs a list, and `args.text` is none", "write the test without `every`"),
    ),
    "paths without a quantifier": (
        'agent a { deny any when paths glob "**/.env" }',
        Said("ZC2206", 'paths glob "**/.env"', "`paths` is a list, and `glob` reads one value", "write `some paths …` or `every paths …`"),
    ),
    "runs any where it grants": (
        'agent a { allow shell when args.command runs any ["ls"] }',
        Said("ZC2209", 'args.command runs any ["ls"]', "`runs any` cannot stand where its truth grants", "write `runs only`"),
    ),
    "runs only where it withholds": (
        'agent a { deny shell when args.command runs only ["ls"] }',
        Said("ZC2209", 'args.command runs only ["ls"]', "`runs only` cannot stand where its truth withholds", "write `runs any`"),
    ),
    "runs only in an exception to a grant": (
        'agent a { allow shell unless args.command runs only ["ls"] }',
        Said("ZC2209", 'args.command runs only ["ls"]', "`runs only` cannot stand where its truth withholds", "write `runs any`"),
    ),
    "a label that grants": (
        "agent a { allow ping when marked private }",
        Said("ZC2210", "marked private", "`marked private` would grant: labels are only ever added, so they only withhold", "grant without it, and withhold with it: `ask … when marked private`"),
    ),
    "a label that grants by an exception to a prompt": (
        "agent a { ask ping unless marked private }",
        Said("ZC2210", "marked private", "`marked private` would grant: labels are only ever added, so they only withhold", "grant without it, and withhold with it: `ask … when marked private`"),
    ),
    "an unknown fact of the session": (
        'agent a { deny ping when session.rolle == "x" }',
        Said("ZC2207", "session.rolle", "unknown fact `session.rolle`", "did you mean `session.role`?"),
    ),
    "a fact that nobody declared": (
        'agent a { deny ping when session.mood == "x" }',
        Said("ZC2207", "session.mood", "unknown fact `session.mood`", "declare it with a `context` statement"),
    ),
    "an unknown field of the tool": (
        'agent a { deny any when tool.riks == "high" }',
        Said("ZC2207", "tool.riks", "unknown fact `tool.riks`", "did you mean `tool.risk`?"),
    ),
    "a prefix that is no path": (
        'agent a { deny file when args.path under "w" }',
        Said("ZC2208", '"w"', '`"w"` cannot stand here: ', ""),
    ),
    "a glob that starts nowhere": (
        'agent a { deny file when args.path glob "*.pem" }',
        Said("ZC2208", '"*.pem"', '`"*.pem"` cannot stand here: ', ""),
    ),
    "a back-reference": (
        'agent a { deny say when args.text matches r"(a)\\1" }',
        Said("ZC2208", 'r"(a)\\1"', '`r"(a)\\1"` cannot stand here: ', ""),
    ),
    "a network that is none": (
        'agent a { deny fetch when args.url.host in_net "10.0.0.0/99" }',
        Said("ZC2208", '"10.0.0.0/99"', '`"10.0.0.0/99"` cannot stand here: ', ""),
    ),
    "two arguments of different kinds": (
        "agent a { deny pay when args.amount == args.nothing }",
        Said("ZC2202", "args.nothing", "`pay` has no argument `args.nothing`", "known are `amount`, `times`"),
    ),
    "a fact of another kind": (
        "agent a { deny pay when args.amount == session.role }",
        Said("ZC2201", "args.amount == session.role", "a `number` is never compared with a `string`", ""),
    ),
    "a pattern test with an operand": (
        "agent a { deny say when args.text like session.role }",
        Said("ZC2201", "session.role", "`like` takes a value here, not another argument or fact", ""),
    ),
    "a sum of text": (
        "agent a { limit 5 sum args.text to say per day }",
        Said("ZC2201", "args.text", "`args.text` is no number on every tool of this limit", ""),
    ),
    "a pot of a missing argument": (
        "agent a { limit 5 calls to say per day for each args.txet }",
        Said("ZC2202", "args.txet", "`say` has no argument `args.txet`", "did you mean `args.text`?"),
    ),
    "equal arguments that one side lacks": (
        "agent a { require ping before pay same args.amount }",
        Said("ZC2202", "args.amount", "`ping` has no argument `args.amount`", "it takes no arguments"),
    ),
    "a rule that some of its tools cannot test": (
        'agent a { allow say, ping when args.text == "x" }',
        Said("ZC2211", "args.text", "`args.text` cannot be tested on `ping`: the rule grants nothing there", "name only tools that have it, or give it a kind with `tool`"),
    ),
    "a member of what has none on some tools": (
        "agent a { deny say, pay when args.extra.x == 1 or args.amount.x == 1 }",
        Said("ZC2202", "args.amount.x", "these tools have no argument `args.amount.x`", "`args.amount` is there, and has no such member"),
    ),
    "a member that is of another kind on some tools": (
        "tool log(extra: string)\nagent a { deny say, log when args.extra.x == 1 }",
        Said("ZC2211", "args.extra.x", "`args.extra.x` cannot be tested on `log`: the rule holds there whatever is sent", "name only tools that have it"),
    ),
    "a default of another kind": (
        "tool wait(seconds: integer = true)",
        Said("ZC2201", "true", "the default of `seconds` is not of kind `integer`", ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_said_of_a_test(name: str, tmp_path: Path) -> None:
    text, expected = WRONG[name]
    found = said(tmp_path, {"main.zcpolicy": TOOLS + text})
    assert len(found) == 1, found
    assert found[0].message.startswith(expected.message)
    assert found[0]._replace(message="", help="") == expected._replace(message="", help="")
    assert expected.help in found[0].help


RIGHT = {
    "equality": 'agent a { allow say when args.text == "x" }',
    "a whole number written with a point": "agent a { allow pay when args.times == 2.0 }",
    "membership of a list": 'agent a { allow say when args.text in ["x", "y"] }',
    "a bare boolean": "agent a { allow say when args.loud }",
    "elements": 'agent a { allow say when every args.tags like "x*" and args.tags contains "y" }',
    "below an open object": "agent a { allow say when args.extra.depth.further == 1 }",
    "below anything": 'agent a { allow say when args.odd.name like "x" }',
    "the parts of a url": 'agent a { allow fetch when args.url.scheme == "https" and args.url.port == 443 }',
    "the hosts of a list of urls": 'agent a { deny fetch when some args.more.host in_domain "x.org" }',
    "all urls": 'agent a { deny fetch unless every urls.host in_domain "x.org" }',
    "all paths": 'agent a { deny any when some paths glob "**/.env" }',
    "facts": 'agent a { deny ping when session.role == "x" or session.level > 3 or not session.interactive }',
    "the tool itself": 'agent a { deny any when tool.risk == "high" and not tool.read_only }',
    "the agent itself": 'agent a { deny ping when agent.depth > 1 and agent.name != "a" }',
    "a command of another shell": 'agent a { ask power when args.command runs any ["rm"] }',
    "a label that withholds": "agent a { deny ping when marked private }",
    "a label in an exception to a grant": "agent a { allow ping unless marked private }",
    "an argument and a fact": "agent a { allow say when args.text == session.role }",
    "two arguments": "agent a { allow pay when args.times <= args.amount }",
    "a let": 'let dirs = ["/a", "/b"]\nagent a { allow file when args.path under dirs }',
    "a sum": "agent a { limit 5 sum args.amount to pay per day for each args.times }",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_accepted(name: str, tmp_path: Path) -> None:
    assert said(tmp_path, {"main.zcpolicy": TOOLS + RIGHT[name]}) == []


LIST = '{"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {"p": {"type": "string"}, "n": {"type": "number"}, "any": {}}, "required": ["p"]}}]}'

REFINED = {
    "a kind of text": ("tool s/t(p: path)", None),
    "a whole number": ("tool s/t(p: string, n: integer)", None),
    "what had no kind": ("tool s/t(any: list<path>)", None),
    "a required parameter made optional": (
        "tool s/t(p?: path)",
        "`p` of `s/t` is required by the catalogue; the statement would make it optional",
    ),
    "another kind": ("tool s/t(p: integer)", "`p` of `s/t` is `string` in the catalogue, `integer` here"),
    "a wider kind": ("tool s/t(p: any)", "`p` of `s/t` is `string` in the catalogue, `any` here"),
    "a parameter that is not listed": ("tool s/t(q: path)", "`s/t` has no parameter `q`"),
}


@pytest.mark.parametrize("name", REFINED)
def test_a_tool_statement_refines_and_never_loosens(name: str, tmp_path: Path) -> None:
    statement, message = REFINED[name]
    text = f'zcpolicy 1\ncatalog "list.json" as s\n{statement}'
    found = [one.message for one in said(tmp_path, {"main.zcpolicy": text, "list.json": LIST})]
    assert found == ([] if message is None else [message])


def test_a_typed_test_on_an_unreviewed_string_writes_the_statement(tmp_path: Path) -> None:
    text = 'zcpolicy 1\ncatalog "list.json" as s\nbundle b { server s }\nagent a { connect b; allow s/t when args.p under "/w" }'
    expected = Said(
        "ZC2204", 'args.p under "/w"', "nobody has said that `args.p` of `s/t` is a path: it is an unreviewed string",
        "review the tool, then write `tool s/t(p: path)`",
    )  # fmt: skip
    assert said(tmp_path, {"main.zcpolicy": text, "list.json": LIST}) == [expected]


UNREVIEWED = {
    "a list": ('every args.files under "/w"', "tool s/u(files?: list<path>)"),
    "a command": ('args.cmd runs only ["ls"]', "tool s/u(cmd: shell)"),
    "the host of a url": ('args.link.host in_domain "x.org"', "tool s/u(link?: url)"),
    "the hosts of a list of urls": ('every args.files.host in_domain "x.org"', "tool s/u(files?: list<url>)"),
    "an odd name": ('args."a b" glob "**/x"', 'tool s/u("a b"?: path)'),
}


@pytest.mark.parametrize("name", UNREVIEWED)
def test_the_statement_says_as_much_as_the_catalogue_does(name: str, tmp_path: Path) -> None:
    condition, statement = UNREVIEWED[name]
    kinds = {"files": {"type": "array", "items": {"type": "string"}}}
    properties = {name: kinds.get(name, {"type": "string"}) for name in ("files", "cmd", "link", "a b")}
    schema = {"type": "object", "properties": properties, "required": ["cmd"]}
    listed = json.dumps([{"name": "u", "inputSchema": schema}])
    text = f'zcpolicy 1\ncatalog "list.json" as s\nbundle b {{ server s }}\nagent a {{ connect b; allow s/u when {condition} }}'
    found = said(tmp_path, {"main.zcpolicy": text, "list.json": listed})
    assert [(one.code, one.help) for one in found] == [("ZC2204", f"review the tool, then write `{statement}`")]
    fixed = text.replace("bundle b", f"{statement}\nbundle b")
    assert said(tmp_path, {"main.zcpolicy": fixed, "list.json": listed}) == []

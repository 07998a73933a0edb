"""Newlines, comments, names, numbers, characters: section 1 of the language."""

import pytest

from policy_lang import ast, codes
from policy_lang.parse import parse
from policy_lang.source import Source
from tests.policy_lang.syntax_files import shape

HEAD = "zcpolicy 1\n"


def tree(text: str) -> str:
    file, found = parse(Source("t", HEAD + text))
    assert found == (), found
    return shape(file.declarations)


def code(text: str, *, head: str = HEAD) -> tuple[str, str]:
    """Code and text at the place of the only finding."""
    source = Source("t", head + text)
    (only,) = parse(source)[1]
    return only.code.id, source.text[slice(*only.span)]


RULE = (
    "agent a { deny x, y except z when args.a == 1 and args.b in [1, 2]"
    ' unless (args.c or args.d) because "r" unclear ask }'
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(RULE.replace(" when", "\n  when"), id="a line that begins with when"),
        pytest.param(RULE.replace(" unless", "\nunless"), id="with unless"),
        pytest.param(RULE.replace(" because", "\nbecause"), id="with because"),
        pytest.param(RULE.replace(" unclear", "\nunclear"), id="with unclear"),
        pytest.param(RULE.replace(" except", "\nexcept"), id="with except"),
        pytest.param(RULE.replace(" and", "\nand"), id="with and"),
        pytest.param(
            RULE.replace(" when", "\n\n\n# note\n\n   # another\n\twhen"), id="across blank and comment lines"
        ),
        pytest.param(RULE.replace(" when", " # note\n when"), id="behind a comment at the end of the line"),
        pytest.param(RULE.replace("x, y", "x,\n\n  # note\n y"), id="a line that ends in a comma"),
        pytest.param(RULE.replace("== 1", "==\n 1"), id="in =="),
        pytest.param(RULE.replace("in [", "in\n ["), id="in an operator that is a word"),
        pytest.param(RULE.replace("in [", "in # note\n ["), id="in an operator and a comment"),
        pytest.param(RULE.replace("and args", "and\n args"), id="in and"),
        pytest.param(RULE.replace("args.b in [1, 2] unless", "args.b in [\n1,\n2\n]\nunless"), id="below a list"),
        pytest.param(RULE.replace("and args", "\nand\n args"), id="in and alone on its line"),
        pytest.param(RULE.replace("[1, 2]", "[\n1\n,\n2\n,\n]"), id="anywhere in brackets"),
        pytest.param(
            RULE.replace("(args.c or args.d)", "(\nargs.c\nor args.d # note\n)"), id="anywhere in parentheses"
        ),
        pytest.param(RULE.replace("{ ", "{\n;;\n").replace(" }", ";\n\n}"), id="empty statements"),
        pytest.param(RULE.replace(" ", "\t"), id="tabs"),
        pytest.param(RULE.replace(" when", "\r\n  when").replace("{ ", "{\r\n"), id="carriage returns before newlines"),
    ],
)
def test_these_are_the_same_rule(text: str) -> None:
    assert tree(text) == tree(RULE)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param("let a =\n 1", "let a = 1", id="="),
        pytest.param('test "t" { agent a; call x() =>\n deny }', 'test "t" { agent a; call x() => deny }', id="=>"),
        pytest.param(
            "agent a { deny x when args.a in [\n1] and\n args.b }",
            "agent a { deny x when args.a in [1] and args.b }",
            id="and below a list",
        ),
        pytest.param(
            "agent a { deny x when has args.a or\n args.b }",
            "agent a { deny x when has args.a or args.b }",
            id="or at a line's end",
        ),
        pytest.param("context { a:\n string }", "context { a: string }", id="a colon"),
        pytest.param(
            'agent a { deny x when args.a not in\n "b" }', 'agent a { deny x when args.a not in "b" }', id="not in"
        ),
        pytest.param(
            'agent a { deny x when args.a runs any\n ["b"] }',
            'agent a { deny x when args.a runs any ["b"] }',
            id="runs any",
        ),
        pytest.param("agent a { deny x when not\n args.a }", "agent a { deny x when not args.a }", id="not"),
        pytest.param("agent a { allow x\nwith approval }", "agent a { allow x with approval }", id="with"),
        pytest.param("agent a { deny x when args.a\nor args.b }", "agent a { deny x when args.a or args.b }", id="or"),
        pytest.param(
            'agent a { deny x when args."in" in\n [1] }',
            'agent a { deny x when args."in" in [1] }',
            id="in behind a quoted name",
        ),
        pytest.param(
            "tool t(a: string,\nb: list<string>\n) risk read",
            "tool t(a: string, b: list<string>) risk read",
            id="parameters",
        ),
        pytest.param(
            'let a = [{"k":\n{"l": 1,},},]', 'let a = [{"k": {"l": 1}}]', id="objects in brackets, trailing commas"
        ),
    ],
)
def test_these_lines_go_on(text: str, same: str) -> None:
    assert tree(text) == tree(same)


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        pytest.param("allow in\ndeny y", 2, id="a tool called in"),
        pytest.param("allow x, like\ndeny y", 2, id="a tool called like"),
        pytest.param("allow and\ndeny y", 2, id="a tool called and"),
        pytest.param("only any\ndeny y", 2, id="only any"),
        pytest.param("deny x when has args.in\ndeny y", 2, id="an argument called in"),
        pytest.param("deny x when args.a.and\ndeny y", 2, id="an argument called and"),
        pytest.param("use not\ndeny y", 2, id="a profile called not"),
        pytest.param("allow s/*\ndeny y", 2, id="a star"),
        pytest.param("allow x; deny y; deny z", 3, id="semicolons"),
        pytest.param("autonomy { read ask; low ask; medium ask; high ask } deny y", 2, id="after a block"),
    ],
)
def test_these_lines_end_a_statement(text: str, statements: int) -> None:
    file, found = parse(Source("t", f"{HEAD}agent a {{ {text} }}"))
    assert found == ()
    agent = file.declarations[1]
    assert isinstance(agent, ast.Agent)
    assert len(agent.body.statements) == statements


def test_a_list_kind_at_the_end_of_a_line_does_not_go_on() -> None:
    assert tree("context {\n a: list<string>\n b: string }") == tree("context { a: list<string>, b: string }")


def test_declarations_may_share_a_line_after_a_block() -> None:
    assert tree("server a {}  server b {} let c = 1") == tree("server a {}\nserver b {}\nlet c = 1")


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        pytest.param(
            "agent a { allow\n x }", ("ZC1033", "allow"), id="a newline ends a statement that says nothing yet"
        ),
        pytest.param("label a b", ("ZC1030", "b"), id="two names without a comma"),
        pytest.param("label a,,b", ("ZC1030", ","), id="two commas"),
        pytest.param("agent a { allow x, }", ("ZC1030", "}"), id="a trailing comma outside brackets"),
        pytest.param('let a = {"k": 1}', ("ZC1030", "{"), id="an object outside brackets"),
        pytest.param("let a-b = 1 - 2", ("ZC1030", "-"), id="there is no minus"),
        pytest.param("agent a { allowx }", ("ZC1031", "allowx"), id="a keyword ends where a name ends"),
        pytest.param("agent a { allow-x }", ("ZC1031", "allow-x"), id="also before a hyphen"),
        pytest.param("let a = 1__0", ("ZC1030", "1__0"), id="two underscores in a number"),
        pytest.param("let a = 1.", ("ZC1030", "1."), id="a point without digits"),
        pytest.param("let a = .5", ("ZC1030", "."), id="digits must stand before the point"),
        pytest.param("let a = 1e5", ("ZC1030", "1e5"), id="no exponents"),
        pytest.param('test "t" { wait 1 m }', ("ZC1030", "1"), id="durations are not spaced"),
        pytest.param('test "t" { wait 1w }', ("ZC1030", "1w"), id="weeks are no unit"),
        pytest.param("agent a { limit 5usd }", ("ZC1030", "5usd"), id="money has a blank"),
        pytest.param("agent a { limit 5 USD }", ("ZC1030", "USD"), id="currencies are lower case"),
        pytest.param("agent a { limit 5 abc }", ("ZC1009", "abc"), id="currencies are those of ISO 4217"),
        pytest.param("agent a { limit 1.0000001 usd }", ("ZC1009", "1.0000001"), id="six digits of money"),
        pytest.param("agent a { limit 1.5 calls }", ("ZC1009", "1.5"), id="counts are whole"),
        pytest.param("agent a { limit -1 tokens }", ("ZC1009", "-1"), id="amounts are not negative"),
        pytest.param('let a = "b', ("ZC1003", '"b'), id="a string that does not end"),
        pytest.param('let a = "b\nc"', ("ZC1003", '"b'), id="strings do not span lines"),
        pytest.param(r'let a = "\q"', ("ZC1004", r"\q"), id="escapes are JSON's"),
        pytest.param(r'let a = "\u12"', ("ZC1004", r"\u"), id="four digits"),
        pytest.param("let a = [[" + "[" * 99 + "]" * 101, ("ZC1007", "["), id="a hundred and one brackets"),
        pytest.param(
            "agent a { deny x when " + "not " * 101 + "args.a }", ("ZC1007", "n"), id="a hundred and one nots"
        ),
        pytest.param(
            "tool t(a: " + "list<" * 101 + "any" + ">" * 101 + ")", ("ZC1007", "l"), id="a hundred and one lists"
        ),
        pytest.param("let a = " + "9" * 101, ("ZC1008", "9" * 101), id="a huge number"),
        pytest.param('test "t" { wait 9999999999s }', ("ZC1008", "9999999999s"), id="a huge duration"),
        pytest.param("label " + "a" * 1001, ("ZC1008", "a" * 1001), id="a huge name"),
    ],
)
def test_these_are_errors(text: str, finding: tuple[str, str]) -> None:
    assert code(text) == finding


def test_as_deep_as_allowed() -> None:
    tree("let a = " + "[" * 99 + "1" + "]" * 99)
    tree("agent a { deny x when " + "(" * 98 + "args.a" + ")" * 98 + " }")
    tree("agent a { deny x when " + "not " * 100 + "args.a }")


@pytest.mark.parametrize("name", ["any", "none", "when", "unless", "because", "except", "with"])
def test_reserved_as_bare_tool_names(name: str) -> None:
    _, found = parse(Source("t", f"{HEAD}agent a {{ deny x, {name} }}\n"))
    assert bool(found) == (name != "any")
    _, found = parse(Source("t", f"{HEAD}tool {name}() risk read\n"))
    assert found
    assert tree(f'agent a {{ deny x, "{name}", {name}/y, s/{name}, {name}-z, {name}_* }}')


LETS = [
    "and", "or", "not", "some", "every", "has", "marked", "true", "false", "null", "args", "session", "tool", "agent", "paths", "urls",
]  # fmt: skip


@pytest.mark.parametrize("name", LETS)
def test_reserved_as_let_names(name: str) -> None:
    assert code(f"let {name} = 1") == ("ZC1043", name)


def test_none_is_no_name_of_what_may_be_none() -> None:
    for text in ("scope none", "skill none { deny x }", "bundle none { server s }", "agent none {}"):
        assert code(text)[0] == "ZC1043"


ODD = {
    "a zero width space": "\u200b", "a right-to-left override": "\u202e", "an isolate": "\u2066", "a byte order mark": "\ufeff",
    "a soft hyphen": "\u00ad", "a filler": "\u3164", "a tag": "\U000e0041", "a variation selector": "\ufe0f", "NUL": "\0",
    "an escape": "\x1b", "a C1 control": "\x85", "a line separator": "\u2028", "a lone surrogate": "\ud800",
    "a lone carriage return": "\r", "a form feed": "\f", "a vertical tab": "\v",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "around",
    ["label a{}b", 'let a = "b{}c"', 'let a = r"b{}c"', "let a = 1 # b{}c", "let a = {}1", "{}label a", "label a{} "],
)
def test_characters_that_cannot_be_seen(name: str, around: str) -> None:
    assert code(around.format(ODD[name]) + "\n") == ("ZC1001", ODD[name])


def test_escapes_say_what_cannot_be_seen() -> None:
    assert tree(r'let a = "\u200b\u0000\ud83d\ude00"').endswith(r"value=String(value='\u200b\x00😀'))]")


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        pytest.param("pаypal", "ZC1002", id="Cyrillic in Latin"),
        pytest.param("αbc", "ZC1002", id="Greek in Latin"),
        pytest.param("ｆｉｌｅ", "ZC1002", id="wide letters"),
        pytest.param("cafe\u0301", None, id="a letter and an accent apart"),
        pytest.param("naïve", None, id="Latin letters with accents"),
        pytest.param("файл", None, id="one other script"),
        pytest.param("日本のファイル", None, id="the scripts of Japanese"),
    ],
)
def test_names_of_several_scripts(name: str, finding: str | None) -> None:
    found = parse(Source("t", f"{HEAD}label {name}\n"))[1]
    assert [one.code.id for one in found] == (
        [finding] if finding else [one.code.id for one in found if "\u0301" in name]
    )
    assert parse(Source("t", f'{HEAD}test "t" {{ agent a; call "{name}"(x: "{name}") => deny }} # {name}\n'))[1] == ()


def test_comments_are_kept_in_order() -> None:
    text = '# a\nzcpolicy 1 # b\nlet x = [ # c\n1 # d\n] # e\n  # f\nlet y = "# no"\nlet z = r"# no" #g\n#'
    file, found = parse(Source("t", text))
    assert found == ()
    assert [(one.text, one.alone) for one in file.comments] == [
        (" a", True), (" b", False), (" c", False), (" d", False), (" e", False), (" f", True), ("g", False), ("", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("above", "is_error"),
    [
        pytest.param("# deny y", True, id="a commented statement"),
        pytest.param("#deny y", True, id="without a blank"),
        pytest.param("    # allow x # twice", True, id="indented"),
        pytest.param("# deny y\n# when args.b", True, id="with its own commented continuation"),
        pytest.param("# only in tests", True, id="prose that begins like one"),
        pytest.param("# deny y\n", False, id="not directly above"),
        pytest.param("# denying y", False, id="another word"),
        pytest.param("# note: deny y", False, id="prose"),
        pytest.param("# deny y\n# note", False, id="with prose between"),
    ],
)
def test_continuations_below_comments(above: str, is_error: bool) -> None:
    source = Source("t", f"{HEAD}agent a {{\nallow x\n{above}\n  when args.a\n}}")
    found = parse(source)[1]
    assert [one.code for one in found] == ([codes.COMMENTED_HEAD] if is_error else [])
    if found:
        assert source.text[slice(*found[0].span)] == "when"


@pytest.mark.parametrize(
    "word",
    [
        "when args.b",
        "unless args.b",
        "unclear ask",
        'because "b"',
        "except z",
        "with approval",
        "and args.b",
        "or args.b",
    ],
)
def test_every_continuation_word_counts_below_a_comment(word: str) -> None:
    found = parse(Source("t", f"{HEAD}agent a {{\nallow x\n# deny y\n{word}\n}}"))[1]
    assert codes.COMMENTED_HEAD in [one.code for one in found]

"""Names: what each written name means, and what is said of one that means nothing or two things."""

from pathlib import Path

import pytest

from policy_lang import ast
from tests.policy_lang.bound_case import Said, bound_of, said

TOOLS = """zcpolicy 1
tool read() risk read
tool write(path: path) risk medium
tool cron_add(job: string) risk medium
tool cron_list() risk read
tool github/get_me() risk read
tool github/delete_repo() risk high
server github {}
bundle forge { server github }
"""

CASES: dict[str, tuple[str, Said]] = {
    "a misspelt tool has a near name": (
        "agent a { allow raed }",
        Said("ZC2101", "raed", "`raed` is not a tool", "did you mean `read`?"),
    ),
    "the name of a family is no tool": (
        "agent a { allow cron }",
        Said("ZC2101", "cron", "`cron` is not a tool", "for its whole family write `cron_*`"),
    ),
    "a star without a server reaches host tools only": (
        "agent a { connect forge; deny delete_* }",
        Said("ZC2101", "delete_*", "`delete_*` matches no tool", "`*` without a server reaches host tools only; write `github/delete_*`"),
    ),
    "a server's tool needs its server": (
        "agent a { connect forge; deny get_me }",
        Said("ZC2101", "get_me", "`get_me` is not a tool", "it is a tool of a server: write `github/get_me`"),
    ),
    "a group needs its sign": (
        "group readers = read\nagent a { deny readers }",
        Said("ZC2101", "readers", "`readers` is not a tool", "it is a group: write `@readers`"),
    ),
    "a truth of another language": (
        "agent a { deny read when tool.read_only == True }",
        Said("ZC2104", "True", "unknown let `True`", "did you mean `true`?"),
    ),
    "a server is not its tools": (
        "agent a { connect forge; deny github }",
        Said("ZC2101", "github", "`github` is not a tool", "it is a server: for its tools write `github/*`"),
    ),
    "a server and a tool as hosts join them": (
        "agent a { connect forge; deny mcp__github__get_me }",
        Said("ZC2101", "mcp__github__get_me", "`mcp__github__get_me` is not a tool", "it is a tool of a server: write `github/get_me`"),
    ),
    "the tools of a server as hosts join them": (
        "agent a { connect forge; deny mcp__github__* }",
        Said("ZC2101", "mcp__github__*", "`mcp__github__*` matches no tool", "it is a tool of a server: write `github/*`"),
    ),
    "a server and a tool in one string": (
        'agent a { connect forge; deny "github/get_me" }',
        Said("ZC2101", '"github/get_me"', '`"github/get_me"` is not a tool', "it is a tool of a server: write `github/get_me`"),
    ),
    "the hints of a misspelt server": (
        "server gihub { trust hints }",
        Said("ZC2104", "server gihub { trust hints }", "unknown server `gihub`", "did you mean `github`?"),
    ),
    "a server without tools": (
        "server jira { trust hints }",
        Said("ZC2104", "server jira { trust hints }", "unknown server `jira`", "declare it with a `catalog` or `tool` statement"),
    ),
    "a server said twice": (
        "server github { trust hints }",
        Said("ZC2105", "server github { trust hints }", "server `github` is declared twice", "remove one of them"),
    ),
    "a label declared twice": (
        "label x, y\nlabel y",
        Said("ZC2105", "y", "label `y` is declared twice", "remove one of them"),
    ),
    "a scope declared twice": (
        "scope x, x",
        Said("ZC2105", "x", "scope `x` is declared twice", "remove one of them"),
    ),
    "a fact that is built in": (
        "context { cwd: string }",
        Said("ZC2105", "cwd: string", "`session.cwd` is built in, and of another kind", "rename it"),
    ),
    "a reason that no decision has": (
        'agent a { allow read }\ntest "t" { agent a; call write(path: "x") => deny not-grantd }',
        Said("ZC2104", "not-grantd", "no decision has the reason `not-grantd`", "did you mean `not-granted`?"),
    ),
    "a call that nobody makes": (
        'agent a { allow read }\ntest "t" { call read() => allow; agent a }',
        Said("ZC1032", "call read() => allow", "no `agent` is named before this call", "say who makes it: write `agent NAME` first in the test"),
    ),
    "a time zone that does not exist": (
        'agent a { allow read; limit 1 calls per calendar day in "Europe/Berln" }',
        Said("ZC2104", '"Europe/Berln"', "there is no time zone `Europe/Berln`", 'did you mean `"Europe/Berlin"`?'),
    ),
    "a misspelt server": (
        "agent a { deny gihub/get_me }",
        Said("ZC2101", "gihub/get_me", "`gihub/get_me` is not a tool", "did you mean `github/get_me`?"),
    ),
    "a server that nobody declares": (
        "agent a { deny jira/* }",
        Said("ZC2101", "jira/*", "`jira/*` matches no tool", "declare server `jira` with a `catalog` or `tool` statement"),
    ),
    "a tool that is near nothing": (
        "agent a { deny quux }",
        Said("ZC2101", "quux", "`quux` is not a tool", "declare it with a `tool` statement, or add its catalogue"),
    ),
    "in a ceiling an unknown tool is a warning": (
        "ceiling { deny quux }",
        Said("ZC2102", "quux", "`quux` is not a tool", "declare it with a `tool` statement, or add its catalogue"),
    ),
    "in a ceiling a near name is an error": (
        "ceiling { deny wriet }",
        Said("ZC2101", "wriet", "`wriet` is not a tool", "did you mean `write`?"),
    ),
    "in a skill an unknown tool is a warning": (
        "skill s { only quux }",
        Said("ZC2102", "quux", "`quux` is not a tool", "declare it with a `tool` statement, or add its catalogue"),
    ),
    "an exception that removes nothing": (
        "agent a { deny read except write }",
        Said("ZC2106", "write", "`except write` removes nothing", "drop it, or name a tool of the set"),
    ),
    "an exception that removes everything": (
        "agent a { deny read except any }",
        Said("ZC2107", "read except any", "`except` removes every tool of this set", "drop the statement, or write `none`"),
    ),
    "an unknown group": (
        "group readers = read\nagent a { allow @reader }",
        Said("ZC2104", "@reader", "unknown group `@reader`", "did you mean `@readers`?"),
    ),
    "groups in a circle": (
        "group x = @y\ngroup y = @x",
        Said("ZC2108", "@y", "groups go in a circle: `@y` → `@x` → `@y`", ""),
    ),
    "an unknown bundle": (
        "agent a { connect forg }",
        Said("ZC2104", "forg", "unknown bundle `forg`", "did you mean `forge`?"),
    ),
    "an unknown server in a bundle": (
        "bundle b { server githup }",
        Said("ZC2104", "server githup", "unknown server `githup`", "did you mean `github`?"),
    ),
    "an unknown profile": (
        "agent a { use careful }",
        Said("ZC2104", "careful", "unknown profile `careful`", "declare it with a `profile` statement"),
    ),
    "an unknown skill": (
        "skill deploy { only read }\nagent a { skills deplyo }",
        Said("ZC2104", "deplyo", "unknown skill `deplyo`", "did you mean `deploy`?"),
    ),
    "an unknown delegate": (
        "agent worker {}\nagent a { delegate to wroker }",
        Said("ZC2104", "wroker", "unknown agent `wroker`", "did you mean `worker`?"),
    ),
    "an unknown parent": (
        "agent worker {}\nagent a narrows wroker {}",
        Said("ZC2104", "wroker", "unknown agent `wroker`", "did you mean `worker`?"),
    ),
    "an unknown label": (
        "label private\nagent a { allow read; mark privat on read }",
        Said("ZC2104", "privat", "unknown label `privat`", "did you mean `private`?"),
    ),
    "an unknown memory scope": (
        "scope team\nagent a { memory read taem }",
        Said("ZC2104", "taem", "unknown scope `taem`", "did you mean `team`?"),
    ),
    "an unknown let": (
        'let secrets = ["**/.env"]\nagent a { deny write when args.path glob secret }',
        Said("ZC2104", "secret", "unknown let `secret`", "did you mean `secrets`?"),
    ),
    "two agents of one name": (
        "agent a {}\nagent a {}",
        Said("ZC2105", "a", "agent `a` is declared twice", "rename one, put both bodies into one, or write `agent NEW narrows OLD { … }` to restrict it"),
    ),
    "two tools of one name": (
        "tool read() risk high",
        Said("ZC2105", "tool read() risk high", "tool `read` is declared twice", ""),
    ),
    "profiles in a circle": (
        "profile p { use q }\nprofile q { use p }\nagent a { use p }",
        Said("ZC2109", "p", "profiles use each other in a circle: `p` → `q` → `p`", ""),
    ),
    "agents that narrow each other": (
        "agent a narrows b {}\nagent b narrows a {}",
        Said("ZC2110", "b", "agents narrow each other in a circle: `a` → `b` → `a`", ""),
    ),
    "a ceiling does not grant": (
        "ceiling { allow read }",
        Said("ZC2111", "allow read", "`allow` cannot stand in a ceiling", "only a granting agent grants; to keep less write `only A, B`, to forbid write `deny A`"),
    ),
    "a narrowing agent does not waive prompts": (
        "agent a { allow read }\nagent b narrows a { auto_approve read }",
        Said("ZC2111", "auto_approve read", "`auto_approve` cannot stand in an agent that narrows another", "only a granting agent grants; to keep less write `only A, B`, to forbid write `deny A`"),
    ),
    "a narrowing agent does not delegate": (
        "agent a { allow read }\nagent b narrows a { delegate to a }",
        Said("ZC2111", "delegate to a", "`delegate to` cannot stand in an agent that narrows another", "only a granting agent grants; to keep less write `only A, B`, to forbid write `deny A`"),
    ),
    "a granting profile in a skill": (
        "profile p { allow read }\nskill s { use p }",
        Said("ZC2112", "p", "profile `p` grants, and a skill may only restrict", "use a profile without `allow`, or write `only A, B` here"),
    ),
    "connect twice": (
        "bundle other { server github }\nagent a { connect forge; connect other }",
        Said("ZC2113", "connect other", "`connect` is said twice in `a`", "put the names into one statement"),
    ),
    "a fact that tests do not know": (
        'agent a {}\ntest "t" { agent a\n given cwdd = "/w"\n call read() => deny }',
        Said("ZC2104", "cwdd", "unknown context fact `cwdd`", "did you mean `cwd`?"),
    ),
    "a tool that is called in a test and does not exist": (
        'agent a {}\ntest "t" { agent a\n call raed() => deny }',
        Said("ZC2103", "raed", "`raed` is not a tool", "did you mean `read`?"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_of_a_name(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    assert said(tmp_path, {"main.zcpolicy": TOOLS + text}) == [expected]


def test_references_mean_sets_of_tools(tmp_path: Path) -> None:
    references = {
        "read": {"read"},
        "cron_*": {"cron_add", "cron_list"},
        "*": {"read", "write", "cron_add", "cron_list"},
        "*/*": {"github/get_me", "github/delete_repo"},
        "github/*": {"github/get_me", "github/delete_repo"},
        "git*/*_me": {"github/get_me"},
        '"read"': {"read"},
        "any except cron_*, github/*": {"read", "write"},
        "@mine": {"read", "github/get_me"},
        "@mine, write except read": {"github/get_me", "write"},
    }
    rules = "\n".join(f"deny {reference}" for reference in references)
    text = f"{TOOLS}group mine = read, github/get_me\nagent a {{\n{rules}\n}}"
    bound, found = bound_of(tmp_path, {"main.zcpolicy": text})
    sets = [bound.ids(rule.tools) for rule, _ in bound.agents["a"].every(ast.Rule)]
    shown = [{bound.catalogue.tools[number].shown for number in ids} for ids in sets]
    assert (shown, found) == (list(references.values()), ())


def test_an_import_puts_its_prefix_before_names_and_not_before_tools(tmp_path: Path) -> None:
    base = 'zcpolicy 1\ntool read() risk read\ngroup readers = read\nlet dirs = ["/w"]\nagent helper { allow @readers }'
    main = 'zcpolicy 1\nimport "base.zcpolicy" as base\nagent a { allow @base.readers; delegate to base.helper }'
    bound, found = bound_of(tmp_path, {"base.zcpolicy": base, "main.zcpolicy": main})
    assert found == ()
    assert sorted(bound.agents) == ["a", "base.helper"]


def test_an_import_without_a_prefix_shares_its_names(tmp_path: Path) -> None:
    base = "zcpolicy 1\ntool read() risk read\ngroup readers = read"
    main = 'zcpolicy 1\nimport "base.zcpolicy"\nagent a { allow @readers }\ngroup readers = read'
    _, (found,) = bound_of(tmp_path, {"base.zcpolicy": base, "main.zcpolicy": main})
    assert found.message == "group `readers` is declared twice"
    assert (found.source.name, found.labels[0].source.name) == ("main.zcpolicy", "base.zcpolicy")


TWICE = {
    "a tool": ("tool x() risk read", "tool x() risk low"),
    "an agent": ("tool x()\nagent a { allow x }", "agent a { deny x }"),
    "a label": ("label l", "label l"),
    "a server": ("tool s/x()\nserver s {}", "server s { trust hints }"),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_name_that_an_import_has_is_declared_twice_where_it_is_imported(name: str, tmp_path: Path) -> None:
    first, second = TWICE[name]
    files = {"b.zcpolicy": f"zcpolicy 1\n{first}", "main.zcpolicy": f'zcpolicy 1\nimport "b.zcpolicy"\n{second}'}
    _, (found,) = bound_of(tmp_path, files)
    assert found.message.endswith("is declared twice")
    assert (found.source.name, found.labels[0].source.name) == ("main.zcpolicy", "b.zcpolicy")


def test_an_import_has_its_names_behind_its_prefix(tmp_path: Path) -> None:
    base = "zcpolicy 1\ntool read() risk read\nprofile p { deny read }\nagent lib { allow read }"
    main = 'zcpolicy 1\nimport "base.zcpolicy" as base\nagent a narrows lib { use p }'
    found = said(tmp_path, {"base.zcpolicy": base, "main.zcpolicy": main})
    assert [one.help for one in found] == ["did you mean `base.lib`?", "did you mean `base.p`?"]


def test_a_file_that_two_imports_share_is_read_once(tmp_path: Path) -> None:
    files = {
        "common.zcpolicy": "zcpolicy 1\ntool read() risk read\ngroup readers = read",
        "left.zcpolicy": 'zcpolicy 1\nimport "common.zcpolicy" as c\nprofile p { ask @c.readers }',
        "right.zcpolicy": 'zcpolicy 1\nimport "common.zcpolicy" as d\nprofile p { ask @d.readers }',
        "main.zcpolicy": 'zcpolicy 1\nimport "left.zcpolicy" as l\nimport "right.zcpolicy" as r\nagent a { allow read; use l.p, r.p }',
    }
    assert said(tmp_path, files) == []


FILES: dict[str, tuple[dict[str, str], tuple[str, str]]] = {
    "a missing import": (
        {"main.zcpolicy": 'zcpolicy 1\nimport "no.zcpolicy" as x'},
        ("ZC2003", "the import `no.zcpolicy` does not exist"),
    ),
    "imports in a circle": (
        {"main.zcpolicy": 'zcpolicy 1\nimport "b.zcpolicy"', "b.zcpolicy": 'zcpolicy 1\nimport "main.zcpolicy"'},
        ("ZC2004", "imports go in a circle: `main.zcpolicy` → `b.zcpolicy` → `main.zcpolicy`"),
    ),
    "a missing catalogue": (
        {"main.zcpolicy": 'zcpolicy 1\ncatalog "no.json" as x'},
        ("ZC2005", "the catalogue `no.json` does not exist"),
    ),
    "a catalogue that is no catalogue": (
        {"main.zcpolicy": 'zcpolicy 1\ncatalog "x.json" as x', "x.json": '{"tools": [], "nextCursor": "2"}'},
        ("ZC2006", "the catalogue `x.json` cannot be used: "),
    ),
    "a catalogue without a server": (
        {"main.zcpolicy": 'zcpolicy 1\ncatalog "x.json"', "x.json": '{"tools": []}'},
        ("ZC2007", '`catalog "x.json"` does not say whose tools these are'),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_said_of_files(name: str, tmp_path: Path) -> None:
    files, (code, message) = FILES[name]
    found = said(tmp_path, files)
    assert [(one.code, one.message[: len(message)]) for one in found] == [(code, message)]


def test_a_folder_named_like_a_policy(tmp_path: Path) -> None:
    (tmp_path / "b.zcpolicy").mkdir()
    found = said(tmp_path, {"main.zcpolicy": 'zcpolicy 1\nimport "b.zcpolicy"'})
    assert [(one.code, one.message) for one in found] == [("ZC2003", "the import `b.zcpolicy` is a folder")]


BOUNDS = {
    "a chain of narrowings": (
        "agent a0 { allow read }\n" + "".join(f"agent a{i} narrows a{i - 1} {{}}\n" for i in range(1, 1_010)),
        ("ZC2110", "`a1000` narrows through more than 1000 agents"),
    ),
    "groups in groups": (
        "".join(f"group g{i} = read, @g{i + 1}\n" for i in range(120)) + "group g120 = read",
        ("ZC1007", "groups stand more than 100 deep in groups"),
    ),
    "profiles in profiles": (
        "".join(f"profile p{i} {{ use p{i + 1} }}\n" for i in range(100)) + "profile p100 {}\nagent a { use p0 }",
        ("ZC1007", "profiles use each other more than 100 deep"),
    ),
    "statements that profiles multiply": (
        "profile p {\n" + "deny read\n" * 500 + "}\n" + "".join(f"agent a{i} {{ use p }}\n" for i in range(402)),
        ("ZC1008", "profiles bring more than 200_000 statements into bodies"),
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_said_beyond_a_bound(name: str, tmp_path: Path) -> None:
    text, expected = BOUNDS[name]
    found = said(tmp_path, {"main.zcpolicy": TOOLS + text})
    assert [(one.code, one.message) for one in found] == [expected]

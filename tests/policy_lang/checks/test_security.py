"""Grants that are wider than they look, restrictions that see less than they look, and the witnesses that show it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from policy_lang import codes
from policy_lang.checks import run_checks
from policy_lang.checks.witness import MAX_WITNESSES
from policy_lang.codes import Code
from policy_lang.compile import compile_text
from policy_lang.gather import Root, gather
from policy_lang.names.bind import bind
from policy_lang.source import Source
from tests.policy_lang.checks.judging import Case, findings, judge, mended, of_code

TOOLS = """\
tool ping() risk read
tool file_read(path: path) risk read
tool read_many(paths: list<path>, cc?: list<string>) risk read
tool fetch(url: url) risk low
tool mail(to: string, cc?: string) risk medium
tool pay(amount: integer) risk high
tool shell(command: shell) risk high
tool dos(command: command) risk medium
label untrusted, private
let secrets = ["**/.env"]
"""


def check(case: Case, code: Code) -> None:
    judge(Case(case.name, TOOLS + case.policy, case.says, case.help, case.labels), code)


SHELL_HELP = (
    'add `when args.… runs only ["git status ..."]` or `with approval`; `deny … runs any` is a guard rail, no wall'
)
HIGH_HELP = "add `when …` or `with approval`, or write `autonomy supervised` in the agent"

GRANTS = [
    (codes.GRANT_OF_ANY, Case(
        "any", "agent a { allow ⟦any⟧ }",
        "`any` is allowed on every call, without a question: 8 tools, `pay` and `shell` of class high",
        "name the tools that the agent needs, or write `autonomy supervised`")),
    (codes.GRANT_OF_SHELL, Case(
        "a shell", "agent a { allow ⟦ping, shell⟧ }",
        "`shell` runs whatever text it is sent, without a question", SHELL_HELP)),
    (codes.GRANT_OF_SHELL, Case(
        "a command of another shell", "agent a { allow ⟦dos⟧ }",
        "`dos` runs whatever text it is sent, without a question", SHELL_HELP)),
    (codes.GRANT_OF_SHELL, Case(
        "a shell whose question is waived", "agent a { autonomy supervised; allow ⟦shell⟧; auto_approve shell }",
        "`shell` runs whatever text it is sent, without a question", SHELL_HELP,
        (("the question of `autonomy` is waived here", "auto_approve shell"),))),
    (codes.GRANT_OF_HIGH, Case(
        "class high", "agent a { allow ⟦ping, pay⟧ }",
        "`pay` is of class high, and allowed on every call without a question", HIGH_HELP)),
    (codes.GRANT_OF_HIGH, Case(
        "a tool whose class nobody states", "tool odd()\nagent a { allow ⟦odd⟧ }",
        "`odd` is of class high, and allowed on every call without a question",
        HIGH_HELP + "; a tool whose class nobody states is high: `risk read = …` states it")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), GRANTS, ids=[str(case) for _, case in GRANTS])
def test_an_unconditional_grant_is_a_warning(code: Code, case: Case) -> None:
    check(case, code)


GUARDED = {
    "a condition": 'agent a { allow shell when args.command runs only ["ls ..."]; allow pay when args.amount < 5 }',
    "an approval": "agent a { allow shell, pay with approval }",
    "an autonomy that asks": "agent a { autonomy supervised; allow any }",
    "a ceiling that asks": "agent a { allow any }\nceiling { ask any }",
    "an unconditional ask": "agent a { allow shell, pay; ask shell, pay }",
    "denied all the same": "agent a { allow shell, pay; deny shell, pay }",
    "tools of lower classes": "agent a { allow ping, fetch, mail }",
}


@pytest.mark.parametrize("policy", GUARDED.values(), ids=GUARDED.keys())
def test_a_guarded_grant_is_left_alone(policy: str) -> None:
    unconditional = (codes.GRANT_OF_ANY, codes.GRANT_OF_SHELL, codes.GRANT_OF_HIGH)
    assert [finding.message for finding in findings(TOOLS + policy) if finding.code in unconditional] == []


ABSENT = [
    Case("in a deny", 'agent a { allow mail; deny mail when ⟦args.cc⟧ like "*@evil.test" }',
         "`mail` needs no `args.cc`, and without it this `deny` denies",
         "if that is meant, say so with `has args.cc`; a default in the `tool` statement settles it too"),
    Case("in an allow", 'agent a { allow mail when ⟦args.cc⟧ == "x" and args.cc != "y" }',
         "`mail` needs no `args.cc`, and without it this `allow` grants nothing",
         "if that is meant, say so with `has args.cc`; a default in the `tool` statement settles it too"),
]  # fmt: skip


@pytest.mark.parametrize("case", ABSENT, ids=str)
def test_an_optional_argument_that_decides_is_a_warning(case: Case) -> None:
    check(case, codes.ABSENT_ARGUMENT)


LIMITED = "count by an argument that is always sent; a default in the `tool` statement settles it too"

COUNTED = [
    Case("one pot per value", "agent a { allow mail; limit 3 calls to mail per day for each ⟦args.cc⟧ }",
         "`mail` needs no `args.cc`, and without it this `limit` denies", LIMITED),
    Case("a sum", "tool tip(amount?: integer) risk low\nagent a { allow tip; limit 3 sum ⟦args.amount⟧ to tip per day }",
         "`tip` needs no `args.amount`, and without it this `limit` denies", LIMITED),
]  # fmt: skip


@pytest.mark.parametrize("case", COUNTED, ids=str)
def test_a_limit_that_counts_by_an_optional_argument_is_a_warning(case: Case) -> None:
    check(case, codes.ABSENT_ARGUMENT)


def test_a_limit_that_counts_by_a_required_argument_is_left_alone() -> None:
    policy = (
        "agent a { allow mail, pay; limit 3 calls to mail per day for each args.to; limit 3 sum args.amount to pay }"
    )
    assert of_code(TOOLS + policy, codes.ABSENT_ARGUMENT) == []


PRESENT = {
    "guarded by has": 'deny mail when has args.cc and args.cc like "*@evil.test"',
    "required": 'deny mail when args.to like "*@evil.test"',
    "with a default": "deny lend when args.days > 3",
    "an alternative in a grant": 'allow mail when args.cc == "x" or args.to == "y"',
}


@pytest.mark.parametrize("rule", PRESENT.values(), ids=PRESENT.keys())
def test_an_argument_that_is_there_or_asked_for_is_left_alone(rule: str) -> None:
    assert (
        of_code(f"{TOOLS}tool lend(days: integer = 1) risk low\nagent a {{ allow any; {rule} }}", codes.ABSENT_ARGUMENT)
        == []
    )


def test_every_of_an_empty_list_is_a_warning() -> None:
    check(Case("", 'agent a { allow read_many when ⟦every args.paths under "/w"⟧ }',
               "`every args.paths …` holds for an empty list as well",
               'if an empty list must not pass, add `and some args.paths under "/w"`'), codes.EMPTY_EVERY)  # fmt: skip


def test_every_path_of_a_tool_that_takes_lists_is_a_warning() -> None:
    check(Case("", 'agent a { allow read_many, file_read when ⟦every paths under "/w"⟧ }',
               "`every paths …` holds for an empty `paths` of `read_many` as well",
               'if an empty list must not pass, add `and some paths under "/w"`'), codes.EMPTY_EVERY)  # fmt: skip


@pytest.mark.parametrize("rule", [
    'allow file_read when every paths under "/w"',
    'allow read_many when every paths under "/w" and some paths under "/w"',
    'allow read_many when every args.paths under "/w" and some args.paths under "/w"',
    'deny read_many when every args.paths under "/w"',
    'allow read_many when some args.paths under "/w"',
])  # fmt: skip
def test_every_beside_some_or_standing_for_withholding_is_left_alone(rule: str) -> None:
    assert of_code(f"{TOOLS}agent a {{ allow ping; {rule} }}", codes.EMPTY_EVERY) == []


OVER_COMMANDS = [
    Case("every, in an allow", 'agent a { allow shell when ⟦every paths under "/w"⟧ }',
         '`every paths under "/w"` is never sure on `shell`: a command may touch what its text does not show',
         "this `allow` grants nothing there: grant commands with `runs only`, and withhold with `deny … when some paths …`"),
    Case("not some, in an allow", "agent a { allow shell unless ⟦some paths glob secrets⟧ }",
         "`some paths glob secrets` is never sure on `shell`: a command may touch what its text does not show",
         "this `allow` grants nothing there: grant commands with `runs only`, and withhold with `deny … when some paths …`"),
    Case("an exception to a deny", 'agent a { allow any; deny shell unless ⟦every paths under "/w"⟧ }',
         '`every paths under "/w"` is never sure on `shell`: a command may touch what its text does not show',
         "this `deny` makes no exception there: grant commands with `runs only`, and withhold with `deny … when some paths …`"),
]  # fmt: skip


@pytest.mark.parametrize("case", OVER_COMMANDS, ids=str)
def test_a_test_that_would_have_to_know_all_that_a_command_touches_is_a_warning(case: Case) -> None:
    check(case, codes.EVERY_ON_SHELL)


def test_a_deny_of_some_paths_is_the_right_way_and_left_alone() -> None:
    policy = (
        TOOLS
        + 'agent a { allow shell, file_read; deny any when some paths glob secrets; allow read_many when every paths under "/w" }'
    )
    assert of_code(policy, codes.EVERY_ON_SHELL) == []


def test_unreviewed_strings_are_listed() -> None:
    policy = """\
catalog "tests/catalogs/mcp-server-git.json" as git
server git {}
bundle repo { server git }
agent a { connect repo; allow git/git_add, git/git_log; deny any when some ⟦paths⟧ glob "**/.env" }
"""
    judge(Case("", policy,
               "`paths` reads strings whose kind nobody has given: `git/git_add(repo_path)`, `git/git_add(files)`, "
               "`git/git_log(repo_path)`, `git/git_log(start_timestamp)`, `git/git_log(end_timestamp)`",
               "each is taken for a possible path; once reviewed, write `tool git/git_add(repo_path: path)`, or `repo_path: string`"),
          codes.UNREVIEWED_MET)  # fmt: skip


def test_tools_that_nobody_may_call_are_not_listed() -> None:
    policy = """\
catalog "tests/catalogs/mcp-server-git.json" as git
server git {}
bundle repo { server git }
tool ping() risk read
agent a { connect repo; allow ping; deny any when some paths glob "**/.env" }
ceiling { deny any when some paths glob "**/.ssh/**" }
"""
    assert of_code(policy, codes.UNREVIEWED_MET) == []


COMMANDS = [
    (codes.LAUNCHER, Case(
        "a launcher", 'agent a { allow shell when args.command runs only ["ls ...", ⟦"xargs ls ..."⟧] }',
        "`xargs` starts the commands that its own words name, or code that they hold",
        "grant those commands by themselves and leave `xargs` out; if it has to stand here, write out all its words")),
    (codes.ENUMERATED_FLAGS, Case(
        "a flag in a deny", 'agent a { allow shell; deny shell when args.command runs any [⟦"git push --force"⟧, "rm"] }',
        "`--force` may be spelled in another way, and this `deny` does not see that",
        'write `"git push"`, which meets every use, and let the harmless ones through with `unless … runs only`')),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), COMMANDS, ids=[str(case) for _, case in COMMANDS])
def test_command_patterns_that_say_more_or_less_than_they_show(code: Code, case: Case) -> None:
    check(case, code)


def test_plain_command_patterns_are_left_alone() -> None:
    policy = (
        TOOLS
        + 'agent a { allow shell when args.command runs only ["git log -1", "ls ..."]; ask shell when args.command runs any ["git push"] }'
    )
    assert [finding for code, _ in COMMANDS for finding in of_code(policy, code)] == []


def test_a_condition_that_is_a_comment_is_a_warning() -> None:
    check(Case("", "agent a {\n    allow pay\n    ⟦# when args.amount < 5⟧\n}",
               "the `when` of this `allow` is a comment, so it grants on every call",
               "write `when` without the `#`, or move the comment above the `allow`",
               (("the grant", "allow pay"),)), codes.COMMENTED_CONDITION)  # fmt: skip


def test_the_fix_of_a_commented_condition_takes_the_sign_away() -> None:
    policy = TOOLS + "agent a {\n    allow pay\n    # when args.amount < 5\n}"
    (found,) = of_code(policy, codes.COMMENTED_CONDITION)
    assert mended(policy, found.fix) == TOOLS + "agent a {\n    allow pay\n      when args.amount < 5\n}"


@pytest.mark.parametrize("policy", [
    "agent a {\n    allow pay\n    # whenever it is due\n}",
    "agent a {\n    allow pay when args.amount < 5\n    # when args.amount < 7\n}",
    "agent a {\n    allow pay # when args.amount < 5\n}",
])  # fmt: skip
def test_other_comments_are_left_alone(policy: str) -> None:
    assert of_code(TOOLS + policy, codes.COMMENTED_CONDITION) == []


def test_private_data_untrusted_content_and_a_way_out_together_are_a_warning() -> None:
    check(Case("", "agent a { autonomy full; allow file_read; allow ⟦fetch⟧ }",
               "`a` can read private data (`file_read`), meet untrusted content (`fetch`) and send it out (`fetch`) without a question",
               "`mark` what it reads and fetches, and write `ask` or `deny … when marked …` on the way out",
               (("private data", "allow file_read"),)), codes.EXFILTRATION)  # fmt: skip


CLOSED = {
    "no private data": "allow fetch, mail, pay",
    "nothing untrusted, no way out": "allow file_read, pay",
    "asked about": "allow file_read, fetch; ask fetch",
    "autonomy asks": "autonomy supervised; allow file_read, fetch",
    "an approval": "allow file_read; allow fetch with approval",
    "a label decides": "allow file_read, fetch; mark private on file_read; deny fetch when marked private",
    "only to known hosts": 'allow file_read; allow fetch when args.url.host in_domain "docs.example"',
}


@pytest.mark.parametrize("rules", CLOSED.values(), ids=CLOSED.keys())
def test_a_way_out_that_is_watched_is_left_alone(rules: str) -> None:
    assert of_code(f"{TOOLS}agent a {{ {rules} }}", codes.EXFILTRATION) == []


def test_labels_say_what_is_private_and_untrusted() -> None:
    policy = (
        TOOLS
        + "agent a { allow pay, mail; allow shell; mark private on pay; mark untrusted on mail; deny ping when marked private }"
    )
    (found,) = of_code(policy, codes.EXFILTRATION)
    assert "(`pay`), meet untrusted content (`mail`) and send it out (`mail` and `shell`)" in found.message


def test_a_tool_named_for_sending_is_a_way_out() -> None:
    policy = (
        TOOLS
        + "tool send_report(text: string) risk medium\nagent a { allow file_read, send_report; allow fetch with approval; mark private on ping }"
    )
    (found,) = of_code(policy, codes.EXFILTRATION)
    assert "send it out (`send_report`)" in found.message


WITNESSED = {
    "any": ("agent a { allow any }", codes.GRANT_OF_ANY, 'call dos(command: "dir") => allow'),
    "a shell": ("agent a { allow shell }", codes.GRANT_OF_SHELL, 'call shell(command: "id") => allow'),
    "dead": ("agent a { allow ping; allow mail; deny mail }", codes.DEAD_RULE, 'call mail(to: "x") => deny'),
    "absent": ('agent a { allow mail; ask mail when args.cc == "x" }', codes.ABSENT_ARGUMENT, 'call mail(to: "x") => ask'),
    "empty": ('agent a { allow read_many when every args.paths under "/w" }', codes.EMPTY_EVERY, "call read_many(paths: []) => allow"),
    "approval": ("agent a { allow mail; allow mail with approval }", codes.COVERED_APPROVAL, 'call mail(to: "x") => allow'),
    "comment": ("agent a {\n allow pay\n # when args.amount < 5\n}", codes.COMMENTED_CONDITION, "call pay(amount: 1) => allow"),
    "independent": (
        'agent a { allow ping; delegate to b independent because "x" }\nagent b { allow pay }',
        codes.INDEPENDENT_ADDS, "call pay(amount: 1) => allow",
    ),
    "way out": ("agent a { allow file_read, fetch }", codes.EXFILTRATION, 'call fetch(url: "https://example.org/") => allow'),
    "always": ("agent a { allow pay when args.amount > 5 or args.amount <= 5 }", codes.ALWAYS_TRUE, "call pay(amount: 1) => allow"),
    "covered": ("agent a { allow pay; allow pay when args.amount > 5 }", codes.REDUNDANT_RULE, "call pay(amount: 1) => allow"),
    "nothing granted": ("agent a { allow ping; ask pay }", codes.NOTHING_GRANTED, "call pay(amount: 1) => deny"),
    "calls nothing": ("agent a { allow ping; deny any }", codes.CALLS_NOTHING, "call ping() => deny"),
    "not confirmed": ("agent a { allow pay; deny pay when args.amount == 1 }", codes.GRANT_OF_HIGH, None),
    "not before its time": ("agent a { allow shell, ping; require ping before shell }", codes.GRANT_OF_SHELL, None),
    "under a ceiling's require": ("agent a { allow shell, ping }\nceiling { require ping before shell }", codes.GRANT_OF_SHELL, None),
    "a limit of none": ("agent a { allow shell; limit 0 calls to shell }", codes.GRANT_OF_SHELL, None),
    "a limit": ("agent a { allow shell; limit 1 calls to shell }", codes.GRANT_OF_SHELL, 'call shell(command: "id") => allow'),
    "nobody to ask": ('agent a { allow mail; ask mail when args.cc == "x"; approval none }', codes.ABSENT_ARGUMENT, None),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "code", "call"), WITNESSED.values(), ids=WITNESSED.keys())
def test_a_witness_is_a_call_that_the_evaluator_decides_so(policy: str, code: Code, call: str | None) -> None:
    assert [finding.witness for finding in of_code(TOOLS + policy, code)] == [call]


PATTERN_PLACES = [
    Case("a single pattern", 'agent a { allow shell when args.command runs only ⟦"env ls"⟧ }',
         "`env` starts the commands that its own words name, or code that they hold",
         "grant those commands by themselves and leave `env` out; if it has to stand here, write out all its words"),
    Case("a let, once for what it holds", 'let tools = ["ls ...", "sh ..."]\nagent a { allow shell when args.command runs only ⟦tools⟧ }',
         "`sh` starts the commands that its own words name, or code that they hold",
         "grant those commands by themselves and leave `sh` out; if it has to stand here, write out all its words"),
]  # fmt: skip


@pytest.mark.parametrize("case", PATTERN_PLACES, ids=str)
def test_command_patterns_are_read_wherever_they_stand(case: Case) -> None:
    check(case, codes.LAUNCHER)


def test_an_ask_that_enumerates_flags_is_told_to_name_less() -> None:
    check(Case("", 'agent a { allow shell; ask shell when args.command runs any [⟦"rm -rf"⟧] }',
               "`-rf` may be spelled in another way, and this `ask` does not see that",
               'write `"rm"`, which meets every use'), codes.ENUMERATED_FLAGS)  # fmt: skip


def test_a_witness_makes_up_enums_and_objects(tmp_path: Path) -> None:
    schema = {
        "type": "object", "required": ["speed", "to"],
        "properties": {
            "speed": {"type": "string", "enum": ["fast", "slow"]},
            "to": {"type": "object", "required": ["street"], "properties": {"street": {"type": "string"}}},
        },
    }  # fmt: skip
    (tmp_path / "shop.json").write_text(
        json.dumps({"tools": [{"name": "ship", "inputSchema": schema}]}), encoding="utf-8"
    )
    text = (
        'zcpolicy 1\ncatalog "shop.json" as shop\nbundle all { server shop }\nagent a { connect all; allow shop/ship }'
    )
    gathered, _ = gather([Root(Source("policy", text), tmp_path)])
    bound, _ = bind(gathered)
    witnesses = [finding.witness for finding in run_checks(bound) if finding.code == codes.GRANT_OF_HIGH]
    assert witnesses == ['call shop/ship(speed: "fast", to: {"street": "x"}) => allow']


def test_no_more_calls_are_tried_than_a_check_may() -> None:
    policy = TOOLS + "".join(f"agent a{number} {{ allow shell }}\n" for number in range(MAX_WITNESSES + 3))
    shown = [finding.witness is not None for finding in of_code(policy, codes.GRANT_OF_SHELL)]
    assert (shown.count(True), shown.count(False)) == (MAX_WITNESSES, 3)


NOTE = "tool note(message: string, tags: list<string>, kind: string) risk low\n"
WHOLE = [
    Case("a text without a wildcard", 'agent a { allow note; deny note when args.message like ⟦"password"⟧ }',
         "this holds only where the whole text is `password`", 'for a text that holds it write `like "*password*"`'),
    Case("a pattern without an operator", 'agent a { allow note; deny note when args.message matches ⟦"evil"⟧ }',
         "this holds only where the whole text is `evil`", 'for a text that holds it write `contains "evil"`'),
    Case("an exception to a grant", 'agent a { allow note unless args.message matches ⟦"evil"⟧ }',
         "this holds only where the whole text is `evil`", 'for a text that holds it write `contains "evil"`'),
    Case("a beginning", 'agent a { allow note; ask note when args.message matches ⟦r"^evil"⟧ }',
         "this holds only where the whole text is `evil`", 'for a text that begins so write `like "evil*"`'),
    Case("an end", 'agent a { allow note; deny note when args.message matches ⟦r"evil$"⟧ }',
         "this holds only where the whole text is `evil`", 'for a text that ends so write `like "*evil"`'),
    Case("a beginning with operators", 'agent a { allow note; deny note when args.message matches ⟦r"^rm\\s+-rf"⟧ }',
         "the whole text has to match, not only its beginning", 'for a text that begins so write `matches r"rm\\s+-rf.*"`'),
    Case("an end with operators", 'agent a { allow note; deny note when args.message matches ⟦r"[0-9]{16}$"⟧ }',
         "the whole text has to match, not only its end", 'for a text that ends so write `matches r".*[0-9]{16}"`'),
    Case("of a list", 'agent a { allow note; deny note when some args.tags like ["a*", ⟦"b"⟧] }',
         "this holds only where the whole text is `b`", 'for a text that holds it write `like "*b*"`'),
    Case("in a let", 'let bad = ["evil"]\nagent a { allow note; deny note when args.message like ⟦bad⟧ }',
         "this holds only where the whole text is `evil`", 'for a text that holds it write `like "*evil*"`'),
    Case("anchors at both ends", 'agent a { allow note when args.kind matches ⟦r"^[a-z]+$"⟧ }',
         "`^` and `$` say nothing here: `matches` reads the whole text anyway", "leave them out"),
    Case("an anchor where the other end is free", 'agent a { allow note; deny note when args.kind matches ⟦r"^a.*"⟧ }',
         "`^` says nothing here: `matches` reads the whole text anyway", "leave it out"),
]  # fmt: skip


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_a_pattern_of_the_whole_text_that_looks_like_one_of_a_part_is_a_warning(case: Case) -> None:
    judge(replace(case, policy=NOTE + case.policy), codes.WHOLE_TEXT)


NOT_WHOLE = {
    "a wildcard": 'deny note when args.message like "*evil*"',
    "an escaped wildcard": r'deny note when args.message like "\\*"',
    "operators": 'deny note when args.message matches r".*evil.*"',
    "a list of words": 'deny note when args.kind matches r"prod|live"',
    "an anchor in one branch": 'deny note when args.message matches r"^a.*|b"',
    "a dollar that is text": r'deny note when args.message matches r".*\$"',
    "what grants": 'allow note when args.kind like "a"',
    "what is withheld from all others": 'deny note when not args.kind like "a"',
    "a part": 'deny note when args.message contains "evil"',
    "a name": 'deny note when tool.name like "note"',
}


@pytest.mark.parametrize("rule", NOT_WHOLE.values(), ids=NOT_WHOLE.keys())
def test_a_pattern_that_says_what_it_means_is_left_alone(rule: str) -> None:
    assert of_code(f"{NOTE}agent a {{ allow note with approval; {rule} }}", codes.WHOLE_TEXT) == []


def test_values_of_a_closed_list_are_whole_texts(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"to": {"enum": ["prod", "test"]}}, "required": ["to"]}
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "go", "inputSchema": schema}]), "utf-8")
    text = (
        'zcpolicy 1\ncatalog "tools.json" as s\nbundle b { server s }\nagent a { autonomy full; connect b; allow s/go; '
    )
    found = compile_text(text + 'deny s/go when args.to like "prod" }', folder=tmp_path).diagnostics
    assert codes.WHOLE_TEXT not in [one.code for one in found]

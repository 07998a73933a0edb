"""Command patterns as the checker sees them: what is wrong with one, what it launches, what it enumerates."""

import pytest

from zcpolicy.predicates.refs import Truth
from zcpolicy.predicates.shell import check_pattern, enumerated_flags, implies, launchers
from zcpolicy.predicates.shell_patterns import MAX_PATTERN, MAX_PATTERN_WORDS
from zcpolicy.predicates.shell_scripts import awk_is_quiet, sed_is_quiet


@pytest.mark.parametrize(
    "pattern", ["git log ...", "true", "a 'b c' \"d\"", "./x.sh *", "find . -name '*.py'", "echo ? [ ] { } # ~ !"]
)
def test_usable_in_both(pattern: str) -> None:
    assert check_pattern(pattern, granting=True) is None
    assert check_pattern(pattern, granting=False) is None


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "the command pattern is empty"),
        (" \t", "the command pattern is empty"),
        ("echo 'x", "a quote in the command pattern is not closed"),
        ('echo "x', "a quote in the command pattern is not closed"),
        ("ls; rm", "`;` is shell syntax: a command pattern is one command, in quotes it is text"),
        ("ls | rm", "`|` is shell syntax: a command pattern is one command, in quotes it is text"),
        ("echo $X", "`$` is shell syntax: a command pattern is one command, in quotes it is text"),
        ("ls a\\b", "`\\` is shell syntax: a command pattern is one command, in quotes it is text"),
        ("ls\nrm", "a command pattern holds no line breaks or control characters"),
        ("ls\0", "a command pattern holds no line breaks or control characters"),
        ("x" * (MAX_PATTERN + 1), f"a command pattern has at most {MAX_PATTERN} characters"),
        ("x " * (MAX_PATTERN_WORDS + 1), f"a command pattern has at most {MAX_PATTERN_WORDS} words"),
    ],
)
def test_unusable_in_either(pattern: str, message: str) -> None:
    assert check_pattern(pattern, granting=True) == message
    assert check_pattern(pattern, granting=False) == message


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("...", "the first word of a command pattern that grants is written out, without `*` or `...`"),
        ("git* log", "the first word of a command pattern that grants is written out, without `*` or `...`"),
        ("if ...", "`if` is a keyword of the shell and no command"),
        ("! ls", "`!` is a keyword of the shell and no command"),
        ("export ...", "`export` changes how the shell reads what follows and cannot be granted"),
        ("alias x", "`alias` changes how the shell reads what follows and cannot be granted"),
        ("A=1 ls", "`A=1` is not the name of a command"),
        ("-x ls", "`-x` is not the name of a command"),
        ("%1", "`%1` is not the name of a command"),
        ("''", "`` is not the name of a command"),
    ],
)
def test_unusable_to_grant_alone(pattern: str, message: str) -> None:
    assert check_pattern(pattern, granting=True) == message
    assert check_pattern(pattern, granting=False) is None or pattern == "''"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("env ...", "env"),
        ("sh ...", "sh"),
        ("/bin/bash -c x", "/bin/bash"),
        ("python3 ...", "python3"),
        ("xargs ls", "xargs"),
        ("docker ps", None),
        ("docker exec c ls", "docker"),
        ("docker ...", "docker"),
        ("docker", None),
        ("eval ...", "eval"),
        ("git log ...", None),
        ("ls", None),
        ("*", None),
        ("'", None),
    ],
)
def test_launchers(pattern: str, name: str | None) -> None:
    assert launchers(pattern) == name


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("git push --force", ("--force",)),
        ("rm -r -f ...", ("-r", "-f")),
        ("ls -*", ("-*",)),
        ("ls ...", ()),
        ("'", ()),
    ],
)
def test_enumerated_flags(pattern: str, flags: tuple[str, ...]) -> None:
    assert enumerated_flags(pattern) == flags


@pytest.mark.parametrize(
    ("granted", "wider", "expected"),
    [
        ("git log", "git log", True),
        ("git log", "git log ...", True),
        ("git log -p ...", "git log ...", True),
        ("git  log", "git log", True),
        ("git log ...", "git log", False),
        ("git log *", "git log ...", False),
        ("git log --output=x", "git log ...", False),
        ("git push", "git log ...", False),
        ("'", "'", False),
    ],
)
def test_evident_axioms(granted: str, wider: str, expected: bool) -> None:
    assert implies(granted, wider) is expected


@pytest.mark.parametrize(
    ("program", "starts_nothing", "writes_nothing"),
    [
        ("", True, True),
        ("p", True, True),
        ("1,5p", True, True),
        ("$d;1!G;h", True, True),
        ("s/a/b/", True, True),
        ("s/a/b/gI2p", True, True),
        ("s|/a|/b|g;s,x,y,", True, True),
        ("s/[a-z]*/x/", True, True),
        ("/a/,/b/{s/x/y/;p}", True, True),
        ("/a/,+3d", True, True),
        ("y/abc/def/", True, True),
        (":a;N;$!ba;s/x/y/", True, True),
        ("a text e", True, True),
        ("s/\\/e/x/", True, True),
        ("w f", True, False),
        ("s/a/b/w f", True, False),
        ("r f", True, True),
        ("e", False, False),
        ("1e ls", False, False),
        ("s/a/b/e", False, False),
        ("s/a/b/ge", False, False),
        ("s/a/b/;e", False, False),
        ("s/[/]/x/e", False, False),
        ("s/a\\/b/x/e", False, False),
        ("p\ne ls", False, False),
        ("#n", False, False),
        ("M", False, False),
        ("s/a/b", False, False),
        ("s", False, False),
        ("x" * 5000, False, False),
    ],
)
def test_sed_programs(program: str, starts_nothing: Truth, writes_nothing: Truth) -> None:
    assert sed_is_quiet(program) == (starts_nothing, writes_nothing)


@pytest.mark.parametrize(
    ("program", "starts_nothing", "writes_nothing"),
    [
        ("{print $1}", True, True),
        ("/a/ || /b/ {n++} END {print n}", True, True),
        ('{printf "%s\\n", $1}', True, True),
        ("$1 > 3", True, False),
        ('{print > "f"}', True, False),
        ('BEGIN{system("x")}', False, False),
        ('{print | "x"}', False, False),
        ('{"x" | getline}', False, False),
        ('/"/ {system("x")} /"/', False, False),
        ("@f()", False, False),
        ("BEGIN{sys\\\ntem()}", False, False),
    ],
)
def test_awk_programs(program: str, starts_nothing: Truth, writes_nothing: Truth) -> None:
    assert awk_is_quiet(program) == (starts_nothing, writes_nothing)

"""Bad input to the shell predicates: no exception, time in proportion to the text."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcpolicy.predicates.shell import check_pattern, mentions, runs_any, runs_only
from zcpolicy.predicates.shell_scripts import awk_is_quiet, sed_is_quiet

PIECES = (
    *"abx \n\t;&|<>()[]{}$`'\"\\#*?~=-+!@%^,:./0123\r\0é\u2003\ud800",
    "$(", "${", "((", "<<", "<<-", "<<<", "E\n", "$'", '$"', "&&", "||", ";;", "if ", "then ", "fi", "do ", "done", "case ", " in ",
    "esac", "for ", "while ", "function ", "sh -c ", "eval ", "env ", "xargs ", "sudo ", "alias x=", "trap ", "sed ", "awk ",
    "s/a/b/", "docker run ", "find -exec ", "python ", "cd ", "-C ", "https://", "git log ",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
only = runs_only(("git log ...", "sed ...", "env ls", "a* b", "echo *x* ... -o"))
either = runs_any(("rm -rf ... x", "git push --force", "... b*"))


@given(st.one_of(texts, st.text()))
def test_any_text_has_an_answer(text: str) -> None:
    assert only(text) in {True, False, None}
    assert either(text) in {True, False, None}
    mentions(text)
    sed_is_quiet(text)
    awk_is_quiet(text)


@given(st.one_of(texts, st.text()), texts)
def test_any_pattern_has_an_answer(pattern: str, text: str) -> None:
    for granting in (True, False):
        check_pattern(pattern, granting=granting)
    assert runs_only((pattern,))(text) in {True, False, None}
    assert runs_any((pattern,))(text) in {True, False, None}


UNITS = [
    "a ", "'a' ", "a'b'\"c\"", "a;", "a\n", "a|", "a&&", "(", "((", "$(", "`", "${", "{", "[", "[[ ", "'", '"', "\\", "\\\n", "#", "<<E\n",
    "cat <<E\nE\n", "$X ", "$((1)) ", "a=b ", "a,b:c=", "*", "a*", "-x ", "sudo ", "sudo -x ", "env A=1 ", "xargs ", "timeout ", "eval ",
    "sh -c 'a' ", "sh -c 'a';", "find -exec ", "cd a;", "cd a;b ", "if a;then ", "case a in ", "f(){ ", "alias a=b;", "docker exec ",
    "$'a'", "é", "<(", "{a,", "~/", "https://", "x=(a ", "E\n", "!", "a[", "sed s/a/b/;", "trap a ", ">f ", "2>&1 ", "git -C ",
]  # fmt: skip


@pytest.mark.parametrize("test", [only, either, mentions], ids=["runs only", "runs any", "mentions"])
@pytest.mark.parametrize("unit", UNITS)
def test_time_is_bounded(unit: str, test: Callable[[str], object]) -> None:
    for prefix in ("", "git push ", "cat <<E\n"):
        text = (prefix + unit * 10_000)[:10_000]
        began = time.process_time()
        test(text)
        assert time.process_time() - began < 2


@pytest.mark.parametrize("unit", ["* ", "a*", "... ", "... a ", "-x ", "'a' "])
def test_time_is_bounded_for_any_pattern(unit: str) -> None:
    pattern = ("echo " + unit * 400)[:300]
    text = "echo " + "a -x " * 2000
    began = time.process_time()
    runs_only((pattern,))(text)
    runs_any((pattern,))(text)
    assert time.process_time() - began < 2.5


def test_the_parser_is_imported_when_a_text_needs_it() -> None:
    code = (
        "import sys; from zcpolicy.predicates.shell import runs_only, runs_any\n"
        "assert runs_only(('ls',))('rm x') is False and runs_any(('rm',))('ls; cat f') is False\n"
        "assert 'tree_sitter' not in sys.modules\n"
        "assert runs_only(('ls',))('ls') is True and 'tree_sitter' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})

"""The shell predicates beside real shells: what `runs only` grants starts nothing else, what `runs any` denies runs not.

Texts are generated and mutated, run by bash and dash in a scratch folder whose PATH holds recording programs only,
and what was started is compared with what the predicate promised. Shells that a machine does not have are left out.
"""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcpolicy.predicates.shell import runs_any, runs_only

LISTED = ("la", "lb", "echo", "true", "cat")
UNLISTED = "xa"
BUILTINS = "cd test printf kill type umask wait read alias hash pwd".split()
"""Builtins that no pattern lists: functions of their names record them."""
FILES = ["-x", "E", "a", "b", "xa"]
SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]

grants = runs_only(("la ...", "lb ...", "echo ...", "true", "cat ..."))
withholds = runs_any((f"{UNLISTED} ...",))


class Scratch:
    """A folder with recording programs, a working directory and the log of what was started."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.work, self.log = folder / "bin", folder / "work", folder / "log"
        self.programs.mkdir()
        for name in ("la", "lb", UNLISTED):
            program = self.programs / name
            program.write_text(f'#!/bin/sh\necho "${{0##*/}}" >> {self.log}\n')
            program.chmod(0o755)
        for name in ("sh", "bash", "dash", "cat", "env", "xargs", "find", "nice", "timeout", "nohup"):
            found = shutil.which(name)
            if found:
                (self.programs / name).symlink_to(os.path.realpath(found))
        folder.chmod(0o777)
        self.clean()

    def clean(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        self.work.chmod(0o777)
        for name in FILES:
            (self.work / name).write_text("")

    def started(self, shell: str, text: str) -> set[str]:
        """The names that a shell started for a text."""
        self.log.write_text("")
        self.log.chmod(0o666)
        flags = ["--norc", "-c"] if shell == "bash" else ["-c"]
        process = subprocess.Popen(
            [shutil.which(shell) or shell, *flags, text],
            cwd=self.work,
            env={"PATH": str(self.programs), "HOME": str(self.work)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=bounded,  # noqa: PLW1509 - one thread
            user="nobody" if os.geteuid() == 0 else None,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(3)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return set(self.log.read_text().split())


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    resource.setrlimit(resource.RLIMIT_NPROC, (400, 400))


@pytest.fixture(scope="module")
def scratch() -> Iterator[Scratch]:
    # Not pytest's own folder: that is closed to the user that the shells run as.
    with tempfile.TemporaryDirectory() as folder:
        yield Scratch(Path(folder))


# --- texts ------------------------------------------------------------------------------------------------------------

WORDS = [
    "a", "b", "-x", "la", "xa", "./xa", "'a'", "'xa'", '"a b"', "'a;xa'", "'$(xa)'", "a=b", "x''a", "a*", "é", "'é'", "'\x84'", "1", "2",
]  # fmt: skip
ODD = [
    "\\\n", "\\", "'", '"', "$", "`", "#", " #", "$(xa)", "`xa`", "<(xa)", ">", "<", ">f", "1>&-", "{", "}", "(", ")", "!", "[", "]", "[[",
    "*", "?", "~", "%", "^", "@", "\u00a0", "\u2003", "\r", "\x0c", "{xa,a}", "case", "if", "then", "fi", "do", "time", "function", "coproc",
    "xa()", "<<<", "10", ">|", "&", "|&", ";;", "=", "=~", "&>f ", "\xa0",
]  # fmt: skip
REDIRECTIONS = [" 2>&1", " >&2", " >/dev/null", " 2>/dev/null", " > /dev/null"]
JOINTS = ["; ", " && ", " || ", " | ", "\n", ";", "|", " &&\n", "\n\n"]
BODIES = ["", "a\n", "xa\n", "$(xa)\n", "`xa`\n", " E\n", "E \n", "\tE\n", "'\n", "\\\n", "<<E\n"]

DRESSES = [
    "(_)", "{ _; }", "if _; then la; fi", "while _; do break; done", "for i in a; do _; done", "case a in a) _;; esac", "f() { _; }; f",
    "echo $(_)", 'echo "$(_)"', "echo `_`", "cat <(_)", "! _", "time _", "env A=1 _", "command _", "exec _", "nice _", "X=1 _", "sh -c '_'",
    'eval "_"', "echo a | xargs _", "_ &", "trap '_' EXIT", "echo ${Y:-$(_)}", "[[ a ]] && _", "sh <<Q\n_\nQ\n", "find . -exec _ \\;",
    "echo '_' | sh", "bash -c '_'", "coproc _", "X=$(_)", "echo >f _", ">f _", "true &>f _", "# c\n_", "_ # c",
]  # fmt: skip


@st.composite
def plain(draw: st.DrawFn) -> str:
    words = [draw(st.sampled_from([*LISTED, UNLISTED])), *draw(st.lists(st.sampled_from(WORDS), max_size=3))]
    return " ".join(words) + draw(st.sampled_from(["", "", *REDIRECTIONS]))


@st.composite
def here(draw: st.DrawFn) -> str:
    """A command with a here-document, which ends as it should or nearly so."""
    delimiter = draw(st.sampled_from(["E", "'E'", '"E"', " E", "-E", "\\E"]))
    body = "".join(draw(st.lists(st.sampled_from(BODIES), max_size=3)))
    end = draw(st.sampled_from(["E", "E\n", "E\nxa\n", " E\n", "E \nE\n"]))
    return f"{draw(plain())} <<{delimiter}\n{body}{end}"


@st.composite
def dressed(draw: st.DrawFn) -> str:
    dress = draw(st.one_of(st.just("_"), st.sampled_from(DRESSES)))
    return draw(here()) if dress == "_" and draw(st.booleans()) else dress.replace("_", draw(plain()))


@st.composite
def joined(draw: st.DrawFn, one: st.SearchStrategy[str]) -> str:
    text = draw(one)
    for part in draw(st.lists(one, max_size=2)):
        text += draw(st.sampled_from(JOINTS)) + part
    return text


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Commands joined, and now and then something odd put in or something taken out."""
    text = draw(joined(dressed()))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        at = draw(st.integers(0, len(text)))
        odd = draw(st.one_of(st.just(""), st.sampled_from(ODD + WORDS)))
        text = text[:at] + odd + text[at if odd else at + 1 :]
    return text


# --- the promises -----------------------------------------------------------------------------------------------------

PRELUDE = "".join(f"{name}() {{ echo {name} >> ../log; }}\n" for name in BUILTINS)


def check_granted(scratch: Scratch, text: str) -> None:
    for shell in SHELLS:
        assert scratch.started(shell, PRELUDE + text) <= set(LISTED), (shell, text)
        assert sorted(path.name for path in scratch.work.iterdir()) == FILES, (shell, text)


def check_withheld(scratch: Scratch, text: str) -> None:
    for shell in SHELLS:
        assert UNLISTED not in scratch.started(shell, text), (shell, text)
    scratch.clean()


@settings(max_examples=settings().max_examples * 6)
@given(text=st.one_of(joined(st.one_of(plain(), here())), mutated()))
def test_granted_text_starts_listed_commands_only(scratch: Scratch, text: str) -> None:
    if grants(text):
        check_granted(scratch, text)


@settings(max_examples=settings().max_examples * 6)
@given(text=mutated())
def test_what_is_started_is_never_denied_to_be(scratch: Scratch, text: str) -> None:
    if withholds(text) is False:
        check_withheld(scratch, text)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scratch_folder_still_records(scratch: Scratch, shell: str) -> None:
    assert scratch.started(shell, "xa; echo a | la; cat <<E | xargs lb\nq\nE\n") == {"xa", "la", "lb"}
    assert scratch.started(shell, PRELUDE + "cd /; true") == {"cd"}


@pytest.mark.parametrize(
    "text",
    [
        "la <<E\nxa\nE",
        "la <<'E'\n$(xa)\nE\nlb",
        "echo 'a\nxa' \"b\nxa\"",
        "la 2>&1 | lb >/dev/null && echo x || true; cat a",
        "echo '\x84' 'é\x88'",
        "la a*b? x=y,z:^%@+",
        "cat <<E\n\x84é\nE\n",
        "la &&\n\nlb |\n\nla;\n",
        "echo -x 'a;xa' '$(xa)' '`xa`' '\\'",
        "echo if then do xa",
        "la\t-x\t2>/dev/null\t>&2",
    ],
)
def test_granted_by_hand(scratch: Scratch, text: str) -> None:
    assert grants(text) or "\x84" in text
    check_granted(scratch, text)

"""An approver on a terminal: a person reads the question there and types the answer there, whatever stdin is.

In: a path of a terminal. Out: an `Approver`. What is piped, typed before the question stood there, or not understood, is no
yes. What comes from the call stands behind a bar, escaped, so that it cannot look like the question's own words.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from select import select
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final

from zcpolicy.approvals.asking import over
from zcpolicy.approvals.question import Absent, Approve, Approver, Question, Reject, Scope
from zcpolicy.texts import escaped

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_ANSWER_BYTES: Final = 200
"""Bytes of a line that is typed as an answer; a longer one is a no."""
LOOK_SECONDS: Final = 0.1
"""How often somebody who waits looks whether the answer is still wanted."""

_COLUMNS: Final = 80
_WORDS: Final[dict[str, Scope]] = {"y": "once", "yes": "once", "once": "once", "exact": "exact", "tool": "tool"}
_OFFERS: Final[dict[Scope, str]] = {
    "once": "y or yes = this call", "exact": "exact = this call whenever it comes", "tool": "tool = every call of this tool",
}  # fmt: skip
_one_at_a_time: Final = Lock()


class NoTerminal(Exception):
    """There is none, or it went away."""


class AskedNoMore(Exception):
    """The time of a question is over, or somebody else's no has settled it."""


def terminal_approver(path: str = "/dev/tty", *, by: str = "terminal") -> Approver:
    """An approver for `Approvers.person` or a route. `by`: whom records name.

    A line that is none of the words offered is a no, and so is the end of input. Where there is no terminal, or it goes
    away, nobody is there. Raises AskedNoMore when the question's time is over, which is no yes either.
    """

    def ask(question: Question) -> Approve | Reject | Absent:
        try:
            line = typed(path, question, f"{offers(question)}; anything else = no: ")
        except NoTerminal:
            return Absent("there is no terminal")
        scope = scope_of(line or "")
        return Approve(scope, by=by) if scope in question.scopes else Reject(by=by)

    return ask


def scope_of(line: str) -> Scope | None:
    """How far a yes reaches that was typed; None for what is no yes."""
    return _WORDS.get(line)


def offers(question: Question) -> str:
    """The ways to say yes to a question."""
    return ", ".join(_OFFERS[scope] for scope in question.scopes)


def typed(path: str, question: Question, prompt: str) -> str | None:
    """The line that is typed under a question on a terminal, "" for one that is too long; None at the end of input.

    Raises NoTerminal, AskedNoMore.
    """
    ends = monotonic() + question.due
    with _turn(ends):
        try:
            terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            raise NoTerminal from None
        try:
            line = _asked(terminal, question, prompt, ends) if os.isatty(terminal) else None
            if line is None and not os.isatty(terminal):  # it never was one, or was hung up
                raise NoTerminal
        except (OSError, ValueError, ImportError):
            raise NoTerminal from None
        finally:
            os.close(terminal)
    return line


@contextmanager
def _turn(ends: float) -> Generator[None]:
    """One question at a time stands on the terminal."""
    while not _one_at_a_time.acquire(timeout=LOOK_SECONDS):
        _still_wanted(ends)
    try:
        _still_wanted(ends)
        yield
    finally:
        _one_at_a_time.release()


def _still_wanted(ends: float) -> None:
    if over() or monotonic() >= ends:
        raise AskedNoMore("the question is asked no more")


def _asked(terminal: int, question: Question, prompt: str, ends: float) -> str | None:
    from termios import TCIFLUSH, tcflush

    _write(terminal, "\n" + "".join(f"| {line}\n" for line in _lines(question.text, _width(terminal))))
    tcflush(terminal, TCIFLUSH)  # what was typed before the question stood there answers something else
    _write(terminal, prompt)
    try:
        return _line(terminal, ends)
    except AskedNoMore:
        with suppress(OSError):
            _write(terminal, "\n| asked no more\n")
        raise


def _line(terminal: int, ends: float) -> str | None:
    line = b""
    while b"\n" not in line:
        while not select([terminal], [], [], LOOK_SECONDS)[0]:
            _still_wanted(ends)
        piece = os.read(terminal, MAX_ANSWER_BYTES)
        line += piece
        if not piece:
            return None
        if len(line) > MAX_ANSWER_BYTES:
            return ""
    return line.decode("utf-8", "replace").strip(" \t\r\n")


def _write(terminal: int, text: str) -> None:
    left = text.encode("utf-8", "backslashreplace")
    while left:
        left = left[os.write(terminal, left) :]


def _width(terminal: int) -> int:
    with suppress(OSError):
        return max(20, os.get_terminal_size(terminal).columns or _COLUMNS)  # 0: a terminal that does not know
    return _COLUMNS


def _lines(text: str, width: int) -> Iterator[str]:
    """Lines that the terminal does not wrap: each has its bar. Letters outside ASCII may be two columns wide."""
    for line in text.split("\n"):
        shown = escaped(line)
        room = (width - 3) // (1 if shown.isascii() else 2)
        for start in range(0, max(1, len(shown)), room):
            yield shown[start : start + room]

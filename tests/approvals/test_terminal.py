"""A person on a terminal. The terminals are real: one end is the person's, the other the approver's."""

import asyncio
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from select import select
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from tests.approvals.people import ask, says, session, settled, shell, start, word
from zcpolicy.approvals.outcome import Refusal
from zcpolicy.approvals.question import Absent, Approve, Approvers, Question, Reject
from zcpolicy.approvals.terminal import MAX_ANSWER_BYTES, AskedNoMore, terminal_approver


class Terminal:
    """A terminal, and the hands and eyes of who sits at it."""

    def __init__(self) -> None:
        self.hands, self.device = pty.openpty()
        self.path = os.ttyname(self.device)
        self.seen = ""

    def type(self, text: bytes) -> None:
        os.write(self.hands, text)

    def read_until(self, words: str, seconds: float = 5.0) -> str:
        ends = monotonic() + seconds
        while words not in self.seen and monotonic() < ends:
            if select([self.hands], [], [], 0.05)[0]:
                self.seen += os.read(self.hands, 65_536).decode()
        assert words in self.seen, self.seen
        return self.seen

    def close(self) -> None:
        for end in (self.hands, self.device):
            if end >= 0:
                os.close(end)
        self.hands = self.device = -1


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def question(text: str = "Allow x()?", due: float = 5.0, scopes: tuple[str, ...] = ("once", "exact")) -> Question:
    return Question(
        id="q", key="k", text=text, agent="a", client="c", session="s", tool="x", arguments={}, route="",
        scopes=scopes, remember_for=None, rules=(), because=(), binding="b", tool_binding="t", due=due,  # type: ignore[arg-type]  # three words
    )  # fmt: skip


def answers(terminal: Terminal, typed: bytes, one: Question | None = None) -> object:
    """What the approver makes of a line that is typed when the question stands there."""
    found: list[object] = []

    def asks() -> None:
        try:
            found.append(terminal_approver(terminal.path)(one or question()))
        except AskedNoMore as error:
            found.append(error)

    thread = Thread(target=asks, daemon=True)
    thread.start()
    terminal.read_until("= no: ")
    terminal.type(typed)
    thread.join(10)
    return found[0]


ONCE, EXACT = Approve("once", by="terminal"), Approve("exact", by="terminal")
NO = Reject(by="terminal")
NOBODY = Absent("there is no terminal")


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        (b"y\n", ONCE), (b"yes\n", ONCE), (b"once\n", ONCE), (b" y \n", ONCE), (b"y\r\n", ONCE), (b"exact\n", EXACT),
        (b"tool\n", NO),  # not offered
        (b"n\n", NO), (b"no\n", NO), (b"\n", NO), (b"Y\n", NO), (b"yes please\n", NO), (b"yy\n", NO), (b"\x00y\n", NO),
        (b"\x0by\n", NO), (b"y\x0c\n", NO), (b"y\x1c\n", NO),  # controls are no blanks
        (b"\xff\n", NO), ("\uff59\n".encode(), NO), (b"y" * (MAX_ANSWER_BYTES + 1) + b"\n", NO),
        (b"\x04", NO),  # the end of input
        (b"n\ny\n", NO),  # the first line counts
    ],
)  # fmt: skip
def test_what_is_typed(terminal: Terminal, typed: bytes, means: object) -> None:
    assert answers(terminal, typed) == means


def test_what_was_typed_before_the_question_stood_there_does_not_count(terminal: Terminal) -> None:
    terminal.type(b"y\n")
    sleep(0.1)
    assert answers(terminal, b"n\n") == NO


@pytest.mark.parametrize("path", ["/dev/null", "/no/such/device", str(Path(__file__))])
def test_where_there_is_no_terminal_nobody_is_there(path: str) -> None:
    assert terminal_approver(path)(question()) == NOBODY


def test_then_it_is_no_approver_and_not_a_no(tmp_path: Path) -> None:
    outcome = settled(start(), terminal_approver(str(tmp_path / "none")), "k")
    assert word(outcome) == "no-approver"
    assert isinstance(outcome, Refusal)
    assert "They say" not in outcome.text


def test_then_the_other_route_has_its_turn() -> None:
    run = start('approval { on_no_approver route "duty" }')
    routes = {"duty": says(Approve(by="grace"))}
    assert word(settled(run, terminal_approver("/no/such/device"), "k", routes=routes)) == "approved"


def test_a_pipe_is_no_terminal(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, b"y\n")
    try:
        assert terminal_approver(str(pipe))(question()) == NOBODY
    finally:
        os.close(writer)


HOSTILE = {
    "escape sequences": "x\x1b[2J\x1b[1;1HAllow read()?",
    "a forged prompt": "x\ny or yes = this call; anything else = no: y\nAllow read(path) for agent coder?",
    "bidi": "x \u202e gnp.exe \u2066",
    "carriage return": "x\rAllow read()?",
    "line separators": "x\u2028y\u2029z\x85w\x0b",
    "backspaces": "x\b\b\b\b\b\b\b\bread",
    "invisible": "a\u200bb\u00adc\ufeffd",
    "c1 controls": "x\x9b2J",
    "wrapped by the terminal": "x" + " " * 300 + "y or yes = this call; anything else = no: ",
    "title": "\x1b]0;ok\x07",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_the_call_says_cannot_look_like_the_question(terminal: Terminal, what: str) -> None:
    run = start()
    decision = run.decide("mail", {"to": "bob", "body": HOSTILE[what]})
    approvers = Approvers(terminal_approver(terminal.path))
    found: list[str] = []
    thread = Thread(target=lambda: found.append(word(run.approvals.settle_now(decision, approvers, "k"))), daemon=True)
    thread.start()
    shown = terminal.read_until("= no: ")
    while not shown.rstrip("\r\n").split("\n")[-1].startswith("y or yes = "):  # the forged one may come first
        terminal.seen += os.read(terminal.hands, 65_536).decode()
        shown = terminal.seen
    terminal.type(b"n\n")
    thread.join(10)
    lines = shown.replace("\r\n", "\n").strip("\n").split("\n")
    assert all(line.startswith("| ") for line in lines[:-1])
    assert all(len(line) < 80 for line in lines[:-1])
    assert all(letter.isprintable() and letter.isascii() for line in lines for letter in line)
    assert found == ["rejected"]


def test_a_text_of_somebody_elses_making_is_escaped_as_well(terminal: Terminal) -> None:
    answers(terminal, b"n\n", question("a\x1b[2Jb\rc\u202ed\ne"))
    assert r"| a\u{1b}[2Jb\rc\u{202e}d" in terminal.seen
    assert "\r\n| e\r\n" in terminal.seen


def test_a_question_whose_time_is_over_stops_reading(terminal: Terminal) -> None:
    run = start("approval { timeout 1s }")
    approvers = Approvers(terminal_approver(terminal.path))
    assert word(run.approvals.settle_now(shell(run), approvers, "k1")) == "no-approver"
    terminal.read_until("asked no more")
    terminal.seen = ""
    assert answers(terminal, b"y\n") == ONCE  # and not the reader of the question before


def test_its_own_time_holds_where_nobody_else_keeps_it(terminal: Terminal) -> None:
    with pytest.raises(AskedNoMore):
        terminal_approver(terminal.path)(question(due=0.2))


def test_two_questions_stand_there_one_after_the_other(terminal: Terminal) -> None:
    run = start()
    approver = terminal_approver(terminal.path)

    async def both() -> list[str]:
        asked = [run.decide("mail", {"to": name}) for name in ("bob", "eve")]
        tasks = [asyncio.create_task(ask(run, approver, f"k{one.arguments}", one)) for one in asked]
        for _ in asked:
            await asyncio.to_thread(terminal.read_until, "= no: ")
            first, terminal.seen = terminal.seen, ""
            assert first.count("Allow mail") == 1
            terminal.type(b"y\n" if "bob" in first else b"n\n")
        return [word(await task) for task in tasks]

    assert asyncio.run(both()) == ["approved", "rejected"]


def test_stdin_is_not_the_terminal(terminal: Terminal) -> None:
    """A process with a controlling terminal whose stdin says yes: only the terminal is asked."""
    script = (
        "import os, sys; sys.path[:0] = ['engine', '.']\n"
        "from tests.approvals.test_terminal import question\n"
        "from zcpolicy.approvals.terminal import terminal_approver\n"
        "print(terminal_approver()(question()))\n"
    )
    child, hands = pty.fork()
    if child == 0:  # pragma: no cover - another process
        os.environ["SCRIPT"] = script
        os.execv("/bin/sh", ["sh", "-c", f'echo y | {sys.executable} -c "$SCRIPT"'])
    own = terminal
    own.close()
    own.hands = hands
    own.read_until("= no: ", 20)
    own.type(b"n\n")
    own.read_until("Reject(", 10)
    os.waitpid(child, 0)
    own.device = -1


def test_without_a_terminal_at_all() -> None:
    """A process of a session without a terminal, as a service is."""
    script = (
        "from tests.approvals.test_terminal import question\n"
        "from zcpolicy.approvals.terminal import terminal_approver\n"
        "print(terminal_approver()(question()))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], input="y\n", capture_output=True, text=True, check=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": "engine:."},
    ).stdout  # fmt: skip
    assert "Absent(note='there is no terminal'" in said


def test_hung_up_while_asked(terminal: Terminal) -> None:
    found: list[object] = []
    started = Event()

    def asks() -> None:
        started.set()
        found.append(terminal_approver(terminal.path)(question()))

    thread = Thread(target=asks, daemon=True)
    thread.start()
    started.wait()
    terminal.read_until("= no: ")
    terminal.close()
    thread.join(10)
    assert found == [NOBODY]


def test_the_terminal_is_left_as_it_was(terminal: Terminal) -> None:
    before = termios.tcgetattr(terminal.device)
    answers(terminal, b"y\n")
    assert termios.tcgetattr(terminal.device) == before


def test_through_the_manager(terminal: Terminal) -> None:
    run = start(id=session("s9").id)
    found: list[str] = []
    thread = Thread(
        target=lambda: found.append(word(settled(run, terminal_approver(terminal.path), "k1"))), daemon=True
    )
    thread.start()
    terminal.read_until("exact = this call whenever it comes; anything else = no: ")
    terminal.type(b"exact\n")
    thread.join(10)
    assert found == ["approved"]
    assert word(settled(run, None, "k2")) == "approved"  # remembered

"""What a text starts beside the commands that it names: launchers, `eval`, `sh -c`, `find -exec`, aliases, traps.

In: shell text. Out: `Seen`: every command that can be read in it, at any depth of such dress, and whether something
may be started that cannot be read. Inline code of other languages is never read.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .shell_launch import INTERPRETERS, SHELLS, command_name, starts
from .shell_lexer import MAX_TEXT, SHORT, Command, Word, lex
from .shell_reader import UNREADABLE, Reading, read
from .shell_scripts import awk_is_quiet, awk_programs, sed_is_quiet, sed_programs
from .shell_words import HOLE

MAX_SEEN: Final = 4096
"""Commands, with those behind launchers, of one text; with more the text is opaque."""
MAX_TEXTS: Final = 64
"""Texts within a text (`sh -c`, `eval`, …) that are read; with more the text is opaque."""
MAX_STARTS: Final = 16
"""Places in one command where a launched command may begin; with more the text is opaque."""
MAX_WORK: Final = 50_000
"""Words that are looked at behind launchers in one text; with more the text is opaque."""


class Seen(NamedTuple):
    """The commands of a text. `opaque`: more may be started than what is listed. `readable`: every byte was read."""

    commands: tuple[Command, ...]
    opaque: bool
    readable: bool


EVALUATORS: Final = frozenset(
    "test [ [[ let declare typeset local export readonly unset read printf wait mapfile readarray getopts eval set shift".split()
)
"""Builtins that may run text which stands in quotes among their words, in a subscript or as a name."""
_STRINGS: Final = {"su": "c", "runuser": "c", "script": "c", "sg": "c", "flock": "c", "npx": "c", "npm": "c", "pnpm": "c",
                   "xterm": "e", "env": "S"}  # fmt: skip
"""Programs that take a whole command line in one word, and the letter of that option."""
_OPAQUE: Final = frozenset("tmux screen at batch crontab socat fc parallel entr expect m4 gnome-terminal".split())
"""Programs whose words may be code in ways that are not read here."""
_OPAQUE_OPTIONS: Final = {"hash": "p", "enable": "f", "bind": "x", "mapfile": "C", "readarray": "C", "complete": "CFW",
                          "compgen": "CFW"}  # fmt: skip
_JOINT: Final = re.compile(r"[;&|<\n]")
_STARTING_OPTION: Final = re.compile(r"(?i:command)|\A--entrypoint")
"""Options of ssh and docker that name a command."""
_SUBSTITUTES: Final = re.compile(r"\$\(|`|\$\{|\$\[")
_CODE_VARIABLES: Final = re.compile(
    r".*(?:PAGER|EDITOR|VISUAL|BROWSER|COMMAND|ASKPASS|_SSH|_RSH|LESSOPEN|LESSCLOSE|EXTERNAL_DIFF|PS[0-4]|SHELLOPTS|BASH_ENV|"
    r"LD_PRELOAD|LD_AUDIT|BASH_FUNC.*|MAKEFLAGS|PERL5OPT|RUBYOPT|NODE_OPTIONS|PYTHONSTARTUP|PROMPT)|ENV"
)


def _plain_reading(text: str) -> Reading:
    """What a text says on its face: the closed subset without a parser, everything else through it."""
    script = lex(text)
    return read(text) if script is None else Reading(script.commands, True)


def see(text: str) -> Seen:
    """Every command of a text; recent texts are remembered."""
    return (_see_short if len(text) <= SHORT else _see_long)(text)


@lru_cache(maxsize=128)
def _see_short(text: str) -> Seen:
    return _Look().run(text)


@lru_cache(maxsize=2)
def _see_long(text: str) -> Seen:
    return _Look().run(text)


class _Look:
    """One look through one text, iterative: what is found is put on a list of what is still to be looked at."""

    __slots__ = ("aliases", "found", "letters", "opaque", "readable", "texts", "todo", "work")

    def __init__(self) -> None:
        self.found: list[Command] = []
        self.todo: list[Command] = []
        self.aliases: dict[str, tuple[Word, ...]] = {}
        self.opaque = False
        self.readable = True
        self.texts = 0
        self.letters = 0
        self.work = 0

    def run(self, text: str) -> Seen:
        self._text(text)
        while self.todo:
            command = self.todo.pop()
            self.work += len(command.words)
            if len(self.found) >= MAX_SEEN or self.work > MAX_WORK:
                self.opaque = True
                break
            self.found.append(command)
            if any(_SUBSTITUTES.search(word.text or "") for _, word in command.assigns):
                self.opaque = True
            for name, word in command.assigns:
                self._assigned(name, word)
            if command.words:
                self._command(command)
        if self.aliases:
            self._use_aliases()
        return Seen(tuple(self.found), self.opaque or not self.readable, self.readable)

    def _text(self, text: str | None) -> None:
        """Read a text within the text; one that is unknown may be anything."""
        self.texts += 1
        self.letters += len(text or "")
        if text is None or self.texts > MAX_TEXTS or self.letters > 2 * MAX_TEXT:
            self.opaque = True
            return
        if not text.strip(" \t\n"):
            return
        reading = _plain_reading(text)
        if reading is UNREADABLE or not reading.readable:
            self.readable = False
        if reading.evaluates and any(
            isinstance(part, str) and _SUBSTITUTES.search(part)
            for command in reading.commands
            for word in (*command.words, *command.targets)
            for part in word.parts
        ):
            self.opaque = True
        self.todo.extend(reversed(reading.commands))

    def _assigned(self, name: str, word: Word) -> None:
        if _CODE_VARIABLES.fullmatch(name):
            self._text(word.text)

    def _launch(self, words: Sequence[Word], stdin: str | None = None) -> None:
        if words:
            self.todo.append(Command(tuple(words), stdin))

    def _command(self, command: Command) -> None:
        words = command.words
        name = command_name(words[0])
        if not name:
            return
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(self, command)
        elif name in SHELLS:
            self._shell(command)
        elif _family(name) in INTERPRETERS:
            self._interpreter(command, INTERPRETERS[_family(name)])
        if name in _OPAQUE:
            self.opaque = True
        if name in EVALUATORS and any(map(_SUBSTITUTES.search, _texts(words[1:]))):
            self.opaque = True
        letters = _OPAQUE_OPTIONS.get(name)
        if letters and any(word.head.startswith("-") and set(word.head) & set(letters) for word in words[1:]):
            self.opaque = True
        if name in _STRINGS and any(_takes_string(name, word) for word in words[1:]):
            self.opaque = True
        self._started(command, name)

    def _started(self, command: Command, name: str) -> None:
        start = starts(command.words)
        if start is None:
            return
        self.opaque = self.opaque or start.unreadable or len(start.positions) > MAX_STARTS
        for position in start.positions[:MAX_STARTS]:
            words = command.words[position:]
            if name == "ssh" or not _is_name(words[0]):
                self._joined(words)
            self._launch(self._filled(command.words, words) if name == "xargs" else words, command.stdin)
        if not start.positions and _reads_shell(name, command.words):
            self._text(command.stdin)
        if name in {"ssh", "docker", "podman"} and any(map(_STARTING_OPTION.search, _texts(command.words))):
            self.opaque = True

    def _filled(self, words: Sequence[Word], launched: Sequence[Word]) -> tuple[Word, ...]:
        """What xargs starts: with words of its input behind, or in the place of a mark."""
        marks = {"{}"}
        for word, following in zip(words[1:], (*words[2:], HOLE), strict=False):
            if word.head.startswith(("-I", "-J", "--replace")):
                mark = following.text if word.text in {"-I", "-J"} else (word.text or "")[2:].rpartition("=")[2]
                marks |= {mark or "{}"}
                self.opaque = self.opaque or mark is None or word.text is None
        return (
            *(HOLE if any(mark in text for text in _texts([word]) for mark in marks) else word for word in launched),
            HOLE,
        )

    def _joined(self, words: Sequence[Word]) -> None:
        """Words that a program joins by blanks into a text for a shell."""
        texts = [word.text for word in words]
        self._text(" ".join(text for text in texts if text is not None) if None not in texts else None)

    def eval_words(self, command: Command) -> None:
        words = command.words[1:]
        if words and words[0].text == "--":
            words = words[1:]
        if words:
            self._joined(words)

    def trap(self, command: Command) -> None:
        operands = [word for word in command.words[1:] if word.text not in {"--", "-p", "-l", "-P"}]
        if len(operands) > 1 and operands[0].text not in {"-", ""}:
            self._text(operands[0].text)
        elif operands and operands[0].text is None:
            self.opaque = True

    def alias(self, command: Command) -> None:
        for word in command.words[1:]:
            if word.text is None:
                self.opaque = True
                continue
            name, defines, value = word.text.partition("=")
            if not defines:
                continue
            script = lex(value)
            if script is None or _JOINT.search(value) or value != value.strip() or name in self.aliases:
                self.opaque = True  # the rest of a line joins in ways that are not followed here
            else:
                self.aliases[name] = script.commands[0].words
                self._launch(script.commands[0].words)

    def _use_aliases(self) -> None:
        """Commands that begin with an alias; an alias of an alias is not followed."""
        names = {name.rpartition("/")[2].casefold() for name in self.aliases}
        if any(command_name(Word((words[0].text,))) in names for words in self.aliases.values()):
            self.opaque = True
        used = [command for command in self.found if command.words and command.words[0].text in self.aliases]
        for command in used:
            self._launch((*self.aliases[command.words[0].text or ""], *command.words[1:]), command.stdin)
        while self.todo and len(self.found) < MAX_SEEN:
            command = self.todo.pop()
            self.found.append(command)
            if command.words:
                self._command(command)
        self.opaque = self.opaque or bool(self.todo)

    def source(self, command: Command) -> None:
        operands = [word for word in command.words[1:] if word.text != "--"]
        if operands:
            self._file(operands, command.stdin)

    def _file(self, operands: Sequence[Word], stdin: str | None) -> None:
        """A script file is a program of its name; a device or an unknown file may hold anything."""
        text = operands[0].text
        if text is None:
            self.opaque = True
        elif text in {"-", "/dev/stdin"} or text.startswith(("/dev/", "/proc/")):
            self._text(stdin)
        else:
            self._launch(operands)

    def _shell(self, command: Command) -> None:
        words, index = command.words, 1
        code, reads = False, False
        while index < len(words):
            text = words[index].text
            if text is None:
                self.opaque = True
                return
            if text in {"-", "--"}:
                index += 1
                break
            if text[:1] not in {"-", "+"}:
                break
            if text.startswith("--"):
                index += 1 + (text in {"--rcfile", "--init-file"})
                continue
            code = code or "c" in text
            reads = reads or "s" in text
            index += 1 + text.count("o") + text.count("O")
        operands = words[index:]
        if code:
            self._text(operands[0].text if operands else "")
        elif operands and not reads:
            self._file(operands, command.stdin)
        else:
            self._text(command.stdin)

    def _interpreter(self, command: Command, table: str) -> None:
        words = command.words
        flags = table.split()
        operands = [
            word
            for word, before in zip(words[1:], words, strict=False)
            if not word.head.startswith("-") and before.text not in {"-W", "-X", "-I", "-r", "-l", "-M", "-C", "-d"}
        ]
        if command.stdin is not None or not operands or any(word.text in flags for word in operands):
            self.opaque = self.opaque or not _asks_version(words)
        if any(_is_code(word, flags) for word in words[1:]):
            self.opaque = True
        elif operands:
            self._launch(operands)

    def su(self, command: Command) -> None:
        """A shell that reads its input; `-c` is met elsewhere."""
        self._text(command.stdin)

    def find(self, command: Command) -> None:
        words = command.words
        end = 0
        for index, word in enumerate(words):
            if index < end:
                continue
            if word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
                end = next((place for place in range(index, len(words)) if words[place].text in {";", "+"}), len(words))
                self._launch([HOLE if "{}" in (inner.text or "") else inner for inner in words[index + 1 : end]])
            elif word.text is None and not word.head and index:
                self.opaque = self.opaque or word.splits

    def fd(self, command: Command) -> None:
        for index, word in enumerate(command.words):
            if word.head.startswith(("--exec", "-x", "-X")):
                self._launch(command.words[index + 1 :])
                self.opaque = self.opaque or word.text not in {"--exec", "--exec-batch", "-x", "-X"}

    def program(self, command: Command) -> None:
        """Programs of sed and awk: opaque unless every program among the words surely starts nothing."""
        read_program = sed_is_quiet if "sed" in command_name(command.words[0]) else awk_is_quiet
        programs = sed_programs(command.words) if read_program is sed_is_quiet else awk_programs(command.words)
        if not all(text is not None and read_program(text).starts for text in programs):
            self.opaque = True


def _texts(words: Sequence[Word]) -> Iterator[str]:
    return (part for word in words for part in word.parts if isinstance(part, str))


def _reads_shell(name: str, words: Sequence[Word]) -> bool:
    """Whether a launcher without a command starts a shell that reads its input."""
    if name in {"sudo", "doas"}:
        return any(word.head.startswith("-") and set(word.head) & {"s", "i"} for word in words[1:])
    return name in {"ssh", "chroot", "unshare", "nsenter"} and not any(word.text == "-V" for word in words)


def _family(name: str) -> str:
    return name if name in INTERPRETERS else name.rstrip("0123456789.-")


def _is_code(word: Word, flags: Sequence[str]) -> bool:
    """Whether a word may be an option whose operand is code."""
    head = word.head
    if word.text is None and not head:
        return True
    if head.startswith("--"):
        return any(flag == head.partition("=")[0] for flag in flags)
    return head.startswith("-") and any((len(flag) == 2 and flag[1] in head) or flag == head for flag in flags)


def _asks_version(words: Sequence[Word]) -> bool:
    return len(words) == 2 and words[1].text in {"--version", "-V", "-v", "--help", "-h"}


def _takes_string(name: str, word: Word) -> bool:
    """Whether an option hands a program a whole command line in one word."""
    head = word.head
    if head.startswith("--"):
        return head.startswith(("--command", "--call", "--split-string", "--session-command"))
    return (head.startswith("-") and _STRINGS[name] in head) or (word.text is None and not head)


_NAME: Final = re.compile(r"[A-Za-z0-9_./+-]+")


def _is_name(word: Word) -> bool:
    return word.text is not None and _NAME.fullmatch(word.text) is not None


_HANDLERS: Final[dict[str, Callable[[_Look, Command], None]]] = {
    "eval": _Look.eval_words,
    "trap": _Look.trap,
    "alias": _Look.alias,
    "source": _Look.source,
    ".": _Look.source,
    "su": _Look.su,
    "find": _Look.find,
    "gfind": _Look.find,
    "fd": _Look.fd,
    "fdfind": _Look.fd,
    **dict.fromkeys(("sed", "gsed", "awk", "gawk", "mawk", "nawk"), _Look.program),
}

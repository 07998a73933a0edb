"""The fenced blocks of the project's Markdown, and how each kind is run.

In: a Markdown file. Out: its `Block`s in order; `run_story` executes them in a folder as a reader would.

- `zcpolicy` is policy text; with `title="NAME"` it is the file NAME of the story.
- `console` holds `$ command` lines, each followed by what it prints; a line of `…` stands for any lines, and `…` in a
  line for any text. `# exit N` after a command, on a line of its own, gives its exit status (0 where nothing is said).
- `python` is run; a `text` block right after it is what it prints.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r'^(?P<ticks>`{3,})(?P<lang>[\w-]*)(?: title="(?P<title>[^"]+)")?\s*$')
SECONDS = 120


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `line` is that of its first line of text, from 1."""

    file: Path
    line: int
    lang: str
    title: str | None
    text: str

    @property
    def where(self) -> str:
        """The block's place, for messages and test names."""
        return f"{self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file.name}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """One `$ command` of a console block, with what it has to print and its exit status."""

    text: str
    output: str
    status: int
    where: str


def blocks(file: Path) -> Iterator[Block]:
    """The fenced blocks of a file, in order."""
    lines = file.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        at += 1
        if fence is None:
            continue
        start = at
        while not lines[at].startswith(fence["ticks"]):
            at += 1
        yield Block(file, start + 1, fence["lang"], fence["title"], "".join(f"{line}\n" for line in lines[start:at]))
        at += 1


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    text: str | None = None
    output: list[str] = []
    status = 0
    for line in [*block.text.splitlines(), "$ "]:
        if line.startswith("$ "):
            if text is not None:
                yield Command(text, "\n".join(output).rstrip("\n"), status, block.where)
            text, output, status = line[2:], [], 0
        elif text is not None and text.endswith("\\"):
            text = f"{text[:-1]}{line.strip()}"
        elif said := re.fullmatch(r"# exit (\d+)", line):
            status = int(said[1])
        else:
            output.append(line)


def matches(shown: str, printed: str) -> bool:
    """Whether what was printed is what is shown, `…` standing for any text, alone on a line for any lines."""
    lines = (line.rstrip() for line in shown.splitlines())
    parts = (
        r"(?:.*\n)*?" if line.strip() == "…" else r"[^\n]*".join(map(re.escape, line.split("…"))) + "\n"
        for line in lines
    )
    text = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch("".join(parts), text) is not None


def environment(bin_folder: Path) -> dict[str, str]:
    """The environment of a reader: the commands of `bin_folder` first, no colour, nothing of Python's own settings."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COVERAGE", "COV_"))}
    return inherited | {
        "PATH": f"{bin_folder}{os.pathsep}{inherited.get('PATH', '')}",
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }


def run_command(command: Command, folder: Path, bin_folder: Path) -> None:
    """Runs one command; its exit status and what it prints are as shown."""
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        env=environment(bin_folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    told = f"{command.where}: $ {command.text}\n--- shown\n{command.output}\n--- printed, exit {done.returncode}\n{done.stdout}"
    assert done.returncode == command.status, told
    assert matches(command.output, done.stdout), told


def run_story(file: Path, folder: Path, bin_folder: Path = Path(sys.executable).parent, skip: str = "$^") -> int:
    """Does what a Markdown file tells, block by block, in `folder`; says how many blocks and commands it ran.

    Commands that match `skip` are left to another test.
    """
    ran = 0
    printed: str | None = None
    for block in blocks(file):
        if block.title is not None:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.lang == "console":
            for command in commands(block):
                if not re.match(skip, command.text):
                    run_command(command, folder, bin_folder)
                    ran += 1
        elif block.lang == "python":
            printed = run_python(block, folder, bin_folder)
            ran += 1
            continue
        elif block.lang == "text" and printed is not None:
            assert matches(block.text, printed), f"{block.where}: shown\n{block.text}\nprinted\n{printed}"
        printed = None
    return ran


def run_python(block: Block, folder: Path, bin_folder: Path) -> str:
    """Runs a Python block in a fresh interpreter; what it printed."""
    done = subprocess.run(
        [bin_folder / "python", "-c", block.text],
        cwd=folder,
        env=environment(bin_folder),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{block.where}:\n{done.stderr}"
    return done.stdout

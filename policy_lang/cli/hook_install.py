"""`zcpolicy hook install HOST` and `uninstall HOST`: the hook in its host's settings, shown as a diff before it is written.

In: words; the settings as they are. Out: the settings with our hook in them, or without it, replaced in one step; everything
else in them stays as it is. The command that stands there ends with status 2 however it ends, also where Python cannot start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import unified_diff
from json import dumps, loads
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from policy_lang.cli.errors import CommandError
from policy_lang.cli.words import Words, help_text, nearest, read_words
from policy_lang.fixes import replace_bytes
from zcpolicy.exact import is_list, is_object
from zcpolicy.hosts.hook.deciding import HOSTS

if TYPE_CHECKING:
    from policy_lang.cli.words import OptionTable

OPTIONS: Final[OptionTable] = {
    "--policy": ("one", "FILE", "The policy, or a compiled one."),
    "--agent": ("one", "A", "The agent of the policy that the host's agent is."),
    "--layer": ("many", "F", "A policy above this one; repeat it, highest first."),
    "--state": ("one", "DIR", "Where sessions and what was spent are kept. [~/.local/state/zcpolicy]"),
    "--attended": ("flag", "", "A person sits at the host (Gemini CLI): calls that ask are put to them."),
    "--settings": (
        "one",
        "FILE",
        "The host's settings, where they lie elsewhere than in this folder, or in your home.",
    ),
    "--yes": ("flag", "", "Write without a question, after the diff."),
    "--help": ("flag", "", "Show this message."),
}
USAGE: Final = "zcpolicy hook install HOST --policy FILE --agent A [options] | zcpolicy hook uninstall HOST [options]"
ABOUT: Final = "Put the hook into a host's settings, or take it out of them."
EXAMPLE: Final = "zcpolicy hook install claude-code --policy team.zcpolicy --agent coder"

SECONDS: Final = 30
"""What a host is told to wait. The hook itself gives up earlier, with a deny: `hook.MAX_SECONDS`."""

MARK: Final = "zcpolicy: the hook could not run"
"""By what our own entry is known again."""

MAX_SETTINGS_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a host's settings."""


class Place(NamedTuple):
    """Where a host's hooks stand. `file`: below the working folder, or below the home folder with `~/`. `events`: under which.
    `version`: what the file says of itself. `note`: what the operator has to do besides.
    """

    file: str
    events: tuple[str, ...]
    version: int | None = None
    note: str = ""


PLACES: Final[dict[str, Place]] = {
    "claude-code": Place(".claude/settings.json", ("PreToolUse",)),
    "codex": Place(
        "~/.codex/hooks.json",
        ("PreToolUse",),
        note="Codex runs no hook that you did not trust: start it once and say yes, or automation runs without",
    ),
    "gemini": Place(".gemini/settings.json", ("BeforeTool",)),
    "copilot": Place(
        ".github/hooks/zcpolicy.json",
        ("preToolUse",),
        1,
        note="`copilot -p` loads it with `--trust-folder` only, and says nothing where it does not",
    ),
    "cursor": Place(
        ".cursor/hooks.json",
        ("preToolUse", "beforeShellExecution", "beforeMCPExecution"),
        1,
        note="written after Cursor's documents; it was not run",
    ),
    "vscode": Place(
        ".github/hooks/zcpolicy.json", ("PreToolUse",), note="written after VS Code's documents; it was not run"
    ),
}


def run(words: Sequence[str]) -> int:
    """Install, or uninstall. Status 1: the diff was shown and nothing written.

    Raises:
        CommandError: wrong usage, settings that cannot be read or written.
    """
    verb, read = words[0], read_words(words[1:], OPTIONS)
    if read.has("--help"):
        print(help_text(USAGE, ABOUT, OPTIONS, EXAMPLE), end="")
        return 0
    host = _host(read)
    place = PLACES[host]
    target = _target(read, place)
    before = _text(target)
    settings = _read(before, target)
    changed = without(settings, place)
    if verb == "install":
        changed = with_hook(changed, host, _command(host, read, target))
    after = dumps(changed, indent=2, ensure_ascii=False) + "\n" if changed else ""
    if changed == settings:
        print(f"{target}: nothing to change")
        return 0
    print("".join(_diff(before, after, target)), end="")
    if not (read.has("--yes") or _agreed(target)):
        return 1
    _write(target, after)
    if verb == "install" and place.note:
        print(f"note: {place.note}", file=sys.stderr)
    return 0


def with_hook(settings: dict[str, Any], host: str, command: str) -> dict[str, Any]:
    """The settings with our hook under each of its events, after what stands there."""
    place = PLACES[host]
    hooks = dict(settings.get("hooks", {}))
    for event in place.events:
        hooks[event] = [*hooks.get(event, []), entry(host, command)]
    version = {} if place.version is None else {"version": settings.get("version", place.version)}
    return {**version, **settings, "hooks": hooks}


def without(settings: dict[str, Any], place: Place) -> dict[str, Any]:
    """The settings without what we put there; what is empty then goes as well."""
    hooks = {
        event: left
        for event, entries in settings.get("hooks", {}).items()
        if (left := [one for one in entries if not (event in place.events and MARK in dumps(one))]) or not entries
    }
    rest = {key: value for key, value in settings.items() if key != "hooks"}
    if hooks:
        return {**settings, "hooks": hooks}
    return {} if rest.keys() <= {"version"} else rest


def entry(host: str, command: str) -> dict[str, Any]:
    """One hook, as its host writes it, with all that it has to make a failure a deny."""
    if host == "claude-code":
        ours = {"type": "command", "command": command, "timeout": SECONDS, "onFailure": "block"}
        return {"matcher": "*", "hooks": [ours]}
    if host == "codex":
        return {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": SECONDS}]}
    if host == "gemini":
        ours = {"type": "command", "name": "zcpolicy", "command": command, "timeout": SECONDS * 1000}
        return {"matcher": "*", "hooks": [ours]}
    if host == "copilot":
        return {"type": "command", "bash": command, "timeoutSec": SECONDS}
    if host == "cursor":
        return {"command": command, "timeout": SECONDS, "failClosed": True}
    return {"type": "command", "command": command, "timeout": SECONDS}


def _command(host: str, read: Words, target: Path) -> str:
    """What the host's shell runs. Whatever ends it, the status is 2 and stderr is not empty: only then every host blocks."""
    policy, agent = read.one("--policy"), read.one("--agent")
    if policy is None or agent is None:
        raise CommandError(f"usage: {USAGE}; see zcpolicy hook install --help")
    files = [Path(one).absolute() for one in (*read.many("--layer"), policy)]
    gone = next((one for one in files if not one.is_file()), None)
    if gone is not None:
        raise CommandError(f"`{gone}` does not exist")
    state = Path(read.one("--state") or "~/.local/state/zcpolicy").expanduser().absolute()
    words = [sys.executable, "-I", "-m", "policy_lang.cli.main", "hook", host, "--policy", str(files[-1])]
    words += ["--agent", agent, "--state", str(state), "--protect", str(target)]
    words += [word for layer in files[:-1] for word in ("--layer", str(layer))]
    words += ["--attended"] * read.has("--attended")
    refuses = f"echo '{MARK}' >&2; exit 2"
    return f"{join(words)} || /bin/sh -c {quote(refuses)}"  # which shells that are no POSIX ones read alike


def _host(read: Words) -> str:
    if len(read.arguments) != 1:
        raise CommandError(f"usage: {USAGE}; see zcpolicy hook install --help")
    host = read.arguments[0]
    if host not in HOSTS:
        near = nearest(host, HOSTS)
        raise CommandError(f"there is no host `{host}`; " + (f"did you mean `{near}`?" if near else ", ".join(HOSTS)))
    return host


def _target(read: Words, place: Place) -> Path:
    return Path(read.one("--settings") or place.file).expanduser().absolute()


def _text(target: Path) -> str:
    if not target.exists():
        return ""
    try:
        with target.open("rb") as stream:
            data = stream.read(MAX_SETTINGS_BYTES + 1)
        if len(data) > MAX_SETTINGS_BYTES:
            raise CommandError(f"`{target}` is larger than {MAX_SETTINGS_BYTES} bytes")
        return data.decode()
    except OSError as error:
        raise CommandError(f"`{target}` cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CommandError(f"`{target}` is not UTF-8") from None


def _read(text: str, target: Path) -> dict[str, Any]:
    """Settings of another shape than the host's are left alone: what they do is not known."""
    try:
        found: Any = loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise CommandError(f"`{target}` is not plain JSON; add the hook by hand, as its page shows") from None
    if (
        not is_object(found)
        or not is_object(found.get("hooks", {}))
        or not all(map(is_list, found.get("hooks", {}).values()))
    ):
        raise CommandError(f"`{target}` holds hooks in a shape that is not its host's")
    return dict(found)


def _diff(before: str, after: str, target: Path) -> list[str]:
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    lines = unified_diff(old, new, str(target) if before else "/dev/null", str(target) if after else "/dev/null")
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def _agreed(target: Path) -> bool:
    """Whether whoever sits at the terminal says yes; where nobody does, `--yes` has to say it."""
    if not sys.stdin.isatty():
        print("nothing is written: say `--yes`, once the diff is what you want", file=sys.stderr)
        return False
    print(f"write {target}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _write(target: Path, text: str) -> None:
    try:
        if not text:
            target.unlink()
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(Path(os.path.realpath(target)), text.encode())
    except OSError as error:
        raise CommandError(f"`{target}` cannot be written: {error.strerror or error}") from None

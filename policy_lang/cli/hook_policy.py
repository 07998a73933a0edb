"""The policy of a hook, compiled on first use and then loaded: a process per call cannot compile each time.

In: a policy and its layers, a folder that nobody else may write to. Out: the program, and every file that it was made of. A program
is kept under the digests of all files that were read for it, and each of them is read again before it is used: what
was edited is compiled anew. Who compiles at the same time writes the same bytes, each aside and then in one step.
"""

from __future__ import annotations

import os

from zcpolicy.hosts.hook.event import NoEvent
from zcpolicy.hosts.hook.kept import own_folder, replace
from zcpolicy.program import CompiledError, load_compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any, Final

    from zcpolicy.program import Program

MAX_KEPT_PROGRAMS: Final = 64
"""Compiled policies that a hook keeps; then the oldest go."""

MAX_READ_AGAIN: Final = 64 * 1024 * 1024
"""Bytes of one file of a policy that are compared with what was compiled."""


def program_of(policy: str, layers: Sequence[str], folder: str) -> tuple[Program, tuple[str, ...]]:
    """The program and the absolute paths of its files. Raises NoEvent: it is missing, broken, or cannot be kept."""
    paths = tuple(os.path.abspath(one) for one in (*layers, policy))
    if policy.endswith(".zcpc"):
        if layers:
            raise NoEvent("`--layer` is for policies; a compiled one holds its layers")
        return _loaded(paths[0]), paths
    own_folder(folder)
    kept = os.path.join(folder, "compiled")
    own_folder(kept)
    name = os.path.join(kept, f"{_digest(_stamp(), *(one.encode('utf-8', 'surrogateescape') for one in paths))}.json")
    found = _kept(name, kept)
    return found if found is not None else _made(paths, name, kept)


def _kept(name: str, folder: str) -> tuple[Program, tuple[str, ...]] | None:
    """What is kept of it, if no file is another one now."""
    from json import loads

    try:
        with open(name, "rb") as stream:
            listed: Any = loads(stream.read(MAX_READ_AGAIN))
        files: list[tuple[str, str]] = [(str(path), str(digest)) for path, digest in listed["files"]]
        if any(_digest_of(path) != digest for path, digest in files):
            return None
        program = load_compiled(os.path.join(folder, f"{listed['program']}.zcpc"))
    except (OSError, ValueError, LookupError, TypeError, CompiledError):
        return None
    if program.digest != listed["program"]:
        return None
    return program, tuple(path for path, _ in files)


def _made(paths: tuple[str, ...], name: str, folder: str) -> tuple[Program, tuple[str, ...]]:
    from json import dumps

    from policy_lang.compile import compile_policy
    from policy_lang.files import read_bytes
    from policy_lang.render.plain import plain

    read: dict[str, str] = {}

    def reading(path: Path, limit: int) -> bytes | str:
        data = read_bytes(path, limit)
        if isinstance(data, bytes):
            read[os.path.abspath(path)] = _digest(data)
        return data

    made = compile_policy(paths[-1], layers=paths[:-1], bytes_of=reading)
    if made.program is None:
        errors = [one for one in made.diagnostics if one.severity == "error"]
        first = plain(errors[:1]).strip().splitlines()[0]
        raise NoEvent(f"the policy has errors, `zcpolicy check` shows them: {first}")
    replace(os.path.join(folder, f"{made.program.digest}.zcpc"), made.program.dump())
    replace(name, dumps({"files": sorted(read.items()), "program": made.program.digest}).encode())
    _forget_oldest(folder)
    return made.program, tuple(sorted(read))


def _loaded(path: str) -> Program:
    try:
        return load_compiled(path)
    except OSError as error:
        raise NoEvent(f"`{path}` cannot be read: {error.strerror or error}") from None
    except CompiledError as error:
        raise NoEvent(f"`{path}`: {error}") from None


def _forget_oldest(folder: str) -> None:
    """Both kinds of files: a program whose list is gone, or a list without its program, is compiled again."""
    found = [os.path.join(folder, name) for name in os.listdir(folder)]
    if len(found) <= 2 * MAX_KEPT_PROGRAMS:
        return
    times: dict[str, float] = {}
    for path in found:
        try:
            times[path] = os.stat(path).st_mtime
        except FileNotFoundError:  # another process forgets, too
            continue
    for path in sorted(times, key=lambda one: times[one])[: len(times) - 2 * MAX_KEPT_PROGRAMS]:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue


def _stamp() -> bytes:
    """Of this compiler: another one is another file."""
    import policy_lang

    stat = os.stat(os.path.join(os.path.dirname(policy_lang.__file__), "compile.py"))
    return f"{stat.st_size} {stat.st_mtime_ns} {os.path.abspath(policy_lang.__file__)}".encode()


def _digest_of(path: str) -> str:
    with open(path, "rb") as stream:
        return _digest(stream.read(MAX_READ_AGAIN))


def _digest(*parts: bytes) -> str:
    """BLAKE2b of the parts, each with its length. `hashlib` loads OpenSSL, which takes longer than the rest of this."""
    from _blake2 import blake2b

    made = blake2b(digest_size=32)
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.hexdigest()

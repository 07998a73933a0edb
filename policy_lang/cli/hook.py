"""`zcpolicy hook HOST`: decides one call of a coding agent, in its host's own words; and puts itself there, `hook install HOST`.

In: the event on stdin. Out: the answer on stdout, status 0; or one line on stderr, status 2, which every host takes for a deny:
whatever goes wrong here, in the policy, in the event or in the state, the call does not run. Written without click, as
`decide` is: a host waits for it at every call.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread

from policy_lang.cli.errors import CommandError
from policy_lang.cli.words import help_text, nearest, read_words
from zcpolicy.hosts.hook.event import BLOCKS, NoEvent, Reply, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from policy_lang.cli.words import OptionTable, Words

OPTIONS: Final[OptionTable] = {
    "--policy": ("one", "FILE", "The policy, or a compiled one; `hook install` writes it into the host's settings."),
    "--agent": ("one", "A", "The agent of the policy that the host's agent is."),
    "--layer": ("many", "F", "A policy above this one; repeat it, highest first."),
    "--state": (
        "one",
        "DIR",
        "Where sessions, what was spent and compiled policies are kept. [~/.local/state/zcpolicy]",
    ),
    "--protect": ("many", "F", "A file that no tool may touch; repeat it. `hook install` names the host's settings."),
    "--attended": ("flag", "", "A person sits at the host (Gemini CLI): calls that ask are put to them."),
    "--help": ("flag", "", "Show this message."),
}
USAGE: Final = "zcpolicy hook HOST --policy FILE --agent A [options] | zcpolicy hook install|uninstall HOST …"
EXAMPLE: Final = "zcpolicy hook install claude-code --policy team.zcpolicy --agent coder"
ABOUT: Final = "Decide a call of claude-code, codex, gemini, copilot, cursor or vscode: the event stands on stdin."

MAX_SECONDS: Final = 20.0
"""Seconds for one call, compiling included: a host that loses patience with its hook may run the call."""


def run(words: Sequence[str]) -> int:
    """Decide the call on stdin. Never raises: whatever happens is an answer."""
    if words[:1] and words[0] in ("install", "uninstall"):
        from policy_lang.cli.hook_install import run as install

        return install(words)
    try:
        with _Deadline():
            return _run(words)
    except (NoEvent, CommandError) as error:
        return _left(refusal(str(error)))
    except BaseException as error:  # noqa: BLE001 - also an interrupt: no other status than this one is a deny everywhere
        return _left(
            refusal(f"the call cannot be decided: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        )


def _run(words: Sequence[str]) -> int:
    from zcpolicy.hosts.hook.deciding import HOSTS, Settings, answered

    read = read_words(words, OPTIONS)
    if read.has("--help"):
        print(help_text(USAGE, ABOUT, OPTIONS, EXAMPLE), end="")
        return BLOCKS if read.arguments else 0  # as a hook it permits nothing
    host, policy, agent = read.arguments[:1], read.one("--policy"), read.one("--agent")
    if len(read.arguments) != 1 or policy is None or agent is None:
        raise CommandError(f"usage: {USAGE}; see zcpolicy hook --help")
    if host[0] not in HOSTS:
        near = nearest(host[0], HOSTS)
        raise CommandError(
            f"there is no host `{host[0]}`; " + (f"did you mean `{near}`?" if near else ", ".join(HOSTS))
        )
    data = _event()
    from policy_lang.cli.hook_policy import program_of

    state = state_of(read)
    program, files = program_of(policy, read.many("--layer"), state)
    protected = (*files, *map(os.path.abspath, read.many("--protect")))
    return _left(answered(data, program, Settings(host[0], agent, state, read.has("--attended"), protected)))


def state_of(read: Words) -> str:
    """The absolute folder of what is kept."""
    return os.path.abspath(read.one("--state") or os.path.expanduser("~/.local/state/zcpolicy"))


def _event() -> bytes:
    from zcpolicy.call import MAX_CALL_CHARACTERS

    return bytes(sys.stdin.buffer.read(MAX_CALL_CHARACTERS + 1))  # one too many is refused where it is read


def _left(reply: Reply) -> int:
    """Leaves an answer. One that cannot be written whole is a deny."""
    try:
        if reply.out:
            sys.stdout.write(reply.out)
            sys.stdout.flush()
        if reply.err:
            sys.stderr.write(reply.err)
            sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return BLOCKS
    return reply.status


class _Deadline:
    """Ends the process with a deny, once it takes too long, whatever it does then. A thread, since `signal` takes longer to load."""

    def __init__(self) -> None:
        self._over = allocate_lock()

    def __enter__(self) -> None:
        self._over.acquire()
        start_new_thread(self._watch, ())

    def __exit__(self, *raised: object) -> None:
        self._over.release()

    def _watch(self) -> None:
        if not self._over.acquire(timeout=MAX_SECONDS):
            os.write(2, refusal(f"it took more than {MAX_SECONDS:.0f} seconds").err.encode())
            os._exit(BLOCKS)

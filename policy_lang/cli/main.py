"""The command line: `zcpolicy COMMAND …`.

In: the arguments of the process. Out: an exit status, and text on the two streams. Nothing leaves as a traceback:
what nobody foresaw is one line on stderr and status 2. `decide` and `hook` are dispatched before click is imported, and
before any environment variable is looked at.
"""

from __future__ import annotations

import os
import sys

from policy_lang.cli.errors import USAGE, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
"""As shells report the signals 2 and 13."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for stream in (sys.stdout, sys.stderr):
            reconfigure = getattr(stream, "reconfigure", None)  # another stream may stand in for ours
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        status = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except CommandError as error:
        return _complain(str(error))
    except Exception as error:  # noqa: BLE001 - the last resort: a person gets a line, never a traceback
        return _complain(_fault(error))
    return status


def _run(words: list[str]) -> int:
    if words[:1] == ["decide"]:
        from policy_lang.cli.decide import run

        return run(words[1:])
    if words[:1] == ["hook"]:
        from policy_lang.cli.hook import run as run_hook

        return run_hook(words[1:])
    from policy_lang.cli.app import run_app

    return run_app(words)


def _complain(line: str) -> int:
    try:  # noqa: SIM105 - contextlib is not loaded for this
        print(f"zcpolicy: {_printable(line)}", file=sys.stderr)
    except OSError:
        pass  # nobody listens: the status says it
    return USAGE


def _printable(line: str) -> str:
    """What came from files and arguments must not steer the terminal."""
    if line.isprintable():
        return line
    return "".join(letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}" for letter in line)


def _fault(error: Exception) -> str:
    """What went wrong inside, and what to send us."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}" if place else ""  # noqa: PTH119 - pathlib costs a third of a start
    words = " ".join(str(error).split())[:200]
    return (
        f"a fault in zcpolicy itself, not in your policy: {type(error).__name__}: {words}{where}; "
        "please report this line with the command and the policy that led to it"
    )


def _discard_output() -> None:
    """The reader of stdout is gone: what is still buffered must not complain again when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())

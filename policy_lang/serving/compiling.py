"""The compiler that a host gives to whatever reloads its policy.

In: the root files of the layers, highest first, and a function that reads. Out: a program; errors as text for an operator.
"""

from collections.abc import Sequence
from pathlib import Path

from policy_lang.compile import compile_policy
from policy_lang.diagnostics import Diagnostic
from policy_lang.files import ReadBytes
from policy_lang.render.plain import plain
from zcpolicy.program import Program
from zcpolicy.reload.sources import Broken

MAX_FINDINGS = 50
"""Errors that are told of one policy."""


def compile_layers(layers: Sequence[Path], read: ReadBytes) -> Program:
    """Compiles the last layer under those before it, and reads nothing but through `read`.

    Raises Broken: a line for each error, `file:line:col: error ZC1234: message`.
    """
    compiled = compile_policy(layers[-1], layers=layers[:-1], bytes_of=read)
    if compiled.program is None:
        raise Broken(_told([one for one in compiled.diagnostics if one.severity == "error"]))
    return compiled.program


def _told(errors: Sequence[Diagnostic]) -> str:
    more = len(errors) - MAX_FINDINGS
    return plain(errors[:MAX_FINDINGS]).rstrip("\n") + (f"\nand {more} more" if more > 0 else "")

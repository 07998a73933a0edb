"""The zcpolicy language: policy text in, a sealed program or diagnostics out.

    program = policy_lang.load("team.zcpolicy")      # raises PolicyError, which carries the diagnostics
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policy_lang.diagnostics import Diagnostic, PolicyError

if TYPE_CHECKING:
    from zcpolicy.program import Program

__all__ = ["Diagnostic", "PolicyError", "check", "load", "loads"]


def load(path: str | Path, *, layers: Sequence[str | Path] = ()) -> "Program":
    """Compile a policy file under its layers, highest first.

    Raises:
        PolicyError: the policy has errors; `diagnostics` says where and why.
    """
    from policy_lang.compile import compile_policy

    compiled = compile_policy(path, layers=layers)
    if compiled.program is None:
        raise PolicyError(compiled.diagnostics)
    return compiled.program


def loads(text: str, *, name: str = "<text>", folder: str | Path = ".") -> "Program":
    """Compile policy text; relative imports and catalogues start at `folder`.

    Raises:
        PolicyError: the policy has errors.
    """
    from policy_lang.compile import compile_text

    compiled = compile_text(text, name=name, folder=folder)
    if compiled.program is None:
        raise PolicyError(compiled.diagnostics)
    return compiled.program


def check(path: str | Path, *, layers: Sequence[str | Path] = ()) -> tuple[Diagnostic, ...]:
    """All findings about a policy file, errors and warnings, in the order of their places."""
    from policy_lang.compile import compile_policy

    return compile_policy(path, layers=layers).diagnostics

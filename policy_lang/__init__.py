"""The zcpolicy language: policy text in, a sealed program or diagnostics out.

    program = policy_lang.load("team.zcpolicy")      # raises PolicyError, which carries the diagnostics

Importing this loads nothing: the command line passes here before it knows whether it needs the language at all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from policy_lang.diagnostics import Diagnostic as Diagnostic
    from policy_lang.diagnostics import PolicyError as PolicyError
    from zcpolicy.program import Program
else:

    def __getattr__(name: str) -> object:
        if name not in {"Diagnostic", "PolicyError"}:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from policy_lang import diagnostics

        return getattr(diagnostics, name)


__all__ = ["Diagnostic", "PolicyError", "check", "load", "loads"]


def load(path: str | Path, *, layers: Sequence[str | Path] = (), cache: str | Path | None = None) -> Program:
    """Compile a policy file under its layers, highest first.

    `cache`: a folder in which what was found out about unchanged files is kept; guard it like the policy files.

    Raises:
        PolicyError: the policy has errors; `diagnostics` says where and why.
    """
    from policy_lang.cache import Cache
    from policy_lang.compile import compile_policy

    compiled = compile_policy(path, layers=layers, cache=Cache(cache) if cache is not None else None)
    if compiled.program is None:
        raise _errors(compiled.diagnostics)
    return compiled.program


def loads(text: str, *, name: str = "<text>", folder: str | Path = ".") -> Program:
    """Compile policy text; relative imports and catalogues start at `folder`.

    Raises:
        PolicyError: the policy has errors.
    """
    from policy_lang.compile import compile_text

    compiled = compile_text(text, name=name, folder=folder)
    if compiled.program is None:
        raise _errors(compiled.diagnostics)
    return compiled.program


def check(path: str | Path, *, layers: Sequence[str | Path] = ()) -> tuple[Diagnostic, ...]:
    """All findings about a policy file, errors and warnings, in the order of their places."""
    from policy_lang.compile import compile_policy

    return compile_policy(path, layers=layers).diagnostics


def _errors(found: tuple[Diagnostic, ...]) -> PolicyError:
    from policy_lang.diagnostics import PolicyError

    return PolicyError(found)

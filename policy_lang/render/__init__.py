"""Diagnostics → text, in every style that `check` can print.

In: diagnostics in order. Out: a string. Each style is one file; user text never reaches a terminal unescaped.
"""

from collections.abc import Sequence
from typing import Literal, assert_never

from policy_lang.diagnostics import Diagnostic
from policy_lang.render.as_json import as_json, diagnostic_json
from policy_lang.render.github import github
from policy_lang.render.human import human, summary
from policy_lang.render.plain import plain
from policy_lang.render.sarif import sarif

Style = Literal["human", "plain", "json", "sarif", "github"]

__all__ = ["Style", "as_json", "diagnostic_json", "github", "human", "plain", "render", "sarif", "summary"]


def render(diagnostics: Sequence[Diagnostic], style: Style, *, files: int = 1, colour: bool = False) -> str:
    """The findings in one style; `files` is how many were checked, `colour` is for `human` only."""
    match style:
        case "human":
            return human(diagnostics, colour=colour)
        case "plain":
            return plain(diagnostics)
        case "json":
            return as_json(diagnostics, files=files)
        case "sarif":
            return sarif(diagnostics)
        case "github":
            return github(diagnostics)
        case _:
            assert_never(style)

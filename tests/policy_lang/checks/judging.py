"""Cases for checks: a policy in which `⟦…⟧` stands around what a finding must underline.

`judge` compiles the policy without the brackets and compares every finding of one code with the case.
"""

from dataclasses import dataclass
from pathlib import Path

from policy_lang.checks import run_checks
from policy_lang.codes import Code
from policy_lang.diagnostics import Diagnostic, Fix, in_order
from policy_lang.gather import Root, gather
from policy_lang.kinds.check import check_kinds
from policy_lang.names.bind import bind
from policy_lang.source import Source

PROJECT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Case:
    """`says` is the whole message, `help` the whole help; `labels` what further places say, with their text."""

    name: str
    policy: str
    says: str
    help: str
    labels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.name


def findings(policy: str) -> tuple[Diagnostic, ...]:
    """Everything that the checks say about a policy whose names and kinds are right."""
    gathered, found = gather([Root(Source("policy", f"zcpolicy 1\n{policy}"), PROJECT)])
    bound, of_names = bind(gathered)
    assert [d.message for d in (*found, *of_names, *check_kinds(bound)) if d.severity == "error"] == []
    return in_order(run_checks(bound))


def of_code(policy: str, code: Code) -> list[Diagnostic]:
    """The findings of one code."""
    return [finding for finding in findings(policy) if finding.code == code]


def judge(case: Case, code: Code) -> None:
    """The policy has exactly the findings of the case: one, where it has brackets."""
    found = of_code(case.policy.replace("⟦", "").replace("⟧", ""), code)
    assert [(d.message, d.help) for d in found] == [(case.says, case.help)]
    assert tuple((label.text, written(label.source, label.span)) for label in found[0].labels) == case.labels
    start = case.policy.index("⟦") + len("zcpolicy 1\n")
    assert (found[0].span.start, found[0].span.end) == (start, case.policy.index("⟧") - 1 + len("zcpolicy 1\n"))


def written(source: Source, span: tuple[int, int]) -> str:
    """The text at a place."""
    return source.text[span[0] : span[1]]


def mended(policy: str, fix: Fix | None) -> str:
    """The policy after a fix."""
    assert fix is not None
    text = f"zcpolicy 1\n{policy}"
    for edit in sorted(fix.edits, key=lambda edit: -edit.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text.removeprefix("zcpolicy 1\n")

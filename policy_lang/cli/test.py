"""`zcpolicy test PATH…`: run the `test` blocks of policies.

In: policy files. Out: what failed and why; status 1 where a test does not hold or a file does not compile.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from policy_lang.cli.decision_text import because, test_text
from policy_lang.cli.loading import compiled
from policy_lang.cli.options import format_option, layer_option, paths_argument, policies, progress
from policy_lang.cli.tool_name import written
from policy_lang.coverage import Coverage, coverage
from policy_lang.diagnostics import Diagnostic
from policy_lang.render import diagnostic_json
from policy_lang.render.as_json import json_text
from policy_lang.render.colour import Piece, paint, wants_colour
from policy_lang.render.human import count
from policy_lang.render.visible import visible
from policy_lang.testing import CallResult, TestResult, run_tests, tool_name


@dataclass(frozen=True, slots=True)
class Tested:
    """One file: its findings where it does not compile, else its results; `reached` on request."""

    path: Path
    broken: tuple[Diagnostic, ...]
    results: tuple[TestResult, ...]
    reached: Coverage | None


@click.command("test", epilog="Example: zcpolicy test --coverage team.zcpolicy")
@paths_argument
@layer_option
@click.option("--coverage", "with_coverage", is_flag=True, help="Show the rules and outcomes that no test reached.")
@format_option()
def command(paths: tuple[Path, ...], layers: tuple[Path, ...], with_coverage: bool, style: str) -> int:
    """Run the `test` blocks of policies: each file a policy of its own, each folder its files."""
    files = policies(paths)
    tested = [_tested(path, layers, style, with_coverage) for path in progress(files, shown=style == "human")]
    failed = any(one.broken or not all(result.passed for result in one.results) for one in tested)
    if style == "json":
        print(json_text(_as_json(tested)), end="")
    else:
        colour = style == "human" and wants_colour(sys.stdout)
        lines = _human(tested) if style == "human" else _plain(tested)
        print(paint(lines, colour=colour), end="")
    return int(failed)


def _tested(path: Path, layers: tuple[Path, ...], style: str, with_coverage: bool) -> Tested:
    made = compiled(path, layers, "quiet" if style == "json" else style)
    if made.program is None:
        return Tested(path, made.diagnostics, (), None)
    results = tuple(run_tests(made.program, made.tests))
    return Tested(path, (), results, coverage(made.program, results, test_text) if with_coverage else None)


def _human(tested: list[Tested]) -> Iterator[Piece]:
    for one in tested:
        for result in one.results:
            if not result.passed:
                yield from _failure(result)
        if one.reached is not None:
            yield from _coverage(one.path, one.reached)
    results = [result for one in tested for result in one.results]
    failed = sum(not result.passed for result in results)
    broken = sum(bool(one.broken) for one in tested)
    if not results and not broken:
        yield Piece(f"no `test` block in {count(len(tested), 'file')}: nothing was tested\n", "warning")
        return
    calls = sum(len(result.calls) for result in results)
    yield Piece(f"{count(len(results), 'test')}, {count(calls, 'call')} in {count(len(tested), 'file')}: ")
    words = [f"{failed} failed"] * bool(failed) + [f"{count(broken, 'file')} did not compile"] * bool(broken)
    yield Piece(", ".join(words) + "\n", "error") if words else Piece("all hold\n", "good")


def _failure(result: TestResult) -> Iterator[Piece]:
    yield Piece("failed", "error")
    yield Piece(f": {visible(result.block.name.value)}\n", "strong")
    if result.problem is not None:
        yield Piece(f"  {_place(result, result.block.span.start)}: {visible(result.problem)}\n")
    for call in result.calls:
        if call.complaint is not None:
            yield Piece(f"  {_place(result, call.call.span.start)}: {visible(_line(result, call))}\n")
            yield Piece(f"    {visible(call.complaint)} ({call.reason})\n", "error")
            yield from (Piece(f"      {line}\n") for line in _explanation(call))
    yield Piece("\n")


def _explanation(call: CallResult) -> Iterator[str]:
    """Why the decision is what it is."""
    if call.decision is None:
        yield visible(call.note)
    else:
        yield from because(call.decision)


def _line(result: TestResult, call: CallResult) -> str:
    span = call.call.span
    return " ".join(result.source.at(span).split())[:200]


def _place(result: TestResult, offset: int) -> str:
    return f"{visible(result.source.name)}:{result.source.position(offset).line}"


def _coverage(path: Path, reached: Coverage) -> Iterator[Piece]:
    yield Piece(
        f"{visible(str(path))}: {reached.reached} of {count(len(reached.rules), 'rule')} held in some call\n", "strong"
    )
    for rule in reached.rules:
        for missing in rule.missing:
            yield Piece(f"  {visible(rule.file)}:{rule.line}: {visible(rule.text)}\n    {visible(missing)}\n")
    yield Piece("\n")


def _plain(tested: list[Tested]) -> Iterator[Piece]:
    for one in tested:
        for result in one.results:
            name = visible(result.block.name.value)
            if result.problem is not None:
                yield Piece(f"{_place(result, result.block.span.start)}: failed: {name}: {visible(result.problem)}\n")
            for call in result.calls:
                if call.complaint is not None:
                    where = _place(result, call.call.span.start)
                    yield Piece(f"{where}: failed: {name}: {visible(call.complaint)} ({call.reason})\n")
        for rule in one.reached.rules if one.reached is not None else ():
            yield from (
                Piece(f"{visible(rule.file)}:{rule.line}: not reached: {visible(text)}\n") for text in rule.missing
            )


def _as_json(tested: list[Tested]) -> dict[str, Any]:
    results = [result for one in tested for result in one.results]
    made: dict[str, Any] = {
        "tests": [_test_json(result) for result in results],
        "diagnostics": [diagnostic_json(finding) for one in tested for finding in one.broken],
        "summary": {
            "tests": len(results),
            "failed": sum(not result.passed for result in results),
            "calls": sum(len(result.calls) for result in results),
            "files": len(tested),
        },
    }
    covered = [one.reached for one in tested if one.reached is not None]
    if covered:
        made["coverage"] = [
            {"file": rule.file, "line": rule.line, "text": rule.text, "calls": rule.calls, "missing": rule.missing}
            for reached in covered
            for rule in reached.rules
        ]
    return made


def _test_json(result: TestResult) -> dict[str, Any]:
    return {
        "name": result.block.name.value,
        "file": result.source.name,
        "line": result.source.position(result.block.span.start).line,
        "passed": result.passed,
        "problem": result.problem,
        "calls": [_call_json(result, call) for call in result.calls],
    }


def _call_json(result: TestResult, call: CallResult) -> dict[str, Any]:
    made: dict[str, Any] = {
        "line": result.source.position(call.call.span.start).line,
        "tool": written(tool_name(call.call.tool)),
        "expected": call.call.effect,
        "effect": call.effect,
        "reason": call.reason,
        "passed": call.complaint is None,
        "complaint": call.complaint,
    }
    if call.complaint is not None and call.decision is not None:
        made["rules"] = [rule.to_json() for rule in call.decision.rules]
    return made

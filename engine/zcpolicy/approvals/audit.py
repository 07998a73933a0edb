"""What approvals tell the host's recorder: every question, and what came of it.

In: questions and answers. Out: events of kind `approval`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from zcpolicy.approvals.outcome import Edited
from zcpolicy.approvals.question import Approve, Later, Question, Reject
from zcpolicy.approvals.weigh import Nothing, Worth
from zcpolicy.events import tell
from zcpolicy.ledgers.contract import Yes
from zcpolicy.texts import json_text, tool_json

if TYPE_CHECKING:
    from zcpolicy.events import Recorder
    from zcpolicy.execution import ResolvedAgentExecution


def noted(run: ResolvedAgentExecution, record: Recorder, question: Question, what: Worth | Yes | str | None) -> bool:
    """Tells the recorder. False if it failed: then nothing may come of it but a no."""
    outcome, more = what if isinstance(what, str) else "", dict[str, Any]()
    if isinstance(what, Yes):
        outcome, more = "on record", {"by": what.by, "once": what.once}
    elif not isinstance(what, str):
        outcome, more = _of(what)
    data = {
        "outcome": outcome,
        "question": question.id,
        "key": question.key,
        "route": question.route,
        "tool": tool_json(question.tool),
        "arguments": json_text({**question.arguments}),
        "binding": question.binding,
        "rules": [*question.rules],
        "because": [*question.because],
        **more,
    }
    try:
        tell(record, "approval", run, data)
    except Exception:  # noqa: BLE001 - the host's code: however it fails, there is no record
        return False
    return True


def _of(worth: Worth | None) -> tuple[str, dict[str, Any]]:
    if isinstance(worth, Approve):
        return "yes", {"by": worth.by, "scope": worth.scope, "seconds": worth.seconds}
    if isinstance(worth, Reject):
        return "no", asdict(worth)
    if isinstance(worth, Edited):
        to = {"tool": tool_json(worth.tool), "arguments": json_text(worth.arguments)}
        return "edited", {"by": worth.by, "to": to}
    if isinstance(worth, Later):
        return "later", {}
    return ("nothing", {"note": worth.why}) if isinstance(worth, Nothing) else ("withdrawn", {})

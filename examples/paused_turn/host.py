"""A turn that waits for a person, in three processes: one begins it, one has the answer, one goes on.

What they share is a folder: the ledger's file, and JSON of the session, the turn, its transcript and its questions.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import policy_lang
from zcpolicy import (
    Approve,
    Approvers,
    HostTool,
    Later,
    Message,
    Question,
    ResolvedAgentExecution,
    ResolvedIo,
    ResolvedModelAccess,
    Resolver,
    ScopedToolRegistry,
    ScriptedModel,
    Session,
    SqliteLedger,
    ToolContext,
    ToolSources,
    TurnResult,
    TurnState,
    calls,
    restore,
    run_tool_call_loop,
    save,
)

POLICY = Path(__file__).with_name("office.zcpolicy")


async def look_up(arguments: dict[str, Any], _context: ToolContext) -> str:
    return f"invoice {arguments['invoice']}: 120.00 to lamps ltd"


async def pay(arguments: dict[str, Any], _context: ToolContext) -> str:
    print(f"  [pays {arguments['amount']} to {arguments['to']}]")
    return "paid"


def schema(**kinds: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


TOOLS = ToolSources(
    builtins=(
        HostTool("look_up", "Looks up an invoice.", schema(invoice="string"), look_up),
        HostTool("pay", "Pays.", schema(to="string", amount="number"), pay),
    )
)


async def finance(_question: Question) -> Later:
    """The question is kept with the turn, and lies there until somebody reads it."""
    return Later()


def execution(folder: Path, session: Session) -> ResolvedAgentExecution:
    """Each process has a resolver of its own; what was spent, asked and answered is in the ledger. No tool writes there."""
    ledger = SqliteLedger(str(folder / "ledger.db"))
    resolver = Resolver(policy_lang.load(POLICY), ledger=ledger, protected=[str(folder / "turn.json")])
    return resolver.resolve("clerk", session=session)


async def turn(
    run: ResolvedAgentExecution, model: ScriptedModel, messages: Sequence[Message], resume: TurnState | None = None
) -> TurnResult:
    """One turn, or the rest of one."""
    registry = await ScopedToolRegistry.assemble(run, TOOLS)
    io = ResolvedIo(Approvers(routes={"finance": finance}))
    try:
        return await run_tool_call_loop(run, ResolvedModelAccess(model), io, messages, resume=resume)
    finally:
        await registry.close()


async def begin(folder: Path) -> None:
    """The turn pauses: all of it is written down."""
    run = execution(folder, Session(client="ada", id="s1"))
    model = ScriptedModel(
        calls(("look_up", {"invoice": "17"})), calls(("pay", {"to": "lamps ltd", "amount": 120}))
    )  # stands in for a real one
    result = await turn(run, model, [Message("user", "pay invoice 17")])
    print(f"{result.status}: {result.note}")
    assert result.state is not None
    kept = {
        "session": save(run.session),
        "state": result.state.to_json(),
        "messages": [one.to_json() for one in result.messages],
        "questions": [one.to_json() for one in result.questions],
    }
    (folder / "turn.json").write_text(json.dumps(kept), encoding="utf-8")


async def answer(folder: Path) -> None:
    """Somebody in finance says yes: that goes into the ledger."""
    kept = read(folder)
    run = execution(folder, restore(kept["session"]))
    for question in map(Question.from_json, kept["questions"]):
        print(question.text.splitlines()[0])
        await run.approvals.answer(question, Approve(by="grace"))
        print("  grace: yes")


async def resume(folder: Path) -> None:
    """The turn goes on where it was: nothing is asked or charged twice."""
    kept = read(folder)
    run = execution(folder, restore(kept["session"]))
    messages = [Message.from_json(one) for one in kept["messages"]]
    result = await turn(run, ScriptedModel("Invoice 17 is paid."), messages, TurnState.from_json(kept["state"]))
    print(f"{result.status}: {result.text}")


def read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "turn.json").read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    asyncio.run({"begin": begin, "answer": answer, "resume": resume}[sys.argv[1]](Path(sys.argv[2])))

"""`zcpolicy decide POLICY --agent A TOOL`: what would happen to one call, and why.

In: a policy or a compiled policy, a call, the facts of a session. Out: a decision; status 0 allow, 3 ask, 4 deny,
1 where the policy does not compile. Nothing runs; a ledger that is named is charged with what is allowed. Written
without click, without the language where the policy is compiled, and without a ledger where none is named: a hook
pays for it at every call.
"""

from __future__ import annotations

import sys

from policy_lang.cli.errors import CommandError
from policy_lang.cli.words import help_text, nearest, read_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from policy_lang.cli.words import OptionTable, Words
    from zcpolicy.decision import Decision
    from zcpolicy.facts import Narrowing, Session, ToolName
    from zcpolicy.program import Program
    from zcpolicy.resolver import ResolvedAgentExecution, Resolver

OPTIONS: Final[OptionTable] = {
    "--agent": ("one", "A", "The agent that calls."),
    "--args": ("one", "JSON", "The call's arguments; `-` reads them from stdin."),
    "--session": ("one", "JSON", "Facts of the session: cwd, interactive, client, context, labels, history, …"),
    "--narrow": ("one", "JSON", "What the host takes away: only, deny, ask, autonomy, limits, exclude_memory."),
    "--child-of": ("many", "A", "The agent that delegated to it; repeat it, nearest first."),
    "--skill": ("many", "S", "A skill that is loaded."),
    "--layer": ("many", "F", "A policy above this one; repeat it, highest first."),
    "--ledger": ("one", "FILE", "What was spent; an allowed call is charged to it. Made if it is not there."),
    "--trace": ("flag", "", "Show every body, rule and test."),
    "--format": ("one", "human|plain|json", "How to print."),
    "--help": ("flag", "", "Show this message."),
}
USAGE: Final = "zcpolicy decide POLICY --agent A TOOL [options]"
EXAMPLE: Final = """zcpolicy decide team.zcpolicy --agent coder shell --args '{"command": "git push"}'"""
ABOUT: Final = "Say what would happen to one call, and why. TOOL is `name` or `server/name`."
STATUS: Final = {"allow": 0, "ask": 3, "deny": 4}


def run(words: Sequence[str]) -> int:
    """Decide one call.

    Raises:
        CommandError: wrong usage, or a file that cannot be read.
    """
    read = read_words(words, OPTIONS)
    if read.has("--help"):
        print(help_text(USAGE, ABOUT, OPTIONS, EXAMPLE), end="")
        return 0
    style = read.one("--format") or "human"
    if style not in ("human", "plain", "json"):
        raise CommandError(f"`--format` is human, plain or json, not `{style}`")
    agent = read.one("--agent")
    if agent is None and len(read.arguments) == 2:
        raise CommandError("which agent calls? say it with `--agent A`; see zcpolicy decide --help")
    if len(read.arguments) != 2 or agent is None:
        raise CommandError(f"usage: {USAGE}; see zcpolicy decide --help")
    from policy_lang.cli.facts import must_fit, narrowing_from, session_from
    from policy_lang.cli.tool_name import read_tool

    tool = read_tool(read.arguments[1])
    session = session_from(read.one("--session"), lasting=read.has("--ledger"))
    program = _program(read.arguments[0], read.many("--layer"), style)
    if program is None:
        return 1
    must_fit(session, program)
    narrowing = narrowing_from(read.one("--narrow"), program)
    return _decided(program, agent, tool, session, narrowing, read, style)


def _decided(
    program: Program,
    agent: str,
    tool: ToolName,
    session: Session,
    narrowing: Narrowing | None,
    read: Words,
    style: str,
) -> int:
    from policy_lang.cli.decision_text import decision_text, refusal_text
    from zcpolicy.resolver import ResolveError, Resolver, UnknownAgent

    resolver = _charging(program, read) if read.has("--ledger") else Resolver(program)
    arguments = _arguments(read.one("--args"))
    try:
        execution = _execution(resolver, agent, session, narrowing, read)
    except UnknownAgent as error:
        near = nearest(agent, program.agents)
        note = f"{error}; did you mean `{near}`?" if near and style == "human" else str(error)
        print(refusal_text("unknown-agent", note, program, style), end="")
        return STATUS["deny"]
    except ResolveError as error:
        print(refusal_text("not-granted", str(error), program, style), end="")
        return STATUS["deny"]
    decision = execution.decide(tool, arguments)
    text = decision_text(decision, style, trace=read.has("--trace"))  # of what was spent before it
    if decision.effect == "allow" and read.has("--ledger"):
        denied = _charge(decision)
        if denied is not None:
            decision, text = denied, decision_text(denied, style, trace=read.has("--trace"))
    print(text, end="")
    return STATUS[decision.effect]


def _charging(program: Program, read: Words) -> Resolver:
    """A resolver whose limits see what others spent. The ledger's files are protected, and a link to them."""
    from sqlite3 import Error

    from zcpolicy.ledgers.contract import LedgerUnavailable
    from zcpolicy.ledgers.sqlite import SqliteLedger
    from zcpolicy.resolver import Resolver

    named = read.one("--ledger") or ""
    try:
        ledger = SqliteLedger(named)
        ledger.now(0.0)  # opens it: where no limit applies, nothing else would tell that it cannot be used
        return Resolver(program, ledger=ledger)
    except (LedgerUnavailable, OSError) as error:
        why = error.__context__ if isinstance(error.__context__, Error) else error
        raise CommandError(f"`{named}` cannot be used as a ledger: {why}") from None


def _charge(decision: Decision) -> Decision | None:
    """Charges a call. The deny, where another process was quicker or the ledger fails: then nothing is charged."""
    from zcpolicy.refusals import PermitError

    try:
        decision.run.permit(decision)
    except PermitError as error:
        if error.decision is None:
            raise CommandError(f"--ledger: {error}") from None
        return error.decision
    return None


def _execution(
    resolver: Resolver, agent: str, session: Session, narrowing: Narrowing | None, read: Words
) -> ResolvedAgentExecution:
    """The agent at work, below those that delegated to it; the narrowing is of the outermost run."""
    above = None
    for parent in reversed(read.many("--child-of")):
        outer = narrowing if above is None else None
        above = resolver.resolve(parent, session=session, parent=above, narrowing=outer)
    outer = narrowing if above is None else None
    return resolver.resolve(agent, session=session, parent=above, narrowing=outer, skills=read.many("--skill"))


def _arguments(text: str | None) -> str:
    """The text of the arguments: whether it is well formed is for the engine to say."""
    if text != "-":
        return text if text is not None else "{}"
    from zcpolicy.call import MAX_CALL_CHARACTERS

    stream = getattr(sys.stdin, "buffer", sys.stdin)
    data = stream.read(4 * MAX_CALL_CHARACTERS + 1)
    return data if isinstance(data, str) else bytes(data).decode("utf-8", "surrogateescape")


def _program(path: str, layers: list[str], style: str) -> Program | None:
    """The policy; None, with its findings printed, where there is none."""
    if not path.endswith(".zcpc"):
        return _compiled(path, layers, style)
    if layers:
        raise CommandError("`--layer` is for policies; a compiled one holds its layers")
    from zcpolicy.program import CompiledError, load_compiled

    try:
        return load_compiled(path)
    except OSError as error:
        raise CommandError(f"`{path}` cannot be read: {error.strerror or error}") from None
    except CompiledError as error:
        print(f"zcpolicy: `{path}`: {error}", file=sys.stderr)
        return None


def _compiled(path: str, layers: list[str], style: str) -> Program | None:
    from pathlib import Path

    from policy_lang.cli.loading import compiled

    return compiled(Path(path), tuple(map(Path, layers)), style).program

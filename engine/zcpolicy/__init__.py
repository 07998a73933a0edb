"""zcpolicy, the engine: a compiled policy and a host's facts in, decisions out. It needs no parser.

>>> resolver = Resolver(load_compiled("team.zcpc"))
>>> run = resolver.resolve("coder", session=Session(cwd="/w"))
>>> run.decide("shell", {"command": "git status"}).effect

All that a host needs stands here by its name. What a decision does not need is loaded when its name is first used, so
that a hook starts fast. Names whose module needs an extra (`RedisLedger`, `StdioServer`, `HttpServer`, `PydanticAiModel`) do
not come with `*`, and are imported all the same. The reference host (`daemon`), state that tools share
(`state`) and the harness (`parity`) are packages of their own.
"""

from zcpolicy.authority import SealError
from zcpolicy.call import Malformed
from zcpolicy.combine import Said, Verdict
from zcpolicy.decision import Decision
from zcpolicy.facts import Entry, FactsError, Narrowing, Session, ToolName
from zcpolicy.program import CompiledError, Program, load_compiled
from zcpolicy.refusals import PermitError, ResolveError, UnknownAgent
from zcpolicy.resolver import ResolvedAgentExecution, Resolver
from zcpolicy.stack import RuleRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zcpolicy.approvals.ask import ApprovalManager
    from zcpolicy.approvals.outcome import Approved, Edited, NotAsked, Outcome, Refusal, Waiting
    from zcpolicy.approvals.question import Absent, Answer, Approve, Approver, Approvers, Later, Question, Reject
    from zcpolicy.approvals.terminal import terminal_approver
    from zcpolicy.budgets import Budgets
    from zcpolicy.events import Event
    from zcpolicy.identity import Identity
    from zcpolicy.ledgers.contract import Ledger, LedgerUnavailable, Reserved
    from zcpolicy.ledgers.memory import MemoryLedger
    from zcpolicy.ledgers.redis import RedisLedger as RedisLedger
    from zcpolicy.ledgers.sqlite import SqliteLedger
    from zcpolicy.loop.access import NamedModel, Prices, ResolvedIo, ResolvedModelAccess
    from zcpolicy.loop.context import perform
    from zcpolicy.loop.gate import Admitted, Lapsed, Paused, Refused, admit, admit_all
    from zcpolicy.loop.loop import run_tool_call_loop
    from zcpolicy.loop.messages import Message, Model, ModelRequest, ModelResponse, ToolCall, Usage
    from zcpolicy.loop.pydantic_ai import PydanticAiModel as PydanticAiModel
    from zcpolicy.loop.scripted import ScriptedModel, calls
    from zcpolicy.loop.turn import TurnResult, TurnState
    from zcpolicy.memory import MemoryRefused
    from zcpolicy.memory_stores.contract import MemoryStore
    from zcpolicy.memory_stores.in_memory import InMemoryStore
    from zcpolicy.memory_stores.sqlite import SqliteMemory
    from zcpolicy.parity.probe import ParityPath, Probe
    from zcpolicy.prices import GenaiPrices, PriceTable
    from zcpolicy.registry.host_tools import (
        delegate_tool,
        load_skill_tool,
        memory_tools,
        pipeline_tool,
        tool_search_tool,
    )
    from zcpolicy.registry.mcp_servers import HttpServer as HttpServer
    from zcpolicy.registry.mcp_servers import StdioServer as StdioServer
    from zcpolicy.registry.scoped import ScopedToolRegistry
    from zcpolicy.registry.sources import (
        AssemblyError,
        HostTool,
        InnerCall,
        McpServer,
        ServerRefused,
        SkillSource,
        ToolContext,
        ToolResult,
        ToolSources,
        ToolSpec,
    )
    from zcpolicy.sessions import fork, restore, save
else:
    _LATER = {
        "approvals.ask": ("ApprovalManager",),
        "approvals.outcome": ("Approved", "Edited", "NotAsked", "Outcome", "Refusal", "Waiting"),
        "approvals.question": ("Absent", "Answer", "Approve", "Approver", "Approvers", "Later", "Question", "Reject"),
        "approvals.terminal": ("terminal_approver",),
        "budgets": ("Budgets",),
        "events": ("Event",),
        "identity": ("Identity",),
        "ledgers.contract": ("Ledger", "LedgerUnavailable", "Reserved"),
        "ledgers.memory": ("MemoryLedger",),
        "ledgers.redis": ("RedisLedger",),
        "ledgers.sqlite": ("SqliteLedger",),
        "loop.access": ("NamedModel", "Prices", "ResolvedIo", "ResolvedModelAccess"),
        "loop.context": ("perform",),
        "loop.gate": ("Admitted", "Lapsed", "Paused", "Refused", "admit", "admit_all"),
        "loop.loop": ("run_tool_call_loop",),
        "loop.messages": ("Message", "Model", "ModelRequest", "ModelResponse", "ToolCall", "Usage"),
        "loop.pydantic_ai": ("PydanticAiModel",),
        "loop.scripted": ("ScriptedModel", "calls"),
        "loop.turn": ("TurnResult", "TurnState"),
        "memory": ("MemoryRefused",),
        "memory_stores.contract": ("MemoryStore",),
        "memory_stores.in_memory": ("InMemoryStore",),
        "memory_stores.sqlite": ("SqliteMemory",),
        "parity.probe": ("ParityPath", "Probe"),
        "prices": ("GenaiPrices", "PriceTable"),
        "registry.host_tools": ("delegate_tool", "load_skill_tool", "memory_tools", "pipeline_tool", "tool_search_tool"),
        "registry.mcp_servers": ("HttpServer", "StdioServer"),
        "registry.scoped": ("ScopedToolRegistry",),
        "registry.sources": (
            "AssemblyError", "HostTool", "InnerCall", "McpServer", "ServerRefused", "SkillSource", "ToolContext",
            "ToolResult", "ToolSources", "ToolSpec",
        ),
        "sessions": ("fork", "restore", "save"),
    }  # fmt: skip
    """The modules of what is loaded later, as above; a test holds the two to each other."""

    def __getattr__(name: str) -> object:
        from importlib import import_module

        for module, names in _LATER.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"zcpolicy.{module}"), name)
                return found
        raise AttributeError(f"module 'zcpolicy' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *(name for names in _LATER.values() for name in names)})


__all__ = [
    "Absent",
    "Admitted",
    "Answer",
    "ApprovalManager",
    "Approve",
    "Approved",
    "Approver",
    "Approvers",
    "AssemblyError",
    "Budgets",
    "CompiledError",
    "Decision",
    "Edited",
    "Entry",
    "Event",
    "FactsError",
    "GenaiPrices",
    "HostTool",
    "Identity",
    "InMemoryStore",
    "InnerCall",
    "Lapsed",
    "Later",
    "Ledger",
    "LedgerUnavailable",
    "Malformed",
    "McpServer",
    "MemoryLedger",
    "MemoryRefused",
    "MemoryStore",
    "Message",
    "Model",
    "ModelRequest",
    "ModelResponse",
    "NamedModel",
    "Narrowing",
    "NotAsked",
    "Outcome",
    "ParityPath",
    "Paused",
    "PermitError",
    "PriceTable",
    "Prices",
    "Probe",
    "Program",
    "Question",
    "Refusal",
    "Refused",
    "Reject",
    "Reserved",
    "ResolveError",
    "ResolvedAgentExecution",
    "ResolvedIo",
    "ResolvedModelAccess",
    "Resolver",
    "RuleRef",
    "Said",
    "ScopedToolRegistry",
    "ScriptedModel",
    "SealError",
    "ServerRefused",
    "Session",
    "SkillSource",
    "SqliteLedger",
    "SqliteMemory",
    "ToolCall",
    "ToolContext",
    "ToolName",
    "ToolResult",
    "ToolSources",
    "ToolSpec",
    "TurnResult",
    "TurnState",
    "UnknownAgent",
    "Usage",
    "Verdict",
    "Waiting",
    "admit",
    "admit_all",
    "calls",
    "delegate_tool",
    "fork",
    "load_compiled",
    "load_skill_tool",
    "memory_tools",
    "perform",
    "pipeline_tool",
    "restore",
    "run_tool_call_loop",
    "save",
    "terminal_approver",
    "tool_search_tool",
]

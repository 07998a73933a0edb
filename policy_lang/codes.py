"""Every diagnostic, declared once: code, title, severity. The page of a code is `docs/codes/CODE.md`.

In: nothing. Out: one `Code` per finding; `ALL` by identifier.
1xxx lexical and syntax, 2xxx names and kinds, 3xxx logic, 4xxx security, 5xxx deprecation, 6xxx settings of the daemon.
"""

from typing import Final, Literal, NamedTuple


class Code(NamedTuple):
    """A stable identifier, a title of a few words, and whether the finding is fatal."""

    id: str
    title: str
    severity: Literal["error", "warning"]


ALL: Final[dict[str, Code]] = {}


def _error(identifier: str, title: str) -> Code:
    return ALL.setdefault(identifier, Code(identifier, title, "error"))


def _warning(identifier: str, title: str) -> Code:
    return ALL.setdefault(identifier, Code(identifier, title, "warning"))


# --- 1xxx lexical and syntax (parse, source) -----------------------------------------------------------

ODD_CHARACTER: Final = _error("ZC1001", "invisible or control character")
MIXED_SCRIPTS: Final = _error("ZC1002", "name that could be taken for another")
UNFINISHED_STRING: Final = _error("ZC1003", "string that does not end")
BAD_ESCAPE: Final = _error("ZC1004", "escape that does not exist")
UNCLOSED: Final = _error("ZC1005", "bracket that is never closed")
STRAY_BRACKET: Final = _error("ZC1006", "bracket that closes nothing")
TOO_DEEP: Final = _error("ZC1007", "nesting too deep")
TOO_LARGE: Final = _error("ZC1008", "larger than a documented bound")
BAD_AMOUNT: Final = _error("ZC1009", "amount that does not fit its unit")
COMMENTED_HEAD: Final = _error("ZC1010", "continuation below a commented statement")
NO_EDITION: Final = _error("ZC1020", "first statement is not the edition")
UNKNOWN_EDITION: Final = _error("ZC1021", "edition that does not exist")
REPEATED_EDITION: Final = _error("ZC1022", "edition written again")
UNEXPECTED: Final = _error("ZC1030", "text that cannot stand here")
UNKNOWN_STATEMENT: Final = _error("ZC1031", "statement that does not exist")
MISPLACED_STATEMENT: Final = _error("ZC1032", "statement in the wrong place")
EMPTY_LIST: Final = _error("ZC1033", "list with nothing in it")
CLAUSE_ORDER: Final = _error("ZC1034", "clause out of order or where it cannot stand")
UNKNOWN_WORD: Final = _error("ZC1035", "misspelt word")
NO_REASON: Final = _error("ZC1040", "`independent` without `because`")
INCOMPLETE_TABLE: Final = _error("ZC1041", "autonomy table without all four classes")
REPEATED_ITEM: Final = _error("ZC1042", "item written twice")
RESERVED_NAME: Final = _error("ZC1043", "reserved name")
PATTERN_AS_NAME: Final = _error("ZC1044", "pattern where one tool is meant")
BAD_SUPPRESSION: Final = _error("ZC1045", "suppression that says too little")
FORMAT_FAILED: Final = _error("ZC1090", "text that could not be formatted")

# --- 20xx files, imports, catalogues, layers (files, gather) ---------------------------------------------

UNREADABLE_FILE: Final = _error("ZC2001", "file that cannot be read")
NOT_UTF8: Final = _error("ZC2002", "text that is not UTF-8")
MISSING_IMPORT: Final = _error("ZC2003", "import that cannot be read")
IMPORT_CYCLE: Final = _error("ZC2004", "imports in a circle")
MISSING_CATALOG: Final = _error("ZC2005", "catalogue that cannot be read")
BAD_CATALOG: Final = _error("ZC2006", "catalogue that cannot be used")
CATALOG_WITHOUT_SERVER: Final = _error("ZC2007", "catalogue without a server")
FILE_IN_TWO_LAYERS: Final = _error("ZC2008", "file in two layers")
UNNAMED_NEIGHBOUR: Final = _warning("ZC2009", "policy file that nothing names")

# --- 21xx names (tools, names, risk) ---------------------------------------------------------------------

UNKNOWN_TOOL: Final = _error("ZC2101", "unknown tool")
UNKNOWN_TOOL_HERE: Final = _warning("ZC2102", "unknown tool in a shared restriction")
UNKNOWN_TOOL_CALLED: Final = _warning("ZC2103", "unknown tool in a test")
UNKNOWN_NAME: Final = _error("ZC2104", "unknown name")
DUPLICATE_NAME: Final = _error("ZC2105", "name declared twice")
EXCEPT_REMOVES_NOTHING: Final = _error("ZC2106", "`except` that removes nothing")
EMPTY_SET: Final = _error("ZC2107", "set of tools that is empty")
GROUP_CYCLE: Final = _error("ZC2108", "groups in a circle")
PROFILE_CYCLE: Final = _error("ZC2109", "profiles in a circle")
NARROWING_CYCLE: Final = _error("ZC2110", "agents that narrow each other")
GRANT_IN_RESTRICTION: Final = _error("ZC2111", "grant where only restrictions may stand")
GRANTING_PROFILE: Final = _error("ZC2112", "granting profile where only restrictions may stand")
SAID_TWICE: Final = _error("ZC2113", "statement that a body has once")
AGENT_NOT_ALLOWED: Final = _error("ZC2114", "granting agent in a lower layer")
LOOSENED_BELOW: Final = _error("ZC2115", "lower layer that loosens")

# --- 22xx kinds (kinds) ----------------------------------------------------------------------------------

WRONG_KIND: Final = _error("ZC2201", "value of another kind")
UNKNOWN_ARGUMENT: Final = _error("ZC2202", "unknown argument")
LOOSENED_TOOL: Final = _error("ZC2203", "`tool` statement that loosens a catalogue")
UNREVIEWED: Final = _error("ZC2204", "typed test on an unreviewed string")
TEXT_TEST: Final = _error("ZC2205", "text test on a path, url or command")
QUANTIFIER: Final = _error("ZC2206", "`some` or `every` missing or misplaced")
UNKNOWN_FIELD: Final = _error("ZC2207", "unknown fact")
BAD_OPERAND: Final = _error("ZC2208", "pattern that cannot be read")
WRONG_SIDE: Final = _error("ZC2209", "test on the wrong side")
LABEL_GRANTS: Final = _error("ZC2210", "label as a grant")
PARTLY_FITS: Final = _warning("ZC2211", "test that fits only some tools")
LIMIT_WITHOUT_TOOLS: Final = _error("ZC2212", "limit on an argument without tools")
SPENT_BY_NO_TOOL: Final = _error("ZC2213", "limit on tools that never spend")

# --- 3xxx logic (names, checks) --------------------------------------------------------------------------

CONTRADICTION: Final = _error("ZC3001", "condition that can never hold")
IMPOSSIBLE_VALUE: Final = _error("ZC3002", "value that never occurs")
OUTSIDE_BUNDLES: Final = _error("ZC3003", "tools of a server that the agent does not connect")
WIDER_LIMIT: Final = _error("ZC3004", "limit above the parent's")
WIDER_SURFACE: Final = _error("ZC3005", "more than the parent has")
SELF_DELEGATION: Final = _error("ZC3006", "delegation to itself")

DEAD_RULE: Final = _warning("ZC3101", "rule that never decides")
REDUNDANT_RULE: Final = _warning("ZC3102", "rule that another one covers")
ALWAYS_TRUE: Final = _warning("ZC3103", "condition that always holds")
DEAD_BRANCH: Final = _warning("ZC3104", "part of a condition that can never hold")
NOTHING_GRANTED: Final = _warning("ZC3105", "rule on tools that nothing grants")
NOTHING_TO_WAIVE: Final = _warning("ZC3106", "`auto_approve` with no prompt to waive")
REDUNDANT_ONLY: Final = _warning("ZC3107", "`only` that forbids nothing")
REDUNDANT_CAP: Final = _warning("ZC3108", "cap that caps nothing")
REDUNDANT_LIMIT: Final = _warning("ZC3109", "limit that is never reached")
UNUSED_NAME: Final = _warning("ZC3110", "name that nothing uses")
CALLS_NOTHING: Final = _warning("ZC3111", "agent that can call nothing")
CHILD_WITH_NOTHING: Final = _warning("ZC3112", "delegate that is left with nothing")
ABSENT_ARGUMENT: Final = _warning("ZC3113", "optional argument that decides by its absence")
NEVER_MET: Final = _warning("ZC3114", "`require` that can never be met")
CONNECTED_FOR_NOTHING: Final = _warning("ZC3115", "bundle that is connected for nothing")

# --- 4xxx security (checks) ------------------------------------------------------------------------------

GRANT_OF_ANY: Final = _warning("ZC4001", "unconditional grant of every tool")
GRANT_OF_SHELL: Final = _warning("ZC4002", "unconditional grant of a shell")
GRANT_OF_HIGH: Final = _warning("ZC4003", "unconditional grant of class high")
NO_AUTONOMY: Final = _warning("ZC4004", "granting agent without `autonomy`")
COVERED_APPROVAL: Final = _warning("ZC4005", "`with approval` that a plain `allow` undoes")
INDEPENDENT_ADDS: Final = _warning("ZC4006", "what an independent delegation adds")
EXFILTRATION: Final = _warning("ZC4007", "private data, untrusted content and a way out in one agent")
UNREVIEWED_MET: Final = _warning("ZC4008", "unreviewed strings that a `paths` or `urls` rule meets")
EVERY_ON_SHELL: Final = _warning("ZC4009", "`every` over what a command touches")
EMPTY_EVERY: Final = _warning("ZC4010", "`every` that an empty list satisfies")
LAUNCHER: Final = _warning("ZC4011", "granted command that starts other commands")
ENUMERATED_FLAGS: Final = _warning("ZC4012", "restriction that enumerates flags")
COMMENTED_CONDITION: Final = _warning("ZC4013", "grant whose condition is commented out")
WHOLE_TEXT: Final = _warning("ZC4014", "pattern that is held against the whole text")

# --- 6xxx settings of the daemon (serving) ---------------------------------------------------------------

BAD_TOML: Final = _error("ZC6001", "settings that are no TOML")
UNKNOWN_SETTING: Final = _error("ZC6002", "setting that does not exist")
BAD_SETTING: Final = _error("ZC6003", "setting of another kind")
MISSING_SETTING: Final = _error("ZC6004", "setting that is missing")
NOT_IN_POLICY: Final = _error("ZC6005", "name that the policy does not have")
UNUSABLE_FILE: Final = _error("ZC6006", "file that cannot be used")
PLAIN_SECRET: Final = _error("ZC6007", "secret written in plain")
OPEN_ADDRESS: Final = _error("ZC6008", "open address without tokens")
CONFLICTING_SETTINGS: Final = _error("ZC6009", "settings that exclude each other")
ABSENT_LIBRARY: Final = _error("ZC6010", "setting that needs a library")
NO_WAY_IN: Final = _warning("ZC6101", "agent that nobody reaches")
UNUSED_SERVER: Final = _warning("ZC6102", "server that nobody connects")
ABSENT_SERVER: Final = _warning("ZC6103", "server that the settings do not have")
ABSENT_MODEL: Final = _warning("ZC6104", "agent without a model")
ABSENT_SECRET: Final = _warning("ZC6105", "secret that is not there")
UNANSWERED_ROUTE: Final = _warning("ZC6106", "route that nobody answers")
UNCOMPARED_SERVER: Final = _warning("ZC6107", "drift that nobody looks for")

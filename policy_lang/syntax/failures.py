"""Say why a text cannot be read at a place: in the user's terms, with help, at most three expectations.

In: a `Failure` of the driver, with the stack of states at that place. Out: one diagnostic.
"""

import re
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.source import Source, Span
from policy_lang.syntax.automaton import automaton
from policy_lang.syntax.driver import Failure
from policy_lang.syntax.hints import Place, borrowed, hint
from policy_lang.syntax.layout import CONTINUATION_WORDS, Layout

MAX_EXPECTATIONS: Final = 3
"""What could stand at the place of an error, in one message."""

MAX_QUOTED: Final = 40
"""Characters of the user's text in a message."""

_LOOKED_AT: Final = 200
"""Characters before and behind an error that a hint looks at."""

MAX_GAP: Final = 1_000
"""Blanks and comments between a line that goes on and the name that it took from a line below."""

SHORT: Final = 4
"""In words of so few letters one that is wrong weighs more."""

WORD = re.compile(r"[^\W\d][\w\-]*+")
_FOUND = re.compile(
    r"""-?[0-9][\w.]*+|(?:[@\w*][\w*\-]*+|"(?:[^"\\\n]|\\.)*+"|/)++|[=\-]>|[=!<>]=|&&|\|\||.""", re.DOTALL
)

_TERMS: Final = {
    "SEP": "the end of the statement", "NAME": "a name", "REF": "a name", "TOOL": "a tool", "GROUP": "a group",
    "OPERAND": "an argument such as `args.NAME`", "STRING": "text in quotes", "RAW": "text in quotes",
    "NUMBER": "a number", "DURATION": "a duration such as `10m`", "CURRENCY": "a currency such as `usd`",
}  # fmt: skip
_FIRST_TERMS: Final = ("TOOL", "NAME", "REF", "OPERAND", "NUMBER", "DURATION", "STRING", "CURRENCY")
_PREFERRED: Final = (
    ",", "allow", "deny", "ask", "agent", "tool", "group", "call", "given", "when", "unless", "because", "==", "in", "under",
    "not", "and", "or", "string", "path", "integer", "number", "read", "low", "medium",
)  # fmt: skip
"""What is named first where more can stand than are named."""

_MEANT: Final = {
    "permit": "allow", "grant": "allow", "forbid": "deny", "block": "deny", "reject": "deny", "refuse": "deny",
    "prohibit": "deny", "disallow": "deny", "confirm": "ask", "prompt": "ask", "if": "when", "where": "when",
    "=": "==", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not", "->": "=>", "is": "==", "str": "string", "int": "integer", "bool": "boolean",
    "float": "number", "array": "list", "dict": "object", "extends": "narrows", "inherits": "narrows", "denied": "deny",
    "allowed": "allow", "asked": "ask", "exists": "has", "all": "every", "any": "some", "each": "every",
    "equals": "==", "includes": "contains", "inside": "under", "within": "under", "below": "under", "regex": "matches",
}  # fmt: skip
"""Words of other languages."""

_WITHHOLDING: Final = frozenset({"deny", "ask", "only", "limit"})
"""Statements that only withhold: where such a word is misspelt, mending it permits nothing. Every other guess is the author's to take."""
_OPERATOR_SIGNS: Final = frozenset("=<>!&|~^$*%")
_LISTED: Final = {
    "use": "profile", "connect": "bundle", "skills": "skill", "skill": "skill", "to": "agent", "read": "scope",
    "write": "scope", "label": "label", "scope": "scope",
}  # fmt: skip
_CLAUSES: Final = frozenset(CONTINUATION_WORDS) - {"and", "or", "except"}
_RULES: Final = frozenset({"allow", "ask", "deny", "auto_approve", "mark"})
_NONE_HELP: Final = {
    "only": "write `only none` to forbid everything",
    **dict.fromkeys(
        ("allow", "ask", "deny", "auto_approve"),
        "name a tool, or leave the rule out; for no tool at all write `only none`",
    ),
    "connect": "write `connect none` to connect nothing",
    "skills": "write `skills none` for no skill",
    "memory": "write `memory none` for no memory",
    "delegate": "write `delegate none` to delegate to nobody",
    "approval": "write `approval none` if nobody is asked",
}


def is_near(word: str, wanted: str) -> bool:
    """Whether a word could be a misspelling of another."""
    return nearest(word.lower(), [wanted]) is not None


def nearest(word: str, wanted: list[str]) -> str | None:
    """The word that was likely meant."""
    cutoff = 0.6 if len(word) <= SHORT else 0.7
    found = get_close_matches(word[:MAX_QUOTED], wanted, n=1, cutoff=cutoff)
    return found[0] if found else None


def explain(source: Source, found: Layout, failure: Failure) -> Diagnostic:
    """The finding of a failure."""
    return _Explanation(source, found, failure).diagnostic()


class _Explanation:
    def __init__(self, source: Source, found: Layout, failure: Failure) -> None:
        self.source = source
        machine = self.machine = automaton()
        self.known = machine.tables
        self.failure = failure
        length = len(source.text)
        at = min(failure.at, length)
        match = _FOUND.match(found.flat, failure.at)
        self.flat = found.flat
        self.text = match[0] if match else ""
        self.span = Span(at, min(at + len(self.text), length))
        if self.span.start == self.span.end and at:
            self.span = Span(len(source.text.rstrip()), len(source.text.rstrip()))
        self.word = self.text if WORD.fullmatch(self.text) else None
        state = failure.states[-1]
        self.terminals = [name for name in machine.terminals(state) if machine.accepts(failure.states, name)]
        self.words = sorted(self.known.words[name] for name in self.terminals if name in self.known.words)
        self.statements = machine.beginnings("declarations", "statements", "steps")
        self.begins = machine.resumes(state) and failure.at <= failure.statement.start
        self.head = self._head(found.flat)
        self.stack = {machine.reached_by.get(one, "") for one in failure.states}

    def _head(self, flat: str) -> str:
        """The first word of the statement."""
        match = WORD.match(flat, self.failure.statement.start)
        return match[0] if match else ""

    def diagnostic(self) -> Diagnostic:
        """The first of the explanations that fits."""
        return (
            self.unknown_statement()
            or self.missing_end()
            or self.empty_list()
            or self.clause()
            or self.borrowed()
            or self.misspelt()
            or self.odd_reference()
            or self.unexpected()
        )

    def make(self, code: codes.Code, message: str, help_: str | None, replacement: str | None = None) -> Diagnostic:
        fix = None
        if replacement is not None:
            misspelt = code is codes.UNKNOWN_STATEMENT and self.text.lower() not in _MEANT
            fix = Fix((Edit(self.source, self.span, replacement),), safe=misspelt and replacement in _WITHHOLDING)
        return Diagnostic(code, message, self.source, self.span, (), help_, fix)

    # --- the beginning of a statement ---

    def unknown_statement(self) -> Diagnostic | None:
        if not self.begins or self.word is None:
            return None
        if self.word in self.statements and self.word not in self.words:
            return self.make(codes.MISPLACED_STATEMENT, f"`{self.word}` cannot stand here", self._where(self.word))
        if self.word in CONTINUATION_WORDS:
            help_ = "it continues a statement: write one before it"
            return self.make(codes.UNEXPECTED, f"`{self.word}` continues nothing", help_)
        wanted = self.wanted()
        message = f"there is no statement `{self.quoted(self.word)}`"
        if wanted is not None:
            return self.make(codes.UNKNOWN_STATEMENT, message, f"did you mean `{wanted}`?", wanted)
        return self.make(codes.UNKNOWN_STATEMENT, message, f"here can stand {self.expectations()}")

    def _where(self, word: str) -> str:
        if word in self.machine.beginnings("declarations"):
            return f"`{word}` stands outside of blocks: is a `}}` missing above?"
        if word in self.machine.beginnings("statements"):
            return f"`{word}` stands in a body, such as `agent NAME {{ {word} … }}`"
        return f"`{word}` stands in a `test` block"

    # --- inside a statement ---

    def missing_end(self) -> Diagnostic | None:
        """A line that goes on, by its last sign, into what begins another statement."""
        between = self.source.text[self.failure.end : self.failure.at]
        if not self.begins and self.last_word() in self.statements:
            return self.name_below()
        if self.begins or "\n" not in between or self.word not in self.statements:
            return None
        mark = self.last_word()
        found = self.make(codes.UNEXPECTED, f"nothing follows `{self.quoted(mark)}`", f"expected {self.expectations()}")
        return replace(found, span=Span(self.failure.end - len(mark), self.failure.end))

    def name_below(self) -> Diagnostic | None:
        """The next statement's first word, read as the name that a line which goes on lacks: `group g =`, `agent a { … }`."""
        text, start = self.source.text, self.failure.end - len(self.last_word())
        before = self.flat[max(0, start - MAX_GAP) : start].rstrip()
        end = max(0, start - MAX_GAP) + len(before)
        if not before.endswith(("=", ",")) or "\n" not in text[end:start]:
            return None
        found = self.make(
            codes.EMPTY_LIST, f"nothing follows `{before[-1]}`", "name what stands there, or leave it out"
        )
        return replace(found, span=Span(end - 1, end))

    def empty_list(self) -> Diagnostic | None:
        ended = self.text in {"\n", ";", "}", ""} or self.text in _CLAUSES
        if self.begins or not ended or not {"TOOL", "REF", "NAME"} & set(self.terminals):
            return None
        last = self.last_word()
        tools = "TOOL" in self.terminals and (last.isidentifier() or last == "=")
        if not tools and last not in _LISTED:
            return None
        what = "tool" if tools else _LISTED[last]
        help_ = _NONE_HELP.get(self.head, f"name a {what}, or leave the statement out")
        found = self.make(codes.EMPTY_LIST, f"`{last}` names no {what}", help_)
        return replace(found, span=Span(self.failure.end - len(last), self.failure.end))

    def last_word(self) -> str:
        """What the statement says last before the failure."""
        begin = max(self.failure.statement.start, self.failure.end - MAX_QUOTED)
        return (self.source.text[begin : self.failure.end].split() or [""])[-1]

    def clause(self) -> Diagnostic | None:
        if self.text not in _CLAUSES or "tools" not in self.stack:
            return None
        if self.text == "with":
            help_ = "`with approval` stands in `allow`, before `when`; other rules ask with `ask`"
        elif self.text == "unclear":
            help_ = "`unclear ask` ends a `deny`"
        elif self.head == "only":
            help_ = "`only` takes no condition: write a `deny` with one"
        elif self.head in _RULES:
            help_ = "the order is `with approval`, `when`, `unless`, `because`, `unclear ask`, each at most once"
        else:
            return None
        return self.make(codes.CLAUSE_ORDER, f"`{self.text}` cannot stand here", help_)

    def borrowed(self) -> Diagnostic | None:
        """What another language writes so, and this one with other words: no single word mends it."""
        help_ = borrowed(self.place())
        return (
            None
            if help_ is None
            else self.make(codes.UNEXPECTED, f"`{self.quoted(self.text)}` cannot stand here", help_)
        )

    def misspelt(self) -> Diagnostic | None:
        wanted = self.wanted()
        if wanted is None:
            return None
        message = f"`{self.quoted(self.text)}` cannot stand here"
        return self.make(codes.UNKNOWN_WORD, message, f"did you mean `{wanted}`?", wanted)

    def wanted(self) -> str | None:
        """What was likely meant by the text, of what can stand there; part of a longer sign means nothing."""
        meant = _MEANT.get(self.text.lower())
        if meant in self.words:
            rest = self.source.text[self.span.end : self.span.end + 1]
            return None if self.word is None and rest in _OPERATOR_SIGNS else meant
        found = None if self.word is None else nearest(self.word.lower(), self.words)
        return None if found == self.text else found

    def odd_reference(self) -> Diagnostic | None:
        if "TOOL" not in self.terminals or self.begins:
            return None
        if self.text == "none":
            return self.make(codes.UNEXPECTED, f"`{self.head} none` says nothing", "leave the statement out")
        if self.text in {*CONTINUATION_WORDS, "any"}:
            help_ = f'`{self.text}` is a word of the language; a tool of that name is written `"{self.text}"`'
            if self.text in _CLAUSES and self.last_word().endswith(","):
                help_ = "drop the `,` before it"
            return self.make(codes.RESERVED_NAME, f"`{self.text}` cannot stand here", help_)
        if len(self.text) > 1 and (self.text[0] in '@*_"' or self.text[0].isalpha()):
            help_ = 'a reference is `TOOL`, `SERVER/TOOL`, `@GROUP` or `any`; other characters stand in quotes: `"a b"`'
            return self.make(codes.UNEXPECTED, f"`{self.quoted(self.text)}` is no reference to a tool", help_)
        return None

    def unexpected(self) -> Diagnostic:
        if self.text in {"", "\n", ";"}:
            what = "the statement ends too early"
        elif self.text == "}":
            what = "`}` comes too early"
        else:
            what = f"`{self.quoted(self.text)}` cannot stand here"
        return self.make(codes.UNEXPECTED, what, self._hint() or f"expected {self.expectations()}")

    def _hint(self) -> str | None:
        """Help for what is often written."""
        return hint(self.place())

    def place(self) -> Place:
        """The place of the error, as hints look at it."""
        text, failure = self.source.text, self.failure
        before = text[max(failure.statement.start, failure.end - _LOOKED_AT) : failure.end]
        behind = text[failure.at : failure.at + _LOOKED_AT]
        return Place(self.text, self.word, self.head, before, behind, self.words, self.terminals, self.statements)

    def quoted(self, text: str) -> str:
        """The user's text, cut where it is long."""
        return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"

    def expectations(self) -> str:
        """At most `MAX_EXPECTATIONS` of what can stand there, in the user's terms."""
        terms = dict.fromkeys(_TERMS[name] for name in _FIRST_TERMS if name in self.terminals)
        if "SEP" in self.terminals and not self.begins:
            terms[_TERMS["SEP"]] = None
        rank = {word: place for place, word in enumerate(_PREFERRED)}
        words = sorted(self.words, key=lambda word: (rank.get(word, len(rank)), word))
        listed = [*terms, *(f"`{word}`" for word in words if not (word == "}" and terms))]
        if len(listed) > MAX_EXPECTATIONS:
            return ", ".join([*listed[:MAX_EXPECTATIONS], "…"])
        return " or ".join(filter(None, [", ".join(listed[:-1]), listed[-1] if listed else "the end of the file"]))

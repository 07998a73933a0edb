"""Say why a text cannot be read at a place: in the user's terms, with help, at most three expectations.

In: a `Failure` of the driver, with the stack of states at that place. Out: one diagnostic.
"""

import re
from difflib import get_close_matches
from typing import Final

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.source import Source, Span
from policy_lang.syntax.automaton import automaton
from policy_lang.syntax.driver import Failure
from policy_lang.syntax.layout import CONTINUATION_WORDS, Layout

MAX_EXPECTATIONS: Final = 3
MAX_QUOTED: Final = 40
"""Characters of the user's text in a message."""

WORD = re.compile(r"[^\W\d][\w\-]*+")
_FOUND = re.compile(r'[^\W\d][\w*\-]*+(?:/[\w*\-]++)?|"(?:[^"\\\n]|\\.)*+"|-?[\d][\w.]*+|=>|[=!<>]=|.', re.DOTALL)

_TERMS: Final = {
    "SEP": "the end of the statement", "NAME": "a name", "REF": "a name", "TOOL": "a tool", "GROUP": "a group",
    "OPERAND": "an argument such as `args.NAME`", "STRING": "text in quotes", "RAW": "text in quotes",
    "NUMBER": "a number", "DURATION": "a duration such as `10m`", "CURRENCY": "a currency such as `usd`",
}  # fmt: skip
_FIRST_TERMS: Final = ("TOOL", "NAME", "REF", "OPERAND", "NUMBER", "DURATION", "STRING", "CURRENCY")
_CLAUSES: Final = frozenset(CONTINUATION_WORDS) - {"and", "or", "except"}
_NONE_HELP: Final = {
    "only": "write `only none` to forbid everything",
    "connect": "write `connect none` to connect nothing",
    "skills": "write `skills none` for no skill",
    "memory": "write `memory none` for no memory",
    "delegate": "write `delegate none` to delegate to nobody",
    "approval": "write `approval none` if nobody is asked",
}


def is_near(word: str, wanted: str) -> bool:
    """Whether a word could be a misspelling of another."""
    return bool(get_close_matches(word[:MAX_QUOTED], [wanted], n=1, cutoff=0.7))


def nearest(word: str, wanted: list[str]) -> str | None:
    """The word that was likely meant."""
    found = get_close_matches(word[:MAX_QUOTED], wanted, n=1, cutoff=0.7)
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
        self.text = match[0] if match else ""
        self.span = Span(at, min(at + len(self.text), length))
        if self.span.start == self.span.end and at:
            self.span = Span(len(source.text.rstrip()), len(source.text.rstrip()))
        self.word = self.text if WORD.fullmatch(self.text) else None
        state = failure.states[-1]
        self.terminals = [name for name in machine.terminals(state) if machine.accepts(failure.states, name)]
        self.words = sorted(self.known.words[name] for name in self.terminals if name in self.known.words)
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
            self.unknown_statement() or self.empty_list() or self.clause() or self.misspelt() or self.reserved()
            or self.unexpected()
        )  # fmt: skip

    def make(self, code: codes.Code, message: str, help_: str | None, replacement: str | None = None) -> Diagnostic:
        fix = None if replacement is None else Fix((Edit(self.source, self.span, replacement),), safe=False)
        return Diagnostic(code, message, self.source, self.span, (), help_, fix)

    # --- the beginning of a statement ---

    def unknown_statement(self) -> Diagnostic | None:
        if not self.begins or self.word is None:
            return None
        if self.word in self.machine.beginnings("declarations", "statements", "steps") and self.word not in self.words:
            return self.make(codes.MISPLACED_STATEMENT, f"`{self.word}` cannot stand here", self._where())
        wanted = nearest(self.word, self.words)
        if wanted is not None:
            message = f"there is no statement `{self.quoted(self.word)}`"
            return self.make(codes.UNKNOWN_STATEMENT, message, f"did you mean `{wanted}`?", wanted)
        if self.word in CONTINUATION_WORDS:
            help_ = "it continues a statement: write one before it"
            return self.make(codes.UNEXPECTED, f"`{self.word}` continues nothing", help_)
        message = f"there is no statement `{self.quoted(self.word)}`"
        return self.make(codes.UNKNOWN_STATEMENT, message, f"here can stand {self._expectations()}")

    def _where(self) -> str:
        word = self.word or ""
        if word in self.machine.beginnings("statements"):
            return f"`{word}` stands in a body, such as `agent NAME {{ {word} … }}`"
        if word in self.machine.beginnings("steps"):
            return f"`{word}` stands in a `test` block"
        return f"`{word}` stands outside of blocks: is a `}}` missing above?"

    # --- inside a statement ---

    def empty_list(self) -> Diagnostic | None:
        ended = self.text in {"\n", ";", "}", ""} or self.text in _CLAUSES
        if not ended or not {"TOOL", "REF", "NAME"} & set(self.terminals) or self.begins:
            return None
        before = self.source.text[self.failure.statement.start : self.failure.at].rstrip()
        if before.endswith(","):
            return None
        last = before.split()[-1] if before else ""
        if last not in {"only", "connect", "skills", "memory", "delegate", "allow", "ask", "deny", "auto_approve", "to",
                        "use", "except", "read", "write", "label", "scope", "=", "on", "before", "require"}:  # fmt: skip
            return None
        what = "tool" if "TOOL" in self.terminals else "name"
        help_ = _NONE_HELP.get(self.head, f"name a {what}, or leave the statement out")
        found = self.make(codes.EMPTY_LIST, f"`{last}` names no {what}", help_)
        start = self.failure.statement.start + len(before) - len(last)
        return Diagnostic(found.code, found.message, self.source, Span(start, start + len(last)), (), help_)

    def clause(self) -> Diagnostic | None:
        if self.text not in _CLAUSES or self.begins or "rule_tools" in self.stack:
            return None
        if self.head in {"allow", "ask", "deny", "auto_approve", "mark", "only"} and "tools" in self.stack:
            if self.text == "with":
                help_ = "`with approval` stands in `allow`, before `when`; other rules ask with `ask`"
            elif self.text == "unclear":
                help_ = "`unclear ask` ends a `deny`"
            elif self.head == "only":
                help_ = "`only` takes no condition: write a `deny` with one"
            else:
                help_ = "the order is `with approval`, `when`, `unless`, `because`, `unclear ask`, each at most once"
            return self.make(codes.CLAUSE_ORDER, f"`{self.text}` cannot stand here", help_)
        return None

    def misspelt(self) -> Diagnostic | None:
        if self.word is None:
            return None
        wanted = nearest(self.word, self.words)
        if wanted is None or wanted == self.word:
            return None
        message = f"`{self.quoted(self.word)}` cannot stand here"
        return self.make(codes.UNKNOWN_WORD, message, f"did you mean `{wanted}`?", wanted)

    def reserved(self) -> Diagnostic | None:
        if "TOOL" not in self.terminals or self.word not in {"none", *CONTINUATION_WORDS} or self.begins:
            return None
        if self.word == "none":
            return self.make(codes.UNEXPECTED, f"`{self.head} none` says nothing", "leave the statement out")
        return None

    def unexpected(self) -> Diagnostic:
        if self.text in {"", "\n"}:
            what = "the statement ends too early"
        elif self.text == "}":
            what = "`}` comes too early"
        else:
            what = f"`{self.quoted(self.text)}` cannot stand here"
        return self.make(codes.UNEXPECTED, what, f"expected {self._expectations()}")

    def quoted(self, text: str) -> str:
        """The user's text, cut where it is long."""
        return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"

    def _expectations(self) -> str:
        terms = dict.fromkeys(_TERMS[name] for name in _FIRST_TERMS if name in self.terminals)
        if "SEP" in self.terminals and not self.begins:
            terms[_TERMS["SEP"]] = None
        words = [f"`{word}`" for word in self.words if not (word == "}" and terms)]
        listed = [*terms, *words]
        if len(listed) > MAX_EXPECTATIONS:
            listed = listed[:MAX_EXPECTATIONS]
            return ", ".join(listed)
        return " or ".join(filter(None, [", ".join(listed[:-1]), listed[-1] if listed else "the end of the file"]))

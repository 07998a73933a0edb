"""Options that make a program run another program or write a file of the caller's choice.

In: the words of a command. Out: the positions of the words that no `...` and no `*` of a granting pattern may stand
for; such a word counts only when the pattern spells it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .shell_lexer import Word
from .shell_option_tables import GIT, GIT_ANY, GIT_GLOBAL, OPTIONS
from .shell_scripts import Quiet, awk_is_quiet, sed_is_quiet


class _Spec(NamedTuple):
    letters: frozenset[str]
    longs: tuple[str, ...]
    singles: frozenset[str]
    heads: frozenset[str]
    operand: int
    names: frozenset[str]


@lru_cache(maxsize=512)
def _spec(table: str) -> _Spec:
    letters: set[str] = set()
    longs: list[str] = []
    singles: set[str] = set()
    heads: set[str] = set()
    names: set[str] = set()
    operand = 0
    for entry in table.split():
        if entry.startswith("--"):
            longs.append(entry[2:])
        elif entry.startswith("-") and len(entry) == 2:
            letters.add(entry[1])
        elif entry.startswith("-"):
            singles.add(entry[1:])
        elif entry.startswith("#"):
            operand = int(entry[1:])
        elif entry in {"+", "=", "@"}:
            heads.add(entry)
        else:
            names.add(entry)
    return _Spec(frozenset(letters), tuple(longs), frozenset(singles), frozenset(heads), operand, frozenset(names))


_GIT_OPERANDS: Final = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env".split())
_GIT_PLAIN: Final = frozenset(
    "-p -P --paginate --no-pager --no-replace-objects --no-optional-locks --literal-pathspecs".split()
)


def _git_hazards(words: Sequence[Word], start: int) -> set[int]:
    """Git's own options stand before the subcommand, whose table counts from there on."""
    at = start + 1
    while at < len(words) and words[at].head.startswith("-"):
        option = words[at].text
        if option not in _GIT_OPERANDS | _GIT_PLAIN and not (option or "").startswith(("--git-dir=", "--work-tree=")):
            return _listed(f"{GIT_GLOBAL} {GIT_ANY} {' '.join(GIT.values())}", words, start, start)
        at += 1 + (option in _GIT_OPERANDS)
    if at >= len(words):
        return _listed(GIT_GLOBAL, words, start, start)
    if words[at].text is None:
        return set(range(at, len(words)))
    own = _listed(f"{GIT_ANY} {GIT.get(words[at].text or '', '')}", words, at, start)
    return own | {index for index in _listed(GIT_GLOBAL, words, start, start) if index < at}


def _family(program: str) -> str:
    """`python3.12` is `python`, `pip3` is `pip`: versions share a table."""
    return program if program in OPTIONS else program.rstrip("0123456789.-")


def option_hazards(words: Sequence[Word], start: int = 0) -> set[int]:
    """Positions in `words` that a granting pattern has to spell, for the program named at `start`."""
    name = (words[start].text or "").rpartition("/")[2]
    if name in {"sed", "gsed"}:
        return _script_hazards(words, start, _PLAIN["sed"], sed_is_quiet)
    if name in {"awk", "gawk", "mawk", "nawk"}:
        return _script_hazards(words, start, _PLAIN["awk"], awk_is_quiet)
    if name == "git":
        return _git_hazards(words, start)
    table = OPTIONS.get(_family(name))
    if table is None:
        return set()
    found = _listed(table, words, start, start)
    first = words[start + 1] if start + 1 < len(words) else None
    if (
        name == "tar"
        and first
        and not first.head.startswith("-")
        and (first.splits or set(first.head) & {"I", "F", "g"})
    ):
        found.add(start + 1)
    return found


def _listed(table: str, words: Sequence[Word], after: int, start: int) -> set[int]:
    """The positions behind `after` that a table lists; operands are counted from `start`."""
    spec = _spec(table)
    found = {index for index in range(after + 1, len(words)) if _is_listed(spec, words[index])}
    return found | _later_operands(words, start, spec.operand) if spec.operand else found


def _later_operands(words: Sequence[Word], start: int, number: int) -> set[int]:
    """The operands from the `number`th on; an operand of an option counts, and a pattern may become several."""
    seen, found = 0, set[int]()
    for index in range(start + 1, len(words)):
        if words[index].head.startswith("-") and words[index].head != "-":
            continue
        seen += 1
        if seen >= number or words[index].splits:
            found.add(index)
    return found


def _is_listed(spec: _Spec, word: Word) -> bool:
    head = word.head
    if not head.startswith("-"):
        return _is_listed_operand(spec, word)
    name = head.lstrip("-").partition("=")[0]
    if not name:
        return False
    if name in spec.singles:
        return True
    if (head.startswith("--") or len(name) > 1) and any(long.startswith(name) for long in spec.longs):
        return True
    return not head.startswith("--") and not spec.letters.isdisjoint(head)


def _is_listed_operand(spec: _Spec, word: Word) -> bool:
    head = word.head
    if head[:1] in spec.heads or head in spec.names:
        return True
    return "=" in spec.heads and (word.text is None or "=" in head)


_PLAIN: Final = {"sed": ("nErsuz", ""), "awk": ("", "Fv")}
"""Letters of options that neither run nor write anything: without and with an operand."""


def _script_hazards(
    words: Sequence[Word], start: int, plain: tuple[str, str], read: Callable[[str], Quiet]
) -> set[int]:
    """For a program whose first operand is a program: that operand unless it is quiet, and everything beside an
    option that is not known to be harmless.
    """
    found: set[int] = set()
    program, index = None, start + 1
    while index < len(words):
        word = words[index]
        if not word.head.startswith("-") or word.text == "-":
            if program is None:
                program = index
                found = set() if word.text is not None and all(read(word.text)) else {index}
        elif word.head[1:2] in plain[1] and len(word.head) > 1:
            index += len(word.head) == 2
        elif not set(word.head[1:]) <= set(plain[0]):
            return set(range(start + 1, len(words)))
        index += 1
    return found

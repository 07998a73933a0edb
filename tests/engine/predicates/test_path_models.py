"""Paths against models: patterns spelled out, every completion of a hole, many directories, any text at all."""

import itertools
import posixpath
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from zcpolicy.predicates.path import glob, protected_hit, same_path, under
from zcpolicy.predicates.refs import WITHIN, PathRef, Where, Within

NOWHERE = Where()


def ref(*parts: str | Within | None) -> PathRef:
    return PathRef(parts)


# --- the model: patterns on known paths ------------------------------------------------------------------------------


def _model_component(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_model_component(pattern[1:], text[i:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in {"?", text[0]} and _model_component(pattern[1:], text[1:])


def _model(pattern: list[str], components: list[str]) -> bool:
    if not pattern:
        return not components
    if pattern[0] == "**":
        return any(_model(pattern[1:], components[i:]) for i in range(len(components) + 1))
    return bool(components) and _model_component(pattern[0], components[0]) and _model(pattern[1:], components[1:])


def _parts_of(text: str) -> list[str]:
    return [part for part in text.split("/") if part]


names = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name not in {".", ".."})
pattern_parts = st.one_of(st.just("**"), names, st.text("ab*?", min_size=1, max_size=3).filter(lambda p: "**" not in p))


def _pattern(head: str, parts: list[str]) -> str:
    return head + "/".join(parts)


patterns = st.builds(_pattern, st.sampled_from(["/", "**/"]), st.lists(pattern_parts, max_size=4))
known = st.lists(names, max_size=5).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(patterns, min_size=1, max_size=3), known)
@settings(max_examples=400, deadline=None)
def test_patterns_against_the_model(written: list[str], path: str) -> None:
    expected = any(_model(_parts_of(pattern), _parts_of(path)) for pattern in written)
    assert glob(tuple(written), True)(ref(path), NOWHERE) is expected
    # the same through the general way
    assert glob(tuple(written), False)(ref(path + "/."), NOWHERE) is expected


@given(st.lists(st.sampled_from(["a", "b", ".", "..", "", "a.b"]), max_size=8))
@settings(max_examples=200, deadline=None)
def test_normal_form_against_posixpath(parts: list[str]) -> None:
    text = "/" + "/".join(parts)
    depth = list(itertools.accumulate(-1 if p == ".." else p not in {".", ""} for p in parts))
    expected = None if min(depth, default=0) < 0 else posixpath.normpath(text).replace("//", "/")
    for operand in ("/a/b", "/a", "/b/a.b", "/"):
        answer = None if expected is None else (expected + "/").startswith(operand.rstrip("/") + "/")
        assert under((operand,), True)(ref(text), NOWHERE) is answer


# --- the model: enumerated completions and directories ---------------------------------------------------------------

RUNS = [
    *("".join(chars) for size in range(4) for chars in itertools.product("ab/", repeat=size)),
    *("..", "../..", "../../..", "../../../a", "../../../b/a", "../../../a/b/a", "/../../../b", "a/../../../a"),
]
WITHINS = ["".join(chars) for size in range(4) for chars in itertools.product("ab", repeat=size)]
DIRECTORIES = ["", "/a", "/b", "/ab", "/a/b", "/b/a", "/a/a", "/b/b/a", "/ab/a/b", "/a/b/a/b"]

pieces = st.text("ab/", max_size=3)
mentions = st.lists(st.one_of(pieces, st.none(), st.just(WITHIN)), min_size=1, max_size=4).filter(
    lambda parts: sum(not isinstance(p, str) for p in parts) <= 2
)


def _completions(parts: list[str | Within | None]) -> Iterator[str]:
    choices = [[p] if isinstance(p, str) else RUNS if p is None else ["\1" + name for name in WITHINS] for p in parts]
    for texts in itertools.product(*choices):
        text = "".join(texts)
        # a component in which a file name is expanded is never empty
        if not any(part and not part.strip("\1") for part in text.split("/")):
            yield text.replace("\1", "")


@given(st.lists(patterns, min_size=1, max_size=2), mentions)
@settings(max_examples=120, deadline=None)
def test_holes_against_their_completions(written: list[str], parts: list[str | Within | None]) -> None:
    where = Where(cwd="/a/b")
    answer = glob(tuple(written), False)(PathRef(tuple(parts)), where)
    found: set[bool] = set()
    for text in _completions(parts):
        path = posixpath.normpath(posixpath.join("/a/b", text)).replace("//", "/")
        found.add(any(_model(_parts_of(pattern), _parts_of(path)) for pattern in written))
        if len(found) == 2:
            break
    if answer is not None:
        # what is certain holds for every completion
        assert found <= {answer}, (written, parts)


plain_parts = st.one_of(st.just("**"), st.text("ab*?", min_size=1, max_size=3).filter(lambda p: "**" not in p))
plain_patterns = st.lists(plain_parts, max_size=3).map(lambda parts: "/" + "/".join(parts))
names_with_holes = st.lists(st.one_of(st.text("ab", max_size=2), st.just(WITHIN), st.just("/")), min_size=1, max_size=5)


@given(plain_patterns, names_with_holes.filter(lambda parts: parts.count(WITHIN) <= 2))
@settings(max_examples=150, deadline=None)
def test_only_what_some_completion_satisfies_is_not_false(pattern: str, parts: list[str | Within | None]) -> None:
    answer = glob((pattern,), False)(PathRef(("/", *parts)), NOWHERE)
    some = any(_model(_parts_of(pattern), _parts_of("/" + text)) for text in _completions(parts))
    assert (answer is not False) == some


@given(st.lists(patterns, min_size=1, max_size=2), st.lists(names, min_size=1, max_size=3))
@settings(max_examples=250, deadline=None)
def test_unknown_directories_against_many(written: list[str], own: list[str]) -> None:
    text = "/".join(own)
    found = {
        any(_model(_parts_of(pattern), _parts_of(f"{folder}/{text}")) for pattern in written)
        for folder in (*DIRECTORIES, "/c", "/c/c", "/c/c/c/c/c", "/?/x")
    }
    granting = glob(tuple(written), True)(ref(text), NOWHERE)
    withholding = glob(tuple(written), False)(ref(text), NOWHERE)
    assert granting is None or found == {granting}
    assert not (granting is True and withholding is False)
    if withholding is True:
        assert found == {True}
    if found == {True, False}:
        assert granting is None


# --- properties of every text ----------------------------------------------------------------------------------------

texts = st.one_of(
    st.text(max_size=20),
    st.text("ab./~ '\t\u0301\u200d\u00c9", max_size=12),
    st.lists(
        st.sampled_from(["/", "..", "~", "w", "app", ".env", "proc", "self", "fd", "\u0130", " "]), max_size=8
    ).map("".join),
)


def _shrugs(_path: str) -> str | None:
    return None


holes = st.one_of(texts, st.none(), st.just(WITHIN))
refs = st.builds(
    PathRef,
    st.lists(holes, min_size=1, max_size=4).map(tuple),
    st.one_of(st.just(""), st.none(), texts),
    st.sampled_from([None, True, False]),
)
wheres = st.builds(
    Where,
    st.sampled_from([None, "/w/app", "/", "relative"]),
    st.sampled_from([None, "/home/u"]),
    st.just("posix"),
    st.sampled_from([None, posixpath.normpath, _shrugs]),
)
operands = st.sampled_from([("/w/app",), ("/",), ("/home/u", "/w"), ("/w/app/.env",)])


@given(operands, refs, wheres)
@settings(max_examples=300, deadline=None)
def test_what_grants_withholds_as_well(operand: tuple[str, ...], mention: PathRef, where: Where) -> None:
    for make in (under, glob, same_path):
        granting, withholding = make(operand, True)(mention, where), make(operand, False)(mention, where)
        assert not (granting is True and withholding is False), (make, granting, withholding)
    hit = protected_hit(operand)(mention, where)
    assert (hit is False) == (under(operand, False)(mention, where) is False)


@given(operands, st.lists(texts, min_size=1, max_size=3), wheres, st.data())
@settings(max_examples=200, deadline=None)
def test_knowing_less_never_decides(
    operand: tuple[str, ...], known: list[str], where: Where, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(known) - 1))
    less = (*known[:place], None, *known[place + 1 :])
    for make in (under, glob, same_path):
        whole = make(operand, False)(PathRef(tuple(known)), where)
        partly = make(operand, False)(PathRef(less), where)
        assert partly is None or whole is None or partly == whole


@given(operands, st.one_of(texts, st.text(st.characters(max_codepoint=126), max_size=12)), wheres, st.integers(0, 12))
@settings(max_examples=300, deadline=None)
def test_a_path_in_two_texts_is_the_same_path(operand: tuple[str, ...], text: str, where: Where, cut: int) -> None:
    for make in (under, glob, same_path):
        for granting in (True, False):
            test = make(operand, granting)
            assert test(ref(text), where) is test(ref(text[:cut], text[cut:]), where)
    assert protected_hit(operand)(ref(text), where) is protected_hit(operand)(ref(text[:cut], text[cut:]), where)

"""Paths, case by case: what is under what, what is UNKNOWN, what each reading says."""

import os
import posixpath
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zcpolicy.predicates.path import (
    MAX_PATH_CHARACTERS,
    check_glob,
    check_path,
    check_prefix,
    glob,
    paths_equal,
    protected_hit,
    same_path,
    under,
)
from zcpolicy.predicates.refs import ANYWHERE, WITHIN, PathRef, Truth, Where, Within

NOWHERE = Where()
APP = Where(cwd="/w/app")
SECRETS = ("**/.env", "**/*.pem", "**/.ssh/**")

Parts = tuple[str | Within | None, ...]
Maker = Callable[[tuple[str, ...], bool], Callable[[object, Where], Truth]]


def ref(*parts: str | Within | None) -> PathRef:
    return PathRef(parts)


def grants(operand: str, text: str, where: Where = NOWHERE) -> Truth:
    return under((operand,), True)(ref(text), where)


def withholds(operand: str, text: str, where: Where = NOWHERE) -> Truth:
    return under((operand,), False)(ref(text), where)


# --- the shared cases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/w/app/a.txt", True),
        ("/w/app", True),
        ("/w/app-secret/f", False),
        ("/w/app2/f", False),
        ("/w/app/../other/f", False),
        ("/w/app/x/../../app/a.txt", True),
        ("/w/app//a.txt", True),
        ("//w/app/./a.txt", True),
        ("/w/vendor/app/src/f", False),
        ("/w/app/a b (1) [x].txt", True),
        ("/w/app/it's", True),
        ("/w/app/~", True),
        ("/w/app/~x", True),
        ("/w/app/a\0b", None),
        ("../../../../../../etc/passwd", None),
    ],
)
def test_under_means_by_whole_components(text: str, expected: Truth) -> None:
    assert grants("/w/app", text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/w/app/.env", True),
        ("/w/app/.ENV", None),
        ("/w/app/sub/../.env", True),
        ("/w/app/k.pem", True),
        ("/w/app/my.environment.ts", False),
        ("/w/app/.envrc", False),
        ("/w/app", False),
        ("/home/u/.ssh", True),
        ("/home/u/.ssh/id_rsa", True),
        ("/home/u/x.ssh/id_rsa", False),
        ("~/.ssh/id_rsa", True),
        ("~/a.txt", False),
        ("cat", False),
    ],
)
def test_a_secret_is_a_secret_in_any_spelling(text: str, expected: Truth) -> None:
    assert glob(SECRETS, False)(ref(text), NOWHERE) is expected


@pytest.mark.parametrize(
    ("text", "granted"),
    [("a.txt", True), ("../other/a.txt", False), ("~/.ssh/id_rsa", None), ("~/a.txt", None), ("", True), (".", True)],
)
def test_relative_paths_start_where_they_are_opened(text: str, granted: Truth) -> None:
    assert grants("/w/app", text, APP) is granted


def test_a_shell_word_starts_where_cd_went() -> None:
    hits = glob(SECRETS, False)
    assert hits(PathRef((".env",), base=".."), APP) is True
    assert hits(PathRef(("status",)), APP) is False
    assert under(("/w/app",), True)(PathRef(("x",), base=".."), APP) is False
    assert under(("/etc",), False)(PathRef(("x",), base="/etc"), APP) is True


def test_a_home_directory_may_be_any() -> None:
    assert withholds("/home/u/.ssh", "~/.ssh/id", Where(cwd="/w")) is None
    assert withholds("/home/u/.ssh", "~/x", Where(cwd="/w")) is None
    assert withholds("/home/u/.ssh", "a.txt", Where(cwd="/w")) is False


def test_a_home_directory_that_the_host_vouches_for() -> None:
    home = Where(cwd="/w", home="/home/u")
    asked = under(("/home/u/.ssh",), False)
    assert asked(PathRef(("~/.ssh/id",), tilde=True), home) is True
    assert asked(PathRef(("~/x",), tilde=True), home) is False
    assert asked(ref("~/.ssh/id"), home) is True
    # in a plain argument it may also be a directory of that name
    assert under(("/w/~",), False)(ref("~/.ssh/id"), home) is None
    # quoted in a shell it is one
    assert under(("/w/~",), False)(PathRef(("~/.ssh/id",), tilde=False), home) is True
    # another user's home is not told
    assert asked(PathRef(("~v/.ssh/id",), tilde=True), home) is None
    # and nobody may have that name
    assert glob(("/w/~v*/**",), False)(PathRef(("~v/x",), tilde=True), home) is None
    assert glob(("/w/~*/**",), False)(PathRef(("~/x",), tilde=True), home) is False
    # a directory that a shell changed to
    assert asked(PathRef(("id",), base="~/.ssh"), home) is True
    assert asked(PathRef(("id",), base="~/.ssh"), APP) is None


# --- what is UNKNOWN -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "~/x",
        "~u/x",
        " /w/app/x",
        "/w/app/x ",
        "'/w/app/x'",
        '"/w/app/x',
        "/w/app/x\n",
        "/w/app/a\nb",
        "/w/app/a\x7fb",
        "/w/app/a\x85b",
        "/w/app/\u202etxt.exe",
        "/w/app/x\u00a0",
        "file:///w/app/x",
        "/proc/self/cwd/x",
        "/proc/1/root/w/app/x",
        "/proc/self/task/7/fd/3",
        "/w/app/../../proc/self/cwd/../../../w/app/x",
        "/dev/fd/3",
        "/dev/stdin",
        "/w/app/a\0b",
        "/../w/app/x",
        "/w/app/" + "x" * MAX_PATH_CHARACTERS,
    ],
)
def test_what_programs_may_read_otherwise_never_grants(text: str) -> None:
    assert grants("/", text, APP) is None


@pytest.mark.parametrize("text", ["/w/app/a\0b", "/../w/app/x", "/w/app/" + "x" * MAX_PATH_CHARACTERS])
def test_what_no_program_can_open_is_unknown_for_withholding_too(text: str) -> None:
    assert withholds("/etc", text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" /etc/passwd", None),
        ("\ufeff/etc/passwd", None),
        ("'/etc/passwd'", None),
        ("/etc ", None),
        ("/proc/self/root/etc/passwd", None),
        ("/proc/self/root/x", False),
        ("/proc/self/status", False),
    ],
)
def test_withholding_reads_what_programs_may_read(text: str, expected: Truth) -> None:
    assert withholds("/etc", text) is expected


def test_path_tests_are_unknown_on_windows() -> None:
    windows = Where(cwd="/w/app", platform="windows")
    assert grants("/w/app", "/w/app/x", windows) is None
    assert withholds("/w/app", "/x", windows) is None
    assert protected_hit(("/p",))(ref("/x"), windows) is None
    assert paths_equal(ref("/x"), ref("/x"), windows, True) is None


# --- readings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operand", "text", "expected"),
    [
        ("/w/app", "/W/App/x", None),
        ("/W/App", "/w/app/x", None),
        ("/w/caf\u00e9", "/w/cafe\u0301/x", None),
        ("/w/cafe\u0301", "/w/caf\u00e9/x", None),
        ("/w/caf\u00e9", "/w/caf\u00e9/x", True),
        ("/w/stra\u00dfe", "/w/STRASSE", None),
        ("/w/app", "/w/a\u200bpp/x", None),
        ("/w/app", "/w/app/\u2764\ufe0f.txt", True),
        ("/w/app", "/w/ap", False),
    ],
)
@pytest.mark.parametrize("granting", [True, False])
def test_letter_case_and_composed_letters(operand: str, text: str, expected: Truth, granting: bool) -> None:
    assert under((operand,), granting)(ref(text), NOWHERE) is expected


def _links(**targets: str) -> Where:
    """A resolver for links at the top: `a="/b"` makes `/a` a link to `/b`; `..` is collapsed behind it."""

    def resolve(path: str) -> str:
        first, *rest = path.strip("/").split("/")
        return posixpath.normpath("/".join([targets.get(first, "/" + first), *rest]))

    return Where(cwd="/w", resolve=resolve)


def test_written_against_written_and_resolved_against_resolved() -> None:
    where = _links(a="/b")
    # the operand's own link is followed
    assert grants("/a", "/a/x", where) is True
    # only one reading
    assert grants("/b", "/a/x", where) is None
    assert withholds("/b", "/a/x", where) is None
    assert withholds("/a", "/b/x", where) is None
    assert withholds("/c", "/a/x", where) is False
    assert glob(("/a/*.pem",), False)(ref("/b/k.pem"), where) is None
    assert glob(("**/b/**",), False)(ref("/a/k"), where) is None


def test_a_directory_that_a_shell_collapsed_and_a_path_that_nobody_did() -> None:
    # `cd l/..` stays in /w for the shell, and `cat t/../x` follows t
    def resolve(path: str) -> str:
        return "/s/x" if path == "/w/t/../x" else posixpath.normpath(path)

    where = Where(cwd="/w", resolve=resolve)
    assert under(("/s",), False)(PathRef(("t/../x",), base="l/.."), where) is None
    assert under(("/s",), False)(PathRef(("x",), base="l/.."), where) is False


def test_what_the_resolver_cannot_tell_is_unknown() -> None:
    def refuses(_path: str) -> str | None:
        raise OSError

    def shrugs(_path: str) -> str | None:
        return None

    def strays(_path: str) -> str | None:
        return "relative"

    def breaks(_path: str) -> str | None:
        raise KeyError

    for resolve in (refuses, shrugs, strays, breaks):
        where = Where(cwd="/w", resolve=resolve)
        assert grants("/w", "/w/x", where) is None
        assert withholds("/etc", "/w/x", where) is None


def test_links_that_nobody_could_follow_never_grant() -> None:
    nowhere = Where(resolve=os.path.realpath)
    assert glob(("**/*.txt",), True)(ref("a.txt"), nowhere) is None
    assert glob(("**/*.txt",), True)(ref("a.txt"), NOWHERE) is True
    assert grants("/", "a.txt", nowhere) is True


# --- directories that nobody tells -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "text", "granting", "withholding"),
    [
        # every directory gives the same answer
        (("**/.env",), ".env", True, True),
        (("**/.env",), "x", False, False),
        (("/**",), "x", True, True),
        (("/a/*",), "b/c/d", False, False),
        (("**/.ssh/**",), ".ssh/id", True, True),
        (("**/a/*/c",), "a/b/c", True, True),
        # some directory would do, and a component points there
        (("/etc/**",), "etc/x", None, None),
        (("/etc/*",), "x", None, None),
        (("/a/b.txt",), "b.txt", None, None),
        (("/a/b.txt",), "../b.txt", None, None),
        # some directory would do, but nothing points there
        (("/etc/**",), "x", None, False),
        (("**/.ssh/**",), "id", None, False),
        (("/a",), ".", None, False),
        # no directory would do
        (("/a/b",), "a/x", False, False),
    ],
)
def test_an_unknown_directory(patterns: tuple[str, ...], text: str, granting: Truth, withholding: Truth) -> None:
    assert glob(patterns, True)(ref(text), NOWHERE) is granting
    assert glob(patterns, False)(ref(text), NOWHERE) is withholding


def test_under_below_an_unknown_directory() -> None:
    assert grants("/", "x") is True
    assert grants("/w", "x") is None
    assert withholds("/w", "x") is False
    assert withholds("/w", "w/x") is None
    assert withholds("/a/w", "w/../x") is False


def test_a_directory_that_the_text_leaves_open_may_be_any() -> None:
    anywhere = PathRef(("shadow",), base=ANYWHERE)
    assert under(("/etc",), False)(anywhere, APP) is None
    assert under(("/etc",), True)(anywhere, APP) is None
    assert glob(("**/.env",), False)(anywhere, APP) is False
    assert glob(("**/.env",), False)(PathRef((".env",), base=ANYWHERE), APP) is True


# --- partly known words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((WITHIN, ".py"), False),
        ((WITHIN,), None),
        ((".e", WITHIN), None),
        (("x", WITHIN), None),  # `x*` may be x.pem
        (("x", WITHIN, ".py"), False),
        (("/w/", WITHIN, "/x.py"), None),
        (("/w/.ssh/", WITHIN), True),
        (("/w/a", WITHIN, "/.env"), True),
        ((None,), None),
        ((None, "/x"), None),
        ((None, "/.env"), True),
        ((None, ".pem"), True),
        ((None, ".py"), None),  # it may lie in .ssh
        (("", "/w/.env"), True),
        (("/w/", ".e", "", "nv"), True),
        (("/w/", None, "/../.env"), True),
    ],
)
def test_a_partly_known_word(parts: Parts, expected: Truth) -> None:
    assert glob(SECRETS, False)(PathRef(parts), APP) is expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("/w/app/", WITHIN, ".py"), True),
        ((WITHIN, ".py"), True),
        (("/w/app/", None), None),  # it may hold `..`
        (("/w/", WITHIN, "/x"), None),
        (("/w/app/.", WITHIN), None),  # `.*` may be `..`
        (("/w/app/", WITHIN, "/../x"), True),
        (("/etc/", WITHIN), False),
        (("", "~/x"), None),
    ],
)
def test_a_partly_known_word_stands_for_granting(parts: Parts, expected: Truth) -> None:
    assert under(("/w/app",), True)(PathRef(parts), APP) is expected


@pytest.mark.parametrize(
    ("pattern", "parts", "expected"),
    [
        ("/a/*.py", ("/x/", None, ".py"), None),  # a hole that holds `..` leaves what stands before it
        ("/a/?*", ("/a/", WITHIN), True),  # a name has a character
        ("/a/??*", ("/a/b", WITHIN), None),
        ("/a/b*", ("/a/b", WITHIN, "c"), True),
        ("/a/\u00e9*", ("/a/e", WITHIN), None),  # what follows may compose with the letter
        ("/a/x*", ("/a/e", WITHIN), False),
    ],
)
def test_what_a_hole_may_complete(pattern: str, parts: Parts, expected: Truth) -> None:
    assert glob((pattern,), False)(PathRef(parts), NOWHERE) is expected


@pytest.mark.parametrize(
    "parts", [("/proc/self/c", WITHIN, "/x"), ("/p", WITHIN, "/7/fd/3"), ("/d", WITHIN, "/f", WITHIN)]
)
def test_a_hole_may_lead_where_only_the_kernel_knows(parts: Parts) -> None:
    assert under(("/",), True)(PathRef(parts), NOWHERE) is None


# --- comparison ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operands", "text", "expected"),
    [
        (("/w/app/a",), "/w//app/./a", True),
        (("/w/app/x/../a/",), "/w/app/a", True),
        (("/w/app/a",), "a", True),
        (("a",), "a", True),
        (("./b", "a"), "/w/app/a", True),
        (("/w/app/A",), "a", None),
        (("/w/app/a",), "/w/app/a/b", False),
        (("a",), "b", False),
        (("/",), "/", True),
    ],
)
def test_comparison_of_normal_forms(operands: tuple[str, ...], text: str, expected: Truth) -> None:
    assert same_path(operands, True)(ref(text), APP) is expected


def test_two_arguments_compared() -> None:
    assert paths_equal(ref("/w/app/a"), ref("a"), APP, True) is True
    assert paths_equal(ref("a"), ref("./a"), NOWHERE, True) is None
    assert paths_equal(ref("a"), ref("a"), NOWHERE, True) is True
    assert paths_equal(ref("a"), ref("b"), NOWHERE, False) is False
    assert paths_equal(ref("/x/a"), ref("a"), NOWHERE, False) is None
    assert paths_equal(ref("/a"), ref("x/a"), NOWHERE, False) is False
    assert paths_equal(ref(None), ref(None), NOWHERE, True) is None
    assert paths_equal(ref("/b/x"), ref("/a/x"), _links(a="/b"), False) is None


# --- protected files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        (ref("/w/team.zcpolicy"), True),
        (ref("x/../../team.zcpolicy"), True),
        (ref("/w/TEAM.zcpolicy"), None),
        (ref("/w/", WITHIN), None),
        (ref(WITHIN, ".py"), False),
        (ref(None), None),
        (ref("/w/team.zcpolicy\0"), None),
        (ref(" /w/team.zcpolicy"), None),
        (ref("/w/team.zcpolicy "), None),
        (ref("/proc/self/root/w/team.zcpolicy"), None),
        (ref("/w/other"), False),
        (ref("/w"), False),
        (ref("/w/ledger/7.db"), True),
    ],
)
def test_protected_files(mention: PathRef, expected: Truth) -> None:
    assert protected_hit(("/w/team.zcpolicy", "/w/ledger"))(mention, Where(cwd="/w/app")) is expected


def test_a_protected_file_below_an_unknown_directory() -> None:
    hit = protected_hit(("/w/team.zcpolicy",))
    assert hit(ref("team.zcpolicy"), NOWHERE) is None
    assert hit(ref("other"), NOWHERE) is False


def test_a_link_to_a_protected_file_hits_it(tmp_path: Path) -> None:
    (tmp_path / "policy").write_text("")
    (tmp_path / "link").symlink_to("policy")
    hit = protected_hit((str(tmp_path / "policy"),))
    where = Where(cwd=str(tmp_path), resolve=os.path.realpath)
    assert hit(ref("link"), where) is True
    assert hit(ref("other"), where) is False


# --- operands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/a", None),
        ("/a/../b/", None),
        ("a", "`a` does not start with `/`"),
        ("~/a", "`~/a` does not start with `/`"),
        ("**/a", "`**/a` does not start with `/`"),
        ("/a/*", "`under` takes a directory, not a pattern: use `glob` for `/a/*`"),
        ("/..", "`..` leads above the root in `/..`"),
        ("/a\0", "no path holds a NUL"),
        ("/" + "a" * 5000, "a path is at most 4_096 characters long"),
    ],
)
def test_operands_of_under(text: str, message: str | None) -> None:
    assert check_prefix(text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/a/**/b?c", None),
        ("**/*.pem", None),
        ("*.pem", "`*.pem` does not start with `/` or `**/`"),
        ("/a**/b", "`**` stands for whole components: write it between `/` in `/a**/b`"),
        ("/a/*/../b", "`..` leads nowhere certain in `/a/*/../b`"),
        (r"/a/\*", r"a path pattern has no escapes: `\` in `/a/\*`"),
    ],
)
def test_operands_of_glob(text: str, message: str | None) -> None:
    assert check_glob(text) == message


def test_operands_of_comparison() -> None:
    assert check_path("a/b") is None
    assert check_path("/a*/../b") is None
    assert check_path("/a\0") == "no path holds a NUL"
    assert check_path("/a/../../b") == "`..` leads above the root in `/a/../../b`"


@pytest.mark.parametrize(
    ("make", "operand"),
    [(under, "a"), (under, "/.."), (glob, "*.pem"), (glob, "/a/*/../.."), (same_path, "/../x"), (same_path, "/\0")],
)
def test_a_refused_operand_makes_no_test(make: Maker, operand: str) -> None:
    with pytest.raises(ValueError, match=r"`|NUL"):
        make((operand,), False)


def test_protected_files_are_named_absolutely_and_literally() -> None:
    with pytest.raises(ValueError, match="does not start with"):
        protected_hit(("policy",))
    assert protected_hit(("/w/a*",))(ref("/w/a*"), NOWHERE) is True
    assert protected_hit(("/w/a*",))(ref("/w/ab"), NOWHERE) is False


@pytest.mark.parametrize("value", [None, "/w/app/x", 7, ("/w/app/x",)])
def test_what_is_no_mention_of_a_path_is_unknown(value: object) -> None:
    assert under(("/w",), True)(value, NOWHERE) is None
    assert under(("/w",), False)(value, NOWHERE) is None
    assert protected_hit(("/w",))(value, NOWHERE) is None
    assert paths_equal(value, ref("/w"), NOWHERE, True) is None


# --- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mention",
    [
        ref("/" + "a" * 30_000),
        ref("/a" * 15_000),
        ref("/a/.." * 6_000),
        ref(*(("a", WITHIN) * 500)),
        ref(*(("/a", WITHIN) * 500)),
        ref(*((None, "/a") * 500)),
        ref("\u0301" * 30_000),
        ref("~" * 30_000),
    ],
    ids=["one name", "deep", "up and down", "holes in a name", "names with holes", "open holes", "marks", "tildes"],
)
def test_long_paths_take_time_that_a_call_may_take(mention: PathRef) -> None:
    asked = glob(("**/a*a*a*b", "/a/**/a/**/a/**/b", "**/*a*b/**"), False)
    start = time.process_time()
    asked(mention, APP)
    asked(mention, NOWHERE)
    assert time.process_time() - start < 2.0

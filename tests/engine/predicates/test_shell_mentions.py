"""What shell text mentions: paths as words, parts of words and from other directories, and URLs."""

import pytest

from zcpolicy.predicates.refs import ANYWHERE, WITHIN, PathRef, UrlRef
from zcpolicy.predicates.shell import mentions
from zcpolicy.predicates.shell_mentions import MAX_DIRECTORIES, MAX_MENTIONS


def known(text: str) -> set[tuple[str, str | None]]:
    """The wholly known paths of a text, each with the directory that it starts at."""
    return {
        (path.parts[0], path.base)
        for path in mentions(text).paths
        if isinstance(path.parts[0], str) and len(path.parts) == 1
    }


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        # each word but a command word without a slash and an option word
        ("cat /w/app/.env", {"/w/app/.env"}),
        ("cat '/w/app/'.env", {"/w/app/.env"}),
        ('cat "/w/app"/.e\\nv', {"/w/app/.env"}),
        ("ls -la", {"a"}),
        ("ls", set[str]()),
        ("./run x", {"./run", "x"}),
        ("git status -s", {"status"}),
        # redirections
        ("echo x > /w/app/.env", {"x", "/w/app/.env"}),
        ("cat < in >> out 2> err", {"in", "out", "err"}),
        ("echo x > /dev/null", {"x", "/dev/null"}),
        ("ls >f a >g b", {"f", "a", "g", "b"}),
        ("cat <<< z", {"z"}),
        # parts of words
        ("x a=/b", {"a=/b", "/b"}),
        ("x /a:/b:ro", {"/a:/b:ro", "/b", "/b:ro", "ro"}),
        ("x a,b", {"a,b", "b"}),
        ("curl -d @/w/f", {"@/w/f", "/w/f", "d"} - {"d"}),
        ("cc -I/inc", {"/inc"}),
        ("x --file=/w/.env", {"/w/.env"}),
        ("x -f=/w/.env", {"=/w/.env", "/w/.env"}),
        # wherever a word may stand
        ("for f in /w/.env; do cat $f; done", {"/w/.env"}),
        ("X=/w/.env ls", {"/w/.env"}),
        ("X=/w/.env", {"/w/.env"}),
        ("export X=/w/.env", {"X=/w/.env", "/w/.env"}),
        ("echo ${X:-/w/.env}", {"/w/.env"}),
        ("echo $(cat /w/.env)", {"/w/.env"}),
        ("if [ -f /w/.env ]; then :; fi", {"/w/.env"}),
        ("a=(/w/.env)", {"/w/.env"}),
        ("case /w/.env in x) ;; esac", {"/w/.env", "x"}),
        ("sh -c 'cat /w/.env'", {"cat /w/.env", "/w/.env"}),
        ("eval cat /w/.env", {"cat", "/w/.env"}),
        ("sudo cat /w/.env", {"cat", "/w/.env"}),
        ("sh <<E\ncat /w/.env\nE", {"/w/.env"}),
        ("cat <<E\n/w/.env\nE", set[str]()),
        ("git log # /w/.env", {"log"}),
    ],
)
def test_words_are_paths(text: str, paths: set[str]) -> None:
    assert {path for path, base in known(text) if base == ""} == paths
    assert mentions(text).readable


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("cd .. && cat .env", {("..", ""), (".env", ""), (".env", "..")}),
        ("cd a; cd b; cat f", {("a", ""), ("b", ""), ("b", "a"), ("f", ""), ("f", "a"), ("f", "b"), ("f", "a/b")}),
        ("cd a; cat /f", {("a", ""), ("/f", "")}),
        ("cd /a; cd b; cat f", {("/a", ""), ("b", ""), ("b", "/a"), ("f", ""), ("f", "/a"), ("f", "b"), ("f", "/a/b")}),
        ("pushd a; cat f", {("a", ""), ("f", ""), ("f", "a")}),
        ("cd -P -- a; cat f", {("a", ""), ("f", ""), ("f", "a")}),
        ("git -C a log", {("a", ""), ("a", "a"), ("log", ""), ("log", "a")}),
        ("make -Ca x", {("a", ""), ("a", "a"), ("x", ""), ("x", "a")}),
        ("env --chdir=a cat f", {("a", ""), ("a", "a"), ("cat", ""), ("cat", "a"), ("f", ""), ("f", "a")}),
        ("cd; cat f", {("f", ""), ("f", ANYWHERE)}),
        ("cd -; cat f", {("-", ""), ("f", ""), ("f", ANYWHERE)}),
        ("cd $X; cat f", {("f", ""), ("f", ANYWHERE)}),
        ("cd ~; cat f", {("~", ""), ("f", ""), ("f", ANYWHERE)}),
        ("cd a b; cat f", {("a", ""), ("b", ""), ("f", ""), ("f", "a"), ("f", ANYWHERE)}),
    ],
)
def test_words_start_at_every_directory_before(text: str, paths: set[tuple[str, str | None]]) -> None:
    assert known(text) == paths


def test_a_seventeenth_directory_may_be_any() -> None:
    absolute = "".join(f"cd /d{number}; " for number in range(MAX_DIRECTORIES))
    assert ("f", ANYWHERE) not in known(absolute + "cat f")
    assert ("f", "/d15") in known(absolute + "cat f")
    assert ("f", ANYWHERE) in known(absolute + "cd /d16; cat f")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("cat *.py", PathRef((WITHIN, ".py"), "", False)),
        ("cat a*", PathRef(("a", WITHIN), "", False)),
        ("cat $X; cat a?/b", PathRef(("a", WITHIN, "/b"), "", False)),
        ('cat "$D"/x', PathRef((None, "/x"), "", False)),
        ('cat "a $D b"', PathRef(("a ", None, " b"), "", False)),
        ("cat a$X", PathRef(("a", None), "", False)),
        ("cat {a,b}/.env", PathRef((None, "/.env"), "", False)),
        ("cat $(x)/f", PathRef((None, "/f"), "", False)),
        ("cat x[a'b']c; $X", PathRef(("x", None, "c"), "", False)),
        ("cat ~/x", PathRef(("~/x",), "", True)),
        ("cat '~/x'", PathRef(("~/x",), "", False)),
        ("cat '~'; cat \\~/x", PathRef(("~/x",), "", False)),
        ("cat --f=~/x", PathRef(("~/x",), "", None)),
        ("$X/bin/y", PathRef((None, "/bin/y"), "", False)),
    ],
)
def test_partly_known_words(text: str, path: PathRef) -> None:
    assert path in mentions(text).paths


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("curl https://x/y", {("https://x/y",)}),
        (
            "curl 'HTTP:x' ws://a wss:b ftp://c file:///d git+ssh://e",
            {("HTTP:x",), ("ws://a",), ("wss:b",), ("ftp://c",), ("file:///d",), ("git+ssh://e",)},
        ),
        ("curl --url=https://x", {("https://x",)}),
        ("x a=https://x @https://y", {("https://x",), ("https://y",)}),
        ('curl "$U"', {(None,)}),
        ('curl https://"$H"/x', {("https://", None, "/x")}),
        ('curl ht"$X"', {("ht", None)}),
        ('curl /a"$X"', set[tuple[str | None, ...]]()),
        ("curl x.org a:b mailto:x", set[tuple[str | None, ...]]()),
        ("git clone ssh://h/x", {("ssh://h/x",)}),
        ("echo $(curl https://x)", {(None,), ("https://x",)}),
    ],
)
def test_words_are_urls(text: str, urls: set[tuple[str | None, ...]]) -> None:
    assert {url.parts for url in mentions(text).urls} == urls


@pytest.mark.parametrize(
    "text",
    ["echo 'unclosed", "if true; then", "cat <<E\nx", "echo \0", "echo `a \\`b\\``", "x" * 70_000, "sh -c 'cat \"'"],
)
def test_unreadable_text_may_mention_anything(text: str) -> None:
    found = mentions(text)
    assert not found.readable
    assert PathRef((None,), ANYWHERE, False) in found.paths
    assert UrlRef((None,)) in found.urls


def test_too_many_mentions_are_any() -> None:
    found = mentions("ls " + " ".join(f"f{number}" for number in range(MAX_MENTIONS + 1)))
    assert not found.readable
    assert len(found.paths) < 2 * MAX_MENTIONS

"""Paths against a real file system: whatever opens a secret is not FALSE."""

import itertools
import os
import unicodedata
from pathlib import Path

import pytest

from zcpolicy.predicates.path import under
from zcpolicy.predicates.refs import PathRef, Where, Within


def ref(*parts: str | Within | None) -> PathRef:
    return PathRef(parts)


# --- real file systems -----------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work folder beside a secret one, with links of every kind between them."""
    root = Path(os.path.realpath(tmp_path))
    for folder in ("w/a/b", "s/deep", "w/c"):
        (root / folder).mkdir(parents=True)
    (root / "s/key").write_text("secret")
    (root / "s/deep/key").write_text("secret")
    (root / "w/a/key").write_text("open")
    for link, target in (
        ("w/out", "../s"),
        ("w/a/up", "../.."),
        ("w/a/b/deep", str(root / "s/deep")),
        ("w/c/loop", "loop"),
        ("w/c/key", "../out/key"),
        ("w/dangling", "../s/new"),
    ):
        (root / link).symlink_to(target)
    return root


def _same_file(path: str, secret: Path) -> bool:
    try:
        real = os.path.realpath(path)
    except OSError:
        return False
    return real == str(secret) or real.startswith(f"{secret}/")


def test_whatever_opens_a_secret_is_not_false(tree: Path) -> None:
    where = Where(cwd=str(tree / "w"), resolve=os.path.realpath)
    secret = under((str(tree / "s"),), False)
    work = under((str(tree / "w"),), True)
    words = ["a", "b", "c", "out", "up", "deep", "key", "dangling", "loop", "..", "s", "w"]
    opened = 0
    for size, step in ((1, 1), (2, 1), (3, 1), (4, 5)):
        for parts in itertools.islice(itertools.product(words, repeat=size), 0, None, step):
            text = "/".join(parts)
            path = f"{tree}/w/{text}"
            # programs open the text as it is, or collapse it first
            if _same_file(path, tree / "s") or _same_file(os.path.normpath(path), tree / "s"):
                opened += 1
                assert secret(ref(text), where) is not False, text
                assert work(ref(text), where) is not True, text
    assert opened > 100


def test_links_and_letter_case_where_the_file_system_has_none(tree: Path) -> None:
    (tree / "w/caf\u00e9").mkdir()
    composed, apart = (unicodedata.normalize(form, str(tree / "w/caf\u00e9/x")) for form in ("NFC", "NFD"))
    where = Where(cwd="/", resolve=os.path.realpath)
    asked = under((str(tree / "w/caf\u00e9"),), False)
    assert asked(ref(composed), where) is True
    assert asked(ref(apart), where) is None
    assert asked(ref(composed.upper()), where) is None


def test_a_link_loop_ends(tree: Path) -> None:
    where = Where(cwd=str(tree / "w"), resolve=os.path.realpath)
    assert under((str(tree / "s"),), False)(ref("c/loop/x"), where) is False

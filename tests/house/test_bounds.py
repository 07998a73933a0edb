"""Every bound is documented: the page is what the source says."""

from .bounds import PAGE, constants, page
from .test_tree import PACKAGES, ROOT


def test_the_page_lists_every_bound() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_bound_says_what_it_bounds() -> None:
    silent = [f"{file.relative_to(ROOT)}: {name}" for file in PACKAGES for name, _, told in constants(file) if not told]
    assert silent == []

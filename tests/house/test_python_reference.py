"""The page on the Python API is what the source says, leaves no name out, and no name says nothing of itself."""

import ast

import zcpolicy

from .python_reference import PAGE, defined, entry, page, public


def test_the_page_is_what_the_source_says() -> None:
    """Otherwise: `python tests/house/python_reference.py`."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_name_is_on_it() -> None:
    assert set(zcpolicy.__all__) <= set(public())
    assert set(public()) - {"*"} <= set(dir(zcpolicy))


def test_every_name_says_what_it_is() -> None:
    """An alias says it by what it stands for."""
    found = {name: defined(name, module) for name, module in public().items()}
    silent = [
        name for name, one in found.items() if not isinstance(one.node, ast.Assign) and not _said([*entry(name, one)])
    ]
    assert silent == []


def _said(parts: list[str]) -> bool:
    return any(not part.startswith(("## ", "```", "- ")) for part in parts)

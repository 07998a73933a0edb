"""The page of all settings names every one that is read, and no other."""

import re
from pathlib import Path

import pytest

from policy_lang.serving.checking import check_settings
from policy_lang.serving.reading import Table

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/settings.md"
FULL = """
[policy]
[state]
folder = "var"
[http]
[rpc]
[agents.NAME]
[mcp.NAME]
[tools]
[[tools.factory]]
[rates]
[skills.NAME]
[channels.NAME]
[[schedule]]
[session]
[log]
[approvals]
[telemetry]
[drain]
"""
OPEN = {"context", "env", "headers", "settings", "rates"}
"""Tables whose names are the operator's."""


def told() -> set[tuple[str, str]]:
    """Table and setting, as the page has them."""
    found: set[tuple[str, str]] = set()
    table = ""
    for row in re.findall(
        r"^\| ([^|]*) \| `(\w+)` \|", PAGE.read_text("utf-8").replace("| | `", "|  | `"), re.MULTILINE
    ):
        table = row[0].strip("` []") or table
        found.add((table, row[1]))
    return found


def test_the_page_names_every_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[tuple[str, str]] = set()
    get = Table.get

    def noted(table: Table, name: str) -> object:
        if (
            table.path
            and table.path not in {("agents",), ("mcp",), ("channels",), ("skills",)}
            and table.path[-1] not in OPEN
        ):
            asked.add((table.name, name))
        return get(table, name)

    monkeypatch.setattr(Table, "get", noted)
    (tmp_path / "daemon.toml").write_text(FULL, encoding="utf-8")
    check_settings(tmp_path / "daemon.toml")
    assert asked - {("tools", "factory")} == told()  # which is a table of its own

"""Clients have ids in records, and names for the people who run the daemon."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from zcpolicy.daemon.clients import ids_in

from .desk import lay, serving, token
from .test_serving import FACTORY, TURN, _own_notes


def test_the_names_of_clients_are_those_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = lay(tmp_path / "desk")
    _own_notes(file, monkeypatch, "named_notes", FACTORY)
    ann, root = token(file, "ann"), token(file, "root", "operator")

    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.post("/turn", headers=ann, json=TURN)).status_code == 200
            ids = ids_in(str(file.parent / "var"))
            for name, count in {"ann": 1, ids["ann"]: 1, "root": 0, "nobody": 0}.items():
                held = (await client.get(f"/handles?client={name}", headers=root)).json()
                assert held["rate_limiter"]["count"] == count, name
            told = (await client.get("/status", headers=root)).json()["clients"]
            assert told == {name: ids[name] for name in ("the schedule", f"user {os.getuid()}")}

    asyncio.run(story())
    lines = "".join(one.read_text() for one in (file.parent / "var/log").glob("*.jsonl")).splitlines()
    clients = {json.loads(line).get("identity", {}).get("client") for line in lines}
    assert clients == {None, ids_in(str(file.parent / "var"))["ann"]}


def test_a_folder_without_a_key_names_nobody_and_gets_none(tmp_path: Path) -> None:
    token(lay(tmp_path / "desk"), "ann")
    assert ids_in(str(tmp_path / "desk/var")) == {}
    assert not (tmp_path / "desk/var/identity.key").exists()

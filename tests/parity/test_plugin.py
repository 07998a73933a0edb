"""What a host's own test suite gets from the plugin: names, failures that say where, files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOST = """\
from zcpolicy.parity.direct import drive
from zcpolicy.parity.mutation import forgetful
from zcpolicy.parity.probe import ParityPath
from zcpolicy.parity.settings import SETTINGS
from policy_lang import loads

DENY = next(setting for setting in SETTINGS if setting.name == "deny")
PATHS = (ParityPath("good", drive), forgetful(ParityPath("bad", drive), DENY, loads))
"""

TESTS = """\
import pytest
from host import DENY, PATHS

@pytest.mark.parity(PATHS, settings=[DENY], diverging={})
def test_it(parity_cell):
    parity_cell.check()
"""


def run(folder: Path, tests: str, *words: str) -> tuple[int, str]:
    """The exit status of pytest there, and what it prints."""
    (folder / "host.py").write_text(HOST)
    (folder / "test_host.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --strict-markers\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", *words]
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST", "COV", "CI", "BUILD_NUMBER"))
    }
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=plain, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_path_that_forgets_fails_by_name_and_the_matrix_is_written(tmp_path: Path) -> None:
    status, said = run(tmp_path, TESTS, "--parity-matrix", "matrix.json")
    assert status == 1
    assert "FAILED test_host.py::test_it[bad-deny]" in said
    assert "setting `deny` on path `bad` is not applied (as without it)" in said
    assert "1 failed, 1 passed" in said
    assert json.loads((tmp_path / "matrix.json").read_text())["summary"] == {
        "cells": 2, "enforced": 1, "partly": 0, "not_applied": 1, "crashed": 0,
    }  # fmt: skip


def test_what_is_known_to_diverge_passes_until_it_is_gone(tmp_path: Path) -> None:
    known = TESTS.replace("diverging={}", 'diverging={("bad", "deny"): "not applied"}')
    assert run(tmp_path, known)[0] == 0
    gone = TESTS.replace("diverging={}", 'diverging={("good", "deny"): "not applied", ("bad", "deny"): "not applied"}')
    status, said = run(tmp_path, gone)
    assert status == 1
    assert (
        "setting `deny` on path `good` was known to be not applied and is enforced: take it out of what diverges"
        in said
    )


def test_settings_are_named_as_on_the_command_line(tmp_path: Path) -> None:
    status, said = run(tmp_path, TESTS.replace("[DENY]", '("deny",)'))
    assert status == 1
    assert "FAILED test_host.py::test_it[bad-deny]" in said
    assert "1 failed, 1 passed" in said


def test_a_path_that_raises_fails_with_its_traceback(tmp_path: Path) -> None:
    broken = """\
import pytest
from host import DENY
from zcpolicy.parity.probe import ParityPath

async def drive(probe):
    raise RuntimeError("the socket is closed")

@pytest.mark.parity([ParityPath("broken", drive)], settings=[DENY])
def test_it(parity_cell):
    parity_cell.check()
"""
    status, said = run(tmp_path, broken, "--tb=short")
    assert status == 1
    assert "setting `deny` on path `broken` crashed: RuntimeError: the socket is closed" in said
    assert 'test_host.py", line 6, in drive' in said


USES = "`@pytest.mark.parity`: "
WRONG = {
    "paths that are none": (TESTS.replace("(PATHS", '(["chat"]'), (), f"{USES}it takes one list of"),
    "no paths": (TESTS.replace("(PATHS", "([]"), (), f"{USES}it takes one list of"),
    "a setting that there is not": (
        TESTS.replace("[DENY]", '("denny",)'), (), f"{USES}there is no setting `denny`; did you mean `deny`?",
    ),
    "settings that are none": (TESTS.replace("[DENY]", "[5]"), (), f"{USES}`settings` is a list of settings, or of their names"),
    "no setting": (TESTS.replace("[DENY]", "[]"), (), f"{USES}`settings` is a list of settings, or of their names"),
    "a keyword that means nothing": (TESTS.replace("diverging={}", "divergent={}"), (), "and no `divergent`"),
    "a divergence that is none": (
        TESTS.replace("diverging={}", 'diverging={("bad", "deny"): "no"}'), (),
        "`diverging` says for (path, setting) one of `enforced`, `partly`, `not applied`, `crashed`",
    ),
    "divergences as a list": (TESTS.replace("diverging={}", 'diverging=["bad"]'), (), f"{USES}`diverging` says for"),
    "a fixture without its marker": (
        "def test_it(parity_cell): pass\n", (), "`parity_cell` needs `@pytest.mark.parity(PATHS)`",
    ),
    "a matrix of another kind": (TESTS, ("--parity-matrix", "m.txt"), "`m.txt` ends in none of `.md`, `.json`, `.html`"),
    "a divergence of a path that there is not": (
        TESTS.replace("diverging={}", 'diverging={("worse", "deny"): "partly"}'), (),
        "`diverging` names what there is not: setting `deny` on path `worse`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_told(name: str, tmp_path: Path) -> None:
    tests, words, message = WRONG[name]
    status, said = run(tmp_path, tests, *words)
    assert status != 0
    assert said.count(message) == 1
    assert "Traceback" not in said


TWO_CLIENTS = """\
import policy_lang
from zcpolicy.facts import Session
from zcpolicy.registry.sources import HostTool
from zcpolicy.resolver import Resolver
from zcpolicy.state.audit import Handles

RESOLVER = Resolver(policy_lang.loads("zcpolicy 1\\ntool note(text: string) risk low\\nagent clerk { autonomy full; allow note }"))

class Notes:
    def __init__(self):
        self._notes = []

    def tools(self):
        return [HostTool("note", "", {}, self.note)]

    async def note(self, arguments, context):
        BODY

def make(given):
    return Notes()

def acting(client, agent, session):
    return RESOLVER.resolve(agent, session=Session(client=client, id=session))

def test_it(two_clients):
    two_clients(make, Handles, acting, [("note", {"text": "{marker}"})], agents=("clerk",))
"""


def test_tools_of_a_host_are_run_as_two_clients(tmp_path: Path) -> None:
    sound = TWO_CLIENTS.replace("BODY", 'return arguments["text"]')
    assert run(tmp_path, sound)[0] == 0
    leaking = TWO_CLIENTS.replace("BODY", 'self._notes.append(arguments["text"]); return ", ".join(self._notes)')
    status, said = run(tmp_path, leaking)
    assert status == 1
    assert "AssertionError: `note` tells one client what another wrote: " in said

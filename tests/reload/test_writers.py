"""Files that are written while a host reads them, by real processes: no policy of halves is ever in force."""

import subprocess
import sys
from pathlib import Path

import pytest

from policy_lang import load
from policy_lang.serving.compiling import compile_layers
from tests.reload.writer import KINDS, link, parts
from zcpolicy import Resolver
from zcpolicy.reload.generations import Failure, Generations
from zcpolicy.reload.settling import Settling
from zcpolicy.reload.sources import PolicySource

SETTLE = 0.04


def lay(folder: Path, which: int) -> Path:
    folder.mkdir()
    for name, text in parts(which).items():
        (folder / name).write_text(text)
    return folder / "policy.zcpolicy"


def digests(folder: Path) -> set[str]:
    """Of the policies that are whole."""
    return {load(lay(folder / f"whole{which}", which)).digest for which in (0, 1)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_folder", [False, True], ids=["file", "folder"])
def test_no_half_of_a_policy_is_ever_in_force(tmp_path: Path, kind: str, as_folder: bool) -> None:
    whole = digests(tmp_path)
    now = tmp_path / "now"
    if kind == "link":
        link(now, 0)
    else:
        lay(now, 0)
    # a folder of several files has its root by name; a file is named itself
    source = PolicySource.of_folder(now) if as_folder else PolicySource.of_layers([now / "policy.zcpolicy"])
    generations = Generations.start(
        source,
        compile_layers,
        tmp_path / "state",
        make=lambda program, number, files: Resolver(program, generation=number, policy_files=files),
        how=Settling(settle=SETTLE, patience=0.5),
    )
    writer = subprocess.Popen([sys.executable, str(Path(__file__).with_name("writer.py")), kind, str(tmp_path), "1"])
    seen = {generations.resolver.newest.program.digest}
    while writer.poll() is None:
        generations.reload_now()
        seen.add(generations.resolver.newest.program.digest)
    assert writer.returncode == 0
    assert not isinstance(generations.reload_now(), Failure)
    assert generations.status()["failure"] is None
    assert generations.resolver.newest.program.digest == load(tmp_path / "whole0" / "policy.zcpolicy").digest
    assert seen <= whole
    if kind in ("rename", "folder", "link"):
        assert seen == whole

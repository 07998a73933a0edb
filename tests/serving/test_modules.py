"""Functions that settings name, looked for without running anything."""

import sys
from pathlib import Path

import pytest

from policy_lang.serving.modules import fault_of

FILES = {
    "notes.py": "import json\nif json:\n    def make(given): ...\nelse:\n    made = 1\nfor each in (): ...\nraise SystemExit\n",
    "broken.py": "def make(:\n",
    "null.py": "x\0",
    "odd.py": "x = '\\d'\nmake = 1\n",
    "all.py": "from json import *\n",
    "later.py": "def f():\n    global make\n    make = 1\n",
    "inner.py": "def f():\n    make = 1\n",
    "pack/__init__.py": "from .deep import make as made\n",
    "pack/deep.py": "class Notes: ...\nasync def make(): ...\n",
    "bare/deep.py": "def make(): ...\n",
}
FAULTS: dict[str, str | None] = {
    "notes:make": None,
    "notes:json": None,
    "notes:mak": "`notes` has no function `mak`; did you mean `make`?",
    "notes:zzzz": "`notes` has no function `zzzz`",
    "broken:make": "`broken.py:1` is no Python: invalid syntax",
    "odd:make": None,
    "all:make": None,
    "later:make": None,
    "inner:make": "`inner` has no function `make`",
    "pack:made": None,
    "pack:make": "`pack` has no function `make`; did you mean `made`?",
    "pack.deep:make": None,
    "pack.deep:Nots": "`pack.deep` has no function `Nots`; did you mean `Notes`?",
    "pack.depe:make": "there is no module `pack.depe`; there is nothing of that name in `pack`",
    "bare.deep:make": None,
    "bare:make": None,
    "noets:make": "there is no module `noets`; did you mean `notes`?",
    "json:loads": None,
    "json.decoder:JSONDecoder": None,
    "json:laods": "`json` has no function `laods`; did you mean `loads`?",
    "sys:make": None,
    "math:make": None,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.mark.parametrize("written", FAULTS)
def test_what_the_text_of_a_module_tells(folder: Path, written: str) -> None:
    before = set(sys.modules)
    module, _, name = written.partition(":")
    found = fault_of(folder, module, name, "function")
    assert (None if found is None else "; ".join(filter(None, found))) == FAULTS[written]
    assert set(sys.modules) <= before | {"json.decoder"}, "nothing of the operator's is imported"


def test_text_that_python_does_not_take(folder: Path) -> None:
    found = fault_of(folder, "null", "make", "function")
    assert found is not None
    assert "is no Python" in found.message

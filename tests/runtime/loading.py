"""Modules that a story writes."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def loaded(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module

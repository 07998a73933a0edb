"""Compiling again after an edit says and makes exactly what compiling from nothing does, and parses only what changed."""

import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from policy_lang import ast, incremental
from policy_lang.cache import Cache
from policy_lang.compile import Compiled, compile_policy
from policy_lang.diagnostics import Diagnostic
from policy_lang.source import Source

SHARED = """zcpolicy 1
tool read(path: path) risk read
tool write(path: path) risk medium
tool shell(command: shell) risk high
tool git/status() risk read
tool git/push() risk high
label untrusted
let secrets = ["**/.env"]
group writers = write, git/push
bundle repo { server git }
skill calm { deny shell }
profile careful { deny any when some paths glob secrets }
ceiling { deny git/push; ask write }
"""

SEES = {"one.zcpolicy": ("two", "four"), "three.zcpolicy": ("one",)}
"""The files that a file imports besides the shared one."""

AGENTS = {
    "one.zcpolicy": "agent one { autonomy supervised; allow read, write; use careful; delegate to two }",
    "two.zcpolicy": "agent two { connect repo; allow git/status, shell; skills calm; mark untrusted on shell }",
    "three.zcpolicy": "agent three narrows one { only read; ask @writers }",
    "four.zcpolicy": "agent four { allow any; deny shell when marked untrusted # zcpolicy: allow ZC4003 reason\n}",
}

ROOT = (
    "zcpolicy 1\n"
    + "".join(f'import "{name}"\n' for name in ("shared.zcpolicy", *AGENTS))
    + "ceiling { limit 50 calls per hour }\n"
)

EDITS = {
    "one.zcpolicy": (
        "agent one { allow read; delegate to two, four }",
        "agent one { allow shell }",
        "agent one { allow wrte }",
        "agent one { allow",
    ),
    "two.zcpolicy": (
        "agent two { allow read }",
        "agent two {}",
        "agent two { connect repo; allow git/*; autonomy readonly }",
    ),
    "three.zcpolicy": ("agent three narrows one { only none }", "agent three narrows one { deny read; deny read }"),
    "four.zcpolicy": (
        "agent four { allow read; ask read }",
        "agent other { allow read }",
        "agent four { allow @writers }",
    ),
    "shared.zcpolicy": (
        SHARED.replace("ask write", "deny write"),
        SHARED.replace("tool shell", "tool bash"),
        "\n" + SHARED,
    ),
}


def write(folder: Path, name: str, text: str) -> None:
    head = ""
    if not text.lstrip().startswith("zcpolicy"):
        head = "zcpolicy 1\n" + "".join(f'import "{other}.zcpolicy"\n' for other in ("shared", *SEES.get(name, ())))
    (folder / name).write_text(head + text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"root.zcpolicy": ROOT, "shared.zcpolicy": SHARED, **AGENTS}.items():
        write(tmp_path, name, text)
    return tmp_path


def everything(compiled: Compiled) -> tuple[bytes | None, list[tuple[object, ...]]]:
    """The whole program with its origins, and every finding in full, its witness aside (how many are sought is bounded)."""
    said: list[tuple[object, ...]] = [
        (
            d.code,
            d.message,
            d.source.name,
            d.span,
            d.help,
            d.fix,
            tuple((label.source.name, label.span, label.text) for label in d.labels),
        )
        for d in compiled.diagnostics
    ]
    return (compiled.program.dump() if compiled.program is not None else None), said


def edits() -> Iterator[tuple[str, str]]:
    """A long walk of edits, errors and repairs among them."""
    rng = random.Random(7)
    originals = {"shared.zcpolicy": SHARED, **AGENTS}
    for _ in range(60):
        name = rng.choice(sorted(EDITS))
        yield name, rng.choice((*EDITS[name], originals[name], originals[name]))


@pytest.mark.parametrize("kept_in", ["the process", "a folder"])
def test_a_walk_of_edits(kept_in: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    entries = tmp_path_factory.mktemp("entries") if kept_in == "a folder" else None
    cache = Cache(entries)
    for name, text in edits():
        write(folder, name, text)
        again = compile_policy(folder / "root.zcpolicy", cache=Cache(entries) if entries else cache)
        assert everything(again) == everything(compile_policy(folder / "root.zcpolicy")), (name, text)


def test_only_the_edited_file_and_those_it_looks_at_are_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache()
    compile_policy(folder / "root.zcpolicy", cache=cache)
    parsed: list[str] = []
    parse = incremental.parse

    def noting(source: Source) -> tuple[ast.File, tuple[Diagnostic, ...]]:
        parsed.append(Path(source.name).name)
        return parse(source)

    monkeypatch.setattr(incremental, "parse", noting)
    compile_policy(folder / "root.zcpolicy", cache=cache)
    unchanged = sorted(parsed)
    parsed.clear()
    write(folder, "four.zcpolicy", "agent four { allow read }")
    compile_policy(folder / "root.zcpolicy", cache=cache)
    edited = sorted(parsed)
    always = ["root.zcpolicy", "shared.zcpolicy"]  # they hold more than agents
    assert (unchanged, edited) == (always, ["four.zcpolicy", *always])


def test_agents_that_stand_among_other_declarations_see_those_that_they_build_on(folder: Path) -> None:
    (folder / "root.zcpolicy").write_text(
        ROOT + "agent five narrows one { deny write }\nagent six { delegate to two }\n"
    )
    cache = Cache()
    for _ in range(2):
        again = compile_policy(folder / "root.zcpolicy", cache=cache)
        assert everything(again) == everything(compile_policy(folder / "root.zcpolicy"))


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "foreign"])
def test_a_damaged_entry_is_no_entry(damage: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    entries = tmp_path_factory.mktemp("entries")
    compile_policy(folder / "root.zcpolicy", cache=Cache(entries))
    for entry in entries.iterdir():
        data = entry.read_bytes()
        changed = {
            "cut": data[: len(data) // 2],
            "flipped": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "emptied": b"",
        }
        entry.write_bytes(changed.get(damage, b"no entry of ours"))
    again = compile_policy(folder / "root.zcpolicy", cache=Cache(entries))
    assert everything(again) == everything(compile_policy(folder / "root.zcpolicy"))


def test_an_entry_runs_no_code(tmp_path: Path) -> None:
    import hashlib
    import pickle
    import subprocess

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[list[str]]]:
            return subprocess.call, (["touch", f"{tmp_path}/owned"],)

    cache = Cache(tmp_path)
    payload = pickle.dumps(Evil())
    key = cache.key("x")
    (tmp_path / key).write_bytes(hashlib.sha256(payload).digest() + payload)
    assert (cache.get(key, {}), (tmp_path / "owned").exists()) == (None, False)


def compiled_elsewhere(root: str, entries: str) -> bytes | None:
    compiled = compile_policy(root, cache=Cache(entries))
    return compiled.program.dump() if compiled.program is not None else None


def test_processes_share_a_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    entries = str(tmp_path_factory.mktemp("entries"))
    with ProcessPoolExecutor(4) as pool:
        made = list(pool.map(compiled_elsewhere, [str(folder / "root.zcpolicy")] * 8, [entries] * 8))
    assert set(made) == {compiled_elsewhere(str(folder / "root.zcpolicy"), entries)}
    assert not [name for name in Path(entries).iterdir() if name.name.startswith(".new-")]

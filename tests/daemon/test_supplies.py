"""What the daemon's agents are given: MCP servers with their secrets, models, scripts."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from zcpolicy.daemon.models import ScriptError, models_of, read_script
from zcpolicy.daemon.serving import StartFailed
from zcpolicy.daemon.settings import AgentSettings, Secret, SettingsError
from zcpolicy.registry.wire import wire_name

from .desk import lay, serving

FORGE = Path(__file__).parents[1] / "servers/forge.py"
POLICY = """zcpolicy 1
tool forge/get_issue(number: integer) risk read
tool forge/push_file(path: path, text: string) risk medium
tool delegate(agent: string, task: string, independent?: boolean) risk low
bundle all_of_forge { server forge }
agent helper { autonomy full; allow forge/get_issue; connect all_of_forge }
agent aide { autonomy full; allow delegate }
"""
TURN = {"agent": "helper", "text": "go"}


def lay_forge(folder: Path, env: str) -> Path:
    """A daemon with a real server, which writes to the file that its secret names."""
    steps = [{"calls": [{"tool": "forge/get_issue", "arguments": {"number": 7}}]}, "read"]
    more = f'[mcp.forge]\ncommand = [{json.dumps(sys.executable)}, {json.dumps(str(FORGE))}]\nenv = {{ FORGE_LOG = "{env}" }}'
    file = lay(folder, steps=steps, more=more)
    (folder / "team.zcpolicy").write_text(POLICY)
    return file


def test_a_server_gets_its_secret_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "forge.log"
    monkeypatch.setenv("WHERE_FORGE_WRITES", str(log))
    file = lay_forge(tmp_path / "desk", "env:WHERE_FORGE_WRITES")

    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.post("/turn", json=TURN)).json()["text"] == "read"
            tools = (await client.get("/tools?agent=helper")).json()["tools"]  # a listing connects nothing
            assert [one["name"] for one in tools] == []

    asyncio.run(story())
    assert "get_issue 7" in log.read_text()


def test_a_server_gets_its_secret_from_a_file_as_it_is_by_then(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{tmp_path / 'first.log'}\n")
    file = lay_forge(tmp_path / "desk", f"file:{secret}")

    async def story() -> None:
        async with serving(file) as (_, client):
            await client.post("/turn", json=TURN)
            secret.write_text(str(tmp_path / "second.log"))
            await client.post("/turn", json=TURN)

    asyncio.run(story())
    assert [name for name in ("first.log", "second.log") if "get_issue" in (tmp_path / name).read_text()] == [
        "first.log", "second.log",
    ]  # fmt: skip


def test_a_secret_that_is_not_there_ends_the_start(tmp_path: Path) -> None:
    file = lay_forge(tmp_path / "desk", "env:NOBODY_SETS_THIS")

    async def story() -> None:
        async with serving(file):
            pass

    with pytest.raises(StartFailed, match="the variable `NOBODY_SETS_THIS` is not set"):
        asyncio.run(story())


def test_a_secret_is_named_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "s3cr3t")
    assert Secret("env", "A_SECRET").read() == "s3cr3t"
    assert "s3cr3t" not in repr(Secret("env", "A_SECRET"))
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "odd").write_bytes(b"\xff")
    for name in ("empty", "odd", "nothing"):
        with pytest.raises(SettingsError) as raised:
            Secret("file", str(tmp_path / name)).read()
        assert "s3cr3t" not in str(raised.value)


SKILLED = """zcpolicy 1
tool memory_recall(query: string)                                 risk read
tool memory_store(text: string, scope?: string)                   risk low
tool load_skill(skill: string)                                    risk read
tool delegate(agent: string, task: string, independent?: boolean) risk low
skill looking { deny memory_store }
agent helper { autonomy full; allow memory_recall, memory_store, load_skill; skills looking; memory read own write own }
agent aide { autonomy full; allow delegate }
"""


def test_a_skill_is_loaded_and_its_restrictions_hold(tmp_path: Path) -> None:
    steps: list[Any] = [
        {"calls": [{"tool": "load_skill", "arguments": {"skill": "looking"}}]},
        {"calls": [{"tool": "memory_store", "arguments": {"text": "x"}}]},
        "looked",
    ]
    file = lay(
        tmp_path / "desk", steps=steps, more='[skills.looking]\ndescription = "how to look"\nfile = "looking.md"'
    )
    (file.parent / "looking.md").write_text("Look around.")
    (file.parent / "team.zcpolicy").write_text(SKILLED)

    async def story() -> None:
        async with serving(file) as (_, client):
            assert (await client.post("/turn", json=TURN)).json()["text"] == "looked"

    asyncio.run(story())
    (log,) = (file.parent / "var/log").glob("decisions-*.jsonl")
    calls = [one["data"] for one in map(json.loads, log.read_text().splitlines()) if one["kind"] == "call"]
    assert {one["decision"]["tool"]: one["decision"]["reason"] for one in calls} == {
        "load_skill": "allowed", "memory_store": "denied",
    }  # fmt: skip


SCRIPTS: dict[str, tuple[object, str]] = {
    "a list": (["hello"], "it is no object"),
    "no steps": ({"steps": []}, "it has no steps"),
    "more": ({"steps": ["x"], "name": "y"}, "it is no object"),
    "no text": ({"steps": [3]}, "step 1 is neither"),
    "an odd step": ({"steps": ["x", {"say": "x"}]}, "step 2 is neither"),
    "calls that are none": ({"steps": [{"calls": {}}]}, "step 1 has"),
    "a call without a tool": ({"steps": [{"calls": [{"arguments": {}}]}]}, "a call of step 1"),
    "arguments that are none": ({"steps": [{"calls": [{"tool": "x", "arguments": []}]}]}, "the `arguments`"),
    "a flag that is none": ({"steps": ["x"], "repeat": 1}, "it has no steps, or `repeat`"),
}


@pytest.mark.parametrize("what", SCRIPTS)
def test_what_is_no_script(what: str) -> None:
    script, said = SCRIPTS[what]
    with pytest.raises(ScriptError, match=said):
        read_script(json.dumps(script).encode())


def test_a_script_says_text_and_calls() -> None:
    made = read_script(
        b'{"steps": ["a", {"text": "b", "calls": [{"tool": "t", "arguments": {"n": 1.5}}, {"tool": "u"}]}]}'
    )
    assert [(step.text, [(call.wire, json.loads(call.arguments)) for call in step.calls]) for step in made.steps] == [
        ("a", []), ("b", [("t", {"n": 1.5}), ("u", {})]),
    ]  # fmt: skip


def test_a_script_calls_tools_by_the_names_of_the_policy() -> None:
    names = ["look", "forge/get_issue", "forge__get_issue", "forge/get.issue"]
    made = read_script(json.dumps({"steps": [{"calls": [{"tool": name} for name in names]}]}).encode())
    wires = [call.wire for call in made.steps[0].calls]
    assert wires == ["look", "forge__get_issue", "forge__get_issue", wire_name(("forge", "get.issue"))]


def test_a_script_without_repeat_ends(tmp_path: Path) -> None:
    """The turn fails, and the daemon does not."""

    async def story() -> None:
        async with serving(file) as (_, client):
            answers: list[Any] = [(await client.post("/turn", json=TURN)).json() for _ in range(2)]
            assert [one["status"] for one in answers] == ["done", "done"]  # each session begins the script anew
            again = await client.post("/turn", json={**TURN, "session": answers[0]["session"]})
            assert again.json()["status"] == "failed"
            assert (await client.get("/healthz")).status_code == 200

    file = lay(tmp_path / "desk", steps=["once"])
    script = file.parent / "answers.json"
    script.write_text(script.read_text().replace("true", "false"))
    asyncio.run(story())


MODELS = {
    "a provider that nobody has": ("nonsense:gpt-5", "cannot be made"),
    "no key": ("openai:gpt-5.2", "cannot be"),
}


@pytest.mark.parametrize("what", MODELS)
def test_a_model_that_cannot_be_is_said_on_one_line(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    name, said = MODELS[what]
    with pytest.raises(SettingsError, match=said) as raised:
        models_of({"helper": AgentSettings(name)})
    assert "`helper`" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_any_model_of_pydantic_ai_will_do() -> None:
    made = models_of({"helper": AgentSettings("test", max_output_tokens=10)})
    assert (made["helper"].model.name, made["helper"].max_output_tokens) == ("test", 10)

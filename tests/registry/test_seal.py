"""Nobody but `assemble` makes a registry, and nobody but the gate runs what is in one."""

import asyncio
import copy
import gc
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from tests.registry.offers import BUILTINS, registry, run_of
from zcpolicy import ResolvedAgentExecution
from zcpolicy.authority import SealError
from zcpolicy.registry.scoped import ScopedToolRegistry, runner_of
from zcpolicy.registry.sources import ToolSources
from zcpolicy.sealed import put

ENGINE = Path(__file__).parents[2] / "engine"
SOURCES = ToolSources(BUILTINS)


def test_only_the_gate_runs_tools() -> None:
    """The invariant of `runner_of`: a second place would be a way past the gate."""
    users = {
        str(path.relative_to(ENGINE))
        for path in ENGINE.rglob("*.py")
        if re.search(r"\brunner_of\b|\b_records\b", path.read_text("utf-8"))
    }
    assert users - {"zcpolicy/registry/scoped.py"} == {"zcpolicy/loop/gate.py"}


def test_it_is_made_by_assemble_alone() -> None:
    made: Any = ScopedToolRegistry
    with pytest.raises(TypeError, match="it is made by `ScopedToolRegistry"):
        made()
    with pytest.raises(TypeError, match="cannot be subclassed"):
        type("Wider", (made,), {})


def test_it_cannot_be_copied_altered_or_pickled() -> None:
    async def story() -> None:
        async with registry(run_of("agent a { allow shell }"), SOURCES) as made:
            anything: Any = made
            with pytest.raises(TypeError, match="cannot be copied"):
                copy.copy(anything)
            with pytest.raises(TypeError, match="cannot be copied"):
                copy.deepcopy(anything)
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(anything)
            with pytest.raises(AttributeError, match="`names` cannot be set"):
                anything.names = lambda: ("file_read",)
            with pytest.raises(TypeError):
                anything.failures["x"] = "y"

    asyncio.run(story())


def test_a_forged_one_has_no_tools() -> None:
    forged: Any = object.__new__(ScopedToolRegistry)
    for use in (
        forged.names,
        forged.specs,
        lambda: forged.find("shell"),
        lambda: forged.prompt,
        lambda: runner_of(forged, "shell"),
    ):
        with pytest.raises(SealError, match="is no registry that `ScopedToolRegistry"):
            use()

    class Looks:
        names = specs = failures = ()

    look_alike: Any = Looks()
    with pytest.raises(SealError, match="Looks is no registry"):
        runner_of(look_alike, "shell")


def test_only_a_genuine_execution_gets_one() -> None:
    forged: Any = object.__new__(ResolvedAgentExecution)
    others: tuple[Any, ...] = (forged, None, object())
    for execution in others:
        with pytest.raises(SealError):
            asyncio.run(ScopedToolRegistry.assemble(execution, SOURCES))


def test_an_altered_execution_is_shown_nothing() -> None:
    async def story() -> None:
        run, wide = run_of("agent a { allow shell }"), run_of("agent a { allow any }")
        async with registry(run, SOURCES) as made:
            put(run, "stack", wide.stack)
            for use in (made.names, made.specs, lambda: runner_of(made, "file_read")):
                with pytest.raises(SealError, match="the execution was altered"):
                    use()
        with pytest.raises(SealError):
            await ScopedToolRegistry.assemble(run, SOURCES)

    asyncio.run(story())


def test_what_a_caller_does_to_a_spec_reaches_nobody_else() -> None:
    async def story() -> None:
        source = dict(BUILTINS[0].parameters)
        async with registry(run_of("agent a { allow file_read }"), SOURCES) as made:
            spec: Any = made.specs()[0]
            spec.parameters["properties"]["sneaked"] = {"type": "string"}
            assert BUILTINS[0].parameters == source

    asyncio.run(story())


def test_it_lives_as_long_as_its_execution() -> None:
    """A registry does not keep its execution alive, and alone it shows nothing."""

    async def story() -> None:
        run = run_of("agent a { allow shell }")
        made = await ScopedToolRegistry.assemble(run, SOURCES)
        assert made.names() == ("shell",)
        del run
        gc.collect()
        assert made.names() == ()
        await made.close()

    asyncio.run(story())

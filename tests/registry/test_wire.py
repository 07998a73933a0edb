"""Names on the wire: looked up, never taken apart."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lang import loads
from tests.registry.offers import registry, tool
from zcpolicy import Resolver
from zcpolicy.facts import ToolName
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import AssemblyError, ToolSources
from zcpolicy.registry.wire import wire_name, wire_table


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("file_read", "file_read"),
        ("odd-name", "odd-name"),
        (("github", "get_me"), "github__get_me"),
        (("git-hub", "a__b"), "git-hub__a__b"),
        ("x" * 64, "x" * 64),
        # what no provider takes is spelled with a digest of the whole name
        ("odd name", "odd_name_17b38498ea9a287e"),
        ("a.b", "a_b_12734df70e882388"),
        (("s", "größe"), "s__gr__e_9f66f809c69a5dde"),
        ("x" * 65, "x" * 47 + "_cfa70e8e49883362"),
    ],
)
def test_how_tools_are_called(name: ToolName, wire: str) -> None:
    assert wire_name(name) == wire


@given(st.one_of(st.text(min_size=1), st.tuples(st.text(min_size=1), st.text(min_size=1))))
def test_every_name_is_one_that_providers_take(name: ToolName) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire_name(name))


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("hub__x", ("hub", "x"), "`hub__x` and `x` of server `hub` have one name on the wire, `hub__x`"),
        (
            ("a", "b__c"),
            ("a__b", "c"),
            "`b__c` of server `a` and `c` of server `a__b` have one name on the wire, `a__b__c`",
        ),
    ],
)
def test_two_tools_of_one_name_are_a_mistake_at_the_start(one: ToolName, other: ToolName, message: str) -> None:
    with pytest.raises(AssemblyError) as error:
        wire_table([one, other])
    assert str(error.value) == message


def test_such_a_policy_has_no_registry_for_any_agent() -> None:
    run = Resolver(loads("zcpolicy 1\ntool hub__x()\ntool hub/x()\ntool y()\nagent a { allow y }")).resolve("a")
    with pytest.raises(AssemblyError, match="have one name on the wire, `hub__x`"):
        asyncio.run(ScopedToolRegistry.assemble(run, ToolSources((tool("y"),))))


def test_a_name_on_the_wire_leads_to_its_tool_or_nowhere() -> None:
    policy = 'zcpolicy 1\ntool "odd name"()\ntool shell(command: shell)\nagent a { allow "odd name" }'

    async def story() -> None:
        async with registry(
            Resolver(loads(policy)).resolve("a"), ToolSources((tool("odd name"), tool("shell")))
        ) as made:
            assert [(spec.name, spec.wire) for spec in made.specs()] == [("odd name", "odd_name_17b38498ea9a287e")]
            assert made.find("odd_name_17b38498ea9a287e") == "odd name"
            assert made.find("odd name") is None
            assert (made.find("shell"), made.meant("shell")) == (None, "shell")  # to say why it is refused
            assert (made.find("no_such"), made.meant("no_such")) == (None, None)

    asyncio.run(story())

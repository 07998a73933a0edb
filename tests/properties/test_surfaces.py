"""The tools that are shown, the compiled file, limits, and the formatter."""

from hypothesis import given
from hypothesis import strategies as st

from policy_lang import loads
from policy_lang.format import format_source
from policy_lang.parse import parse
from policy_lang.source import Source
from tests.clock import Clock
from tests.properties.both import START, by_engine, compiled, engine_run, host_session, program, tool
from tests.strategies import Session, Sketch, Story, sketches, stories
from tests.strategies.variations import respelled
from zcpolicy import Resolver, load_compiled


@given(stories(sketches(), most=4))
def test_no_callable_tool_is_hidden(story: Story) -> None:
    run = engine_run(story, program(story.sketch), Clock(START))
    shown = run.tools()
    for call in story.calls:
        if run.decide(tool(call.tool), call.sent).effect != "deny":
            assert tool(call.tool) in shown


@given(stories(sketches()))
def test_a_compiled_file_is_the_policy(story: Story) -> None:
    policy = program(story.sketch)
    loaded = load_compiled(policy.dump())
    assert loaded.digest == policy.digest
    assert loaded.dump() == policy.dump()
    assert by_engine(story, loaded) == by_engine(story, policy)


@given(sketches(), st.data())
def test_formatting_keeps_the_meaning_and_is_stable(sketch: Sketch, data: st.DataObject) -> None:
    written = data.draw(respelled(sketch))
    formatted, found = format_source(Source("<text>", written))
    assert formatted is not None, found
    assert format_source(Source("<text>", formatted))[0] == formatted
    before, after = parse(Source("<text>", written))[0], parse(Source("<text>", formatted))[0]
    assert sorted(one.text.strip() for one in before.comments) == sorted(one.text.strip() for one in after.comments)
    policy, other = compiled(sketch, written).program, compiled(sketch, formatted).program
    assert (policy is None) == (other is None)
    assert policy is None or other is None or policy.digest == other.digest


COUNTED = """zcpolicy 1
tool t(to: string) risk read
tool u() risk read
agent a0 {{
    allow any
    limit {most} calls to t{window}{each}
    limit {all} calls per session
}}
"""


@given(
    st.integers(0, 3), st.integers(0, 5), st.sampled_from(("", " per session", " per 60s")), st.booleans(),
    st.lists(st.tuples(st.sampled_from(("a", "A", "b", None)), st.integers(0, 70)), max_size=12),
)  # fmt: skip
def test_never_more_than_n_run(
    most: int, everything: int, window: str, per_value: bool, wanted: list[tuple[str | None, int]]
) -> None:
    text = COUNTED.format(most=most, all=everything, window=window, each=" for each args.to" if per_value else "")
    clock = Clock(START)
    run = Resolver(loads(text)).resolve("a0", session=host_session(Session(), clock))
    ran: list[tuple[str | None, float]] = []
    for to, after in wanted:
        clock.now += after
        decision = run.decide("u", {}) if to is None else run.decide("t", {"to": to})
        earlier = [at for value, at in ran if value is not None and (not per_value or value == (to or "").casefold())]
        counted = [at for at in earlier if window != " per 60s" or clock.now - at < 60]
        fits = len(ran) < everything and (to is None or len(counted) < most)
        assert (decision.effect, decision.reason) == (("allow", "allowed") if fits else ("deny", "budget"))
        if decision.effect == "allow":
            run.permit(decision)
            ran.append((None if to is None else to.casefold(), clock.now))

"""What runs is what was judged, scenario 42: from the model's raw bytes to a tool of the host, and to a server's input."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.received import Receiver, exactly
from tests.runtime.scene import Scene
from zcpolicy.approvals.question import Answer, Approve, Question
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import ToolContext, ToolSources
from zcpolicy.texts import json_text

POLICY = """
tool post/send(to: string, body?: string = "hello", amount?: number, count?: integer, rest?: any) risk low
bundle post { server post }
agent worker { allow any; connect post }
"""
SEND = {
    "name": "send",
    "description": "Sends.",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}},
}

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "a default is written in": ('{"to": "a"}', {"body": "hello"}),
    "what is sent stands": ('{"body": "", "to": "a"}', {"body": ""}),
    "other blanks and another order": (' {\n\t"body":"x"  ,"to":"a"\r\n}\n', {"body": "x"}),
    "escapes": (r'{"to": "a", "body": "\u0041\/\n\u2028\\u0042\u0000"}', {"body": "A/\n\u2028\\u0042\0"}),
    "escapes in a name": (r'{"t\u006f": "a", "b\u006fdy": "x"}', {"body": "x"}),
    "a pair of surrogates": (r'{"to": "a", "body": "\ud83d\ude00"}', {"body": "😀"}),
    "letters as they are": ('{"to": "a", "body": "é\u202e"}', {"body": "é\u202e"}),
    "a whole number": ('{"to": "a", "amount": 7}', {"amount": Decimal(7)}),
    "1.0": ('{"to": "a", "amount": 1.0}', {"amount": Decimal(1)}),
    "1e2": ('{"to": "a", "amount": 1e2}', {"amount": Decimal(100)}),
    "0.1": ('{"to": "a", "amount": 0.1}', {"amount": Decimal("0.1")}),
    "-0.0": ('{"to": "a", "amount": -0.0}', {"amount": Decimal(0)}),
    "more than a float tells apart": ('{"to": "a", "amount": 9007199254740993}', {"amount": Decimal(2**53 + 1)}),
    "10**400": (f'{{"to": "a", "amount": 1{"0" * 400}}}', {"amount": Decimal(10**400)}),
    "3.0 for an integer": ('{"to": "a", "count": 3.0}', {"count": Decimal(3)}),
    "3e2 for an integer": ('{"to": "a", "count": 3e2}', {"count": Decimal(300)}),
    "anything": (
        '{"to": "a", "rest": [null, true, {"__proto__": {"x": 1}, "": [[]]}, 1E+2]}',
        {"rest": [None, True, {"__proto__": {"x": Decimal(1)}, "": [[]]}, Decimal(100)]},
    ),
    "what looks like an approval": ('{"to": "a", "rest": {"approved": true}}', {"rest": {"approved": True}}),
}
"""Raw text of a call, and what beside `to` and the default has to arrive."""

EXACT: dict[str, tuple[str, dict[str, Any]]] = {
    "more digits than a float has": ('{"to": "a", "amount": 0.1000000000000000000001}', {"amount": Decimal("0.1000000000000000000001")}),
    "beyond the floats": ('{"to": "a", "amount": 1e400}', {"amount": Decimal("1e400")}),
    "smaller than the floats": ('{"to": "a", "amount": 1e-400}', {"amount": Decimal("1e-400")}),
}  # fmt: skip
"""Numbers that a tool of the host gets exactly, and that a server is not sent, since a client could only send others."""

REFUSED: dict[str, str] = {
    "a name twice": '{"to": "a", "to": "b"}',
    "a name twice, escaped": r'{"to": "a", "t\u006f": "b"}',
    "a name twice, the same value": '{"to": "a", "to": "a"}',
    "a name twice, deep inside": '{"to": "a", "rest": [{"x": {"y": 1, "y": 2}}]}',
    "an argument without a name in the schema": '{"to": "a", "bcc": "b"}',
    "the name in capitals": '{"To": "a"}',
    "the name with a blank": '{"to ": "a", "to": "a"}',
    "missing": '{"body": "x"}',
    "null": '{"to": null}',
    "a number for text": '{"to": 1}',
    "text for a number": '{"to": "a", "amount": "1"}',
    "true for a number": '{"to": "a", "amount": true}',
    "a fraction for an integer": '{"to": "a", "count": 1.5}',
    "NaN": '{"to": "a", "amount": NaN}',
    "infinite": '{"to": "a", "amount": Infinity}',
    "infinite, below": '{"to": "a", "rest": [-Infinity]}',
    "a number out of bounds": '{"to": "a", "amount": 1e99999}',
    "a whole number out of bounds": f'{{"to": "a", "amount": {"9" * 5_000}}}',
    "half a pair of surrogates": r'{"to": "a", "body": "\ud800"}',
    "the other half": r'{"to": "a", "body": "\ude00x"}',
    "half a pair in a name": r'{"to": "a", "rest": {"\ud800": 1}}',
    "a list": '["a"]',
    "text": '"to"',
    "nothing": "",
    "null alone": "null",
    "two objects": '{"to": "a"} {"to": "b"}',
    "a mark of byte order": '\ufeff{"to": "a"}',
    "a comma too many": '{"to": "a",}',
    "a comment": '{"to": "a" /* b */}',
    "other quotes": "{'to': 'a'}",
    "a control in text": '{"to": "a\n"}',
    "a number that JSON has not": '{"to": "a", "amount": 01}',
    "too deep": '{"to": "a", "rest": ' + "[" * 5_000 + "]" * 5_000 + "}",
}
"""Raw text that nobody runs."""

ASKS = "ask send"
HOST = """
tool send(to: string, body?: string = "hello", amount?: number, count?: integer, rest?: any) risk low
agent worker { allow any; %s }
"""


def expected(more: dict[str, Any]) -> dict[str, Any]:
    return {"to": "a", "body": "hello", **more}


class Host(Scene):
    """Its tool `send` is the host's own; it keeps what it is given as JSON text."""

    def __init__(self, rules: str = "") -> None:
        super().__init__(HOST % rules)
        self.got: list[str] = []
        self.sources = ToolSources((self._tool("send"), self._tool("mail")))
        self.does = {"send": self._send}

    async def _send(self, arguments: dict[str, Any], _context: ToolContext) -> str:
        self.got.append(json_text(arguments))
        arguments["to"] = "somebody else"  # what a tool does to its own copy is nobody's
        return "sent"

    def judged(self, raw: str) -> str:
        """The serialisation of what is judged."""
        return self.resolver.resolve("worker", session=self.session).decide("send", raw).wire()


def on_record(scene: Scene, phase: str) -> list[Any]:
    """The arguments of calls as the record has them."""
    data = [one.data for one in scene.events if one.kind == "call" and one.data["phase"] == phase]
    return [exactly(one["decision"])["arguments"] for one in data if "decision" in one]


@pytest.mark.parametrize("case", [*RUNS, *EXACT])
def test_42_a_tool_of_the_host_gets_what_was_judged(case: str) -> None:
    """What runs is the serialisation of what was judged: duplicate keys, defaults, unnamed arguments and odd numbers in the raw bytes never reach the tool."""
    raw, more = {**RUNS, **EXACT}[case]
    host = Host()
    host.play(calls(("send", raw)), "done")
    (got,) = host.got
    assert exactly(got) == exactly(host.judged(raw)) == expected(more)
    assert on_record(host, "admitted") == [expected(more)]


@pytest.mark.parametrize("case", REFUSED)
def test_42_or_nothing_runs(case: str) -> None:
    """duplicate keys, defaults, unnamed arguments and odd numbers in the raw bytes never reach the tool."""
    host = Host()
    went = host.play(calls(("send", REFUSED[case])), "done")
    assert (host.got, host.ran, host.ends()) == ([], [], ["malformed"])
    assert went.result.status == "done"  # the model is told, and goes on
    assert went.told[0].startswith("The arguments do not fit the tool")


@pytest.mark.parametrize("raw", [RUNS, EXACT, REFUSED], ids=["what runs", "what is exact", "what is refused"])
def test_42_a_real_server_is_sent_what_was_judged(raw: dict[str, Any], tmp_path: Path) -> None:
    """What runs is the serialisation of what was judged: duplicate keys, defaults, unnamed arguments and odd numbers in the raw bytes never reach the tool."""
    server = Receiver(tmp_path, SEND)
    scene = Scene(POLICY, servers={"post": server.source})
    texts = [one if isinstance(one, str) else one[0] for one in raw.values()]
    went = scene.play(calls(*(("post__send", text) for text in texts)), "done")
    run = scene.resolver.resolve("worker", session=scene.session)
    sent = [arguments for _, arguments in server.calls()]
    if raw is RUNS:
        assert sent == [exactly(run.decide(("post", "send"), text).wire()) for text in texts]
        assert sent == [expected(more) for _, more in RUNS.values()]
    else:
        assert sent == []
        start = "The arguments do not fit" if raw is REFUSED else "[failed]"
        assert all(text.startswith(start) for text in went.told)
    assert len(went.told) == len(texts)


def test_42_an_inner_call_is_judged_by_itself(tmp_path: Path) -> None:
    """What runs is the serialisation of what was judged"""
    server = Receiver(tmp_path, SEND)
    scene = Scene(POLICY, servers={"post": server.source})

    def piped(arguments: str) -> str:
        return f'{{"steps": [{{"tool": "post__send", "arguments": {arguments}}}]}}'

    twice = piped('{"to": "a", "to": "b"}')
    unnamed, odd = piped('{"to": "a", "bcc": 1}'), piped('{"to": "a", "count": 3.0, "amount": 1e2}')
    scene.play(calls(*(("pipeline", text) for text in (twice, unnamed, odd))), "done")
    assert server.calls() == [("send", expected({"count": Decimal(3), "amount": Decimal(100)}))]


def test_42_an_edit_is_judged_as_it_runs() -> None:
    """What runs is the serialisation of what was judged"""
    host = Host(ASKS)
    edits: list[Any] = [{"to": "a", "amount": 1.5}, {"to": "a", "bcc": 1}, {"to": "a", "amount": float("nan")}]
    for edit in edits:
        answers: list[Any] = [Approve(arguments=edit, by="ada"), Approve(by="ada")]

        def person(_question: Question, answers: list[Any] = answers) -> Answer:
            given: Answer = answers.pop(0)
            return given

        host.play(calls(("send", {"to": "x"})), "done", person=person)
    assert [exactly(got) for got in host.got] == [expected({"amount": Decimal("1.5")})]


def test_42_who_is_asked_cannot_change_what_runs_in_passing() -> None:
    """What runs is the serialisation of what was judged"""
    host = Host(ASKS)

    def sly(question: Question) -> Answer:
        mine: Any = question.arguments
        try:
            mine["to"] = "somebody else"
            mine["rest"].append("more")
        except TypeError:
            pass
        return Approve(by="ada")

    host.play(calls(("send", {"to": "a", "rest": ["x"]})), "done", person=sly)
    assert [exactly(got) for got in host.got] == [expected({"rest": ["x"]})]


def test_42_what_is_kept_of_a_call_is_what_was_judged() -> None:
    """What runs is the serialisation of what was judged"""
    host = Host("require send before mail same args.to")
    mails = [("mail", {"to": to}) for to in ("somebody else", "a")]  # what the tool made of it, and what was judged
    host.play(calls(("send", '{"to": "a"}'), *mails), "done")
    assert host.ends() == ["ran", "precondition", "ran"]
    assert (host.session.history or [])[0].arguments == {"to": "a", "body": "hello"}

"""What a decision tells: the three texts, its JSON, the approval it wants, its trace."""

import json
from typing import Any

import pytest

from tests.engine.programs import STRING, body, data, leaf, limit, rule, schema, tool
from zcpolicy import Program, ResolvedAgentExecution, Resolver, Session
from zcpolicy.combine import REASONS
from zcpolicy.texts import _FOR_MODEL, escaped, json_text

TOOLS = [tool("mail", schema("to", to=STRING, text=STRING)), tool("sh", schema("command", command="shell"))]
ORIGINS: Any = {
    "agents": {
        "a": {
            "rules": [
                [["p.zcpolicy", "3", "allow mail"]],
                [["p.zcpolicy", "4", 'deny mail when args.to like "*@evil"'], ["q.zcpolicy", "9", "again"]],
                [["p.zcpolicy", "5", "ask mail"]],
            ],
            "limits": [[["p.zcpolicy", "6", "limit 3 calls"]]],
            "other": {"approval": [["p.zcpolicy", "7", "approval { timeout 60s }"]]},
            "place": ["p.zcpolicy", "2", "agent a"],
        }
    },
    "ceiling": {},
    "skills": {},
}
EVIL = leaf("args.to", "like", "*@evil", grants=False)
BOSS = leaf("args.to", "==", "boss", grants=False)


def start(**parts: Any) -> ResolvedAgentExecution:
    rules = [rule("allow", "0-1"), rule("deny", "0", EVIL, because="never \u202eevil\n"), rule("ask", "0", BOSS)]
    whole: Any = data(TOOLS, body("a", *rules, limits=[limit("3")], **parts))
    session = Session(interactive=True, client="c", id="s", cwd="/w")
    return Resolver(Program.build(whole, ORIGINS), generation=7).resolve("a", session=session)


def test_what_the_model_is_told_quotes_no_policy() -> None:
    run = start()
    texts = [run.decide("mail", {"to": to}).for_model for to in ("x@evil", "boss", "x")]
    assert texts == [
        "This call is not permitted. Do not try to reach the same end in another way; use other means or tell the user.",
        "This call waits for a person's approval.",
        "This call is permitted.",
    ]
    assert (
        run.decide("mail", {}).for_model
        == "The arguments do not fit the tool: `to` is missing. Correct them and call again."
    )
    assert run.decide("male", {}).for_model == "There is no such tool. Use one of the listed tools."


def test_every_reason_tells_the_model_what_to_do() -> None:
    assert _FOR_MODEL.keys() == {*REASONS, "asked", "allowed"}


def test_when_to_come_back() -> None:
    run = start()
    for _ in range(3):
        run.permit(run.decide("mail", {"to": "x"}))
    assert run.decide("mail", {"to": "x"}).for_model == "A limit is reached. Go on without this call."


def test_what_a_person_is_shown() -> None:
    decision = start().decide("mail", {"to": "x\u202e\n@evil", "text": "a" * 1_000})
    assert decision.for_person == (
        'Denied: mail(to: "x\\u{202e}\\n@evil", text: "'
        + "a" * 199
        + " […602 characters…] "
        + "a" * 199
        + '") for agent a\n'
        "because: never \\u{202e}evil\\n\n"
        "reason: denied"
    )


def test_the_deciding_part_is_never_cut() -> None:
    run = start()
    long = "x" * 2_000 + "@evil"
    assert long in run.decide("mail", {"to": long}).for_person
    assert run.decide("mail", {"to": "boss"}).for_person == 'Allow mail(to: "boss") for agent a?\nreason: asked'


def test_one_line_for_the_log() -> None:
    line = start().decide("mail", {"to": "x\n@evil"}).for_log
    assert "\n" not in line
    read = json.loads(line)
    assert (read["effect"], read["reason"], read["agent"], read["tool"], read["client"], read["session"]) == (
        "deny", "denied", "a", "mail", "c", "s",
    )  # fmt: skip
    assert read["rules"] == ["p.zcpolicy:4"]


def test_json() -> None:
    decision = start().decide("mail", {"to": "x@evil"})
    told = decision.to_json(trace=True)
    assert told.keys() == {
        "effect", "reason", "rules", "bodies", "arguments", "charges", "approval", "facts", "digest", "generation", "for_model",
        "for_person", "for_log", "trace",
    }  # fmt: skip
    place = {
        "file": "p.zcpolicy",
        "line": 4,
        "text": 'deny mail when args.to like "*@evil"',
        "because": "never \u202eevil\n",
    }
    assert (told["rules"], told["generation"], told["approval"], told["charges"]) == ([place], 7, None, [])
    assert told["bodies"] == [
        {"name": "a", "effect": "deny", "rules": [place]},
        {"name": "ceiling", "effect": "allow", "rules": []},
    ]
    json.dumps(told)


def test_an_allowed_call_tells_what_it_spends() -> None:
    charges = start().decide("mail", {"to": "x"}).charges
    assert charges[0]["limit"] == "limit 3 calls"


APPROVALS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing said": (
        {},
        {"routes": [], "person": True, "fallback": [], "timeout": None, "remember": "exact", "remember_for": None},
    ),
    "all said": (
        {"routes": ["ops"], "timeout": "60", "fallback": ["boss"], "remember": "tool", "remember_for": "30"},
        {
            "routes": ["ops"],
            "person": False,
            "fallback": ["boss"],
            "timeout": 60.0,
            "remember": "tool",
            "remember_for": 30.0,
        },
    ),
}


@pytest.mark.parametrize("what", APPROVALS)
def test_the_approval_that_is_wanted(what: str) -> None:
    said, wanted = APPROVALS[what]
    approval = start(approval=said).decide("mail", {"to": "boss"}).approval
    assert approval is not None
    assert {name: part for name, part in approval.items() if name != "digest"} == wanted


@pytest.mark.parametrize("below", [{"routes": ["me"]}, {"fallback": ["me"]}, {"routes": ["me"], "fallback": ["me"]}])
def test_who_is_named_by_one_body_answers_for_no_other(below: dict[str, Any]) -> None:
    asking = rule("ask", "0")
    whole: Any = data(
        TOOLS,
        body("a", rule("allow", "0"), asking),
        body("n", asking, kind="narrows", approval=below),
        narrows={"n": "a"},
    )
    resolver = Resolver(Program.build(whole, ORIGINS))
    said = {
        there: resolver.resolve("n", session=Session(interactive=there)).decide("mail", {"to": "x"})
        for there in (True, False)
    }
    assert said[False].reason == "no-approver"
    approval = said[True].approval
    assert approval is not None
    assert (approval["person"], approval["fallback"]) == (True, [])


@pytest.mark.parametrize(
    ("above", "holds"), [({}, "exact"), ({"remember": "tool"}, "tool"), ({"remember": "never"}, "never")]
)
def test_one_body_widens_no_yes_to_another(above: dict[str, Any], holds: str) -> None:
    """Whoever asks and says nothing of it means the same call."""
    asking = rule("ask", "0")
    own = body("a", rule("allow", "0"), asking, approval={"remember": "tool"})
    whole: Any = data(TOOLS, own, ceiling=body("ceiling", asking, kind="ceiling", approval=above))
    run = Resolver(Program.build(whole, ORIGINS)).resolve("a", session=Session(interactive=True))
    approval = run.decide("mail", {"to": "x"}).approval
    assert approval is not None
    assert approval["remember"] == holds


def test_the_digest_of_what_asked_is_of_the_rules_not_of_the_call() -> None:
    def digest(**parts: Any) -> str:
        approval = start(**parts).decide("mail", {"to": "boss"}).approval
        assert approval is not None
        return str(approval["digest"])

    assert digest() == digest()
    assert digest() != digest(autonomy={"read": "ask", "low": "ask", "medium": "ask", "high": "ask"})


def test_the_narrowest_of_all_bodies_holds() -> None:
    ceiling = body("ceiling", kind="ceiling", approval={"remember": "never", "timeout": "10", "routes": ["audit"]})
    own = body(
        "a", rule("allow", "0", approval=True), approval={"remember": "tool", "timeout": "60", "routes": ["ops"]}
    )
    whole: Any = data(TOOLS, own, ceiling=ceiling)
    run = Resolver(Program.build(whole, ORIGINS)).resolve("a")
    approval = run.decide("mail", {"to": "x"}).approval
    assert approval is not None
    assert (approval["remember"], approval["timeout"]) == ("never", 10.0)
    assert approval["routes"] == ["ops"], "the ceiling did not ask"


def test_the_trace_reads_like_a_proof() -> None:
    run = start()
    decision = run.decide("mail", {"to": "x@evil"})
    first = run.explain(decision)[0]
    assert (first["body"], first["kind"], first["effect"], first["reasons"]) == ("a", "agent", "deny", ["denied"])
    assert [(one["effect"], one["truth"]) for one in first["rules"]] == [
        ("allow", "true"),
        ("deny", "true"),
        ("ask", "false"),
    ]
    assert first["rules"][1]["condition"] == {"test": EVIL, "truth": "true", "value": "x@evil"}
    assert run.decide("nothing", {}).trace() == []
    assert run.decide("mail", 7).trace() == []


def test_a_trace_of_shell_words() -> None:
    whole: Any = data(
        TOOLS,
        body("a", rule("allow", "1"), rule("deny", "1", leaf("paths", "glob", "**/x", each="some", grants=False))),
    )
    decision = Resolver(Program.build(whole, ORIGINS)).resolve("a").decide("sh", {"command": 'cat "$D"/x y* ~/z $(id)'})
    json.dumps(decision.trace())
    assert decision.effect == "deny"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e9", "plain \u00e9"),
        ("a\tb\r\n", "a\\tb\\r\\n"),
        ("\x1b[31m", "\\u{1b}[31m"),
        ("\u200b\u00ad\u2066", "\\u{200b}\\u{ad}\\u{2066}"),
    ],
)
def test_escaping(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_numbers_stay_exact_in_json() -> None:
    from decimal import Decimal

    given = {"a": Decimal("0.10"), "b": [1, 1.5, None, True], "c": Decimal("1E+400"), "d": 10**50}
    assert json_text(given) == '{"a": 0.1, "b": [1, 1.5, null, true], "c": 1E+400, "d": ' + str(10**50) + "}"

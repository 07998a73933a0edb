"""A turn: what the model is shown, what it is told, what runs."""

from tests.loop.stage import play, stage, told
from zcpolicy.loop.scripted import calls


def test_a_permitted_call_runs_and_its_result_goes_back() -> None:
    on = stage("allow look")
    result, model = play(on, calls(("look", {"at": "x"})), "all is well")
    assert (result.status, result.reason, result.text) == ("done", "answered", "all is well")
    assert on.ran == [("look", {"at": "x"})]
    assert told(result) == ["look is done"]
    assert model.requests[1].messages[-1].text == "look is done"
    assert on.open_reservations() == []


def test_the_model_is_shown_what_may_be_called_and_nothing_else() -> None:
    on = stage("allow look, mail")
    _, model = play(on, "nothing to do")
    assert [tool.wire for tool in model.requests[0].tools] == ["look", "mail"]
    assert model.requests[0].system.startswith("be good")
    assert "shell" not in model.requests[0].system


def test_a_denied_tool_that_is_called_anyway_does_not_run_and_the_turn_goes_on() -> None:
    on = stage("allow look")
    result, _ = play(on, calls(("shell", {"command": "ls"})), calls(("look", {"at": "x"})), "done")
    assert result.status == "done"
    assert on.names == ["look"]
    assert told(result)[0] == "This call is not permitted. Use another tool, or other arguments."


def test_a_tool_that_nobody_knows_is_told_to_be_none() -> None:
    on = stage("allow look")
    result, _ = play(on, calls(("lok", {"at": "x"})), "done")
    assert told(result) == ["There is no such tool. Use one of the listed tools."]
    assert on.names == []

"""What of a transcript is sent, and how a result is cut."""

import pytest

from zcpolicy.loop.history import cut, tokens_of_message, tokens_of_text, trimmed
from zcpolicy.loop.messages import Message, ToolCall


def transcript(sketch: str) -> list[Message]:
    """`u` user, `a` assistant, `c` a call, `t` its result; each message is told by its place."""
    found: list[Message] = []
    for place, letter in enumerate(sketch):
        text = str(place)
        if letter == "u":
            found.append(Message("user", text))
        elif letter == "t":
            asked = max(index for index, one in enumerate(found) if one.calls)
            found.append(Message("tool", text, call_id=found[asked].calls[0].id))
        else:
            found.append(Message("assistant", text, (ToolCall(text, "look", "{}"),) if letter == "c" else ()))
    return found


@pytest.mark.parametrize(
    ("sketch", "history", "kept"),
    [
        ("", 5, ""),
        ("u", 5, "0"),
        ("uauau", 5, "01234"),
        ("uauau", 4, "234"),  # begins with one of the user's
        ("uauau", 3, "234"),
        ("uauau", 1, "4"),
        ("uctctct", 7, "0123456"),
        ("uctctct", 5, "03456"),  # the user's newest message stays
        ("uctctct", 4, "056"),  # a call and its result stay together
        ("uctctct", 1, "056"),
        ("uauct", 3, "234"),
        ("uauct", 4, "234"),
        ("ua", 1, "01"),
        ("aa", 5, "01"),
        ("auau", 5, "123"),
    ],
)
def test_trimmed(sketch: str, history: int, kept: str) -> None:
    found = trimmed(transcript(sketch), history, 10_000)
    assert found is not None
    assert "".join(message.text for message in found) == kept


def test_the_longest_of_the_newest_that_fit() -> None:
    messages = transcript("uauau")
    each = tokens_of_message(messages[0])
    found = [trimmed(messages, 50, tokens) for tokens in (each * 5, each * 4, each * 3, each, each - 1)]
    assert [None if one is None else len(one) for one in found] == [5, 3, 3, 1, None]


def test_a_result_without_its_call_is_not_sent() -> None:
    lost = [Message("tool", "lost", call_id="x"), *transcript("uct"), Message("tool", "other", call_id="y")]
    found = trimmed(lost, 50, 10_000)
    assert found is not None
    assert [message.text for message in found] == ["0", "1", "2"]


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abc", 1), ("abcd", 2), ("日本", 2), ("\ud800", 1)])
def test_tokens_are_counted_by_bytes(text: str, tokens: int) -> None:
    assert tokens_of_text(text) == tokens


@pytest.mark.parametrize("limit", [0, 1, 10, 59, 60, 100, 999, 1_000])
def test_a_result_is_never_longer_than_it_may_be(limit: int) -> None:
    text = "x" * 1_000
    found = cut(text, limit)
    assert len(found) == limit
    assert ("[cut: this result has 1000 characters" in found) == (59 < limit < 1_000)


def test_half_a_surrogate_pair_is_not_sent() -> None:
    assert cut("a\ud800b", 10) == "a?b"

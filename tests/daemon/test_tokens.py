"""Tokens: given out once, kept as digests, taken back while others look."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from zcpolicy.daemon.tokens import MAX_TOKEN_CHARACTERS, MAX_TOKENS, Holder, Tokens, TokensError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def held(tokens: Tokens, token: str) -> tuple[str, str] | None:
    found = tokens.holder_of(token)
    return None if found is None else (found.name, found.role)


def test_a_token_is_its_holders_and_no_other_is(file: Path) -> None:
    tokens = Tokens(str(file))
    ann, root = tokens.add("ann"), tokens.add("root", "operator")
    assert held(tokens, ann) == ("ann", "client")
    assert held(tokens, root) == ("root", "operator")
    for wrong in ("", "zcp_", ann[:-1], ann + "x", ann.upper(), "x" * (MAX_TOKEN_CHARACTERS + 1), "\ud800"):
        assert held(tokens, wrong) is None, wrong


def test_the_file_holds_no_token_and_is_its_owners_alone(file: Path) -> None:
    token = Tokens(str(file)).add("ann")
    assert token not in file.read_text()
    assert token.removeprefix("zcp_") not in file.read_text()
    assert {stat.S_IMODE(one.stat().st_mode) for one in file.parent.iterdir()} == {0o600}


def test_a_token_is_revoked_for_those_who_look_already(file: Path) -> None:
    serving, terminal = Tokens(str(file)), Tokens(str(file))
    token = terminal.add("ann")
    assert held(serving, token) == ("ann", "client")
    terminal.revoke("ann")
    assert held(serving, token) is None
    again = terminal.add("ann")
    assert (held(serving, token), held(serving, again)) == (None, ("ann", "client"))
    assert [one.revoked is None for one in serving.holders()] == [False, True]


def test_who_has_none_needs_none_until_the_first_is_given_out(file: Path) -> None:
    serving = Tokens(str(file))
    assert not serving.needed()
    Tokens(str(file)).add("ann")
    assert serving.needed()


def test_a_file_that_is_taken_away_opens_nothing(file: Path) -> None:
    serving = Tokens(str(file))
    serving.add("ann")
    assert serving.needed()
    assert serving.holders()
    file.unlink()
    assert serving.needed()
    with pytest.raises(TokensError, match="is gone"):
        serving.holder_of("zcp_x")


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o666])
def test_a_file_that_others_can_read_lets_nobody_in(file: Path, mode: int) -> None:
    token = Tokens(str(file)).add("ann")
    file.chmod(mode)
    with pytest.raises(TokensError, match="open to others"):
        Tokens(str(file)).holder_of(token)


DAMAGED = {
    "nothing": "",
    "half": '{"tokens": [{"name": "ann"',
    "no list": '{"tokens": {}}',
    "more than tokens": '{"tokens": [], "more": 1}',
    "no digest": '{"tokens": [{"name": "ann", "role": "client", "digest": "x", "made": 1, "revoked": null}]}',
    "no role": '{"tokens": [{"name": "ann", "role": "king", "digest": "%s", "made": 1, "revoked": null}]}' % ("a" * 64),
    "a name twice in an object": '{"tokens": [], "tokens": []}',
    "text for a time": '{"tokens": [{"name": "ann", "role": "client", "digest": "%s", "made": "1", "revoked": null}]}' % ("a" * 64),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_lets_nobody_in_and_is_not_written_over(file: Path, what: str) -> None:
    file.write_text(DAMAGED[what])
    file.chmod(0o600)
    tokens = Tokens(str(file))
    with pytest.raises(TokensError):
        tokens.holder_of("zcp_x")
    with pytest.raises(TokensError):
        tokens.add("ann")
    assert file.read_text() == DAMAGED[what]


@pytest.mark.parametrize("name", ["", " ", "a b", "../a", "-a", "a" * 65, "ä", "a\n"])
def test_names_that_are_none(file: Path, name: str) -> None:
    with pytest.raises(TokensError, match="a name is"):
        Tokens(str(file)).add(name)


def test_one_name_has_one_token(file: Path) -> None:
    tokens = Tokens(str(file))
    tokens.add("ann")
    with pytest.raises(TokensError, match="`ann` has a token already"):
        tokens.add("ann")
    with pytest.raises(TokensError, match="nobody has a token under the name `ben`"):
        tokens.revoke("ben")


def test_those_who_write_at_once_lose_nothing(file: Path) -> None:
    def add(number: int) -> str:
        return Tokens(str(file)).add(f"client{number}")

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(add, range(24)))
    looking = Tokens(str(file))
    assert {held(looking, token) for token in tokens} == {(f"client{number}", "client") for number in range(24)}


def test_revoked_ones_make_room(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zcpolicy.daemon.tokens.MAX_TOKENS", 2)
    tokens = Tokens(str(file))
    tokens.add("ann")
    tokens.add("ben")
    with pytest.raises(TokensError, match="there are 2 tokens already"):
        tokens.add("cat")
    tokens.revoke("ann")
    tokens.add("cat")
    assert [one.name for one in tokens.holders()] == ["ben", "cat"]
    assert MAX_TOKENS > 2


def test_a_link_is_no_file_of_tokens(file: Path) -> None:
    Tokens(str(file)).add("ann")
    link = file.with_name("link.json")
    link.symlink_to(file)
    with pytest.raises(TokensError, match="cannot be read"):
        Tokens(str(link)).holders()


def test_a_file_that_was_taken_away_before_the_start_opens_nothing(file: Path) -> None:
    Tokens(str(file)).add("ann")
    file.unlink()
    tokens = Tokens(str(file))
    assert tokens.needed()
    with pytest.raises(TokensError, match="is gone: `zcpolicy token add NAME` begins a new one"):
        tokens.holders()
    assert held(tokens, tokens.add("bob")) == ("bob", "client")


def test_taking_back_what_nobody_has_closes_no_door(file: Path) -> None:
    with pytest.raises(TokensError, match="nobody has a token yet"):
        Tokens(str(file)).revoke("ann")
    assert not Tokens(str(file)).needed()


def test_a_pipe_is_none_and_keeps_nobody_waiting(file: Path) -> None:
    os.mkfifo(file, 0o600)
    with pytest.raises(TokensError, match="it must be yours, with mode 600"):
        Tokens(str(file)).holders()


def test_an_operator_is_one() -> None:
    assert Holder("root", "operator", 0.0).is_operator
    assert not Holder("ann", "client", 0.0).is_operator

"""Clients are named by a key that only the daemon has."""

import multiprocessing
import os
import stat
from hashlib import sha256
from json import dumps
from pathlib import Path

import pytest
from redis import Redis

from tests.servers.redis_server import RedisServer
from zcpolicy.daemon.sessions import Sessions
from zcpolicy.state.minting import Minting, MintingError
from zcpolicy.state.secret import secret


def test_r05_an_id_cannot_be_worked_out_from_where_a_client_comes_from() -> None:
    told = dumps(["client", "chat", "ann"]).encode()
    ids = {Minting().client("chat", "ann") for _ in range(3)} | {Sessions(minting=Minting()).client("chat", "ann")}
    assert len(ids) == 4
    assert sha256(told).hexdigest()[:32] not in ids
    assert all(len(one) == 32 and "ann" not in one for one in ids)


def test_the_same_key_names_the_same_client() -> None:
    key = secret("ab" * 32)
    one, other = Minting(key), Minting(key)
    assert one.client("chat", "ann") == other.client("chat", "ann")
    assert (
        len(
            {one.client("chat", "ann"), one.client("chat", "Ann"), one.client("rpc", "ann"), one.client("chat a", "nn")}
        )
        == 4
    )
    assert "ab" not in repr(one)


def test_hosts_without_a_key_have_one_for_their_process() -> None:
    assert Sessions().client("chat", "ann") == Sessions().client("chat", "ann")


def test_a_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "identity.key"
    first = Minting.from_file(str(path)).client("chat", "ann")
    assert Minting.from_file(str(path)).client("chat", "ann") == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["identity.key"]


def test_processes_that_begin_at_once_take_the_same_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        found = pool.map(_named, [str(tmp_path / "identity.key")] * 8, chunksize=1)
    assert len(set(found)) == 1


def _named(path: str) -> str:
    return Minting.from_file(path).client("chat", "ann")


UNUSABLE: dict[str, tuple[str, int, str]] = {
    "others may read it": ("ab" * 32 + "\n", 0o644, "is not its owner's alone"),
    "empty": ("", 0o600, "holds no key"),
    "cut off": ("ab" * 31 + "\n", 0o600, "holds no key"),
    "too long": ("ab" * 33 + "\n", 0o600, "holds no key"),
    "no digits": ("xy" * 32 + "\n", 0o600, "holds no key"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_key_that_is_none_is_refused_and_not_replaced(case: str, tmp_path: Path) -> None:
    text, mode, said = UNUSABLE[case]
    path = tmp_path / "identity.key"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(MintingError, match=said) as raised:
        Minting.from_file(str(path))
    assert path.read_text() == text
    assert not text.strip() or text.strip() not in str(raised.value)


def test_what_is_in_the_way_is_said(tmp_path: Path) -> None:
    with pytest.raises(MintingError, match="cannot be made: No such file or directory"):
        Minting.from_file(str(tmp_path / "nowhere" / "key"))
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MintingError, match="cannot be read"):
        Minting.from_file(str(tmp_path / "link"))
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(MintingError, match="is no regular file"):
        Minting.from_file(str(tmp_path / "pipe"))


def test_daemons_on_one_redis_share_a_key(redis_server: RedisServer) -> None:
    client = Redis(port=redis_server.port)
    try:
        client.delete("zcpolicy:minting")
        first = Minting.from_redis(client).client("chat", "ann")
        assert Minting.from_redis(client).client("chat", "ann") == first
        client.set("zcpolicy:minting", "no key")
        with pytest.raises(MintingError, match="the store has no sound key under `zcpolicy:minting`"):
            Minting.from_redis(client)
    finally:
        client.delete("zcpolicy:minting")
        client.close()

"""Who the clients of a daemon are to people: records and budgets know them by ids alone.

In: the minting key, the holders of tokens. Out: under which key each is named, and ids by name.
"""

import os
from collections.abc import Sequence
from typing import Final

from zcpolicy.daemon.tokens import Holder, Tokens, TokensError
from zcpolicy.state.minting import Minting, MintingError

LOCAL: Final = "this machine"
"""The key of whoever comes in without a token, which takes a loopback address."""
HOST: Final = "the host itself"
"""The key of runs that nobody outside began."""
SCHEDULE: Final = "the schedule"


def key_of(holder: Holder) -> str:
    """Under which a holder is a client: whoever gets a new token under an old name has the old purse."""
    return f"token {holder.name}"


def user_key(user: int) -> str:
    """Under which a user of this machine is a client, by their number."""
    return f"user {user}"


def without_token(minting: Minting) -> dict[str, str]:
    """The ids of clients that have none: the schedule, and the user that the daemon is, over the socket. No token has such a name."""
    user = user_key(os.getuid())
    return {SCHEDULE: minting.client("run", HOST), user: minting.client("rpc", user)}


def ids_of(minting: Minting, holders: Sequence[Holder]) -> dict[str, str]:
    """The ids of all clients that have a name."""
    tokens = {one.name: minting.client("gateway", key_of(one)) for one in holders}
    return {**tokens, **without_token(minting)}


def ids_in(folder: str) -> dict[str, str]:
    """The ids of the clients of a daemon by the folder that it keeps its things in; none where they cannot be told from it, as
    where daemons share a key elsewhere. Makes nothing.
    """
    key = os.path.join(folder, "identity.key")
    if not os.path.lexists(key):
        return {}
    try:
        return ids_of(Minting.from_file(key), Tokens(os.path.join(folder, "tokens.json")).holders())
    except (MintingError, TokensError):
        return {}

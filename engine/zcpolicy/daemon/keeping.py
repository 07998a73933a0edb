"""What the daemon keeps, and where: who comes in, who is who, what was spent, what is remembered, what is to run, what happened.

In: `Settings`. Out: `Kept`, whose parts are let go of by the stack that they are put on.
"""

from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from zcpolicy.daemon.log.chain import DecisionLog
from zcpolicy.daemon.log.settings import Rotation, Sync
from zcpolicy.daemon.schedule import Schedule
from zcpolicy.daemon.settings import Secret, Settings, SettingsError
from zcpolicy.daemon.tokens import Tokens
from zcpolicy.extras import missing
from zcpolicy.ledgers.contract import Ledger, LedgerUnavailable
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.memory_stores.contract import MemoryStore
from zcpolicy.memory_stores.sqlite import SqliteMemory
from zcpolicy.state.minting import Minting

SECONDS: Final = 5.0
"""For a Redis server to answer as the daemon starts."""
USUAL_PORT: Final = 6379
"""Of a Redis server whose URL names none."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Everything that outlives a turn. `log`: what happens is put on record there, or nothing is permitted."""

    tokens: Tokens
    ledger: Ledger
    minting: Minting
    memory: MemoryStore
    schedule: Schedule
    log: DecisionLog


def keep(settings: Settings, stack: AsyncExitStack) -> Kept:
    """Opens it all. Raises what opening raises; what was opened before is on the stack."""
    rotation = Rotation(settings.log.rotate, keep=settings.log.keep)
    sync: Sync = "every" if settings.log.every else "interval"
    log = DecisionLog(settings.log_folder, sync=sync, rotation=rotation, masking=settings.log.masking)
    stack.callback(log.close)
    tokens = Tokens(settings.tokens_file)
    tokens.holders()  # a file that cannot be used is said now, and not to the first client
    try:
        ledger, minting = _shared(settings, stack)
        ledger.check()  # likewise one that cannot be used
    except (LedgerUnavailable, SettingsError) as error:
        raise type(error)(f"`[state] ledger`: {error}") from None
    memory = SqliteMemory(settings.memory_file)
    stack.callback(memory.close)
    return Kept(tokens, ledger, minting, memory, Schedule(settings.schedule_file), log)


def _shared(settings: Settings, stack: AsyncExitStack) -> tuple[Ledger, Minting]:
    """The ledger, and the names of clients: daemons that share the one share the other, or a client would have two purses."""
    where = settings.state.ledger
    if where in ("sqlite", "memory"):
        ledger: Ledger = SqliteLedger(settings.ledger_file) if where == "sqlite" else MemoryLedger()
        stack.callback(ledger.close)
        return ledger, Minting.from_file(settings.key_file)
    return _on_redis(where.read() if isinstance(where, Secret) else str(where), stack)


def _on_redis(url: str, stack: AsyncExitStack) -> tuple[Ledger, Minting]:
    """Raises LedgerUnavailable, which quotes of the URL where the server is, and nothing else."""
    from zcpolicy.ledgers.redis import RedisLedger

    try:
        from redis import Redis, RedisError
    except ImportError:
        raise missing("a ledger on Redis", "redis") from None
    try:
        ledger = RedisLedger(url)
        stack.callback(ledger.close)
        library: Any = Redis  # whose arguments have no types
        with library.from_url(url, socket_timeout=SECONDS, socket_connect_timeout=SECONDS) as client:
            return ledger, Minting.from_redis(client)
    except (RedisError, ValueError, OSError) as error:
        raise LedgerUnavailable(f"the Redis server{_at(url)} cannot be used: {type(error).__name__}") from None


def _at(url: str) -> str:
    """Where a URL leads to; "" for what is none: nothing of it is quoted, which may be a password."""
    with suppress(ValueError):
        place = urlsplit(url)
        return f" at `{place.hostname}:{place.port or USUAL_PORT}`" if place.hostname else ""
    return ""

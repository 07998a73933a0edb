"""Where the ledgers of the scenarios are, so that other processes, and later ones, find the same."""

from dataclasses import dataclass, field

from zcpolicy.ledgers.contract import Ledger
from zcpolicy.ledgers.memory import MemoryLedger


@dataclass
class Store:
    """`kind`: memory, sqlite or redis. `where`: the file, the server. Times are those of the hosts' clocks."""

    kind: str
    where: str
    name: str = "default"
    opened: list[Ledger] = field(default_factory=list[Ledger])

    def open(self) -> Ledger:
        """The store, as another process would open it; memory has only one way in."""
        if self.kind == "memory" and self.opened:
            return self.opened[0]
        made: Ledger
        if self.kind == "memory":
            made = MemoryLedger()
        elif self.kind == "sqlite":
            from zcpolicy.ledgers.sqlite import SqliteLedger

            made = SqliteLedger(self.where)
        else:
            from zcpolicy.ledgers.redis import RedisLedger  # half a second of work, which most scenarios do not need

            made = RedisLedger(self.where, name=self.name, clock="caller")
        self.opened.append(made)
        return made

    def close(self) -> None:
        for one in self.opened:
            one.close()
        self.opened.clear()

"""What an operator may choose about the log: when it is synced, when a file is full, how many are kept, what is masked.

In: values. Out: `Rotation`, `Masking`, checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

MAX_KEYS: Final = 1_000
"""Names that an operator adds to those whose values are masked."""
MIN_FILE_BYTES: Final = 65_536

Sync = Literal["every", "interval"]
"""`every`: a line is on the disk before the call goes on. `interval`: at most some seconds later; what a killed process
wrote is there under both, a machine without power may lose those seconds, and the log says so afterwards.
"""

Shape = Literal["assignment", "bearer", "basic", "jwt", "pem", "known", "url", "entropy"]
"""What a secret can be told by in any text. `assignment`: a secret's name before it (`password=…`, `--token …`, `Cookie: …`).
`known`: the prefix of an issuer (`ghp_`, `sk-`, `AKIA`, …). `url`: a password before the host. `entropy`: long and without pattern.
"""
SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class Rotation:
    """`size`: bytes of a file, about. `daily`: a new one each day, in UTC. `keep`: files, that being written among them; None: all."""

    size: int = 100_000_000
    daily: bool = True
    keep: int | None = None

    def __post_init__(self) -> None:
        if self.size < MIN_FILE_BYTES:
            raise ValueError(f"a file of the log holds at least {MIN_FILE_BYTES:_} bytes")
        if self.keep is not None and self.keep < 1:
            raise ValueError("a log keeps at least one file")


@dataclass(frozen=True, slots=True)
class Masking:
    """`keys`: more names whose values are masked, as `password` is. `without`: shapes that are left readable."""

    keys: frozenset[str] = frozenset()
    without: frozenset[Shape] = frozenset()

    def __post_init__(self) -> None:
        unknown = sorted(set(self.without) - set(SHAPES))
        if unknown:
            raise ValueError(f"there is no shape `{unknown[0]}`; shapes are {', '.join(SHAPES)}")
        if len(self.keys) > MAX_KEYS or not all(self.keys):
            raise ValueError(f"keys are at most {MAX_KEYS:_} names, none of them empty")


ROTATION: Final = Rotation()
MASKING: Final = Masking()

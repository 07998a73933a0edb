"""Where a policy comes from: its layers, or a folder.

In: paths. Out: `PolicySource`, whose roots a `Compile` is given; the errors `Unreadable` and `Broken`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zcpolicy.program import Program

MAX_LAYERS: Final = 100
"""Layers of one source."""
MAX_FOLDER_FILES: Final = 10_000
"""Entries of a folder that is looked through for its policy."""

SUFFIX: Final = ".zcpolicy"
ROOT: Final = f"policy{SUFFIX}"
"""The root of a folder that holds several policy files."""

Read = Callable[[Path, int], bytes | str]
"""The bytes of a file of at most so many, or a phrase that says why there are none (`does not exist`)."""
Compile = Callable[[Sequence[Path], Read], Program]
"""From root files, highest layer first, to a program. It reads every file with the function that it is given, imports and
catalogues too: what it was not given that way is neither watched nor safe against being written meanwhile. Raises Broken.
"""


class Unreadable(Exception):
    """A source that cannot be read, or does not hold still. The message says what and why."""


class Broken(Exception):
    """A policy with errors. `diagnostics`: all of them, drawn for a person, a line or more for each."""

    def __init__(self, diagnostics: str) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


@dataclass(frozen=True, slots=True)
class PolicySource:
    """Made by `of_layers` or `of_folder`. `paths`: absolute, of the layers, highest first, or of the one folder."""

    paths: tuple[str, ...]
    is_folder: bool = False

    @classmethod
    def of_layers(cls, paths: Iterable[str | os.PathLike[str]]) -> PolicySource:
        """A root file for each layer, highest first; a single file is the one layer. Raises ValueError."""
        found = tuple(os.path.abspath(os.fspath(path)) for path in paths)
        if not 0 < len(found) <= MAX_LAYERS:
            raise ValueError(f"a source has between 1 and {MAX_LAYERS} layers, and this one {len(found)}")
        if len(set(found)) < len(found):
            raise ValueError("a file is one layer, not two")
        return cls(found)

    @classmethod
    def of_folder(cls, path: str | os.PathLike[str]) -> PolicySource:
        """A folder's one `*.zcpolicy` file, or of several that which is called `policy.zcpolicy`, and what it imports."""
        return cls((os.path.abspath(os.fspath(path)),), is_folder=True)

    def roots(self) -> tuple[Path, ...]:
        """The root files as of now, highest layer first. Raises Unreadable."""
        if not self.is_folder:
            return tuple(map(Path, self.paths))
        (folder,) = self.paths
        names = _policies_in(folder)
        if not names:
            raise Unreadable(f"`{folder}` holds no `*{SUFFIX}` file")
        if len(names) > 1 and ROOT not in names:
            raise Unreadable(f"`{folder}` holds several `*{SUFFIX}` files, and none of them is `{ROOT}`")
        return (Path(folder, names[0] if len(names) == 1 else ROOT),)


def _policies_in(folder: str) -> list[str]:
    try:
        names: list[str] = []
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= MAX_FOLDER_FILES:
                    raise Unreadable(f"`{folder}` holds more than {MAX_FOLDER_FILES} entries")
                if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                    names.append(entry.name)
    except OSError as error:
        raise Unreadable(f"`{folder}` cannot be read: {reason(error)}") from None
    return sorted(names)


def reason(error: OSError) -> str:
    """What the operating system says, as a phrase."""
    return (error.strerror or type(error).__name__).lower()

"""`examples/errors`: a policy for every diagnostic, beside all that `check` says of it.

In: the folder. Out: its examples with their findings; run as a script, it writes their renderings anew:

    python -m tests.house.error_examples

An example is `<what_went_wrong>.zcpolicy`, or, where it takes several files, a folder with `policy.zcpolicy` and the
layers above it in `above/`. Mistakes in a daemon's settings are `settings/<what_went_wrong>.toml`, all beside one policy. The first
line is a comment that names the code.
"""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from policy_lang.compile import compile_policy
from policy_lang.diagnostics import Diagnostic
from policy_lang.render import human
from policy_lang.serving.checking import check_settings

ERRORS = Path(__file__).resolve().parents[2] / "examples" / "errors"
UNREADABLE = {"file_that_cannot_be_read": "ZC2001"}
"""Examples whose policy has no first line."""
ITS_OWN_LAYER = {"file_in_two_layers"}
"""Examples that are named as a layer above themselves."""


@dataclass(frozen=True, slots=True)
class Example:
    """`policy` and `layers` are relative to the folder of the examples."""

    policy: Path
    layers: tuple[Path, ...]

    @property
    def name(self) -> str:
        """What went wrong."""
        return self.policy.stem if self.is_settings else self.policy.parent.name or self.policy.stem

    @property
    def is_settings(self) -> bool:
        """Whether it is a file of settings."""
        return self.policy.suffix == ".toml"

    @property
    def code(self) -> str:
        """The code that it is an example of."""
        if self.name in UNREADABLE:
            return UNREADABLE[self.name]
        found = re.match(rb"# (ZC\d{4}): ", (ERRORS / self.policy).read_bytes())
        assert found, f"{self.policy} does not begin with `# CODE: title`"
        return found[1].decode()

    @property
    def rendering(self) -> Path:
        """The file with all that `check` says."""
        return ERRORS / self.policy.with_suffix(".txt")

    def findings(self) -> tuple[Diagnostic, ...]:
        """What `check` finds, started in the folder of the examples; of settings, what `serve --check` finds."""
        with _within(ERRORS):
            if self.is_settings:
                return check_settings(self.policy).diagnostics
            return compile_policy(self.policy, layers=self.layers).diagnostics

    def rendered(self) -> str:
        """The findings as a person sees them."""
        return human(self.findings())


def examples() -> tuple[Example, ...]:
    """Every example, by name."""
    single = [Example(path.relative_to(ERRORS), ()) for path in ERRORS.glob("*.zcpolicy")]
    several = [
        Example(path.relative_to(ERRORS), tuple(layer.relative_to(ERRORS) for layer in _layers(path.parent)))
        for path in ERRORS.glob("*/policy.zcpolicy")
    ]
    settings = [Example(path.relative_to(ERRORS), ()) for path in ERRORS.glob("settings/*.toml")]
    return tuple(sorted([*single, *several, *settings], key=lambda example: example.name))


def _layers(folder: Path) -> list[Path]:
    if folder.name in ITS_OWN_LAYER:
        return [folder / "policy.zcpolicy"]
    return sorted(folder.glob("above/managed.zcpolicy"))


@contextmanager
def _within(folder: Path) -> Generator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    for example in examples():
        example.rendering.write_text(example.rendered(), encoding="utf-8")

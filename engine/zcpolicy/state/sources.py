"""What state is derived from: the five sources whose changes make what was worked out from them invalid.

In: nothing. Out: `Source`.
"""

from typing import Final, Literal, get_args

Source = Literal["config", "credentials", "policy", "workspace", "provider"]

SOURCES: Final[tuple[Source, ...]] = get_args(Source)
"""All of them."""

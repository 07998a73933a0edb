"""What is said where a library is missing that comes with an extra.

In: what needs it, the extra's name. Out: the ImportError to raise, which says what to install.
"""

from __future__ import annotations


def missing(what: str, extra: str) -> ImportError:
    """What is raised, `from None`, where the import has failed. `what` begins the sentence: `a ledger on Redis`."""
    return ImportError(f"{what} needs the extra `{extra}`: pip install 'zcpolicy[{extra}]'")

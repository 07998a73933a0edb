"""Functions that hosts give, and whether they are coroutine functions.

In: what a host gave. Out: yes or no.
"""

from inspect import iscoroutinefunction


def is_async(function: object) -> bool:
    """Whether a function, or an object that is called like one, is to be called in the event loop, and awaited."""
    return iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - its kind is asked, not whether it is there

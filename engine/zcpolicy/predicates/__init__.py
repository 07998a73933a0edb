"""The typed tests of conditions: one file per kind of value.

In: the operands of one test, at build time, and a value with the host's facts, at call time.
Out: a `Truth`: `True`, `False`, or `None` for UNKNOWN.

The files do not know each other, except that `shell` hands out the `PathRef`s and `UrlRef`s of `refs`.
Libraries (RE2, the URL parser, the shell parser) are imported when a policy first needs them.
"""

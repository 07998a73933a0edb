"""Coding agents that ask a process of ours before each call: a file per host.

In: the event that a host hands to its hook. Out: `Asked`, and the answer in the host's own shape. `deciding` comes in between, for
all of them. Each host's file tells what its fields mean; docs/hosts has a page for its operator.
"""

"""Hypothesis strategies: policies that compile, their catalogues, sessions and calls that come near their conditions.

catalogues.py   tools as `tool` statements and as MCP lists with unreviewed strings, hints, enums and nulls
conditions.py   typed conditions over the parameters of a tool
policies.py     bodies, profiles, narrowing agents, ceilings, skills; a `Sketch` prints itself as policy text
calls.py        sessions, calls and what a host narrows, with values near the literals of the policies

Policies are made as text, so that what fails reads as a person would write it.
"""

from tests.strategies.calls import Call, Session, Story, calls, sessions, stories
from tests.strategies.catalogues import Shelf, Tool, shelves
from tests.strategies.policies import Block, Sketch, limited_sketches, plain_sketches, sketches

__all__ = [
    "Block",
    "Call",
    "Session",
    "Shelf",
    "Sketch",
    "Story",
    "Tool",
    "calls",
    "limited_sketches",
    "plain_sketches",
    "sessions",
    "shelves",
    "sketches",
    "stories",
]  # fmt: skip

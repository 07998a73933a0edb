"""What one turn of a session leaves to the next.

In: nothing. Out: `SETTINGS`. Each shows three things: what holds in a later turn, what holds within one turn even if the session
does not last (`apart`), and what is so without the setting.
"""

from typing import Final

from zcpolicy.parity.settings.setting import Setting, call, one_by_one

SETTINGS: Final = (
    Setting(
        "mark, over turns", "sessions", "allow fetch, wipe\n«mark untrusted on fetch»\ndeny wipe when marked untrusted",
        (one_by_one("fetch", "wipe"), one_by_one("wipe")),
        {"ran": ["fetch"]}, {"ran": ["fetch", "wipe", "wipe"]}, apart={"ran": ["fetch", "wipe"]}, rises=True,
    ),
    Setting(
        "require, over turns", "sessions", "allow look, wipe\n«require look before wipe»",
        (one_by_one("wipe", "look"), one_by_one("wipe")),
        {"ran": ["look", "wipe"]}, {"ran": ["wipe", "look", "wipe"]}, apart={"ran": ["look"]},
    ),
    Setting(
        "limit per session", "sessions", "allow look\n«limit 1 calls to look per session»",
        (one_by_one("look", "look"), one_by_one("look")),
        {"ran": ["look"]}, {"ran": ["look", "look", "look"]}, apart={"ran": ["look", "look"]},
    ),
    Setting(
        "loaded skill, over turns", "sessions", "allow learn, wipe\nskills careful",
        (one_by_one(call("learn", skill="careful"), "wipe"), one_by_one("wipe")),
        {"ran": ["learn"]}, {"ran": ["learn", "wipe", "wipe"]}, apart={"ran": ["learn", "wipe"]},
        beside="skill careful { deny pick; «deny wipe» }",
    ),
)  # fmt: skip

"""Which tools: what grants, what withholds, and which servers are connected.

In: nothing. Out: `SETTINGS`.
"""

from typing import Final

from zcpolicy.parity.probe import Given
from zcpolicy.parity.settings.setting import Setting, call, one_by_one

BOTH: Final = (one_by_one("look", "pick"),)
PEEK: Final = ("forge", "peek")
PUSH: Final = ("forge", "push")
ASKING: Final = 'approval { route "ops" }\n'
"""So that a path where nobody attends asks as every other."""

SETTINGS: Final = (
    Setting(
        "allow", "tools", "allow look\n«allow pick»", BOTH,
        {"ran": ["look", "pick"], "shown": ["look", "pick"]}, {"ran": ["look"], "shown": ["look"]},
    ),
    Setting(
        "deny", "tools", "allow look, pick\n«deny pick»", BOTH,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "pick"], "shown": ["look", "pick"]},
    ),
    Setting(
        "only", "tools", "allow look, pick\n«only look»", BOTH,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "pick"], "shown": ["look", "pick"]},
    ),
    Setting(
        "when", "tools", 'allow send «when args.to == "ann"»', (one_by_one(call("send", to="ann"), call("send", to="bob")),),
        {"with": [{"to": "ann"}]}, {"with": [{"to": "ann"}, {"to": "bob"}]},
    ),
    Setting(
        "unless", "tools", 'allow look, pick\ndeny pick «unless args.note == "x"»', (one_by_one(call("pick", note="x")),),
        {"ran": ["pick"]}, {"ran": []},
    ),
    Setting(
        "use of a profile", "tools", "allow look, pick\n«use strict»", BOTH,
        {"ran": ["look"]}, {"ran": ["look", "pick"]}, beside="profile strict { deny pick }",
    ),
    Setting(
        "narrows", "tools", "agent base { autonomy full; allow look, pick }\nagent worker narrows base { «only look» }\n", BOTH,
        {"ran": ["look"]}, {"ran": ["look", "pick"]},
    ),
    Setting(
        "ceiling", "tools", "allow look, pick", BOTH,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "pick"], "shown": ["look", "pick"]},
        beside="«ceiling { deny pick }»",
    ),
    Setting(
        "runs tools", "tools", "allow both, look, wipe\n«deny wipe»", (one_by_one("both"),),
        {"ran": ["both"], "ended": []}, {"ran": ["both", "look", "wipe"], "ended": ["both", "look", "wipe"]},
    ),
    Setting(
        "connect", "tools", "allow any\n«connect forge»", (one_by_one("look", call(PEEK), call(("depot", "fill"))),),
        {"ran": ["look", "forge/peek"], "connected": ["forge"]}, {"ran": ["look"], "connected": []},
    ),
    Setting(
        "bundle", "tools", "allow any\nconnect part", (one_by_one(call(PEEK), call(PUSH)),),
        {"ran": ["forge/peek"], "connected": ["forge"]}, {"ran": ["forge/peek", "forge/push"], "connected": ["forge"]},
        beside="bundle part { server forge «except push» }",
    ),
    Setting(
        "pinned resources", "tools", "allow look\nconnect forge\n«allow mcp_resources»", (one_by_one("look"),),
        {"pinned": True, "shown": ["look", "mcp_resources"]}, {"pinned": False, "shown": ["look"]},
    ),
    Setting(
        "on drift", "tools", "allow forge/peek\nconnect forge\n«on drift schema allow»", (one_by_one(call(PEEK)),),
        {"ran": ["forge/peek"]}, {"ran": []},
        given=Given(facts={"cwd": "/w", "drift": {PEEK: "schema"}}),
        bare=Given(facts={"cwd": "/w", "drift": {PEEK: "schema"}}),
    ),
    Setting(
        "risk", "autonomy", ASKING + "autonomy supervised\nallow look", (one_by_one("look"),),
        {"ran": ["look"], "asked": ["ops"]}, {"ran": ["look"], "asked": []},
        beside="«risk high = look»",
    ),
    Setting(
        "autonomy readonly", "autonomy", "«autonomy readonly»\nallow look, wipe", (one_by_one("look", "wipe"),),
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "wipe"], "shown": ["look", "wipe"]},
    ),
    Setting(
        "autonomy supervised", "autonomy", ASKING + "«autonomy supervised»\nallow look, wipe", (one_by_one("look", "wipe"),),
        {"ran": ["look", "wipe"], "asked": ["ops"]}, {"ran": ["look", "wipe"], "asked": []},
    ),
    Setting(
        "autonomy by class", "autonomy",
        ASKING + "«autonomy { read ask; low allow; medium allow; high deny }»\nallow look, wipe", (one_by_one("look", "wipe"),),
        {"ran": ["look"], "asked": ["ops"]}, {"ran": ["look", "wipe"], "asked": []},
    ),
    Setting(
        "auto_approve", "autonomy", ASKING + "autonomy supervised\nallow wipe\n«auto_approve wipe»", (one_by_one("wipe"),),
        {"ran": ["wipe"], "asked": []}, {"ran": ["wipe"], "asked": ["ops"]},
    ),
)  # fmt: skip

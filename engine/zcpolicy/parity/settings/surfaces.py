"""Runtime knobs, memory, skills, labels and delegation.

In: nothing. Out: `SETTINGS`.
"""

from typing import Final

from zcpolicy.parity.probe import Call
from zcpolicy.parity.settings.setting import Setting, at_once, call, one_by_one

AT_ONCE: Final = (at_once("look", "look"),)
TOLD_FIRST: Final = (one_by_one("tell", "look", "look", "look"),)
TEAM: Final = (one_by_one(call("remember", text="a note", scope="team"), call("recall", query="note")),)
NOTES: Final = tuple(call("remember", text=f"note {number}", scope="own") for number in range(4))
PARALLEL: Final = "autonomy full; allow look; runtime { parallel_tools on }"


def hand(to: str, *, free: bool = False) -> Call:
    """A call that hands work over."""
    return call("hand_over", to=to, task="parity task 1", **({"free": True} if free else {}))


SETTINGS: Final = (
    Setting(
        "parallel_tools on", "runtime", "allow look\n«runtime { parallel_tools on }»", AT_ONCE,
        {"ran": ["look", "look"], "together": 2}, {"ran": ["look", "look"], "together": 1},
    ),
    Setting(
        "parallel_tools off", "runtime",
        f"agent base {{ {PARALLEL} }}\nagent worker narrows base {{ only look\n «runtime {{ parallel_tools off }}» }}\n",
        AT_ONCE, {"ran": ["look", "look"], "together": 1}, {"ran": ["look", "look"], "together": 2},
    ),
    Setting(
        "history", "runtime", "allow tell, look\n«runtime { history 4 }»", TOLD_FIRST,
        {"requests": 5, "kept": False}, {"requests": 5, "kept": True},
    ),
    Setting(
        "context", "runtime", "allow tell, look\n«runtime { context 1_400 }»",
        (one_by_one("tell", call("look", note="x" * 1_500), "look"),),
        {"kept": False, "done": [True]}, {"kept": True, "done": [True]},
    ),
    Setting(
        "tool_result", "runtime", "allow tell\n«runtime { tool_result 1_000 }»", (one_by_one("tell"),),
        {"kept": True, "whole": False}, {"kept": True, "whole": True},
    ),
    Setting(
        "recall", "runtime", "allow remember, recall\nmemory read own write own\n«runtime { recall 2 }»",
        (one_by_one(*NOTES, call("recall", query="note")),),
        {"answers": ["remembered in own"] * 4 + ["recalled 2"]}, {"answers": ["remembered in own"] * 4 + ["recalled 4"]},
    ),
    Setting(
        "call_timeout", "runtime", "allow wait, look\n«runtime { call_timeout 1s }»", (one_by_one("wait", "look"),),
        {"ran": ["wait", "look"], "ended": ["look"], "done": [True]},
        {"ran": ["wait", "look"], "ended": ["look", "wait"], "done": [True]},
    ),
    Setting(
        "turn_timeout", "runtime", "allow wait, look\n«runtime { turn_timeout 1s }»", (one_by_one("wait", "look"),),
        {"ran": ["wait"], "ended": [], "done": [False]},
        {"ran": ["wait", "look"], "ended": ["look", "wait"], "done": [True]},
    ),
    Setting(
        "memory read", "memory", "allow remember, recall\nmemory «read team» write team", TEAM,
        {"answers": ["remembered in team", "recalled 1"]}, {"answers": ["remembered in team", "recalled 0"]},
    ),
    Setting(
        "memory write", "memory", "allow remember, recall\nmemory read team «write team»", TEAM,
        {"answers": ["remembered in team", "recalled 1"]}, {"answers": ["recalled 0"]},
    ),
    Setting(
        "skills", "skills", "allow learn, sweep\n«skills careful»", (one_by_one(call("learn", skill="careful"), "sweep"),),
        {"answers": ["learned to take care"], "ran": ["learn", "sweep"]}, {"answers": [], "ran": ["learn"]},
    ),
    Setting(
        "restrictions of a skill", "skills", "allow learn, wipe\nskills careful",
        (one_by_one(call("learn", skill="careful"), "wipe"),), {"ran": ["learn"]}, {"ran": ["learn", "wipe"]},
        beside="skill careful { deny pick; «deny wipe» }",
    ),
    Setting(
        "mark", "labels", "allow fetch, wipe\n«mark untrusted on fetch»\ndeny wipe when marked untrusted",
        (at_once("fetch", "wipe"),), {"ran": ["fetch"]}, {"ran": ["fetch", "wipe"]},
    ),
    Setting(
        "marked, by a delegate", "labels",
        "allow hand_over, fetch, wipe\ndelegate to reader\n«deny wipe when marked untrusted»",
        (one_by_one(hand("reader"), "wipe"),),
        {"ran": ["hand_over", "fetch"]}, {"ran": ["hand_over", "fetch", "wipe"]}, others={"reader": (one_by_one("fetch"),)},
    ),
    Setting(
        "delegate to", "delegation", "allow hand_over, look\n«delegate to helper»", (one_by_one(hand("helper")),),
        {"ran": ["hand_over", "look"], "by": ["helper", "worker"]}, {"ran": ["hand_over"], "by": ["worker"]},
        others={"helper": (one_by_one("look"),)},
    ),
    Setting(
        "delegate independent", "delegation", 'allow hand_over\ndelegate to auditor «independent because "it may wipe"»',
        (one_by_one(hand("auditor", free=True)),),
        {"ran": ["hand_over", "wipe"]}, {"ran": ["hand_over"]}, others={"auditor": (one_by_one("wipe"),)},
    ),
    Setting(
        "delegate, bounded", "delegation", "allow hand_over, look, wipe\ndelegate to auditor\n«deny wipe»",
        (one_by_one(hand("auditor")),),
        {"ran": ["hand_over"]}, {"ran": ["hand_over", "wipe"]}, others={"auditor": (one_by_one("wipe"),)},
    ),
    Setting(
        "delegate depth", "delegation", "allow hand_over, look\ndelegate to helper, third\n«delegate depth 2»",
        (one_by_one(hand("helper")),),
        {"ran": ["hand_over", "hand_over", "look"]}, {"ran": ["hand_over", "hand_over"]},
        others={"helper": (one_by_one(hand("third")),), "third": (one_by_one("look"),)},
    ),
    Setting(
        "delegate none", "delegation",
        "agent base { autonomy full; allow hand_over, look; delegate to helper }\n"
        "agent worker narrows base { only hand_over, look\n «delegate none» }\n",
        (one_by_one(hand("helper")),), {"ran": ["hand_over"]}, {"ran": ["hand_over", "look"]},
        others={"helper": (one_by_one("look"),)},
    ),
)  # fmt: skip

"""How often, how much, how long; and what has to come before.

In: nothing. Out: `SETTINGS`.
"""

from typing import Final

from zcpolicy.parity.settings.setting import Setting, at_once, call, one_by_one

TWICE: Final = (one_by_one("look", "look"),)
THRICE: Final = (one_by_one("look", "look", "look"),)
HELPED: Final = {"helper": (one_by_one("look"),)}
"""What the agent `helper` does with every task."""
HELP: Final = call("hand_over", to="helper", task="look")

SETTINGS: Final = (
    Setting(
        "limit calls", "budgets", "allow look\n«limit 1 calls to look»", TWICE,
        {"ran": ["look"]}, {"ran": ["look", "look"]},
    ),
    Setting(
        "limit concurrent calls", "budgets", "allow look\nruntime { parallel_tools on }\n«limit 1 concurrent calls»",
        (at_once("look", "look"),), {"ran": ["look"], "together": 1}, {"ran": ["look", "look"], "together": 2},
    ),
    Setting(
        "limit iterations", "budgets", "allow look\n«limit 2 iterations per turn»", THRICE,
        {"requests": 2, "done": [False]}, {"requests": 4, "done": [True]},
    ),
    Setting(
        "limit delegations", "budgets", "allow hand_over, look\ndelegate to helper\n«limit 1 delegations»",
        (one_by_one(HELP, HELP),), {"ran": ["hand_over", "look", "hand_over"]},
        {"ran": ["hand_over", "look", "hand_over", "look"]}, others=HELPED,
    ),
    Setting(
        "limit tokens", "budgets", "allow look\n«limit 15_000 tokens per day»", THRICE,
        {"requests": 2, "done": [False]}, {"requests": 4, "done": [True]},
    ),
    Setting(
        "limit money of the model", "budgets", "allow look\n«limit 0.25 usd per day»", THRICE,
        {"requests": 2, "done": [False]}, {"requests": 4, "done": [True]},
    ),
    Setting(
        "limit money of tools", "budgets", "allow spend\n«limit 1.00 usd per day»",
        (one_by_one("spend", "spend", "spend"),),
        {"ran": ["spend", "spend"], "requests": 2}, {"ran": ["spend", "spend", "spend"], "requests": 4},
    ),
    Setting(
        "limit time", "budgets", "allow wait\n«limit 1s time per turn»", (one_by_one("wait"),),
        {"ran": ["wait"], "ended": []}, {"ran": ["wait"], "ended": ["wait"]},
    ),
    Setting(
        "limit sum", "budgets", "allow send\n«limit 10 sum args.amount to send per day»",
        (one_by_one(call("send", to="ann", amount=6), call("send", to="ann", amount=6)),),
        {"ran": ["send"]}, {"ran": ["send", "send"]},
    ),
    Setting(
        "limit for each", "budgets", "allow send\nlimit 1 calls to send per day «for each args.to»",
        (one_by_one(call("send", to="ann"), call("send", to="ann"), call("send", to="bob")),),
        {"with": [{"to": "ann"}, {"to": "bob"}]}, {"with": [{"to": "ann"}]},
    ),
    Setting(
        "limit per turn", "budgets", "allow look\n«limit 1 calls to look per turn»",
        (one_by_one("look", "look"), one_by_one("look")), {"ran": ["look", "look"]}, {"ran": ["look", "look", "look"]},
    ),
    Setting(
        "limit per hour", "budgets", "allow look\n«limit 2 calls to look per hour»",
        (one_by_one("look"), one_by_one("look", "look")), {"ran": ["look", "look"]}, {"ran": ["look", "look", "look"]},
    ),
    Setting(
        "limit per calendar month", "budgets", 'allow look\n«limit 2 calls to look per calendar month in "UTC"»',
        (one_by_one("look"), one_by_one("look", "look")), {"ran": ["look", "look"]}, {"ran": ["look", "look", "look"]},
    ),
    Setting(
        "limit of the ceiling", "budgets", "allow look, hand_over\ndelegate to helper",
        (one_by_one("look", HELP, "look"),),
        {"ran": ["look", "hand_over", "look"]}, {"ran": ["look", "hand_over", "look", "look"]},
        beside="«ceiling { limit 2 calls to look per day }»", others=HELPED,
    ),
    Setting(
        "require", "preconditions", "allow look, wipe\n«require look before wipe»", (one_by_one("wipe", "look", "wipe"),),
        {"ran": ["look", "wipe"]}, {"ran": ["wipe", "look", "wipe"]},
    ),
    Setting(
        "require within", "preconditions", "allow look, wait, wipe\nrequire look before wipe «within 1s»",
        (one_by_one("look", "wait", "wipe"),), {"ran": ["look", "wait"]}, {"ran": ["look", "wait", "wipe"]},
    ),
    Setting(
        "require same", "preconditions", "allow look, wipe\nrequire look before wipe «same args.note»",
        (one_by_one(call("look", note="a"), call("wipe", note="b")),), {"ran": ["look"]}, {"ran": ["look", "wipe"]},
    ),
    Setting(
        "require by any agent", "preconditions",
        "allow look, hand_over, wipe\ndelegate to helper\nrequire look before wipe «by any agent»",
        (one_by_one(HELP, "wipe"),), {"ran": ["hand_over", "look", "wipe"]}, {"ran": ["hand_over", "look"]},
        others=HELPED,
    ),
)  # fmt: skip

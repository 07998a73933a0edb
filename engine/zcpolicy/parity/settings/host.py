"""What the host says of one run: its narrowing, what its site withholds, the facts of the session, who acts.

In: nothing. Out: `SETTINGS`.
"""

from typing import Final

from zcpolicy.facts import Narrowing
from zcpolicy.parity.probe import Given
from zcpolicy.parity.settings.setting import Setting, call, one_by_one

BOTH: Final = (one_by_one("look", "pick"),)
FACTS: Final = {"cwd": "/w"}
IN_W: Final = 'allow edit when args.path under "/w"'


def linked(path: str) -> str:
    """A link `/w/link`, which leads out."""
    return path.replace("/w/link", "/etc")


REMEMBERED: Final = (one_by_one("look", call("remember", text="a note", scope="own")),)

SETTINGS: Final = (
    Setting(
        "narrowing only", "narrowing", "allow look, pick", BOTH,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "pick"], "shown": ["look", "pick"]},
        given=Given(narrowing=Narrowing(only=["look"])),
    ),
    Setting(
        "narrowing to nothing", "narrowing", "allow look, pick", BOTH,
        {"ran": [], "shown": []}, {"ran": ["look", "pick"], "shown": ["look", "pick"]},
        given=Given(narrowing=Narrowing(only=[])),
    ),
    Setting(
        "narrowing deny", "narrowing", "allow look, pick", BOTH,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "pick"], "shown": ["look", "pick"]},
        given=Given(narrowing=Narrowing(deny=["pick"])),
    ),
    Setting(
        "narrowing ask", "narrowing", "allow look", (one_by_one("look"),),
        {"ran": ["look"], "asked": ["person"]}, {"ran": ["look"], "asked": []},
        given=Given(narrowing=Narrowing(ask=["look"])), unattended={"ran": [], "asked": []},
    ),
    Setting(
        "narrowing autonomy", "narrowing", "allow look, wipe", (one_by_one("look", "wipe"),),
        {"ran": ["look"]}, {"ran": ["look", "wipe"]}, given=Given(narrowing=Narrowing(autonomy="readonly")),
    ),
    Setting(
        "narrowing limits", "narrowing", "allow look", (one_by_one("look", "look"),),
        {"ran": ["look"]}, {"ran": ["look", "look"]}, given=Given(narrowing=Narrowing(limits=["1 calls to look per day"])),
    ),
    Setting(
        "narrowing exclude_memory", "narrowing", "allow look, remember\nmemory write own", REMEMBERED,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "remember"], "answers": ["remembered in own"]},
        given=Given(narrowing=Narrowing(exclude_memory=True)),
    ),
    Setting(
        "narrowing of a delegate", "narrowing", "allow hand_over, look, pick\ndelegate to helper",
        (one_by_one(call("hand_over", to="helper", task="look")),),
        {"ran": ["hand_over"]}, {"ran": ["hand_over", "look"]},
        given=Given(narrowing=Narrowing(deny=["look"])), others={"helper": (one_by_one("look"),)},
    ),
    Setting(
        "caller_allowed", "site", "allow look, pick", BOTH,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "pick"], "shown": ["look", "pick"]},
        given=Given(site={"caller_allowed": frozenset({"look"})}),
    ),
    Setting(
        "connect_mcp", "site", "allow any\nconnect forge", (one_by_one("look", call(("forge", "peek"))),),
        {"ran": ["look"], "connected": []}, {"ran": ["look", "forge/peek"], "connected": ["forge"]},
        given=Given(site={"connect_mcp": False}),
    ),
    Setting(
        "connect_peripherals", "site", "allow look, lamp", (one_by_one("look", "lamp"),),
        {"ran": ["look"], "hardware": False}, {"ran": ["look", "lamp"], "hardware": True},
        given=Given(site={"connect_peripherals": False}),
    ),
    Setting(
        "exclude_memory", "site", "allow look, remember\nmemory write own", REMEMBERED,
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "remember"], "answers": ["remembered in own"]},
        given=Given(site={"exclude_memory": True}),
    ),
    Setting(
        "exclude_delivery", "site", "allow look, deliver", (one_by_one("look", call("deliver", text="it")),),
        {"ran": ["look"], "shown": ["look"]}, {"ran": ["look", "deliver"], "shown": ["deliver", "look"]},
        given=Given(site={"exclude_delivery": True}),
    ),
    Setting(
        "deferred", "site", "allow tool_search, forge/peek\nconnect forge",
        (one_by_one(call("tool_search", query="peek"), call(("forge", "peek"))),),
        {"shown": ["tool_search"], "ran": ["forge/peek"]}, {"shown": ["forge/peek", "tool_search"], "ran": ["forge/peek"]},
        given=Given(site={"deferred": True}),
    ),
    Setting(
        "protected files", "facts", "allow edit", (one_by_one(call("edit", path="/w/team.zcpolicy"), call("edit", path="/w/x")),),
        {"with": [{"path": "/w/x"}]}, {"with": [{"path": "/w/team.zcpolicy"}, {"path": "/w/x"}]},
        given=Given(protected=("/w/team.zcpolicy",)),
    ),
    Setting(
        "session cwd", "facts", 'allow edit when args.path under "/w"', (one_by_one(call("edit", path="x")),),
        {"ran": ["edit"]}, {"ran": []}, given=Given(facts=FACTS), bare=Given(facts={}),
    ),
    Setting(
        "session context", "facts", 'allow look when session.role == "owner"', (one_by_one("look"),),
        {"ran": ["look"]}, {"ran": []}, given=Given(facts={**FACTS, "context": {"role": "owner"}}),
    ),
    Setting(
        "session labels", "facts", "allow look, wipe\ndeny wipe when marked untrusted", (one_by_one("look", "wipe"),),
        {"ran": ["look"]}, {"ran": ["look", "wipe"]}, given=Given(facts={**FACTS, "labels": ("untrusted",)}),
    ),
    Setting(
        "session env", "facts", 'allow edit\ndeny edit when some paths under "/home/ann"', (one_by_one(call("edit", path="~/x")),),
        {"ran": ["edit"]}, {"ran": []}, given=Given(facts={**FACTS, "env": {"HOME": "/home/bob"}}),
    ),
    Setting(
        "session server_cwd", "facts", 'connect forge\nallow forge/read when args.path under "/srv"',
        (one_by_one(call(("forge", "read"), path="x")),),
        {"ran": ["forge/read"]}, {"ran": []}, given=Given(facts={**FACTS, "server_cwd": {"forge": "/srv"}}),
    ),
    Setting(
        "session resolve_link", "facts", IN_W, (one_by_one(call("edit", path="/w/link/x"), call("edit", path="/w/y")),),
        {"with": [{"path": "/w/y"}]}, {"with": [{"path": "/w/link/x"}, {"path": "/w/y"}]},
        given=Given(facts={**FACTS, "resolve_link": linked}),
    ),
    Setting(
        "session platform", "facts", IN_W, (one_by_one(call("edit", path="/w/x")),),
        {"ran": []}, {"ran": ["edit"]}, given=Given(facts={**FACTS, "platform": "windows"}),
    ),
    Setting(
        "session supplies_defaults", "facts", "allow turn_to when args.level == 1", (one_by_one("turn_to"),),
        {"ran": []}, {"ran": ["turn_to"]}, given=Given(facts={**FACTS, "supplies_defaults": False}),
    ),
    Setting(
        "session ledger", "facts", "allow look\nlimit 5 calls to look", (one_by_one("look"),),
        {"ran": []}, {"ran": ["look"]}, given=Given(facts={**FACTS, "ledger": False}),
    ),
    Setting(
        "who acts", "identity", "allow look", (one_by_one("look"),),
        {"ran": ["look"], "by": ["worker"]}, {"ran": ["look"], "by": ["helper"]}, bare_agent="helper",
    ),
    Setting(
        "record", "identity", "allow look", (one_by_one("look"),),
        {"ran": ["look"], "recorded": ["worker: look"]}, {"ran": ["look"], "recorded": []}, bare=Given(recorded=False),
    ),
)  # fmt: skip

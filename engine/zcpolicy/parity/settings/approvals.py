"""Who is asked, for how long, and what a yes is good for.

In: nothing. Out: `SETTINGS`. All but one ask a route, since not every path has a person at its other end.
"""

from typing import Final

from zcpolicy.approvals.question import Approve
from zcpolicy.parity.probe import Given, Reply
from zcpolicy.parity.settings.setting import Setting, call, one_by_one

ASKS: Final = 'allow look\nask look\napproval { route "ops"«%s» }'
SLOW: Final = Given(replies={"": Reply(), "ops": Reply(seconds=1.7)})
ANY_TIME: Final = Given(replies={"": Reply(), "ops": Reply(Approve("exact"))})
THIS_TOOL: Final = Given(replies={"": Reply(), "ops": Reply(Approve("tool"))})
BACKUP: Final = Given(replies={"": Reply(), "backup": Reply()})
LOOK: Final = (one_by_one("look"),)

SETTINGS: Final = (
    Setting(
        "ask", "approvals", 'approval { route "ops" }\nallow look\n«ask look»', LOOK,
        {"ran": ["look"], "asked": ["ops"]}, {"ran": ["look"], "asked": []},
    ),
    Setting(
        "ask the person", "approvals", "allow look\n«ask look»", LOOK,
        {"ran": ["look"], "asked": ["person"]}, {"ran": ["look"], "asked": []}, unattended={"ran": [], "asked": []},
    ),
    Setting(
        "with approval", "approvals", 'approval { route "ops" }\nallow look «with approval»', LOOK,
        {"ran": ["look"], "asked": ["ops"]}, {"ran": ["look"], "asked": []},
    ),
    Setting(
        "unclear ask", "approvals",
        'approval { route "ops" }\nallow look\ndeny look when args.note == "x" «unclear ask»', LOOK,
        {"ran": ["look"], "asked": ["ops"]}, {"ran": [], "asked": []},
    ),
    Setting(
        "approval none", "approvals", 'allow look\nask look\napproval { route "ops" }\n«approval none»', LOOK,
        {"ran": [], "asked": []}, {"ran": ["look"], "asked": ["ops"]},
    ),
    Setting(
        "approval route", "approvals", 'allow look\nask look\n«approval { route "ops" }»', LOOK,
        {"ran": ["look"], "asked": ["ops"]}, {"ran": ["look"], "asked": ["person"]},
    ),
    Setting(
        "approval timeout", "approvals", ASKS % "; timeout 1s", LOOK,
        {"ran": [], "asked": ["ops"]}, {"ran": ["look"], "asked": ["ops"]}, given=SLOW, bare=SLOW,
    ),
    Setting(
        "approval on_no_approver", "approvals", ASKS % '; on_no_approver route "backup"', LOOK,
        {"ran": ["look"], "asked": ["backup"]}, {"ran": [], "asked": []}, given=BACKUP, bare=BACKUP,
    ),
    Setting(
        "approval remember never", "approvals", ASKS % "; remember never", (one_by_one("look", "look"),),
        {"asked": ["ops", "ops"]}, {"asked": ["ops"]}, given=ANY_TIME, bare=ANY_TIME,
    ),
    Setting(
        "approval remember for", "approvals", "allow wait\n" + ASKS.replace("«%s»", "; remember exact «for 1s»"),
        (one_by_one("look", "wait", "look"),), {"asked": ["ops", "ops"]}, {"asked": ["ops"]}, given=ANY_TIME, bare=ANY_TIME,
    ),
    Setting(
        "approval remember tool", "approvals", ASKS % "; remember tool", (one_by_one("look", call("look", note="again")),),
        {"asked": ["ops"]}, {"asked": ["ops", "ops"]}, given=THIS_TOOL, bare=THIS_TOOL,
    ),
)  # fmt: skip

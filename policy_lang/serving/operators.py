"""What operators do and see, in the settings: which questions wait for them, whether telemetry is written.

In: the top table. Out: `ApprovalSettings`, a flag; findings.
"""

from importlib.util import find_spec

from policy_lang import codes
from policy_lang.serving.reading import Table
from zcpolicy.daemon.settings import MAX_PAUSE_SECONDS, ApprovalSettings
from zcpolicy.extras import missing


def approvals_in(top: Table, *, served: bool) -> ApprovalSettings:
    """The table `[approvals]`. `served`: there is a table `[http]`, over which operators answer."""
    table = top.table("approvals")
    usual = ApprovalSettings()
    if table is None:
        return usual
    routes, person = table.texts("routes"), table.texts("person")
    pause = table.seconds("pause_after", usual.pause_after, 0.0, MAX_PAUSE_SECONDS)
    table.done()
    known = [table.word(one, ("gateway",), "surface", ("person", number)) for number, one in enumerate(person)]
    if not served and (routes or person):
        table.say(
            codes.MISSING_SETTING, "operators answer over HTTP: that needs a table `[http]`", (), on_key=True,
            help="write `[http]`; it may be empty",
        )  # fmt: skip
    return ApprovalSettings(routes, ("gateway",) if any(known) else (), usual.pause_after if pause is None else pause)


def telemetry_in(top: Table) -> bool:
    """The table `[telemetry]`."""
    table = top.table("telemetry")
    if table is None:
        return False
    enabled = table.flag("enabled", otherwise=True)
    table.done()
    if enabled and find_spec("opentelemetry") is None:
        table.say(codes.ABSENT_LIBRARY, str(missing("telemetry", "otel")), (), on_key=True)
    return enabled

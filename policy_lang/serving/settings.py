"""The operator's TOML file as `Settings`: one function for each table.

In: the path of a file. Out: a `Read`: the settings, or None and the reasons; the document, for what is judged together with the
policy. Relative paths start at the file's folder. Nothing is started, connected or written.
"""

import re
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic, has_errors
from policy_lang.files import decode_source, read_bytes
from policy_lang.nearest import nearest
from policy_lang.serving import files
from policy_lang.serving.operators import approvals_in, telemetry_in
from policy_lang.serving.reading import Table
from policy_lang.serving.secrets import concealed, ledger_url
from policy_lang.serving.supplies import channels_in, mcp_in, model_in, skills_in
from policy_lang.serving.toml import MAX_SETTINGS_BYTES, Document, read_toml
from policy_lang.serving.tools import factories_in, rates_in
from policy_lang.source import Source, Span
from zcpolicy.daemon.log.settings import MAX_KEYS, MIN_FILE_BYTES, SHAPES, Masking
from zcpolicy.daemon.schedule import MAX_JOB_CHARACTERS, MIN_EVERY_SECONDS
from zcpolicy.daemon.sessions import MAX_CONVERSATIONS_OF_CLIENT
from zcpolicy.daemon.settings import (
    MAX_DRAIN_SECONDS,
    MAX_TURNS_OF_CLIENT,
    SURFACES,
    AgentSettings,
    HttpSettings,
    JobSettings,
    LogSettings,
    PolicySettings,
    SessionSettings,
    Settings,
    StateSettings,
    Surface,
    is_loopback,
)
from zcpolicy.daemon.wire import MAX_REQUEST_BYTES
from zcpolicy.extras import missing

MAX_PORT: Final = 65_535
"""The highest port."""
MAX_EVERY_SECONDS: Final = 366 * 86_400.0
"""Seconds between two runs of a scheduled job."""

KEEP_SECONDS: Final = 62 * 86_400.0
"""For which charges are kept where settings do not say: this month and the last one."""
MIN_KEEP_SECONDS: Final = 86_400.0
"""For which charges are kept at least."""
MAX_KEEP_SECONDS: Final = 3_660 * 86_400.0
"""Seconds for which settings may have charges kept."""
MAX_LOG_BYTES: Final = 100_000_000_000
"""Bytes of one file of the log that settings may allow."""
MAX_LOG_FILES: Final = 1_000_000
"""Files of the log that settings may have kept."""
SYNCS: Final = ("interval", "every")

_HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,253}")


@dataclass(frozen=True, slots=True)
class Read:
    """What became of a file. `settings` is None with an error among the diagnostics; `table`: its top level; `state`: the
    folder of what the daemon keeps, which is known whatever else is wrong.
    """

    settings: Settings | None
    diagnostics: tuple[Diagnostic, ...]
    table: Table | None = None
    state: str | None = None


def read_settings(path: Path, *, name: str | None = None) -> Read:
    """The settings of a file; `name` is what diagnostics call it, by default the path as given."""
    read = _found_in(path, name)
    return replace(read, diagnostics=concealed(read.diagnostics))


def _found_in(path: Path, name: str | None) -> Read:
    shown = name if name is not None else str(path)
    data = read_bytes(path, MAX_SETTINGS_BYTES)
    if isinstance(data, str):
        at = Source(shown, "")
        return Read(None, (Diagnostic(codes.UNUSABLE_FILE, f"`{shown}` {data}", at, Span(0, 0)),))
    source = decode_source(data, shown)
    if isinstance(source, Diagnostic):
        return Read(None, (source,))
    document = read_toml(source)
    if isinstance(document, Diagnostic):
        return Read(None, (document,))
    return _read(document, path)


def _read(document: Document, path: Path) -> Read:
    found: list[Diagnostic] = []
    top = Table(document, (), dict(document.values), found, path.absolute().parent)
    state = _state(top)
    settings = _settings(top, path, state)
    return Read(None if has_errors(found) else settings, tuple(found), top, None if state is None else state.folder)


def _settings(top: Table, path: Path, state: StateSettings | None) -> Settings | None:
    """All tables. What was wrong in one is reported, so that the rest can still be read."""
    policy = _policy(top)
    folder = state.folder if state is not None else str(top.folder)
    http = _http(top, folder)
    rpc = _rpc(top, folder)
    agents = _agents(top, {"gateway": http is not None, "rpc": rpc is not None})
    rest: dict[str, Any] = {
        "mcp": mcp_in(top), "factories": factories_in(top), "rates": rates_in(top), "skills": skills_in(top), "channels": channels_in(top), "schedule": _schedule(top),
        "log": _log(top), "session": _session(top), "drain": _drain(top),
        "operators": approvals_in(top, served=http is not None), "telemetry": telemetry_in(top),
    }  # fmt: skip
    top.done()
    _told_once(top)
    if policy is None or state is None or has_errors(top.found):
        return None
    return Settings(policy, state, agents, str(path.absolute()), http, rpc, **rest)


def _told_once(top: Table) -> None:
    """A table whose name is misspelt is not missing as well."""
    for name in top.values:
        near = nearest(name, top.asked) if name not in top.asked else None
        if near is not None:
            told = (f"there is no `{near}`", f"table `[{near}]`")
            top.found[:] = [
                one for one in top.found if one.code != codes.MISSING_SETTING or not one.message.endswith(told)
            ]


def _required(top: Table, name: str, example: str) -> Table | None:
    if name not in top.values:
        top.asked[name] = None
        top.missing(name, f"write `{example}`")
        return None
    return top.table(name)


def _policy(top: Table) -> PolicySettings | None:
    table = _required(top, "policy", '[policy]` and `layers = ["team.zcpolicy"]')
    if table is None:
        return None
    layers, folder = table.texts("layers"), table.text("folder")
    staleness = table.seconds("max_staleness", None, 1.0, MAX_EVERY_SECONDS)
    watch = table.flag("watch", otherwise=True)
    table.done()
    if layers and folder:
        table.say(
            codes.CONFLICTING_SETTINGS, "a policy is either `layers` or a `folder`", ("folder",), on_key=True,
            help="keep one of the two",
        )  # fmt: skip
        return None
    if not layers and not folder:
        if "layers" not in table.values and "folder" not in table.values:
            table.missing("layers", 'write `layers = ["team.zcpolicy"]`, the highest first')
        elif table.values.get("layers") == []:
            table.wrong("layers", "a list with a policy file in it")
        return None
    for number, each in enumerate(layers):
        files.readable(table, ("layers", number), each)
    if folder is not None:
        files.folder(table, ("folder",), folder)
    return PolicySettings(
        tuple(str(table.where(each)) for each in layers), folder and str(table.where(folder)), staleness, watch
    )


def _state(top: Table) -> StateSettings | None:
    table = _required(top, "state", '[state]` and `folder = "var"')
    if table is None:
        return None
    folder, ledger = table.text("folder"), table.text("ledger")
    own = ledger in (None, "sqlite", "memory")  # one that daemons share knows sessions that this one does not
    keep = table.seconds("keep", KEEP_SECONDS if own else None, MIN_KEEP_SECONDS, MAX_KEEP_SECONDS)
    table.done()
    if folder is None:
        if "folder" not in table.values:
            table.missing("folder", 'write `folder = "var"`: there the daemon keeps what it must not lose')
        return None
    files.own_folder(table, ("folder",), folder)
    kept = "sqlite" if ledger is None else ledger_url(table, ledger)
    return StateSettings(str(table.where(folder)), kept, keep)


def _http(top: Table, folder: str) -> HttpSettings | None:
    table = top.table("http")
    if table is None:
        return None
    usual = HttpSettings()
    address = table.text("address") or usual.address
    made = HttpSettings(
        address,
        table.number("port", usual.port, 0, MAX_PORT),
        _hosts(table),
        table.size("body", usual.body, 1_000, MAX_REQUEST_BYTES),
        table.seconds("timeout", usual.seconds, 1.0, 3_600.0) or usual.seconds,
        table.number("turns", usual.turns, 1, MAX_TURNS_OF_CLIENT),
        table.number("sessions", usual.sessions, 1, MAX_CONVERSATIONS_OF_CLIENT),
    )
    table.done()
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        table.say(codes.ABSENT_LIBRARY, str(missing("HTTP", "gateway")), (), on_key=True)
    if not is_loopback(address):
        _open(table, address, folder)
    return made


def _hosts(table: Table) -> tuple[str, ...]:
    names = table.texts("hosts")
    for number, name in enumerate(names):
        if _HOST.fullmatch(name) is None:
            table.say(
                codes.BAD_SETTING, f"`{name}` is no name of a host", ("hosts", number),
                help="a name alone, without scheme and port: `agents.example.org`",
            )  # fmt: skip
    return tuple(name.lower() for name in names)


def _open(table: Table, address: str, folder: str) -> None:
    """Others can reach the address: that takes tokens."""
    if not files.is_address(address):
        table.say(
            codes.BAD_SETTING, f"`{address}` is no address of a machine", ("address",),
            help='`"127.0.0.1"` is reached from this machine only; names go into `hosts`',
        )  # fmt: skip
    elif not Path(folder, "tokens.json").is_file():
        table.say(
            codes.OPEN_ADDRESS, f"others can reach `{address}`, and nobody has a token yet", ("address",),
            help=f"`zcpolicy token add NAME --settings {table.document.source.name}` gives one out; or listen on `127.0.0.1`",
        )  # fmt: skip


def _rpc(top: Table, folder: str) -> str | None:
    table = top.table("rpc")
    if table is None:
        return None
    written = table.text("socket")
    table.done()
    path = str(table.where(written)) if written is not None else str(Path(folder, "zcpolicy.sock"))
    files.socket(table, ("socket",), path, Path(folder))
    return path


def _agents(top: Table, there: dict[str, bool]) -> dict[str, AgentSettings]:
    found: dict[str, AgentSettings] = {}
    if "agents" not in top.values:
        top.asked["agents"] = None
        top.missing("agents", 'write `[agents.NAME]` and `model = "…"` for each agent of the policy that is served')
    for name, table in top.named("agents").items():
        model = model_in(table)
        surfaces = tuple(_surfaces(table, there))
        tokens = table.number("max_output_tokens", 4_096, 1, 10_000_000)
        table.done()
        if model is not None:
            found[name] = AgentSettings(model, surfaces, tokens)
    return found


def _surfaces(table: Table, there: dict[str, bool]) -> list[Surface]:
    found: list[Surface] = []
    for number, written in enumerate(table.texts("surfaces")):
        place = ("surfaces", number)
        if not table.word(written, SURFACES, "surface", place):
            continue
        where = {"gateway": "http", "rpc": "rpc"}[written]
        if not there[written]:
            table.say(
                codes.MISSING_SETTING, f"surface `{written}` needs a table `[{where}]`", place,
                help=f"write `[{where}]`; it may be empty",
            )  # fmt: skip
        found.append("gateway" if written == "gateway" else "rpc")
    return found


def _schedule(top: Table) -> tuple[JobSettings, ...]:
    found: list[JobSettings] = []
    for table in top.several("schedule"):
        agent, text = table.text("agent"), table.text("text")
        every = table.seconds("every", None, MIN_EVERY_SECONDS, MAX_EVERY_SECONDS)
        heartbeat = table.flag("heartbeat", otherwise=False)
        table.done()
        for name, example in (("agent", "helper"), ("text", "clean up"), ("every", "1d")):
            if name not in table.values:
                table.missing(name, f'write `{name} = "{example}"`')
        if text is not None and len(text) > MAX_JOB_CHARACTERS:
            table.wrong("text", f"at most {MAX_JOB_CHARACTERS} characters")
        if agent is not None and text is not None and every is not None:
            found.append(JobSettings(agent, text, every, heartbeat))
    return tuple(found)


def _log(top: Table) -> LogSettings:
    table = top.table("log")
    usual = LogSettings()
    if table is None:
        return usual
    synced = table.text("sync")
    made = LogSettings(
        table.size("rotate", usual.rotate, MIN_FILE_BYTES, MAX_LOG_BYTES),
        table.number("keep", usual.keep, 1, MAX_LOG_FILES),
        synced == "every",
        _masking(table),
    )
    table.done()
    if synced is not None:
        table.word(synced, SYNCS, "way to sync", ("sync",))
    return made


def _masking(table: Table) -> Masking:
    """What the operator has masked besides secrets, and which shapes of secrets are left readable."""
    keys, readable = table.texts("mask"), table.texts("readable")
    shapes = [
        one for number, one in enumerate(readable) if table.word(one, SHAPES, "shape of secrets", ("readable", number))
    ]
    if len(keys) > MAX_KEYS:
        table.wrong("mask", f"a list of at most {MAX_KEYS} names")
        keys = ()
    return Masking(frozenset(keys), frozenset(one for one in SHAPES if one in shapes))


def _session(top: Table) -> SessionSettings:
    table = top.table("session")
    if table is None:
        return SessionSettings()
    cwd, system = table.text("cwd"), table.text("system")
    facts = table.table("context")
    table.done()
    if cwd is not None:
        files.folder(table, ("cwd",), cwd)
    return SessionSettings(cwd and str(table.where(cwd)), {} if facts is None else facts.values, system or "")


def _drain(top: Table) -> float:
    table = top.table("drain")
    if table is None:
        return 30.0
    seconds = table.seconds("seconds", 30.0, 0.0, MAX_DRAIN_SECONDS)
    table.done()
    return 30.0 if seconds is None else seconds

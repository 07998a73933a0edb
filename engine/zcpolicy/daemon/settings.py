"""What the daemon is told: every setting, checked, with absolute paths.

In: values of whoever reads the operator's file (`policy_lang.serving`), or of a program. Out: frozen `Settings`. Secrets are
not in it: a `Secret` names where one is found, and is read when the daemon starts.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final, Literal

from zcpolicy.daemon.log.settings import Masking
from zcpolicy.state.handles.rates import Rate, checked

MAX_SECRET_BYTES: Final = 65_536
"""Bytes of a file that holds a secret."""
MAX_DRAIN_SECONDS: Final = 3_600.0
"""Seconds for which a daemon that was told to stop may wait for running turns."""
MAX_TURNS_OF_CLIENT: Final = 1_000
"""Turns of one client at a time that settings may let in."""

Surface = Literal["gateway", "rpc"]
MAX_PAUSE_SECONDS: Final = 86_400.0
"""Seconds that a turn may wait for an operator before it pauses."""
SURFACES: Final[tuple[Surface, ...]] = ("gateway", "rpc")
"""The ways in at which clients talk to agents."""


class SettingsError(ValueError):
    """Settings that cannot be, or a secret that is not where it should be. The message says which; it quotes no secret."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is found. `kind`: `env`: a variable of the daemon's environment; `file`: a file that holds nothing else."""

    kind: Literal["env", "file"]
    name: str

    def read(self) -> str:
        """The secret, without a line break at its end. Raises SettingsError, which names the place."""
        if self.kind == "env":
            if self.name not in os.environ:
                raise SettingsError(f"the variable `{self.name}` is not set")
            found = os.environ[self.name]
        else:
            try:
                with open(self.name, "rb") as file:
                    found = file.read(MAX_SECRET_BYTES).decode().strip("\r\n")
            except (OSError, ValueError):
                raise SettingsError(f"the secret in `{self.name}` cannot be read") from None
        if not found:
            what = "the variable" if self.kind == "env" else "the file"
            raise SettingsError(f"{what} `{self.name}` is empty")
        return found


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Either `layers`, files with the highest first, or a `folder` of them. `max_staleness`: seconds for which the policy
    that is loaded holds when its files cannot be read; None: for ever. `watch`: changed files are loaded.
    """

    layers: tuple[str, ...] = ()
    folder: str | None = None
    max_staleness: float | None = None
    watch: bool = True


@dataclass(frozen=True, slots=True)
class StateSettings:
    """`folder`: for all that the daemon keeps. `ledger`: `sqlite` (in the folder), `memory`, a `redis://` URL without a
    password, or where the URL is found. `keep`: seconds for which charges are kept, at least; what a window of the policy reaches is
    kept in any case. None: nothing is ever forgotten.
    """

    folder: str
    ledger: str | Secret = "sqlite"
    keep: float | None = None


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """`hosts`: names under which browsers and clients may reach it, besides the address itself. `port` 0: any free one.

    `body`: bytes of a request; `seconds`: for a client to send one; `turns`: of one client at a time; `sessions`: of one client that
    go on, until a new one takes the place of the oldest.
    """

    address: str = "127.0.0.1"
    port: int = 8765
    hosts: tuple[str, ...] = ()
    body: int = 1_048_576
    seconds: float = 30.0
    turns: int = 8
    sessions: int = 100

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.address)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """`model`: `scripted:` and an absolute file, or a name that pydantic-ai knows. `surfaces`: where clients find the agent."""

    model: str
    surfaces: tuple[Surface, ...] = ()
    max_output_tokens: int = 4_096


@dataclass(frozen=True, slots=True)
class McpSettings:
    """A server: a `command` with its arguments, or a `url`. `env`, `headers`: secrets by the name that it gets them under.

    `cwd`: the directory of the command. `pinned`: URIs of resources whose text goes into the prompt.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    headers: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    cwd: str | None = None
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FactorySettings:
    """A tool of the operator's own. `make`: `module:function`; `settings`: JSON values that it is given; `handles`: `module:class` of
    handles of its own, each made once without arguments.
    """

    make: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    handles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSettings:
    """A skill whose restrictions the policy has. `file`: its instructions, as text."""

    description: str
    file: str


@dataclass(frozen=True, slots=True)
class JobSettings:
    """A run of an agent `every` so many seconds. `heartbeat`: it is recorded as one."""

    agent: str
    text: str
    every: float
    heartbeat: bool = False


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """A chat. `factory`: `module:function` that makes its adapter. `agent`: who answers in it."""

    agent: str
    factory: str


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`rotate`: bytes after which a new file is begun; `keep`: files that are kept. `every`: a line is on the disk before its call
    goes on; else within a second. `masking`: what is not written readably.
    """

    rotate: int = 100_000_000
    keep: int = 30
    every: bool = False
    masking: Masking = field(default_factory=Masking)


@dataclass(frozen=True, slots=True)
class ApprovalSettings:
    """Which questions wait for operators. `routes`: those of the policy; `person`: surfaces where operators stand in for the person
    at the session. `pause_after`: seconds for which a turn waits for the answer before it pauses.
    """

    routes: tuple[str, ...] = ()
    person: tuple[Literal["gateway"], ...] = ()
    pause_after: float = 20.0


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What is true in every session: the directory of the daemon's own tools, and facts of the policy's `context`."""

    cwd: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    system: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """`file`: where they were read; "": from no file. `factories`: of tools of the operator's own; `rates`: how
    often these may do what is limited, by name: times, seconds.
    `drain`: seconds for running turns once the daemon was told to stop. `rpc`: the socket's path; None: there is none.
    `telemetry`: spans and metrics go to OpenTelemetry.

    Raises SettingsError for what cannot be served safely.
    """

    policy: PolicySettings
    state: StateSettings
    agents: Mapping[str, AgentSettings]
    file: str = ""
    http: HttpSettings | None = None
    rpc: str | None = None
    mcp: Mapping[str, McpSettings] = field(default_factory=dict[str, McpSettings])
    factories: tuple[FactorySettings, ...] = ()
    rates: Mapping[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    skills: Mapping[str, SkillSettings] = field(default_factory=dict[str, SkillSettings])
    channels: Mapping[str, ChannelSettings] = field(default_factory=dict[str, ChannelSettings])
    schedule: tuple[JobSettings, ...] = ()
    log: LogSettings = LogSettings()
    session: SessionSettings = SessionSettings()
    drain: float = 30.0
    operators: ApprovalSettings = ApprovalSettings()
    telemetry: bool = False

    def __post_init__(self) -> None:
        """What a reader of a file has said better before."""
        policy = self.policy
        if bool(policy.layers) == (policy.folder is not None):
            raise SettingsError("a policy is either layers or a folder")
        paths = [*policy.layers, policy.folder, self.state.folder, self.rpc]
        if not all(path is None or os.path.isabs(path) for path in paths):
            raise SettingsError("paths in settings are absolute")
        if not 0 <= self.drain <= MAX_DRAIN_SECONDS:
            raise SettingsError("the time to drain is out of bounds")

    # --- the files of the daemon's own, in the state folder -------------------------------------------------------

    def inside(self, name: str) -> str:
        """A file of the state folder."""
        return os.path.join(self.state.folder, name)

    @property
    def protected(self) -> tuple[str, ...]:
        """What no tool may write: the state folder with all in it, the settings, the socket, scripts, skills, files of secrets."""
        secrets = [
            secret for server in self.mcp.values() for secret in (*server.env.values(), *server.headers.values())
        ]
        secrets += [self.state.ledger] if not isinstance(self.state.ledger, str) else []
        scripts = [
            agent.model.partition(":")[2] for agent in self.agents.values() if agent.model.startswith("scripted:")
        ]
        skills = [skill.file for skill in self.skills.values()]
        files = [self.state.folder, self.file, self.rpc, *scripts, *skills]
        files += [secret.name for secret in secrets if secret.kind == "file"]
        return tuple(dict.fromkeys(place for file in files if file for place in (file, os.path.realpath(file))))

    @property
    def tokens_file(self) -> str:
        """Who may come in."""
        return self.inside("tokens.json")

    @property
    def ledger_file(self) -> str:
        """What was spent, where SQLite keeps it."""
        return self.inside("ledger.db")

    @property
    def schedule_file(self) -> str:
        """What is to run later."""
        return self.inside("schedule.json")

    @property
    def memory_file(self) -> str:
        """What agents remember."""
        return self.inside("memory.db")

    @property
    def key_file(self) -> str:
        """The key that identities are made with."""
        return self.inside("identity.key")

    @property
    def generation_file(self) -> str:
        """The last policy that was good."""
        return self.inside("policy.zcpc")

    @property
    def log_folder(self) -> str:
        """What happened."""
        return self.inside("log")


def rates_of(rates: Mapping[str, tuple[int, float]]) -> dict[str, Rate]:
    """Rates by name. Raises SettingsError for one that is out of bounds."""
    try:
        return checked({name: Rate(*rate) for name, rate in rates.items()})
    except ValueError as error:
        raise SettingsError(str(error)) from None


def is_loopback(address: str) -> bool:
    """Whether an address is reached from this machine only. A name is not, but `localhost`: others may resolve it otherwise."""
    if address == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False

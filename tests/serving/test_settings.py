"""What is wrong with a file of settings, and where: a story for each mistake."""

import sys
from pathlib import Path

import pytest

from policy_lang.render import Style, render
from policy_lang.render.plain import plain
from policy_lang.serving.checking import Checked, check_settings
from zcpolicy.daemon.settings import HttpSettings, Secret
from zcpolicy.daemon.tokens import Tokens

STYLES: tuple[Style, ...] = ("human", "plain", "json", "sarif", "github")

POLICY = """zcpolicy 1
tool look(note: string) risk read
tool forge/get(number: integer) risk read
bundle tools { server forge }
agent helper { autonomy supervised; allow look, forge/get; connect tools; delegate to aide }
agent aide { autonomy supervised; allow look }
agent idle { autonomy supervised; allow look }
"""

SOUND = """\
[policy]
layers = ["team.zcpolicy"]
max_staleness = "10m"

[state]
folder = "var"

[http]
port = 0

[rpc]

[agents.helper]
model = "scripted:answers.json"
surfaces = ["gateway", "rpc"]

[agents.aide]
model = "scripted:answers.json"

[mcp.forge]
command = ["python3", "forge.py"]
env = { FORGE_TOKEN = "env:FORGE_TOKEN" }

[[schedule]]
agent = "helper"
text = "clean up"
every = "1d"

[log]
rotate = "100 MB"
keep = 30

[drain]
seconds = 30
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORGE_TOKEN", "not shown")
    Path("team.zcpolicy").write_text(POLICY)
    Path("answers.json").write_text('{"steps": ["hello"]}')


def checked(text: str) -> Checked:
    Path("daemon.toml").write_text(text)
    return check_settings(Path("daemon.toml"))


def said(text: str) -> list[str]:
    """The findings about the settings, each on a line, with its help below it."""
    found = [one for one in checked(text).diagnostics if one.source.name == "daemon.toml"]
    helps = [[] if one.help is None else [f"help: {one.help}"] for one in found]
    return [line for one, help_ in zip(found, helps, strict=True) for line in (plain([one]).rstrip("\n"), *help_)]


def test_sound_settings_have_no_findings_and_absolute_paths(tmp_path: Path) -> None:
    made = checked(SOUND)
    assert made.diagnostics == ()
    assert made.settings is not None
    assert made.settings.policy.layers == (str(tmp_path / "team.zcpolicy"),)
    assert made.settings.policy.max_staleness == 600.0
    assert made.settings.state.folder == str(tmp_path / "var")
    assert made.settings.http == HttpSettings(port=0)
    assert made.settings.rpc == str(tmp_path / "var/zcpolicy.sock")
    assert made.settings.agents["helper"].model == f"scripted:{tmp_path / 'answers.json'}"
    assert made.settings.mcp["forge"].env == {"FORGE_TOKEN": Secret("env", "FORGE_TOKEN")}
    assert (made.settings.schedule[0].every, made.settings.log.rotate, made.settings.drain) == (86_400, 10**8, 30)


def test_no_secret_is_in_the_settings() -> None:
    assert "not shown" not in repr(checked(SOUND))


MISTAKES: dict[str, tuple[str, str, list[str]]] = {
    # what went wrong: (text that stands there, what is written instead, what is said)
    "no TOML": ("port = 0", "port = ", ["daemon.toml:9:8: error ZC6001: this is no TOML: invalid value", "help: text stands in quotes, a table's name in brackets: `[http]`, then `port = 8765`"]),
    "a misspelt setting": ("port = 0", "prot = 0", ["daemon.toml:9:1: error ZC6002: there is no setting `prot` in `[http]`", "help: did you mean `port`?"]),
    "a misspelt table": ("[drain]", "[drian]", ["daemon.toml:33:1: error ZC6002: there is no setting `drian`", "help: did you mean `drain`?"]),
    "a setting of another place": ("port = 0", "model = 1", ["daemon.toml:9:1: error ZC6002: there is no setting `model` in `[http]`", "help: known here: `address`, `body`, `hosts`, `port`, `sessions`, `timeout` or `turns`"]),
    "text for a number": ("port = 0", 'port = "0"', ["daemon.toml:9:8: error ZC6003: `port` is not a whole number from 0 to 65535"]),
    "a port that is none": ("port = 0", "port = 70000", ["daemon.toml:9:8: error ZC6003: `port` is not a whole number from 0 to 65535"]),
    "a flag for a number": ("port = 0", "port = true", ["daemon.toml:9:8: error ZC6003: `port` is not a whole number from 0 to 65535"]),
    "a number without unit": ('max_staleness = "10m"', "max_staleness = 10", ['daemon.toml:3:17: error ZC6003: `max_staleness` is not a duration such as `"90s"`, `"10m"` or `"1d"`, from 1s to 366d']),
    "a list for a text": ('folder = "var"', 'folder = ["var"]', ["daemon.toml:6:10: error ZC6003: `folder` is not text in quotes"]),
    "a text for a list": ('["gateway", "rpc"]', '"gateway"', ['daemon.toml:15:12: error ZC6003: `surfaces` is not a list of texts such as `["one", "two"]`']),
    "a size that is none": ('"100 MB"', '"many"', ['daemon.toml:30:10: error ZC6003: `rotate` is not a size such as `"100 MB"`, from 65536 to 100000000000 bytes']),
    "a misspelt surface": ('["gateway", "rpc"]', '["gatewya", "rpc"]', ["daemon.toml:15:13: error ZC6003: there is no surface `gatewya`", "help: did you mean `gateway`?"]),
    "a surface without its table": ("[rpc]\n", "", ["daemon.toml:14:24: error ZC6004: surface `rpc` needs a table `[rpc]`", "help: write `[rpc]`; it may be empty"]),
    "no state": ('[state]\nfolder = "var"\n', "", ["daemon.toml:1:1: error ZC6004: there is no `state`", 'help: write `[state]` and `folder = "var"`']),
    "no model": ('model = "scripted:answers.json"\nsurfaces', "surfaces", ["daemon.toml:13:1: error ZC6004: `[agents.helper]` has no `model`", 'help: write `model = "scripted:answers.json"`, or a name of pydantic-ai']),
    "a misspelt file": ('"team.zcpolicy"', '"taem.zcpolicy"', ["daemon.toml:2:11: error ZC6006: `taem.zcpolicy` does not exist", "help: did you mean `team.zcpolicy`?"]),
    "a folder for a file": ('"team.zcpolicy"', '"."', ["daemon.toml:2:11: error ZC6006: `.` is a folder"]),
    "a script that is none": ('answers.json"\nsurfaces', 'team.zcpolicy"\nsurfaces', ["daemon.toml:14:9: error ZC6006: `team.zcpolicy` is no script of a model: it is not well-formed JSON"]),
    "a model that is no name": ('"scripted:answers.json"\nsurfaces', '"gpt"\nsurfaces', ["daemon.toml:14:9: error ZC6003: `gpt` names no model", "help: write PROVIDER:MODEL as pydantic-ai does, or `scripted:FILE`"]),
    "a misspelt script": ('"scripted:answers.json"\nsurfaces', '"scriptde:answers.json"\nsurfaces', ["daemon.toml:14:9: error ZC6003: there is no provider `scriptde`", "help: did you mean `scripted`?"]),
    "a program that is not there": ('"python3"', '"pyhton3-of-nobody"', ["daemon.toml:21:12: error ZC6006: there is no program `pyhton3-of-nobody` here"]),
    "a secret in plain": ('"env:FORGE_TOKEN"', '"ghp_0123456789abcdef"', ["daemon.toml:22:23: error ZC6007: a secret does not stand in settings", "help: name where it is found: `env:NAME`, a variable of the daemon's environment, or `file:PATH`"]),
    "a secret among words": ('"forge.py"', '"--token=0123456789"', ["daemon.toml:21:23: error ZC6007: this looks like a secret, which does not stand in settings", "help: name where it is found: `env:NAME`, a variable of the daemon's environment, or `file:PATH`"]),
    "a variable that is not set": ("env:FORGE_TOKEN", "env:FORGE_TOKNE", ["daemon.toml:22:23: warning ZC6105: the variable `FORGE_TOKNE` is not set here", "help: set it in the environment that the daemon is started in"]),
    "a password in a URL": ('folder = "var"', 'folder = "var"\nledger = "redis://:secret@host"', ["daemon.toml:7:10: error ZC6007: the URL holds a password", "help: name where the URL is found: `env:NAME`, a variable of the daemon's environment, or `file:PATH`"]),
    "charges that are kept for too short": ('folder = "var"', 'folder = "var"\nkeep = "5m"', ['daemon.toml:7:8: error ZC6003: `keep` is not a duration such as `"90s"`, `"10m"` or `"1d"`, from 1d to 3660d']),
    "a misspelt ledger": ('folder = "var"', 'folder = "var"\nledger = "sqlit"', ["daemon.toml:7:10: error ZC6003: there is no ledger `sqlit`", "help: did you mean `sqlite`?"]),
    "an open address": ("port = 0", 'address = "0.0.0.0"', ["daemon.toml:9:11: error ZC6008: others can reach `0.0.0.0`, and nobody has a token yet", "help: `zcpolicy token add NAME --settings daemon.toml` gives one out; or listen on `127.0.0.1`"]),
    "a name for an address": ("port = 0", 'address = "agents.example.org"', ["daemon.toml:9:11: error ZC6003: `agents.example.org` is no address of a machine", 'help: `"127.0.0.1"` is reached from this machine only; names go into `hosts`']),
    "layers and a folder": ('layers = ["team.zcpolicy"]', 'layers = ["team.zcpolicy"]\nfolder = "."', ["daemon.toml:3:1: error ZC6009: a policy is either `layers` or a `folder`", "help: keep one of the two"]),
    "a command and a url": ('["python3", "forge.py"]', '["python3"]\nurl = "https://x.example"', ["daemon.toml:22:1: error ZC6009: a server is either a `command` or a `url`", "help: keep one of the two"]),
    "headers of a command": ("env = {", "headers = {", ["daemon.toml:22:1: error ZC6009: `headers` is for a server with a `url`"]),
    "a factory that is none": ("[drain]", '[tools]\nfactories = ["my tools"]\n[drain]', ["daemon.toml:34:14: error ZC6003: `my tools` names no function", "help: write MODULE:FUNCTION: `my_package.tools:make`"]),
    "a factory twice": ("[drain]", '[tools]\nfactories = ["json:loads"]\n[[tools.factory]]\nmake = "json:loads"\n[drain]', ["daemon.toml:36:8: error ZC6009: `json:loads` stands here twice", "help: keep one of the two"]),
    "a handle that is none": ("[drain]", '[[tools.factory]]\nmake = "json:loads"\nhandles = ["notes"]\n[drain]', ["daemon.toml:35:12: error ZC6003: `notes` names no class", "help: write MODULE:CLASS: `my_package.tools:Notes`"]),
    "a factory without a name": ("[drain]", "[[tools.factory]]\nsettings = { a = 1 }\n[drain]", ["daemon.toml:33:1: error ZC6004: `[tools.factory]` has no `make`", 'help: write `make = "my_package.tools:make"`']),
    "settings that JSON has not": ("[drain]", '[[tools.factory]]\nmake = "json:loads"\nsettings = { a = [nan] }\n[drain]', ["daemon.toml:35:12: error ZC6003: `settings` is not a table of texts, numbers, flags, lists and tables"]),
    "a rate that is none": ("[drain]", '[rates]\ndraw = "twice an hour"\n[drain]', ['daemon.toml:34:8: error ZC6003: `draw` is not a rate such as `"2 per hour"` or `"10 per 5 minutes"`']),
    "a rate that is beyond": ("[drain]", '[rates]\ndraw = "2 per 2 days"\n[drain]', ["daemon.toml:33:1: error ZC6003: rate `draw`: a window of up to 86,400 seconds"]),
    "a module that is not there": ("[drain]", '[tools]\nfactories = ["no_such_module:make"]\n[drain]', ["daemon.toml:34:14: error ZC6006: there is no module `no_such_module`", "help: modules are found beside the settings, and where Python has them"]),
    # together with the policy
    "a misspelt agent in the schedule": ('agent = "helper"', 'agent = "helpre"', ["daemon.toml:25:9: error ZC6005: the policy has no agent `helpre`", "help: did you mean `helper`?"]),
    "a scheduled agent without a model": ('agent = "helper"', 'agent = "idle"', ["daemon.toml:25:9: error ZC6004: agent `idle` has no model", 'help: write `[agents.idle]` and `model = "…"`']),
    "a skill that the policy has not": (
        "[drain]",
        '[skills.look]\ndescription = "how to look"\nfile = "answers.json"\n[drain]',
        ["daemon.toml:33:1: error ZC6005: the policy has no skill `look`"],
    ),
    "an agent that nobody reaches": ("[drain]", '[agents.idle]\nmodel = "scripted:answers.json"\n[drain]', ["daemon.toml:33:1: warning ZC6101: nobody reaches agent `idle`", 'help: write `surfaces = ["gateway"]`, or have another agent delegate to it']),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_where_it_stands(case: str) -> None:
    there, instead, expected = MISTAKES[case]
    assert there in SOUND
    assert said(SOUND.replace(there, instead, 1)) == expected


SECRETS = {
    "a value that names no place": ('"env:FORGE_TOKEN"', '"hunter2hunter2"'),
    "a word of a command": ('"forge.py"', '"--token=hunter2hunter2"'),
    "a program": ('"python3"', '"token=hunter2hunter2"'),
    "a password in the ledger's URL": ('folder = "var"', 'folder = "var"\nledger = "redis://:hunter2hunter2@host"'),
    "a password in a URL of a misspelt kind": ('folder = "var"', 'folder = "var"\nledger = "rdis://:hunter2hunter2@host"'),
    "a setting that is not there": ("port = 0", 'password = "hunter2hunter2"'),
    "text without quotes": ('"env:FORGE_TOKEN"', "hunter2hunter2"),
    "a quote that is not closed": ('"env:FORGE_TOKEN"', '"hunter2hunter2'),
    "beside another mistake": ("env = {", 'evn = { A_TOKEN = "hunter2hunter2",'),
}  # fmt: skip


@pytest.mark.parametrize("case", SECRETS)
def test_a_secret_is_not_repeated(case: str) -> None:
    there, instead = SECRETS[case]
    made = checked(SOUND.replace(there, instead, 1))
    assert made.settings is None
    for style in STYLES:
        assert "hunter2" not in render(made.diagnostics, style, files=1, colour=False)


MISSPELT = {
    "[http]": ("[htpp]", "daemon.toml:8:1: error ZC6002: there is no setting `htpp`"),
    "[policy]": ("[polcy]", "daemon.toml:1:1: error ZC6002: there is no setting `polcy`"),
    "[state]": ("[sttae]", "daemon.toml:5:1: error ZC6002: there is no setting `sttae`"),
}


@pytest.mark.parametrize("table", MISSPELT)
def test_one_slip_is_told_once(table: str) -> None:
    instead, expected = MISSPELT[table]
    text = SOUND.replace(table, instead, 1) + '[approvals]\nroutes = ["security"]\n'
    Path("team.zcpolicy").write_text(ROUTED)
    assert said(text) == [expected, f"help: did you mean `{table.strip('[]')}`?"]


def test_names_that_the_policy_has_not() -> None:
    assert said(SOUND.replace("[agents.aide]", "[agents.aied]").replace("[mcp.forge]", "[mcp.forgee]")) == [
        "daemon.toml:13:1: warning ZC6103: agent `helper` connects server `forge`, and there is no `[mcp.forge]`",
        "help: write `[mcp.forge]` and `command` or `url`",
        "daemon.toml:13:1: warning ZC6104: agent `helper` may delegate to `aide`, which has no model here",
        'help: write `[agents.aide]` and `model = "…"`',
        "daemon.toml:17:1: error ZC6005: the policy has no agent `aied`",
        "help: did you mean `aide`?",
        "daemon.toml:20:1: error ZC6005: the policy has no server `forgee`",
        "help: did you mean `forge`?",
    ]


def test_a_server_that_nobody_connects() -> None:
    Path("team.zcpolicy").write_text(POLICY.replace("; connect tools", "").replace(", forge/get;", ";"))
    assert said(SOUND)[0] == ("daemon.toml:20:1: warning ZC6102: no agent that is reached here connects server `forge`")


def test_a_policy_with_errors_is_told_with_the_settings() -> None:
    Path("team.zcpolicy").write_text(POLICY.replace("allow look", "allow lok"))
    made = checked(SOUND)
    assert made.settings is None
    assert "`lok` is not a tool" in plain(made.diagnostics)


def test_a_state_folder_that_others_can_write() -> None:
    Path("var").mkdir()
    Path("var").chmod(0o777)
    assert said(SOUND)[0] == "daemon.toml:6:10: error ZC6006: `var` can be written by others"


@pytest.mark.parametrize(
    "name", ["tokens.json", "ledger.db", "identity.key", "log", "policy.generation", "../var/memory.db", ""]
)
def test_a_socket_where_the_daemon_keeps_something_else(name: str) -> None:
    (told, *_) = said(SOUND.replace("[rpc]", f'[rpc]\nsocket = "var/{name}"'))
    assert told.startswith("daemon.toml:12:10: error ZC6006: ")
    assert "is a file that the daemon keeps something else in" in told


@pytest.mark.parametrize("name", ["daemon.toml", "team.zcpolicy", "link"])
def test_a_socket_in_the_place_of_something(name: str) -> None:
    Path("link").symlink_to("nowhere")
    (told,) = said(SOUND.replace("[rpc]", f'[rpc]\nsocket = "{name}"'))
    assert told.startswith("daemon.toml:12:10: error ZC6006: there is something at ")


def test_a_state_folder_that_is_a_link_to_nowhere() -> None:
    Path("var").symlink_to("nowhere")
    assert said(SOUND) == ["daemon.toml:6:10: error ZC6006: `var` is no folder"]


def test_tokens_open_an_address_to_others() -> None:
    Path("var").mkdir(mode=0o700)
    Tokens(str(Path("var/tokens.json").absolute())).add("ann")
    assert said(SOUND.replace("port = 0", 'address = "0.0.0.0"')) == []


def test_a_file_that_is_not_there_or_no_text() -> None:
    assert [one.message for one in check_settings(Path("nothing.toml")).diagnostics] == [
        "`nothing.toml` does not exist"
    ]
    Path("daemon.toml").write_bytes(b"a = '\xff'")
    assert [one.code.id for one in check_settings(Path("daemon.toml")).diagnostics] == ["ZC2002"]


ROUTED = POLICY.replace("allow look, forge/get;", 'allow look, forge/get; approval { route "security" };', 1)
NOBODY = [
    "daemon.toml:1:1: warning ZC6106: nobody answers route `security` of the policy: what it is asked about is denied",
    'help: write `[approvals]` and `routes = ["security"]`: then operators do',
]
OPERATORS: dict[str, tuple[str, list[str]]] = {
    "all that there is": ('[approvals]\nroutes = ["security"]\nperson = ["gateway"]\npause_after = "5s"', []),
    "nobody": ("", NOBODY),
    "telemetry": ("[telemetry]\nenabled = true", NOBODY),
    "a route that the policy has not": (
        '[approvals]\nroutes = ["security", "securty"]',
        ["daemon.toml:36:23: error ZC6005: the policy has no route `securty`", "help: did you mean `security`?"],
    ),
    "a misspelt route": (
        '[approvals]\nroutes = ["securty"]',
        ["daemon.toml:36:11: error ZC6005: the policy has no route `securty`", "help: did you mean `security`?"],
    ),
    "one route of two": (
        '[approvals]\nroutes = ["desk"]',
        [
            "daemon.toml:35:1: warning ZC6106: nobody answers route `security` of the policy: what it is asked about is denied",
            'help: add `"security"` to `routes`: then operators do',
            "daemon.toml:36:11: error ZC6005: the policy has no route `desk`",
            "help: the policy has `security`",
        ],
    ),
    "a surface that has its own person": (
        '[approvals]\nperson = ["rpc"]\npause_afer = "1s"',
        [
            "daemon.toml:36:11: error ZC6003: there is no surface `rpc`",
            "help: known: `gateway`",
            "daemon.toml:37:1: error ZC6002: there is no setting `pause_afer` in `[approvals]`",
            "help: did you mean `pause_after`?",
        ],
    ),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_what_operators_answer(case: str) -> None:
    more, expected = OPERATORS[case]
    Path("team.zcpolicy").write_text(ROUTED)
    assert said(f"{SOUND}{more}\n") == expected


def test_operators_answer_over_http_alone() -> None:
    quiet = SOUND.replace("[http]\nport = 0\n", "").replace('"gateway", ', "")
    assert said(f'{quiet}[approvals]\nroutes = ["security"]\n') == [
        "daemon.toml:33:1: error ZC6004: operators answer over HTTP: that needs a table `[http]`",
        "help: write `[http]`; it may be empty",
    ]


def test_telemetry_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert said(f"{SOUND}[telemetry]\n") == [
        "daemon.toml:35:1: error ZC6010: telemetry needs the extra `otel`: pip install 'zcpolicy[otel]'"
    ]
    assert said(f"{SOUND}[telemetry]\nenabled = false\n") == []

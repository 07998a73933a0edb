"""What agents are given: models, MCP servers, skills, chats.

In: tables of the settings. Out: their checked values; findings.
"""

import shutil
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from policy_lang import codes
from policy_lang.files import read_bytes
from policy_lang.nearest import nearest
from policy_lang.serving import files
from policy_lang.serving.reading import Table
from policy_lang.serving.secrets import no_secret, secrets_in
from policy_lang.serving.tools import named
from zcpolicy.daemon.models import MAX_SCRIPT_BYTES, ScriptError, read_script
from zcpolicy.daemon.settings import ChannelSettings, McpSettings, SkillSettings
from zcpolicy.extras import missing

SCRIPTED: Final = "scripted"


def model_in(table: Table) -> str | None:
    """The model of an agent: a script, or a name that pydantic-ai knows."""
    written = table.text("model")
    if written is None:
        if "model" not in table.values:
            table.missing("model", 'write `model = "scripted:answers.json"`, or a name of pydantic-ai')
        return None
    kind, colon, name = written.partition(":")
    if kind == SCRIPTED and name:
        return _script(table, name)
    if not colon or not name:
        table.say(
            codes.BAD_SETTING, f"`{written}` names no model", ("model",),
            help="write PROVIDER:MODEL as pydantic-ai does, or `scripted:FILE`",
        )  # fmt: skip
        return None
    if nearest(kind, (SCRIPTED,)) is not None:
        table.say(codes.BAD_SETTING, f"there is no provider `{kind}`", ("model",), help="did you mean `scripted`?")
        return None
    if find_spec("pydantic_ai") is None:
        table.say(codes.ABSENT_LIBRARY, str(missing(f"the model `{written}`", "pydantic-ai")), ("model",))
    return written


def _script(table: Table, name: str) -> str | None:
    if not files.readable(table, ("model",), name):
        return None
    path = table.where(name)
    data = read_bytes(path, MAX_SCRIPT_BYTES)
    try:
        if isinstance(data, str):
            raise ScriptError(f"it {data}")
        read_script(data)
    except ScriptError as error:
        table.say(codes.UNUSABLE_FILE, f"`{name}` is no script of a model: {error}", ("model",))
        return None
    return f"{SCRIPTED}:{path}"


def mcp_in(top: Table) -> dict[str, McpSettings]:
    """The MCP servers by name."""
    found: dict[str, McpSettings] = {}
    for name, table in top.named("mcp").items():
        command, url, cwd = table.texts("command"), table.text("url"), table.text("cwd")
        made = McpSettings(
            command, url or "", secrets_in(table, "env"), secrets_in(table, "headers"),
            cwd and str(table.where(cwd)), table.texts("pinned"),
        )  # fmt: skip
        table.done()
        if cwd is not None:
            files.folder(table, ("cwd",), cwd)
        if _reaches(table, made):
            found[name] = made
        if find_spec("mcp") is None:
            table.say(codes.ABSENT_LIBRARY, str(missing("an MCP server", "mcp")), (), on_key=True)
    return found


def _reaches(table: Table, made: McpSettings) -> bool:
    """Whether it says how to reach the server."""
    if made.command and made.url:
        table.say(
            codes.CONFLICTING_SETTINGS, "a server is either a `command` or a `url`", ("url",), on_key=True,
            help="keep one of the two",
        )  # fmt: skip
        return False
    if not made.command and not made.url:
        if "command" not in table.values and "url" not in table.values:
            table.missing("command", 'write `command = ["server", "argument"]`, or `url = "https://…"`')
        elif table.values.get("command") == []:
            table.wrong("command", "a list of a program and its arguments")
        return False
    for name, other in (("env", made.url), ("cwd", made.url), ("headers", made.command)):
        if other and name in table.values:
            needs = "command" if made.url else "url"
            table.say(codes.CONFLICTING_SETTINGS, f"`{name}` is for a server with a `{needs}`", (name,), on_key=True)
    if made.command:
        _command(table, made.command)
    else:
        _url(table, made.url)
    return True


def _command(table: Table, command: tuple[str, ...]) -> None:
    program = command[0]
    if shutil.which(program) is None and not table.where(program).is_file():
        table.no_file(f"there is no program `{program}` here", ("command", 0), program, ())
    for number, word in enumerate(command):
        no_secret(table, word, ("command", number))


def _url(table: Table, url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        sound = False
    if not sound:
        table.wrong("url", "an address that begins with `https://` or `http://`")
    no_secret(table, url, ("url",))


def skills_in(top: Table) -> dict[str, SkillSettings]:
    """The skills by name."""
    found: dict[str, SkillSettings] = {}
    for name, table in top.named("skills").items():
        description, file = table.text("description"), table.text("file")
        table.done()
        for each, example in (("description", "how to deploy"), ("file", "deploy.md")):
            if each not in table.values:
                table.missing(each, f'write `{each} = "{example}"`')
        if description is not None and file is not None and files.readable(table, ("file",), file):
            found[name] = SkillSettings(description, str(table.where(file)))
    return found


def channels_in(top: Table) -> dict[str, ChannelSettings]:
    """The chats by name."""
    found: dict[str, ChannelSettings] = {}
    for name, table in top.named("channels").items():
        agent, factory = table.text("agent"), table.text("factory")
        table.done()
        for each, example in (("agent", "helper"), ("factory", "my_package.chat:make")):
            if each not in table.values:
                table.missing(each, f'write `{each} = "{example}"`')
        if agent is not None and factory is not None:
            named(table, factory, ("factory",))
            found[name] = ChannelSettings(agent, factory)
    return found

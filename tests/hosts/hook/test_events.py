"""What each host's event says: who calls what, where, and whether anybody can be asked. Most were recorded from real hosts;
those of Cursor and VS Code are written after their documents.
"""

import pytest

from zcpolicy.hosts.hook.deciding import host_of
from zcpolicy.hosts.hook.event import Asked, NoEvent, tool_of

from .conftest import payload

GIT = ("git", "git_status")
TOOLS = ["Bash", "bash", "run_shell_command", "run_in_terminal", "Shell", GIT, ("git", "git_reset")]


def asked(host: str, event: dict[str, object], *, attended: bool = False) -> Asked:
    return host_of(host).read(event, attended=attended)


@pytest.mark.parametrize(
    ("host", "name", "tool", "cwd", "asks"),
    [
        ("claude-code", "claude-code.bash", "Bash", "/w/work", True),
        ("claude-code", "claude-code.mcp", GIT, "/w/work", True),
        ("claude-code", "claude-code.subagent", "Bash", "/w/work", True),
        ("codex", "codex.bash", "Bash", None, False),  # its `workdir` is not in the event; what asks runs
        ("codex", "codex.mcp", GIT, "/w/work", False),
        ("gemini", "gemini.bash", "run_shell_command", "/w/proj", False),  # nobody says that a person is there
        ("gemini", "gemini.mcp", GIT, "/w/proj", False),
        ("copilot", "copilot.bash", "bash", None, True),  # its shell stays where the last command went
        ("copilot", "copilot.mcp", GIT, "/w/cprepo", True),
        ("copilot", "copilot-pascal.bash", "Bash", None, True),
        ("copilot", "copilot-pascal.mcp", GIT, "/w/cprepo", True),
        ("cursor", "cursor.shell", "Shell", "/w/work", True),
        ("cursor", "cursor.mcp", GIT, None, True),
        ("cursor", "cursor.tool", "Shell", "/w/work", True),  # the event of the shell's own follows, and asks
        ("vscode", "vscode.bash", "run_in_terminal", None, True),
        ("vscode", "vscode.mcp", GIT, "/w/work", True),
    ],
)
def test_an_event_says_which_call(host: str, name: str, tool: object, cwd: str | None, asks: bool) -> None:
    found = asked(host, payload(name))
    assert (tool_of(found, TOOLS, host_of(host)), found.cwd, found.asks) == (tool, cwd, asks)
    assert found.session
    assert found.arguments


@pytest.mark.parametrize("mode", ["bypassPermissions", "auto", "dontAsk", "a mode of tomorrow", None])
def test_claude_is_asked_nothing_in_a_mode_that_answers_by_itself(mode: str | None) -> None:
    assert asked("claude-code", payload("claude-code.bash", permission_mode=mode)).asks is False


def test_gemini_is_asked_where_its_operator_says_that_a_person_is_there() -> None:
    assert asked("gemini", payload("gemini.bash"), attended=True).asks is True


@pytest.mark.parametrize("elsewhere", ["dir_path", "directory"])
def test_a_shell_that_starts_elsewhere_has_no_known_directory(elsewhere: str) -> None:
    event = payload("gemini.bash", tool_input={"command": "ls", elsewhere: "sub"})
    assert asked("gemini", event).cwd is None


@pytest.mark.parametrize(
    ("host", "event", "tool"),
    [
        # a field for the server: what the spelling could also mean does not count
        ("claude-code", payload("claude-code.mcp", mcp_server={"name": "evil"}), None),
        ("gemini", payload("gemini.mcp", mcp_context={"server_name": "evil", "tool_name": "x"}), ("evil", "x")),
        # what is spelled as a server's tool is never a tool of the host's own
        ("codex", payload("codex.mcp", tool_name="mcp__x__y"), None),
        ("vscode", payload("vscode.mcp", tool_name="mcp_x_y"), None),
        # Cursor, as some say that it spells them
        ("cursor", payload("cursor.tool", tool_name="MCP:git:git_status"), GIT),
    ],
)
def test_a_name_is_read_from_fields_where_there_are_some(host: str, event: dict[str, object], tool: object) -> None:
    assert tool_of(asked(host, event), ["mcp__x__y", "mcp_x_y", *TOOLS], host_of(host)) == tool


@pytest.mark.parametrize(
    ("host", "wire", "tools"),
    [
        ("copilot", "a-b-c", [("a", "b-c"), ("a-b", "c")]),
        ("copilot", "a-b", [("a", "b"), "a-b"]),
        ("codex", "mcp__a__b__c", [("a", "b__c"), ("a__b", "c")]),
        ("codex", "mcp__a__b_c", [("a", "b.c"), ("a", "b_c")]),
        ("cursor", "git_status", [("git", "git_status"), ("git2", "git_status")]),
    ],
)
def test_a_spelling_of_two_tools_is_never_guessed(host: str, wire: str, tools: list[str | tuple[str, str]]) -> None:
    name = {"copilot": "copilot.mcp", "codex": "codex.mcp", "cursor": "cursor.mcp"}[host]
    event = payload(name, **{"toolName" if host == "copilot" else "tool_name": wire})
    with pytest.raises(NoEvent, match="two tools"):
        tool_of(asked(host, event), tools, host_of(host))


def test_copilots_two_spellings_do_not_come_together() -> None:
    with pytest.raises(NoEvent):
        asked("copilot", {**payload("copilot.bash"), "tool_name": "Bash"})

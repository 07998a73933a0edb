"""`zcpolicy tools`: real servers, started and reached over HTTP, as they should be and as they should not."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from policy_lang.catalog.mcp import read_tools
from policy_lang.cli import server_process
from tests.registry.test_servers import listening

from .conftest import Cli
from .test_main import PYTHONPATH

SERVERS = Path(__file__).parents[1] / "servers"
FORGE = ("--", sys.executable, str(SERVERS / "forge.py"))


def rude(mode: str, *more: str) -> tuple[str, ...]:
    return ("--", sys.executable, str(SERVERS / "rude.py"), mode, *more)


def odd(mode: str) -> tuple[str, ...]:
    return ("--", sys.executable, str(SERVERS / "odd.py"), mode)


def put(name: str, *tools: dict[str, Any]) -> None:
    Path(name).write_text(json.dumps({"tools": tools}), encoding="utf-8")


LOOK = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}


# --- from a server to a policy ---------------------------------------------------------------------------


def test_from_a_server_to_a_policy(cli: Cli) -> None:
    assert cli("tools", "-o", "forge.json", *FORGE) == (0, "forge.json: 4 tools, written\n", "")
    assert cli("init", "forge.json", "--as", "forge", "-o", "forge.zcpolicy").status == 0
    assert cli("check", "--deny-warnings", "forge.zcpolicy").status == 0
    assert cli("test", "forge.zcpolicy").status == 0


def test_what_is_written_is_sorted_and_always_the_same(cli: Cli) -> None:
    cli("tools", "-o", "one.json", *rude("unsorted"))
    cli("tools", "-o", "two.json", *rude("unsorted"))
    first, second = Path("one.json").read_text(encoding="utf-8"), Path("two.json").read_text(encoding="utf-8")
    assert first == second
    assert [tool.name for tool in read_tools(first)] == ["a", "z"]
    assert list(json.loads(first)["tools"][0]) == ["name", "description", "inputSchema"]


def test_a_server_over_http(cli: Cli, tmp_path: Path) -> None:
    with listening(tmp_path / "log") as url:
        assert cli("tools", "-o", "forge.json", "--url", url) == (0, "forge.json: 4 tools, written\n", "")
    cli("tools", "-o", "started.json", *FORGE)
    assert Path("forge.json").read_text(encoding="utf-8") == Path("started.json").read_text(encoding="utf-8")


def test_variables_reach_a_server_only_where_they_are_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("FORGE_LOG", str(log))
    cli("tools", "-o", "a.json", *FORGE)
    assert not log.exists()
    cli("tools", "-o", "b.json", "--env", "FORGE_LOG", *FORGE)
    assert log.read_text(encoding="utf-8") == "start\nend\n"


def test_a_banner_before_the_answers_is_passed_over(cli: Cli) -> None:
    assert cli("tools", "-o", "a.json", *rude("banner")).status == 0


# --- against what is there -------------------------------------------------------------------------------


def test_the_same_list_is_left_as_it_lies(cli: Cli) -> None:
    put("a.json", LOOK)
    before = Path("a.json").read_bytes()
    assert cli("tools", "-o", "a.json", *rude("banner")) == (0, "a.json: 1 tool, unchanged\n", "")
    assert cli("tools", "-o", "a.json", "--check", *rude("banner")) == (0, "a.json: 1 tool, unchanged\n", "")
    assert Path("a.json").read_bytes() == before


CHANGES = """\
a.json: 2 tools, {state}
  added: z
  removed: gone
  changed: a: description, schema, hints
"""


def old_list() -> None:
    old = {"name": "a", "description": "Looked.", "inputSchema": {}, "annotations": {"readOnlyHint": True}}
    put("a.json", {**LOOK, "name": "gone"}, old)


def test_a_different_list_is_replaced_only_by_force(cli: Cli) -> None:
    old_list()
    before = Path("a.json").read_bytes()
    ran = cli("tools", "-o", "a.json", *rude("unsorted"))
    assert (ran.status, ran.out) == (2, CHANGES.format(state="differs"))
    assert ran.err == "zcpolicy: `a.json` is different: replace it with --force, after a look at it\n"
    assert Path("a.json").read_bytes() == before
    assert cli("tools", "-o", "a.json", "--force", *rude("unsorted")) == (0, CHANGES.format(state="written"), "")
    assert cli("tools", "-o", "a.json", "--check", *rude("unsorted")).status == 0


def test_check_writes_nothing_and_fails(cli: Cli) -> None:
    assert cli("tools", "-o", "a.json", "--check", *rude("unsorted")) == (1, "a.json: 2 tools, is missing\n", "")
    assert not Path("a.json").exists()
    old_list()
    before = Path("a.json").read_bytes()
    ran = cli("tools", "-o", "a.json", "--check", "--force", *rude("unsorted"))
    assert (ran.status, ran.out) == (1, CHANGES.format(state="differs"))
    assert Path("a.json").read_bytes() == before


def test_plain_and_json(cli: Cli) -> None:
    old_list()
    ran = cli("tools", "-o", "a.json", "--check", "--format", "plain", *rude("unsorted"))
    assert ran.out == "a.json: added: z\na.json: removed: gone\na.json: changed: a: description, schema, hints\n"
    said = json.loads(cli("tools", "-o", "a.json", "--check", "--format", "json", *rude("unsorted")).out)
    assert said == {
        "file": "a.json",
        "tools": 2,
        "same": False,
        "written": False,
        "added": ["z"],
        "removed": ["gone"],
        "changed": [{"name": "a", "what": ["description", "schema", "hints"]}],
    }


def test_a_file_that_is_no_list_is_not_overwritten(cli: Cli) -> None:
    before = Path("team.zcpolicy").read_bytes()
    ran = cli("tools", "-o", "team.zcpolicy", *rude("banner"))
    assert (ran.status, Path("team.zcpolicy").read_bytes()) == (2, before)
    assert ran.err == (
        "zcpolicy: `team.zcpolicy` is no list of tools (not JSON: expecting value at line 1, column 1): "
        "replace it with --force, after a look at it\n"
    )


def test_names_do_not_steer_the_terminal(cli: Cli) -> None:
    put("a.json", LOOK)
    for style in ("human", "plain", "json"):
        ran = cli("tools", "-o", "a.json", "--check", "--format", style, *rude("controls"))
        assert ran.status == 1
        assert "\x1b" not in ran.out
        assert "\u202e" not in ran.out


# --- servers that are not as they should be --------------------------------------------------------------

ON_VARIABLES = "; of your variables it got HOME, PATH and the like, others only where `--env` names them"
GIVES = "zcpolicy: the server gives no list of tools: "
WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "dies": (odd("dies"), f"{GIVES}it ended with status 3{ON_VARIABLES}"),
    "prints rubbish and ends": (
        rude("rubbish"),
        (f"{GIVES}it ended with status 1; it prints what is no MCP: `\\u{{1b}}]0;mine\\u{{7}}hello`; "
        f"it said: starting / no token given\\u{{1b}}[31m{ON_VARIABLES}"),
    ),
    "prints rubbish without end": (rude("lines"), f"{GIVES}it did not answer within 2 s; it prints what is no MCP: `not MCP`"),
    "two of one name": (odd("twice"), "zcpolicy: the server's list cannot be used: two tools are called `same`"),
    "pages without end": (odd("endless"), f"{GIVES}it lists more than 100 pages"),
    "one page for ever": (rude("loops"), f"{GIVES}it lists more than 100 pages"),
    "a line of 100 MB": (rude("line"), f"{GIVES}it sent more than 33_554_432 bytes"),
    "a tool without a name": (rude("shapeless"), f"{GIVES}what it answers is no MCP"),
    "a number that has no end": (rude("infinite"), "zcpolicy: the server's list cannot be used: not JSON: `Infinity` is no number"),
    "a number that is too long, without end": (
        rude("long"),
        f'{GIVES}it did not answer within 2 s; it prints what is no MCP: `{{"jsonrpc": "2.0", "id": 3, "result": {{"tools": [{{"name": "l`',
    ),
    "no tools": (rude("notools"), "zcpolicy: the server lists no tools"),
    "an error": (rude("refuses"), f"{GIVES}log in \\u{{1b}}[2Jfirst"),
    "no such program": (("--", "no-such-server", "-x"), f"{GIVES}it cannot be started: no such file or directory"),
    "a program that is none": (("--", "/dev/null"), f"{GIVES}it cannot be started: permission denied"),
    "another program": (("--", "true"), f"{GIVES}it ended with status 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_server_that_gives_no_list_is_one_line(cli: Cli, case: str) -> None:
    words, complaint = WRONG[case]
    seconds = "2" if "it did not answer within 2 s" in complaint else "30"
    ran = cli("tools", "-o", "a.json", "--timeout", seconds, *words)
    assert (ran.status, ran.out, ran.err) == (2, "", f"{complaint}\n")
    assert not Path("a.json").exists()


def alive(pids: Path) -> list[int]:
    found = [int(pid) for pid in pids.read_text(encoding="utf-8").split()]
    return [pid for pid in found if Path(f"/proc/{pid}").exists() and "Z" not in stat(pid)]


def stat(pid: int) -> str:
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(("mode", "status"), [("stays", 0), ("hangs", 2)])
def test_a_server_that_will_not_end_is_ended_with_all_that_it_started(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, status: int
) -> None:
    monkeypatch.setattr(server_process, "MAX_ENDING_SECONDS", 0.5)
    pids = tmp_path / "pids"
    seconds = "5" if mode == "hangs" else "30"
    ran = cli("tools", "-o", "a.json", "--timeout", seconds, *rude(mode, str(pids)))
    assert (ran.status, alive(pids)) == (status, [])
    assert ran.err == ("" if status == 0 else f"{GIVES}it did not answer within 5 s\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 2), (signal.SIGINT, 130)])
def test_no_server_is_left_by_a_command_that_is_ended(tmp_path: Path, number: signal.Signals, status: int) -> None:
    pids = tmp_path / "pids"
    command = [
        sys.executable,
        "-m",
        "policy_lang.cli.main",
        "tools",
        "-o",
        str(tmp_path / "a.json"),
        *rude("hangs", str(pids)),
    ]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while not pids.exists() or not pids.read_text(encoding="utf-8"):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, complaint = process.communicate(timeout=30)
    assert (process.returncode, alive(pids)) == (status, [])
    assert complaint.strip() == ("zcpolicy: ended before the server had listed its tools" if status == 2 else "")


class Stub(BaseHTTPRequestHandler):
    """Answers each request by its path: /STATUS, /big, /packed, /page, /away; keeps the headers that it was sent."""

    seen: dict[str, str] = {}

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        Stub.seen = {name.lower(): value for name, value in self.headers.items()}
        what = self.path.strip("/")
        self.send_response(int(what) if what.isdecimal() else 307 if what == "away" else 200)
        self.send_header("content-type", "text/html" if what == "page" else "application/json")
        if what == "packed":
            self.send_header("content-encoding", "gzip")
        if what == "away":
            self.send_header("location", "http://127.0.0.2:9/mcp?key=secret")
        self.end_headers()
        try:
            for _ in range(100 if what == "big" else 0):
                self.wfile.write(b" " * 1_000_000)
        except OSError:
            return


@contextmanager
def stub() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stub) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("401", "Server returned an error response; its HTTP status is 401: `--header` says who asks"),
        ("404", "Not Found; its HTTP status is 404: is that its path, and does it speak Streamable HTTP, not the older HTTP with SSE"),
        ("big", "it sent more than 33_554_432 bytes"),
        ("packed", "it sends compressed answers, though it was asked for plain ones"),
        ("page", "Unexpected content type: text/html"),
        ("away", "Redirect to http://127.0.0.2:9/mcp not followed; use that URL as the endpoint if it is the intended server"),
    ],
)  # fmt: skip
def test_a_url_that_gives_no_list_is_one_line(cli: Cli, path: str, complaint: str) -> None:
    with stub() as url:
        assert cli("tools", "-o", "a.json", "--url", f"{url}/{path}") == (2, "", f"{GIVES}{complaint}\n")


def test_a_header_takes_its_value_from_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_AUTH", "Bearer s3cret")
    with stub() as url:
        ran = cli("tools", "-o", "a.json", "--url", f"{url}/401", "--header", "Authorization=FORGE_AUTH")
    assert Stub.seen["authorization"] == "Bearer s3cret"
    assert "s3cret" not in ran.out + ran.err


def test_nobody_listens(cli: Cli) -> None:
    ran = cli("tools", "-o", "a.json", "--url", "http://127.0.0.1:1/mcp")
    assert (ran.status, ran.err) == (2, f"{GIVES}it cannot be reached: All connection attempts failed\n")


# --- usage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["true"], "missing option '-o' / '--output'; see zcpolicy tools --help"),
        (["-o", "a"], "name one server: `-- COMMAND…` to start it, or `--url URL`"),
        (["-o", "a", "--url", "http://x", "true"], "name one server: `-- COMMAND…` to start it, or `--url URL`"),
        (["-o", "a", "--header", "A=B", "true"], "`--header` goes with `--url`; a server that is started takes `--env VARIABLE`"),
        (["-o", "a", "--url", "http://x", "--env", "B"], "`--env` goes with `-- COMMAND…`; a server at a URL takes `--header NAME=VARIABLE`"),
        (["-o", "a", "--url", "ftp://x"], "`--url` needs the form `https://HOST/PATH`"),
        (["-o", "a", "--url", "http://[x"], "`--url` is no URL"),
        (["-o", "a", "--url", "http://u:p@x"], "`--url` holds a user or a password: use `--header Authorization=VARIABLE`"),
        (["-o", "a", "--url", "http://x", "--header", "A B=C"], "`--header A B` is no header: write NAME=VARIABLE, the variable holding the value"),
        (["-o", "a", "--url", "http://x", "--header", "A=NOT_THERE"], "there is no variable `NOT_THERE` in the environment"),
        (["-o", "a", "--url", "http://x", "--header", "A=BROKEN"], "the variable `BROKEN` holds what no header can"),
        (["-o", "a", "--env", "NOT_THERE", "true"], "there is no variable `NOT_THERE` in the environment"),
        (["-o", "no/a", *rude("banner")], "`no/a` cannot be written: No such file or directory"),
        (["-o", ".", *rude("banner")], "`.` is a folder"),
    ],
)  # fmt: skip
def test_wrong_usage(cli: Cli, monkeypatch: pytest.MonkeyPatch, words: list[str], complaint: str) -> None:
    monkeypatch.setenv("BROKEN", "a\nb")
    assert cli("tools", *words) == (2, "", f"zcpolicy: {complaint}\n")

"""Without an extra: whatever needs it says which, and everything else works."""

import subprocess
import sys

import pytest

BLOCKED = "import sys; sys.modules.update(dict.fromkeys({libraries!r}))\n"
LIBRARIES = (
    "mcp",
    "redis",
    "genai_prices",
    "pydantic_ai",
    "starlette",
    "uvicorn",
    "pytest",
    "watchfiles",
    "opentelemetry",
)

NEEDS: dict[str, tuple[str, str]] = {
    "import zcpolicy.registry.mcp_servers": ("a connector of MCP servers", "mcp"),
    "from zcpolicy import StdioServer": ("a connector of MCP servers", "mcp"),
    "from zcpolicy import HttpServer": ("a connector of MCP servers", "mcp"),
    "import zcpolicy.ledgers.redis": ("a ledger on Redis", "redis"),
    "from zcpolicy import RedisLedger": ("a ledger on Redis", "redis"),
    "import zcpolicy.loop.pydantic_ai": ("a model of pydantic-ai", "pydantic-ai"),
    "from zcpolicy import PydanticAiModel": ("a model of pydantic-ai", "pydantic-ai"),
    "import zcpolicy.daemon.paths.gateway": ("the gateway", "gateway"),
    "import zcpolicy.hosts.authzen": ("the Authorization API", "gateway"),
    "import zcpolicy.daemon.listening": ("the gateway's server", "gateway"),
    "import zcpolicy.daemon.telemetry": ("telemetry", "otel"),
    "from zcpolicy import GenaiPrices; GenaiPrices()": ("the public list of prices", "prices"),
}
WORKS = {
    "the names for hosts": "from zcpolicy import *\nassert PriceTable({'m': 1}).cost('m', 1, 1)",
    "the other paths of the reference host": "import zcpolicy.daemon.paths.rpc, zcpolicy.daemon.paths.channel",
    "reload, which then looks at the files now and then": "import zcpolicy.reload.generations, policy_lang.serving.compiling",
    "the harness": "import zcpolicy.parity.reference, zcpolicy.parity.matrix",
}


def blocked(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code where no library of an extra can be imported."""
    whole = BLOCKED.format(libraries=LIBRARIES) + code
    return subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", NEEDS)
def test_what_needs_an_extra_says_which(code: str) -> None:
    what, extra = NEEDS[code]
    ran = blocked(code)
    assert ran.returncode == 1
    assert ran.stderr.endswith(f"ImportError: {what} needs the extra `{extra}`: pip install 'zcpolicy[{extra}]'\n")
    assert ran.stderr.count("Traceback") == 1


@pytest.mark.parametrize("what", WORKS)
def test_what_works_without_any(what: str) -> None:
    ran = blocked(WORKS[what])
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_list_of_a_server_on_the_command_line() -> None:
    code = "from policy_lang.cli.main import main; sys.exit(main(['tools', '-o', 'tools.json', '--', 'true']))"
    ran = blocked(code)
    message = "zcpolicy: `zcpolicy tools` needs the extra `mcp`: pip install 'zcpolicy[mcp]'\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", message)


def test_the_harness_on_the_command_line() -> None:
    code = "from policy_lang.cli.main import main; sys.exit(main(['parity', '--path', 'gateway', '--setting', 'deny']))"
    ran = blocked(code)
    message = (
        "zcpolicy: the path `gateway` needs the extra `parity`: pip install 'zcpolicy[parity]', or name other paths\n"
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", message)

"""A day of the daemon, with the process that `zcpolicy serve` is: tokens, turns, a limit, a reload, an orderly end.

Run it from anywhere: `python examples/daemon/talk.py`. It works on a copy in a temporary folder, on a port that is free.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
ZCPOLICY = (sys.executable, "-m", "policy_lang.cli.main")


def story(folder: Path) -> None:
    """What happens."""
    settings = folder / "daemon.toml"
    settings.write_text(settings.read_text().replace("port = 8765", "port = 0"))
    token = {name: told("token", "add", name, cwd=folder) for name in ("ann", "ben")}
    token["root"] = told("token", "add", "root", "--operator", cwd=folder)

    with (folder / "serve.log").open("w") as log:
        daemon = subprocess.Popen([*ZCPOLICY, "serve", "daemon.toml"], cwd=folder, stderr=log)  # noqa: S603 - our own words
    try:
        port = port_of(folder / "serve.log", daemon)
        for name in ("nobody", "ann", "ann", "ann", "ben"):
            status, said = ask(port, "POST", "/turn", token.get(name), {"agent": "assistant", "text": "look around"})
            print(f"{name}: {status} {said.get('text') or said.get('error')}")
        print(f"the log: {decisions(folder)}")

        policy = folder / "team.zcpolicy"
        policy.write_text(policy.read_text().replace("allow memory_store", "allow memory_stoer"))
        went = ask(port, "POST", "/reload", token["root"], {})[1]
        print(f"a policy with a mistake: {went['failure']['why'].splitlines()[0].rpartition('/')[2]}")
        print(f"health: {ask(port, 'GET', '/healthz')[1]}, ready: {ask(port, 'GET', '/readyz')[1]}")
        print(f"ann asks how it goes: {ask(port, 'GET', '/status', token['ann'])[1]['error']}")
        told("token", "revoke", "ben", cwd=folder)
        print(f"ben, revoked: {ask(port, 'GET', '/tools?agent=assistant', token['ben'])[0]}")
    finally:
        daemon.send_signal(signal.SIGTERM)
    print(f"told to stop: exit {daemon.wait(30)}")


def told(*words: str, cwd: Path) -> str:
    """What a command prints."""
    ran = subprocess.run([*ZCPOLICY, *words], cwd=cwd, capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    return ran.stdout.strip()


def port_of(log: Path, daemon: subprocess.Popen[bytes]) -> int:
    """Where it serves, as soon as it does."""
    while daemon.poll() is None:
        for word in log.read_text().split():
            if word.startswith("http://"):
                return int(word.rpartition(":")[2])
        time.sleep(0.05)
    raise SystemExit(log.read_text())


def ask(port: int, method: str, path: str, token: str | None = None, body: Any = None) -> tuple[int, dict[str, Any]]:
    """One request."""
    headers = {"content-type": "application/json"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    said: dict[str, Any] = json.loads(answer.read())
    connection.close()
    return answer.status, said


def decisions(folder: Path) -> str:
    """How calls were decided, and how often."""
    found: dict[str, str] = {}
    for file in sorted((folder / "var/log").glob("decisions-*.jsonl")):
        for line in map(json.loads, file.read_text().splitlines()):
            if line["kind"] == "call":
                decision = line["data"]["decision"]
                found[line["data"]["key"]] = f"{decision['tool']} {decision['reason']}"
    return ", ".join(f"{number} x {what}" for what, number in sorted(Counter(found.values()).items()))


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        copy = Path(temporary, "daemon")
        shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("var", "__pycache__"))
        story(copy)

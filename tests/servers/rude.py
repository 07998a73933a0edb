"""A server that speaks JSON without the official library, so that it can say anything: `rude.py MODE [FILE]`.

FILE: where it writes its process id. It answers to `initialize` as old servers do, and refuses what it does not know.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
TOOL = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}
LISTS: dict[str, Any] = {
    "banner": [TOOL],
    "stays": [TOOL],
    "controls": [{**TOOL, "name": "look\x1b[31m\u202e"}],
    "shapeless": [{"description": "no name"}],
    "notools": [],
    "long": [{**TOOL, "inputSchema": {"type": "object", "properties": {"n": {"default": "LONG"}}}}],
    "infinite": [{**TOOL, "inputSchema": {"type": "object", "properties": {"n": {"default": "INFINITE"}}}}],
    "chatty": [TOOL],
    "unsorted": [{**TOOL, "name": "z"}, {**TOOL, "name": "a", "_meta": {"at": time.time()}}],
}


def put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def flood(pieces: Iterable[str]) -> None:
    for piece in pieces:
        put(piece)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "rude", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list" if MODE == "refuses":
            return {"error": {"code": -32000, "message": "log in \x1b[2Jfirst"}}
        case "tools/list" if MODE == "loops":
            return {"result": {"tools": [], "nextCursor": "again"}}
        case "tools/list" if MODE == "line":
            flood(['{"x": "', *["y" * 1_000_000] * 100])
            return {"result": {}}
        case "tools/list" if MODE == "lines":
            flood(["not MCP\n" * 100_000] * 130)
            return {"result": {}}
        case "tools/list" if MODE == "hangs":
            time.sleep(600)
            return {}
        case "tools/list":
            return {"result": {"tools": LISTS[MODE]}}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


if __name__ == "__main__":
    if MODE in ("stays", "hangs"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=1)
        Path(sys.argv[2]).write_text(f"{os.getpid()} {child.pid}", encoding="utf-8")
    if MODE == "banner":
        put("Rude server, version 1\n\n")
    if MODE == "rubbish":
        put("\x1b]0;mine\x07hello\n")
        sys.stderr.write("starting\n\nno token given\x1b[31m\n")
        sys.exit(1)
    if MODE == "chatty":
        sys.stderr.write("chat\n" * 1_000_000)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            text = json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)})
            put(text.replace('"LONG"', "9" * 4400).replace('"INFINITE"', "1e999") + "\n")
    while MODE == "stays":
        time.sleep(600)

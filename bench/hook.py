"""Cold cost of `zcpolicy hook`: whole processes, beside bare Python starts of the same interpreter, taken in turns.

    python bench/hook.py [ROUNDS]

Prints the median of each in milliseconds and in bare starts. `plain`: the policy tests text; `shell`, `url`: it needs those
libraries; `limit`: it needs the ledger. The policy is compiled beforehand, by a first call.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POLICY = """\
zcpolicy 1
tool Note(text: string) risk low
tool Bash(command: shell) risk high
tool Fetch(url: url) risk low
agent plain { autonomy full; allow Note when args.text == "x" }
agent shell { autonomy full; allow Bash when args.command runs only ["git status ..."] }
agent url { autonomy full; allow Fetch when args.url.host in_domain "docs.example" }
agent limit { autonomy full; allow Note; limit 1_000_000 calls per day }
"""
CALLS = {
    "plain": ("Note", {"text": "x"}),
    "shell": ("Bash", {"command": "git status -s"}),
    "url": ("Fetch", {"url": "https://docs.example/"}),
    "limit": ("Note", {"text": "x"}),
}


def event(tool, arguments):
    return json.dumps(
        {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "cwd": "/",
            "permission_mode": "default",
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": "t",
        }
    ).encode()


def took(command, data=b""):
    start = time.perf_counter()
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    return 1000 * (time.perf_counter() - start), done.stdout


def main(rounds):
    times = {name: [] for name in ("bare", *CALLS)}
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder, "p.zcpolicy")
        policy.write_text(POLICY)
        hook = [sys.executable, "-I", "-m", "policy_lang.cli.main", "hook", "claude-code", "--policy", str(policy)]
        for number in range(rounds + 1):
            bare, _ = took([sys.executable, "-I", "-c", "pass"])
            if number:
                times["bare"].append(bare)
            for name, call in CALLS.items():
                cost, out = took([*hook, "--agent", name, "--state", f"{folder}/state"], event(*call))
                assert b'"allow"' in out, out
                if number:  # the first one compiles
                    times[name].append(cost)
    middle = {name: statistics.median(found) for name, found in times.items()}
    for name, cost in middle.items():
        print(f"{name:6} {cost:7.1f} ms  {cost / middle['bare']:5.2f} bare starts  (least {min(times[name]):.1f} ms)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)

"""What only we can be measured on: text to resolver by stage, recompile, import, cold `decide`, shell, memory.

    ours.py [--quick]

Prints Markdown tables. Everything that can be is a ratio taken in this run: to a bare start of the same Python, to
half the size, to a compile from nothing. A measurement that cannot be made yet says why in its row.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHON = str(ROOT / ".venv/bin/python")
ZCPOLICY = str(ROOT / ".venv/bin/zcpolicy")
sys.path.insert(0, str(HERE))

from peers._zcpolicy_text import agents, text, tools  # noqa: E402 - the bench folder is no package
from workload import build_policy, make  # noqa: E402

AGENTS_PER_10_000_LINES = 176  # about 55 lines an agent, and 280 `tool` statements
LIMITS = {
    "import": 15.0,
    "decide": 3.0,
    "decide with shell": 5.0,
    "shell": 150.0,
    "memory": 90.0,
    "text": 10.0,
    "edit": 3.0,
}


def run(code, *args):
    """The JSON that a fresh interpreter prints, or the last line of its error."""
    p = subprocess.run([PYTHON, "-c", code, *args], capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)
    if p.returncode:
        return {"error": (p.stderr.strip().splitlines() or ["?"])[-1][:160]}
    return json.loads(p.stdout.strip().splitlines()[-1])


def wall(command, rounds, status=(0,), **kwargs):
    """The median of `rounds` fresh runs, in milliseconds."""
    took = []
    for _ in range(rounds):
        t = time.perf_counter()
        p = subprocess.run(command, capture_output=True, cwd=ROOT, check=False, **kwargs)
        took.append((time.perf_counter() - t) * 1e3)
        if p.returncode not in status:
            raise RuntimeError(f"{command[0]}: exit {p.returncode}: {p.stderr.decode()[-200:]}")
    return statistics.median(took)


STAGES = r"""
import gc, json, sys, time
gc.freeze()
from policy_lang import parse, source
import policy_lang, zcpolicy
text = open(sys.argv[1]).read()
now = time.perf_counter
times, t = {}, now()
file, found = parse.parse(source.Source("bench", text))
times["parse"] = now() - t
del file
t = now()
program = policy_lang.loads(text)
times["text to program"] = now() - t
t = now()
resolver = zcpolicy.Resolver(program)
times["resolver"] = now() - t
t = now()
data = program.dump()
times["dump"] = now() - t
open(sys.argv[2], "wb").write(data)
t = now()
zcpolicy.Resolver(zcpolicy.load_compiled(sys.argv[2]))
times["compiled file to resolver"] = now() - t
status = dict(l.split(":", 1) for l in open("/proc/self/status"))
times["peak MB"] = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps(times))
"""


def from_text(folder, sizes):
    print("\n### From text to resolver\n")
    rows = {}
    for lines in sizes:
        policy = build_policy(AGENTS_PER_10_000_LINES * lines // 10_000, 50)
        path = folder / f"{lines}.zcpolicy"
        path.write_text(text(policy))
        count = path.read_text().count("\n")
        out = run(STAGES, str(path), str(folder / f"{lines}.zcpc"))
        rows[lines] = (count, out)
    first, last = sizes[0], sizes[-1]
    if any("error" in out for _, out in rows.values()):
        print(*(f"- {lines} lines: {out['error']}" for lines, (_, out) in rows.items() if "error" in out), sep="\n")
        return
    print(f"| stage | {' | '.join(f'{rows[n][0]:,} lines, s' for n in sizes)} | growth per line | lines/s |")
    print("|---|" + "---|" * (len(sizes) + 2))
    for stage in rows[first][1]:
        values = [rows[n][1][stage] for n in sizes]
        growth = (values[-1] / rows[last][0]) / (values[0] / rows[first][0]) if values[0] else float("nan")
        rate = f"{rows[last][0] / values[-1]:,.0f}" if "MB" not in stage else ""
        print(f"| {stage} | {' | '.join(f'{v:.3f}' for v in values)} | {growth:.2f} | {rate} |")
    print("\nGrowth per line: time per line at the largest size over that at the smallest; 1.00 is linear.")


EDIT = r"""
import json, sys, time
import policy_lang
t = time.perf_counter()
policy_lang.load(sys.argv[1])
print(json.dumps({"s": time.perf_counter() - t}))
"""


def after_an_edit(folder, files=50):
    """A root that imports `files` files of about 1,000 lines; one of them changes."""
    tree = folder / "many"
    tree.mkdir()
    policy = build_policy(18 * files, 50)
    (tree / "tools.zcpolicy").write_text("zcpolicy 1\n" + tools())
    for i in range(files):
        part = policy._replace(agents=policy.agents[18 * i : 18 * i + 18])
        (tree / f"part{i}.zcpolicy").write_text("zcpolicy 1\n" + agents(part))
    root = tree / "root.zcpolicy"
    names = ["tools", *(f"part{i}" for i in range(files))]
    root.write_text("zcpolicy 1\n" + "".join(f'import "{n}.zcpolicy"\n' for n in names))
    print("\n### Recompile after editing one file of many\n")
    took = {"from nothing": run(EDIT, str(root)), "unchanged": run(EDIT, str(root))}
    with (tree / "part7.zcpolicy").open("a") as stream:
        stream.write("# edited\n")
    took["one file edited"] = run(EDIT, str(root))
    if errors := [out["error"] for out in took.values() if "error" in out]:
        print("-", errors[0])
        return
    nothing = took["from nothing"]["s"]
    print(
        f"| {files} files, {18 * files * 55:,} lines | s | times faster than from nothing | goal |\n|---|---|---|---|"
    )
    for name, out in took.items():
        print(f"| {name} | {out['s']:.3f} | {nothing / out['s']:.2f} | {LIMITS['edit'] if 'edited' in name else ''} |")


COLD = """\
zcpolicy 1
tool file_read(path: path) risk read
tool pay(amount: integer) risk high
tool shell(command: shell) risk high
agent a {
    allow file_read when args.path under "/w"
    allow pay when args.amount < 100
    allow shell when args.command runs only ["git status ...", "git log ...", "ls ...", "grep ..."]
    deny shell when args.command runs any ["rm ..."]
}
"""


def starts(folder, rounds):
    source = folder / "cold.zcpolicy"
    source.write_text(COLD)
    print("\n### Starts, in bare starts of the same Python\n")
    bare = wall([PYTHON, "-c", "pass"], rounds)
    print("| what | ms | bare starts | goal |\n|---|---|---|---|")
    print(f"| `python -c pass` | {bare:.1f} | 1.00 | |")

    def row(name, command, goal, status=(0,)):
        try:
            ms = wall(command, rounds, status)
        except (RuntimeError, OSError) as error:
            print(f"| {name} | – | {error} | {goal} |")
        else:
            print(f"| {name} | {ms:.1f} | {ms / bare:.2f} | {goal} |")
            return ms
        return None

    ms = row("`import zcpolicy`", [PYTHON, "-c", "import zcpolicy"], f"+{LIMITS['import']:.0f} ms")
    if ms is not None:
        print(f"| … over bare Python | {ms - bare:.1f} | | +{LIMITS['import']:.0f} ms |")
    compiled = str(folder / "cold.zcpc")
    subprocess.run([ZCPOLICY, "compile", str(source), "-o", compiled], capture_output=True, check=False)
    decide = [ZCPOLICY, "decide", compiled, "--agent", "a"]
    row("`zcpolicy decide`, number", [*decide, "pay", "--args", '{"amount": 5}'], LIMITS["decide"])
    row("`zcpolicy decide`, path", [*decide, "file_read", "--args", '{"path": "/w/a"}'], LIMITS["decide"])
    row(
        "`zcpolicy decide`, shell",
        [*decide, "shell", "--args", '{"command": "git status"}'],
        LIMITS["decide with shell"],
    )
    row(
        "`zcpolicy decide` from source",
        ["env", "-C", str(folder), ZCPOLICY, "decide", str(source), "--agent", "a", "pay", "--args", '{"amount": 5}'],
        "",
    )
    row("`zcpolicy check`", [ZCPOLICY, "check", str(source)], "")
    row("`zcpolicy --help`", [ZCPOLICY, "--help"], "")


SHELL = r"""
import json, statistics, sys, time
import policy_lang, zcpolicy
run = zcpolicy.Resolver(policy_lang.load(sys.argv[1])).resolve("a")
only = ("git log --oneline | grep fix; " * 10)[:198].rstrip("; |")
mixed = ("(cd /tmp && grep -r 'needle' src | wc -l); " * 10)[:200].rsplit(";", 1)[0]
def p50(tool, args):
    run.decide(tool, args)
    took = []
    for i in range(3000):
        t = time.perf_counter_ns(); run.decide(tool, args); took.append(time.perf_counter_ns() - t)
    return statistics.median(took) / 1e3
calls = [("shell", {"command": only}), ("shell", {"command": mixed}), ("file_read", {"path": "/w/src/deep/down/in/a/file.py"}), ("pay", {"amount": 5})]
print(json.dumps([[t, str(next(iter(a.values())))[:40], len(str(next(iter(a.values())))), run.decide(t, a).effect, p50(t, a)] for t, a in calls]))
"""


def typed(folder):
    print("\n### One decision on the typed kinds, p50\n")
    out = run(SHELL, str(folder / "cold.zcpolicy"))
    if isinstance(out, dict):
        print("-", out["error"])
        return
    print("| call | characters | answer | µs | goal |\n|---|---|---|---|---|")
    for tool, shown, size, effect, us in out:
        print(
            f"| `{tool}` `{shown.replace('|', chr(92) + '|')}…` | {size} | {effect} | {us:.1f} | {LIMITS['shell'] if tool == 'shell' else ''} |"
        )


MEMORY = r"""
import gc, json, pickle, sys
sys.path.insert(0, sys.argv[2])
def status(key):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key)) / 1024
open("/proc/self/clear_refs", "w").write("5")
base = status("VmRSS")
import zcpolicy
resolver = zcpolicy.Resolver(zcpolicy.load_compiled(sys.argv[1]))
loaded = status("VmHWM") - base
from workload import make
names = [f"agent-{i:04d}" for i in range(int(sys.argv[3]))]
runs = [resolver.resolve(n) for n in names]
for r in runs: r.decide("mail.read", {"text": "", "limit": 1})
gc.collect()
print(json.dumps({"loaded": loaded, "all agents built": status("VmHWM") - base}))
"""


def memory(folder, size):
    policy, _ = make(size)
    source = folder / "memory.zcpolicy"
    source.write_text(text(policy))
    compiled = folder / "memory.zcpc"
    made = run(
        "import policy_lang, sys, pathlib; pathlib.Path(sys.argv[2]).write_bytes(policy_lang.load(sys.argv[1]).dump()); print('{}')",
        str(source),
        str(compiled),
    )
    print(f"\n### Peak memory, {size}: {policy.n_rules:,} rules, {len(policy.agents):,} agents\n")
    out = made if "error" in made else run(MEMORY, str(compiled), str(HERE), str(len(policy.agents)))
    if "error" in out:
        print("-", out["error"])
        return
    print("| from the compiled file | MB above the interpreter | goal |\n|---|---|---|")
    for name, mb in out.items():
        print(f"| {name} | {mb:.1f} | {LIMITS['memory'] if name == 'loaded' else ''} |")


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    quick = ap.parse_args().quick
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = name
        starts(folder, 5 if quick else 21)
        typed(folder)
        from_text(folder, [1_000, 10_000] if quick else [10_000, 100_000])
        after_an_edit(folder, 5 if quick else 50)
        memory(folder, "M" if quick else "XL")


if __name__ == "__main__":
    main()

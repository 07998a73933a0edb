"""What only we can be measured on: text to resolver by stage, recompile, import, cold `decide`, shell, memory.

    ours.py [--quick]

Prints Markdown tables. Everything that can be is a ratio taken in this run: to a bare start of the same Python, to
half the size, to a compile from nothing. A measurement that cannot be made yet says why in its row.
"""

import argparse
import json
import os
import resource
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


os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a start is that of an installed package: compiled once


def against_goals(results):
    """The shared workload's results, as ratios of the same round: the medians over rounds."""
    rows = json.loads(results.read_text())["rows"]
    at = {(r["round"], r["size"], r["adapter"]): r for r in rows}
    rounds, sizes = (
        sorted({r["round"] for r in rows}),
        [s for s in ("S", "M", "L", "XL") if any(r["size"] == s for r in rows)],
    )
    ours, floor = "zcpolicy_compiled", "floor_hand"
    peers = {r["adapter"] for r in rows if not r["adapter"].startswith(("zcpolicy", "floor"))}

    def ratio(size, key, over):
        values = []
        for number in rounds:
            mine = at.get((number, size, ours))
            others = [at[number, size, name][key] for name in over if (number, size, name) in at]
            if mine and others:
                values.append(mine[key] / min(others))
        return statistics.median(values) if values else float("nan")

    print(
        "\n### Against the goals\n\n| ratio, `zcpolicy_compiled` to | "
        + " | ".join(sizes)
        + " | goal |\n|---"
        + "|---" * len(sizes)
        + "|---|"
    )
    for name, key, over, goal in (
        ("`floor_hand`, p50 of a decision", "p50_us", [floor], "3"),
        ("the fastest peer, p50 of a decision", "p50_us", peers, "0.2"),
        ("the peer that loads fastest, load", "load_ms", peers, "1 at XL"),
    ):
        print(f"| {name} | " + " | ".join(f"{ratio(size, key, over):.2f}" for size in sizes) + f" | {goal} |")
    growth = [
        at[n, sizes[-1], ours]["p50_us"] / at[n, sizes[0], ours]["p50_us"] for n in rounds if (n, sizes[-1], ours) in at
    ]
    print(f"\n{sizes[-1]} to {sizes[0]}, p50 of a decision: {statistics.median(growth):.2f} (goal 3).")


def run(code, *args):
    """The JSON that a fresh interpreter prints, or the last line of its error."""
    p = subprocess.run([PYTHON, "-c", code, *args], capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)
    if p.returncode:
        return {"error": (p.stderr.strip().splitlines() or ["?"])[-1][:160]}
    return json.loads(p.stdout.strip().splitlines()[-1])


def interleaved(commands, rounds):
    """name → (milliseconds, ratio to the first, the same ratio of processor time): medians over rounds, each in turn.

    `commands`: name → (command, exit status). Processor time is the steadier of the two on a busy machine.
    """
    took = {name: [] for name in commands}
    for command, _ in commands.values():
        subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    for _ in range(rounds):
        for name, (command, status) in commands.items():
            before, t = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            p = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
            clock, after = time.perf_counter() - t, resource.getrusage(resource.RUSAGE_CHILDREN)
            took[name].append((clock, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime))
            if p.returncode != status:
                raise SystemExit(f"{name}: exit {p.returncode}: {p.stderr.decode()[-200:]}")
    first = took[next(iter(commands))]

    def ratio(name, part):
        return statistics.median(one[part] / bare[part] for one, bare in zip(took[name], first, strict=True))

    return {
        name: (statistics.median(clock for clock, _ in took[name]) * 1e3, ratio(name, 0), ratio(name, 1))
        for name in took
    }


STAGES = r"""
import gc, json, sys, time
gc.freeze()
from policy_lang import parse, source
import policy_lang, zcpolicy
text = open(sys.argv[1]).read()
now = time.process_time
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
    print("\n### From text to resolver, seconds of processor time\n")
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
t = time.process_time()
policy_lang.load(sys.argv[1], cache=sys.argv[2])
print(json.dumps({"s": time.process_time() - t}))
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
    kept = str(tree / "kept")
    took = {"from nothing": run(EDIT, str(root), kept), "unchanged": run(EDIT, str(root), kept)}
    with (tree / "part7.zcpolicy").open("a") as stream:
        stream.write("# edited\n")
    took["one file edited"] = run(EDIT, str(root), kept)
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
tool fetch(url: url) risk low
agent a {
    autonomy full
    allow fetch when args.url.scheme == "https" and args.url.host in_domain "docs.example"
    allow file_read when args.path under "/w"
    allow pay when args.amount < 100
    allow shell when args.command runs only ["git status ...", "git log ...", "ls ...", "grep ..."]
    deny shell when args.command runs any ["rm ..."]
}
"""


def starts(folder, rounds):
    source, compiled = folder / "cold.zcpolicy", folder / "cold.zcpc"
    source.write_text(COLD)
    subprocess.run([ZCPOLICY, "compile", str(source), "-o", str(compiled)], capture_output=True, check=False)
    decide = [ZCPOLICY, "decide", str(compiled), "--agent", "a"]
    number = ["pay", "--args", '{"amount": 5}']
    commands = {
        "`python -c pass`": ([PYTHON, "-c", "pass"], 0),
        "`import zcpolicy`": ([PYTHON, "-c", "import zcpolicy"], 0),
        "`zcpolicy decide`, number": ([*decide, *number], 0),
        "`zcpolicy decide`, path": ([*decide, "file_read", "--args", '{"path": "/w/a"}'], 0),
        "`zcpolicy decide`, shell": ([*decide, "shell", "--args", '{"command": "git status"}'], 0),
        "`zcpolicy decide`, url": ([*decide, "fetch", "--args", '{"url": "https://docs.example/a"}'], 0),
        "`zcpolicy decide` from source": ([ZCPOLICY, "decide", str(source), "--agent", "a", *number], 0),
        "`zcpolicy check`": ([ZCPOLICY, "check", str(source)], 0),
        "`zcpolicy --help`": ([ZCPOLICY, "--help"], 0),
    }
    goals = {2: LIMITS["decide"], 3: LIMITS["decide"], 4: LIMITS["decide with shell"], 5: LIMITS["decide with shell"]}
    print("\n### Starts, in bare starts of the same Python\n")
    print("| what | ms | over bare, ms | bare starts | … of processor time | goal |\n|---|---|---|---|---|---|")
    bare = None
    for number_, (name, (ms, ratio, cpu)) in enumerate(interleaved(commands, rounds).items()):
        bare = ms if bare is None else bare
        goal = f"+{LIMITS['import']:.0f} ms" if number_ == 1 else goals.get(number_, "")
        print(f"| {name} | {ms:.1f} | {ms - bare:.1f} | {ratio:.2f} | {cpu:.2f} | {goal} |")


TYPED = r"""
import json, statistics, sys, time
import policy_lang, zcpolicy
run = zcpolicy.Resolver(policy_lang.load(sys.argv[1])).resolve("a", session=zcpolicy.Session(cwd="/w"))
plain = ("git log --oneline | grep fix; " * 10)[:192].rstrip("; |") + " %05d"
mixed = ("(cd /tmp && grep -r 'needle' src | wc -l); " * 10)[:170].rsplit(";", 1)[0] + "; ls %05d"
calls = {
    "shell, closed subset": ("shell", "command", plain),
    "shell, the whole parser": ("shell", "command", mixed),
    "path": ("file_read", "path", "/w/src/deep/down/in/a/file%05d.py"),
    "url": ("fetch", "url", "https://api.docs.example/v1/things/%05d?q=a"),
}
out = []
for name, (tool, argument, text) in calls.items():
    took = []
    for i in range(4000):  # every call has another text: nothing is answered from a memory of texts
        arguments = {argument: text % i}
        t = time.perf_counter_ns()
        decision = run.decide(tool, arguments)
        took.append(time.perf_counter_ns() - t)
    out.append([name, text[:44], len(text % 0), decision.effect, statistics.median(took[500:]) / 1e3])
print(json.dumps(out))
"""


def typed(folder):
    print("\n### One decision on the typed kinds, p50 (the shell agent has a `runs only` and a `runs any` rule)\n")
    out = run(TYPED, str(folder / "cold.zcpolicy"))
    if isinstance(out, dict):
        print("-", out["error"])
        return
    print("| kind | begins | characters | answer | µs | goal |\n|---|---|---|---|---|---|")
    for name, shown, size, effect, us in out:
        goal = LIMITS["shell"] if "shell" in name else ""
        print(f"| {name} | `{shown.replace('|', chr(92) + '|')}` | {size} | {effect} | {us:.1f} | {goal} |")


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
    if (HERE / "results.json").exists():
        against_goals(HERE / "results.json")
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

"""One decision of the engine beside the hand-written floor, in one process and one run.

    python bench/decide.py [S M L XL]

The policy is `workload.make(size)` written down as compiled data (no compiler), so that this measures the engine
alone: load of the compiled bytes, first and repeated decisions, arguments checked against a schema, a `Decision` with
its matching rules. Every answer is compared with the workload's reference first.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "engine")]

import workload  # noqa: E402 - beside this file
from peers import floor_hand  # noqa: E402

from zcpolicy import Program, Resolver, Session, load_compiled  # noqa: E402
from zcpolicy.program import pack  # noqa: E402

STRING = {"kind": "string"}
INTEGER = {"kind": "integer"}
ARGUMENTS = {
    "shell": {"command": STRING, "timeout": INTEGER},
    "fs.write": {"path": STRING, "content": STRING},
    "fs.read": {"path": STRING, "content": STRING},
    "http.get": {"host": STRING, "path": STRING},
    "http.post": {"host": STRING, "path": STRING},
    "payments.send": {"amount": INTEGER, "to": STRING},
    "db.query": {"sql": STRING},
}
PLAIN = {"text": STRING, "limit": INTEGER}


def name_of(tool: str) -> str | tuple[str, str]:
    server, mark, name = tool.partition("__")
    return (server, name) if mark else tool


def tools() -> list[dict[str, Any]]:
    names = [*workload.NATIVE, *ARGUMENTS] + [(s, v) for s in workload.SERVERS for v in workload._MCP_VERBS]
    names.sort(key=lambda name: ("", name) if isinstance(name, str) else name)
    return [
        {
            "server": None if isinstance(name, str) else name[0],
            "name": name if isinstance(name, str) else name[1],
            "class": "medium",
            "schema": {
                "kind": "object",
                "extra": "deny",
                "fields": ARGUMENTS.get(name, PLAIN) if isinstance(name, str) else PLAIN,
                "required": sorted(ARGUMENTS.get(name, {})) if isinstance(name, str) else [],
            },
        }
        for name in names
    ]


def condition(cond: workload.Cond, grants: bool) -> dict[str, Any]:
    def leaf(test: str, right: list[Any], grants: bool = grants) -> dict[str, Any]:
        return {"test": test, "left": ["args", cond.arg], "right": right, "grants": grants}

    if cond.op == "first_word_in":
        return leaf("like", [pattern for word in cond.value for pattern in (word, f"{word} *")])
    if cond.op == "under":
        return leaf("like", [f"{cond.value}*"])
    if cond.op == "not_suffix":
        return {"not": leaf("like", [f"*{cond.value}"], not grants)}
    if cond.op == "host_in":
        return leaf("in_domain", list(cond.value))
    return leaf({"le": "<=", "gt": ">"}[cond.op], [{"n": str(cond.value)}])


def data_of(policy: workload.Policy) -> tuple[Any, Any]:
    catalogue = tools()
    ids = {t["name"] if t["server"] is None else (t["server"], t["name"]): i for i, t in enumerate(catalogue)}
    everything = pack({i for name, i in ids.items() if isinstance(name, tuple)})
    agents: dict[str, Any] = {}
    origins: dict[str, Any] = {}
    for agent in policy.agents:
        rules = []
        places = []
        for number, rule in enumerate(agent.rules):
            if rule.tool.endswith("__*"):
                bound = {i for name, i in ids.items() if isinstance(name, tuple) and name[0] == rule.tool[:-3]}
            else:
                bound = {ids[name_of(rule.tool)]}
            one: dict[str, Any] = {"effect": rule.effect, "tools": pack(bound)}
            parts = [condition(cond, rule.effect == "allow") for cond in rule.conds]
            if parts:
                one["if"] = parts[0] if len(parts) == 1 else {"all": parts}
            place = [["bench.zcpolicy", str(number), f"{rule.effect} {rule.tool}"]]
            rules.append(one)
            places.append(place)
            if rule.effect == "ask":  # in the workload an ask grants as well
                granting = [condition(cond, True) for cond in rule.conds]
                also = {**one, "effect": "allow", "approval": True}
                rules.append({**also, "if": granting[0]} if granting else also)
                places.append(place)
        body = {
            "kind": "agent", "name": agent.name, "rules": rules,
            "connect": {"servers": list(workload.SERVERS), "tools": everything},
            "limits": [
                {
                    "amount": str(agent.budget), "unit": "calls", "pot": f"agent:{agent.name}",
                    "window": {"kind": "rolling", "seconds": "3600"},
                }
            ],
        }  # fmt: skip
        agents[agent.name] = {"body": body, "narrows": None}
        origins[agent.name] = {"rules": places}
    program = {
        "semantics": "1", "tools": catalogue, "servers": sorted(workload.SERVERS), "labels": [], "scopes": [],
        "context": {}, "agents": agents, "ceiling": {"kind": "ceiling", "name": "ceiling"}, "skills": {},
    }  # fmt: skip
    return program, {"agents": origins, "ceiling": {}, "skills": {}}


def p50(decide: Any, requests: list[Any], rounds: int) -> float:
    clock = time.perf_counter_ns
    over = median([-(clock() - clock()) for _ in range(5001)])
    found = []
    for _ in range(rounds):
        for request in requests:
            begin = clock()
            decide(request)
            found.append(clock() - begin - over)
    return median(found) / 1e3


def measure(size: str) -> None:
    policy, requests = workload.make(size)
    program, origins = data_of(policy)
    compiled = Program.build(program, origins).dump()
    floor = floor_hand.load(floor_hand.source(policy))
    del program, origins
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    resolver = Resolver(load_compiled(compiled))
    load = (time.perf_counter() - begin) * 1e3
    session = Session(interactive=True)
    runs: dict[str, Any] = {}
    calls = [(r.agent, name_of(r.tool), r.args) for r in requests]

    def ours(call: Any) -> Any:
        agent, tool, args = call
        run = runs.get(agent)
        if run is None:
            run = runs[agent] = resolver.resolve(agent, session=session)
        return run.decide(tool, args).effect

    begin = time.perf_counter()
    for call, request in zip(calls, requests, strict=True):
        if ours(call) != workload.reference(policy, request):
            raise SystemExit(f"{size}: {request} is {ours(call)}, not {workload.reference(policy, request)}")
    first = (time.perf_counter() - begin) / len(calls) * 1e6
    gc.collect()
    rounds = [(p50(lambda r: floor_hand.decide(floor, r), requests, 5), p50(ours, calls, 5)) for _ in range(5)]
    hand, mine = (median(column) for column in zip(*rounds, strict=True))
    ratio = median([b / a for a, b in rounds])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{size:2}  floor {hand:5.2f} µs  engine {mine:5.2f} µs  ratio {ratio:4.2f}  first {first:6.1f} µs"
        f"  load {load:6.1f} ms  file {len(compiled) / 1e6:5.1f} MB  peak +{grown:5.1f} MB",
        flush=True,
    )


if __name__ == "__main__":
    for size in sys.argv[1:] or ["S", "M", "L", "XL"]:
        measure(size)

"""The workload as zcpolicy source text.

The workload's `ask` also grants, ours never does: it becomes `allow … with approval`, and where another rule of the
agent allows the same tool, `allow` and `ask` of the same condition. Tools have the spelling of the requests, so a
call's tool goes to the engine as it comes. Arguments are plain strings, tested with `like` and `in_domain`.
"""

from workload import _MCP_VERBS, NATIVE, SERVERS, tool_matches

PLAIN = """\
tool shell(command: string, timeout?: integer) risk high
tool "fs.read"(path: string, content?: string) risk read
tool "fs.write"(path: string, content: string) risk medium
tool "http.get"(host: string, path: string) risk low
tool "http.post"(host: string, path: string) risk medium
tool "payments.send"(amount: integer, to: string) risk high
tool "db.query"(sql: string) risk medium
"""
TYPED = PLAIN.replace("command: string", "command: shell").replace("path: string, content", "path: path, content")


def _list(values):
    return "[" + ", ".join(f'"{v}"' for v in values) + "]"


def _plain(cond):
    op, arg, value = cond
    if op == "first_word_in":
        return f"args.{arg} like " + _list(p for word in value for p in (f"{word} *", word))
    if op == "under":
        return f'args.{arg} like "{value}*"'
    if op == "not_suffix":
        return f'not args.{arg} like "*{value}"'
    if op == "host_in":
        return f"args.{arg} in_domain {_list(value)}"
    return f"args.{arg} {'<=' if op == 'le' else '>'} {value}"


def _typed(cond, effect):
    op, arg, value = cond
    if op == "first_word_in" and arg == "command":
        return f"args.{arg} runs {'only' if effect == 'allow' else 'any'} " + _list(f"{word} ..." for word in value)
    if op == "under":
        return f'args.{arg} under "{value.rstrip("/")}"'
    if op == "not_suffix":
        return f'not args.{arg} glob "**{value}"'
    return _plain(cond)


def _tool(name):
    return f'"{name}"' if "." in name else name


def _rules(agent, typed):
    allowed = [r.tool for r in agent.rules if r.effect == "allow"]
    for rule in agent.rules:
        tests = [_typed(c, rule.effect) if typed else _plain(c) for c in rule.conds]
        when = f" when {' and '.join(tests)}" if tests else ""
        tool = _tool(rule.tool)
        if rule.effect != "ask":
            yield f"{rule.effect} {tool}{when}"
        elif any(tool_matches(other, rule.tool) for other in allowed):
            yield f"allow {tool}{when}"
            yield f"ask {tool}{when}"
        else:
            yield f"allow {tool} with approval{when}"


def tools(*, typed=False):
    """The `tool` statements of everything the requests can name, as a host would register them."""
    names = [f'"{name}"' for name in NATIVE] + [f"{server}__{verb}" for server in SERVERS for verb in _MCP_VERBS]
    simple = "".join(f"tool {name}(text: string, limit: integer) risk medium\n" for name in names)
    return (TYPED if typed else PLAIN) + simple


def agents(policy, *, typed=False):
    lines = []
    for agent in policy.agents:
        lines.append(f"agent {agent.name} {{")
        lines += [f"    {line}" for line in _rules(agent, typed)]
        lines += [f"    limit {agent.budget} calls per hour", "}"]
    return "\n".join(lines) + "\n"


def text(policy, *, typed=False):
    return "zcpolicy 1\n\n" + tools(typed=typed) + "\n" + agents(policy, typed=typed)

"""Typed conditions over the parameters of a tool, printed as the language writes them.

In: the tool that the rule is about, whether the place stands for granting. Out: text.
The literals come from small pools; the calls of `calls.py` come from the same neighbourhood.
"""

from hypothesis import strategies as st

from tests.strategies.catalogues import Param, Tool

PREFIXES = ('"/w"', '"/w/app"', '"/etc"', '["/w/app", "/etc"]', "roots")
GLOBS = ('"**/.env"', '"/w/**"', '"**/*.pem"', '["**/.env", "**/.ssh/**"]', "secrets")
LIKES = ('"a*"', '"*c"', '"?bc"', '["x", "a*"]', '"*@x.example"')
REGEXES = ('r"a.*"', 'r"[a-c]+"', 'r"(x|abc)"')
DOMAINS = ('"x.example"', '["x.example", "y.example"]', '"api.x.example"')
NETS = ('"10.0.0.0/8"', '["127.0.0.0/8", "169.254.0.0/16"]')
PATTERNS = ('["git status ...", "ls ..."]', '["ls"]', '["git push ...", "rm ..."]', '["cat ..."]', '"git ..."')
STRINGS = ('"abc"', '"x"', '"a@x.example"')
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@st.composite
def conditions(draw: st.DrawFn, tool: Tool, grants: bool, wide: bool, depth: int = 2) -> str:
    """One condition that may stand where `grants` says, in a rule about `tool`, and others too where it is `wide`."""
    shape = draw(st.sampled_from(("leaf", "leaf", "leaf", "not", "and", "or"))) if depth else "leaf"
    if shape == "not":
        return f"not {_wrapped(draw(conditions(tool, not grants, wide, depth - 1)))}"
    if shape in ("and", "or"):
        parts = draw(st.lists(conditions(tool, grants, wide, depth - 1), min_size=2, max_size=3))
        if any(one is not other and one in other for one in parts for other in parts):
            return parts[0]  # most likely a contradiction
        return f" {shape} ".join(map(_wrapped, parts))
    return draw(leaves(tool, grants, wide))


def _wrapped(text: str) -> str:
    return f"({text})" if " and " in text or " or " in text else text


@st.composite
def leaves(draw: st.DrawFn, tool: Tool, grants: bool, wide: bool) -> str:
    """One test."""
    optional = [param for param in tool.params if (param.optional and param.default is None) or param.nullable]
    choices = ["param"] * 5 if tool.params else []
    choices += ["has"] if optional else []
    choices += ["fact", "mentions", *(["tool"] if wide else [])]
    if not grants:
        choices += ["marked"]
    match draw(st.sampled_from(choices)):
        case "param":
            return draw(param_tests(draw(st.sampled_from(tool.params)), grants))
        case "has":
            return f"has args.{draw(st.sampled_from(optional)).name}"
        case "marked":
            return f"marked {draw(st.sampled_from(('dirty', 'private')))}"
        case "mentions":
            return draw(mention_tests())
        case "tool":
            return draw(tool_tests(tool))
        case _:
            return draw(st.sampled_from(FACTS))


FACTS = (
    'session.role == "ops"', 'session.role != "ops"', "session.tier >= 2", "session.tier in [1, 2]",
    'session.cwd under "/w"', "session.interactive", 'agent.name == "a0"', "agent.depth >= 1", 'session.role like "o*"',
    'session.home == "/w"', 'session.home under "/w"',
)  # fmt: skip


@st.composite
def tool_tests(draw: st.DrawFn, tool: Tool) -> str:
    """Tests of what the catalogue says of the tool."""
    tests = [
        'tool.risk == "high"',
        'tool.risk in ["read", "low"]',
        f'tool.name == "{tool.name}"',
        f'tool.name != "{tool.name}"',
    ]
    if tool.server is not None:
        tests += [
            f'tool.server == "{tool.server}"',
            "tool.read_only",
            "not tool.destructive",
            "tool.open_world == false",
        ]
    return draw(st.sampled_from(tests))


@st.composite
def mention_tests(draw: st.DrawFn) -> str:
    """Tests of `paths` and `urls`."""
    each = draw(st.sampled_from(("some", "every")))
    left, tests = draw(
        st.sampled_from(
            (
                ("paths", [f"under {one}" for one in PREFIXES] + [f"glob {one}" for one in GLOBS] + ['== "/w/.env"']),
                ("urls.host", [f"in_domain {one}" for one in DOMAINS] + [f"in_net {one}" for one in NETS]),
                ("urls.scheme", ['== "https"', '!= "http"']),
                ("urls", ['== "https://x.example/d"']),
            )
        )
    )
    return f"{each} {left} {draw(st.sampled_from(tests))}"


@st.composite
def param_tests(draw: st.DrawFn, param: Param, grants: bool) -> str:
    """A test that fits the kind of a parameter."""
    left = f"args.{param.name}"
    if param.kind.startswith("list<"):
        item = Param(param.name, param.kind[5:-1], reviewed=param.reviewed)
        quantified = f"{draw(st.sampled_from(('some', 'every')))} {draw(param_tests(item, grants))}"
        return (
            draw(st.sampled_from([quantified, quantified, f'{left} contains "abc"']))
            if item.kind == "string"
            else quantified
        )
    if param.kind == "object":
        if param.fields:
            field = draw(st.sampled_from(param.fields))
            return draw(param_tests(Param(f"{param.name}.{field.name}", field.kind, reviewed=False), grants))
        return draw(st.sampled_from((f"{left}.n == 2", f"{left}.x.y == 2", f'{left}.text like "a*"', f"has {left}.n")))
    return draw(st.sampled_from(_of_kind(param, grants, left)))


def _of_kind(param: Param, grants: bool, left: str) -> list[str]:
    match param.kind:
        case "integer" | "number":
            numbers = ("2", "3", "-1") if param.kind == "integer" else ("2", "2.5", "-1")
            tests = [f"{left} {op} {number}" for op in COMPARISONS for number in numbers]
            return [*tests, f"{left} in [1, 2, 30]", f"{left} not in [2, 3]"]
        case "boolean":
            return [left, f"{left} == false", f"{left} != true"]
        case "path":
            tests = [f"{left} under {one}" for one in PREFIXES] + [f"{left} glob {one}" for one in GLOBS]
            return [*tests, f'{left} == "/w/.env"', f'{left} != "/w/.env"']
        case "url":
            tests = [f"{left}.host in_domain {one}" for one in DOMAINS] + [f"{left}.host in_net {one}" for one in NETS]
            tests += [f'{left}.scheme == "https"', f"{left}.port == 443", f"{left}.port > 80"]
            return [*tests, f'{left} == "https://x.example/d"', f'{left}.host in ["x.example", "y.example"]']
        case "shell":
            return [f"{left} runs {'only' if grants else 'any'} {one}" for one in PATTERNS]
        case "command":
            return [f"{left} runs {'only' if grants else 'any'} {PATTERNS[0]}", f"has {left}"]
        case "string":
            tests = [f"{left} like {one}" for one in LIKES] + [f"{left} matches {one}" for one in REGEXES]
            tests += [f"{left} {op} {one}" for op in ("==", "!=") for one in STRINGS]
            tests += [f"{left} in {one}" for one in ("names", '["abc", "x"]')] + [
                f'{left} not in ["abc"]',
                f'{left} contains "b"',
            ]
            return [*tests, f"{left} in_domain {DOMAINS[0]}", f"{left} == session.role", f"{left} in_net {NETS[0]}"]
        case _:
            return [f"{left} == 2", f"has {left}", f'{left} == "abc"']

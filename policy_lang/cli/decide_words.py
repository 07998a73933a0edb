"""`decide` as click sees it: for completion, and where other words stand before it.

In: the option table of `decide`. Out: a command with the same options, which hands them on.
"""

import click

from policy_lang.cli.decide import ABOUT, EXAMPLE, OPTIONS, run


def _handed_on(policy: str, tool: str, **said: str | tuple[str, ...] | bool | None) -> int:
    """Written back as words, which `decide` reads itself."""
    words: list[str] = []
    for name, (kind, _, _) in OPTIONS.items():
        value = said.get(name.removeprefix("--").replace("-", "_"))
        if kind == "flag":
            words += [name] * bool(value)
        else:
            values = value if isinstance(value, tuple) else (value,)
            words += [f"{name}={one}" for one in values if one is not None]
    return run([*words, "--", policy, tool])


def _option(name: str) -> click.Option:
    kind, metavar, text = OPTIONS[name]
    if name == "--format":
        return click.Option([name], type=click.Choice(metavar.split("|")), help=text)
    if kind == "flag":
        return click.Option([name], is_flag=True, help=text)
    path = click.Path() if name in ("--layer", "--ledger") else None
    return click.Option([name], metavar=metavar, multiple=kind == "many", type=path, help=text)


command = click.Command(
    "decide",
    params=[
        click.Argument(["policy"], type=click.Path()),
        click.Argument(["tool"]),
        *(_option(name) for name in OPTIONS if name != "--help"),
    ],
    callback=_handed_on,
    help=ABOUT,
    epilog=f"Example: {EXAMPLE}",
)

"""`zcpolicy completion SHELL`: what makes the shell complete our commands and options.

In: the name of a shell. Out: a script for its start-up file.
"""

import click

from policy_lang.cli.options import format_option
from policy_lang.render.as_json import json_text


@click.command("completion", epilog='Example: eval "$(zcpolicy completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@format_option()
def command(shell: str, style: str) -> int:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from policy_lang.cli.app import COMPLETE_VARIABLE, app

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    script = made(app, {}, "zcpolicy", COMPLETE_VARIABLE)
    text = script.source_template % script.source_vars()
    print(json_text({"shell": shell, "script": text}) if style == "json" else text, end="")
    return 0

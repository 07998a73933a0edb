"""`hook` as click sees it: for completion, and where other words stand before it.

In: words. Out: what `hook` makes of them; it reads them itself.
"""

import click

from policy_lang.cli.hook import ABOUT, EXAMPLE, run


def _handed_on(words: tuple[str, ...]) -> int:
    return run(words)


command = click.Command(
    "hook",
    params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
    callback=_handed_on,
    help=ABOUT,
    epilog=f"Example: {EXAMPLE}",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)

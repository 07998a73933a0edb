"""`zcpolicy explain CODE`: the page of a diagnostic.

In: a code. Out: its page; status 2 for a code that does not exist.
"""

import click

from policy_lang import explain as pages
from policy_lang.cli.errors import CommandError
from policy_lang.cli.options import format_option
from policy_lang.render.as_json import json_text


@click.command("explain", epilog="Example: zcpolicy explain ZC2101")
@click.argument("code")
@format_option()
def command(code: str, style: str) -> int:
    """Print the page of a diagnostic: what to avoid, what to prefer, why."""
    page = pages.explain(code)
    if page is None:
        near = pages.nearest(code)
        raise CommandError(f"there is no code `{code}`" + (f"; did you mean `{near}`?" if near else ""))
    if style == "json":
        print(json_text({**page.code._asdict(), "page": page.text}), end="")
    else:
        print(page.text.rstrip())
    return 0

"""`zcpolicy fmt PATH…`: write policies in the one layout.

In: policy files. Out: the same files, rewritten in place, or with `--check` the names of those that would change;
status 1 where one would change or does not parse.
"""

from pathlib import Path

import click

from policy_lang.cli.errors import CommandError
from policy_lang.cli.loading import complain
from policy_lang.cli.options import format_option, paths_argument, policies, progress
from policy_lang.diagnostics import Diagnostic
from policy_lang.files import read_source
from policy_lang.fixes import rewrite
from policy_lang.format import format_source
from policy_lang.render import diagnostic_json
from policy_lang.render.as_json import json_text
from policy_lang.render.visible import visible


@click.command("fmt", epilog="Example: zcpolicy fmt --check policies/")
@paths_argument
@click.option("--check", is_flag=True, help="Write nothing; say what would change.")
@format_option()
def command(paths: tuple[Path, ...], check: bool, style: str) -> int:
    """Write policies in the one layout; comments stay, and what a policy means never changes."""
    changed: list[str] = []
    found: list[Diagnostic] = []
    for path in progress(policies(paths), shown=style == "human"):
        differs, trouble = _formatted(path, write=not check)
        found += trouble
        changed += [str(path)] if differs else []
    if style == "json":
        findings = [diagnostic_json(finding) for finding in found]
        print(json_text({"changed": changed, "written": not check, "diagnostics": findings}), end="")
    else:
        complain(found, style)
        verb = "would change" if check else "rewritten"
        print("".join(f"{visible(name)}: {verb}\n" for name in changed), end="")
    return int(bool(found) or (check and bool(changed)))


def _formatted(path: Path, *, write: bool) -> tuple[bool, tuple[Diagnostic, ...]]:
    """Whether the layout differs, and why there is none; the file is written where that is wanted."""
    source = read_source(path)
    if isinstance(source, Diagnostic):
        return False, (source,)
    text, found = format_source(source)
    if text is None:
        return False, found
    if text == source.text:
        return False, ()
    if write:
        try:
            rewrite(path, source.text, text)
        except OSError as error:
            raise CommandError(f"`{path}` cannot be written: {error.strerror or error}") from None
    return True, ()

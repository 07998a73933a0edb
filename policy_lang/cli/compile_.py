"""`zcpolicy compile POLICY`: write the compiled form, `NAME.zcpc`.

In: a policy file. Out: one file, replaced in one step; status 1 where the policy has errors, and then nothing is written.
"""

from pathlib import Path

import click

from policy_lang.cli.errors import CommandError
from policy_lang.cli.loading import complain, existing
from policy_lang.cli.options import cache_option, compiling, format_option, layer_option, policy_argument
from policy_lang.fixes import replace_bytes
from policy_lang.render import diagnostic_json
from policy_lang.render.as_json import json_text


@click.command("compile", epilog="Example: zcpolicy compile team.zcpolicy -o /etc/agents/team.zcpc")
@policy_argument
@layer_option
@cache_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The file to write. [default: NAME.zcpc beside it]"
)
@format_option()
def command(policy: Path, layers: tuple[Path, ...], cache_folder: Path | None, output: Path | None, style: str) -> int:
    """Write a policy in its compiled form, which loads without parser and checker."""
    target = output or policy.with_suffix(".zcpc")
    if target.suffix == ".zcpolicy":
        raise CommandError(f"`{target}` is named like a policy, not like a compiled one (`.zcpc`)")
    made = compiling(layers, cache_folder)(existing(policy))
    if style != "json" and made.diagnostics:
        complain(made.diagnostics, style)
    if made.program is not None:
        try:
            replace_bytes(target.resolve(), made.program.dump())
        except OSError as error:
            raise CommandError(f"`{target}` cannot be written: {error.strerror or error}") from None
    if style == "json":
        found = [diagnostic_json(finding) for finding in made.diagnostics]
        digest = None if made.program is None else made.program.digest
        print(
            json_text({"file": None if digest is None else str(target), "digest": digest, "diagnostics": found}), end=""
        )
    elif made.program is not None:
        print(f"{target} {made.program.digest}")
    return int(made.program is None)

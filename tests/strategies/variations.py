"""The same policy written otherwise, and policies with one restriction more.

In: a `Sketch`. Out: texts, files, sketches.
"""

from dataclasses import replace

from hypothesis import strategies as st

from tests.strategies.policies import Block, Sketch, restrictions

REPEATABLE = ("allow", "ask", "deny", "auto_approve", "mark", "only", "require", "limit", "autonomy")


@st.composite
def reordered(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """Declarations, bodies and the statements in them, in another order."""
    blocks = tuple(replace(block, statements=tuple(draw(st.permutations(block.statements)))) for block in sketch.blocks)
    return replace(
        sketch, lines=tuple(draw(st.permutations(sketch.lines))), blocks=tuple(draw(st.permutations(blocks)))
    )


@st.composite
def repeated(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """Some statements stand twice, and a ceiling too."""
    blocks: list[Block] = []
    for block in sketch.blocks:
        again = [one for one in block.statements if one.split()[0] in REPEATABLE and draw(st.booleans())]
        blocks.append(replace(block, statements=(*block.statements, *again)))
        if block.kind == "ceiling" and draw(st.booleans()):
            blocks.append(block)
    return replace(sketch, blocks=tuple(blocks))


@st.composite
def respelled(draw: st.DrawFn, sketch: Sketch) -> str:
    """Other blanks, comments, line breaks; `;` between statements."""
    between = draw(st.sampled_from(("\n", "\n\n", ";\n", "   # a comment\n", "\r\n", "\n\t")))
    lines = [sketch.lines[0], *(draw(st.sampled_from(("", "# why\n", "  "))) + line for line in sketch.lines[1:])]
    bodies: list[str] = []
    for block in sketch.blocks:
        if draw(st.booleans()):
            bodies.append(f"{block.head} {{ {'; '.join(block.statements)} }}")
        else:
            bodies.append(f"{block.head}\t{{ # body\n  {between.join(map(_broken, block.statements))}\n}}")
    return (
        "zcpolicy 1 # edition\n"
        + between.join(lines)
        + "\n"
        + "\n".join(bodies)
        + draw(st.sampled_from(("", "\n", "\n# end")))
    )


def _broken(statement: str) -> str:
    """Over several lines, where the language lets a statement go on."""
    for word in (" when ", " unless ", " because ", " except ", " and ", " or "):
        statement = statement.replace(word, f"\n        {word.strip()} ")
    return statement


@st.composite
def split(draw: st.DrawFn, sketch: Sketch) -> tuple[str, str]:
    """The text of a root file and of `part.zcpolicy`, which it imports: a beginning of the policy stands there."""
    count = draw(st.integers(0, len(sketch.blocks)))
    part = "zcpolicy 1\n" + "\n".join(sketch.lines) + "\n" + "".join(block.text() for block in sketch.blocks[:count])
    root = 'zcpolicy 1\nimport "part.zcpolicy"\n' + "".join(block.text() for block in sketch.blocks[count:])
    return root, part


PREFIXED = ("secrets", "roots", "names", "few", "all_servers", "few_tools", "p0", "p1")


@st.composite
def split_under_a_prefix(draw: st.DrawFn, sketch: Sketch) -> tuple[str, str]:
    """The same, with lets, groups, bundles and profiles imported `as lib`."""
    moved = [block for block in sketch.blocks if block.kind == "profile"]
    kept = [block for block in sketch.blocks if block.kind != "profile"]
    part = "zcpolicy 1\n" + "\n".join(sketch.lines) + "\n" + "".join(block.text() for block in moved)
    root = "".join(block.text() for block in draw(st.permutations(kept)))
    return 'zcpolicy 1\nimport "part.zcpolicy" as lib\n' + _prefixed(root), part


def _prefixed(text: str) -> str:
    import re

    names = "|".join(PREFIXED)
    outside_strings = re.split(r'("(?:[^"\\]|\\.)*")', text)
    swapped = [
        re.sub(rf"(?<![\w.-])({names})(?![\w-])", r"lib.\1", one) if number % 2 == 0 else one
        for number, one in enumerate(outside_strings)
    ]
    return "".join(swapped)


@st.composite
def restricted(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """With one restriction more, in some body or in a new ceiling."""
    statement = draw(restrictions(sketch.shelf, sketch.shelf.tools))
    places = [block for block in sketch.blocks if block.kind != "narrows"]
    block = draw(st.sampled_from([*places, None]))
    if block is None:
        return replace(sketch, blocks=(*sketch.blocks, Block("ceiling", "ceiling", (statement,))))
    return sketch.swap(block, block.plus(statement))


@st.composite
def layers(draw: st.DrawFn, sketch: Sketch) -> str:
    """A layer above the policy, which grants agents and has a ceiling."""
    statements = draw(st.lists(restrictions(sketch.shelf, sketch.shelf.tools), min_size=1, max_size=2))
    known = [line for line in sketch.lines if line.startswith(("label", "context", "let"))]
    return (
        "zcpolicy 1\nagents allowed\n" + "\n".join(known) + "\n" + Block("ceiling", "ceiling", tuple(statements)).text()
    )

"""A matrix as Markdown, JSON or HTML. Nothing in it was typed by hand, and nothing in it changes but with what ran.

In: a `Matrix`. Out: text.
"""

from collections.abc import Callable, Iterator, Mapping
from html import escape
from itertools import groupby
from json import dumps
from typing import Any, Final

from zcpolicy.exact import is_list, is_object
from zcpolicy.parity.matrix import Cell, Matrix, Status
from zcpolicy.parity.settings.setting import Setting

Json = Any

MAX_SHOWN: Final = 12
"""Things of one kind that a cell names; a path that does not end does the same over and over."""

WORDS: Final[Mapping[Status, str]] = {
    "enforced": "yes",
    "partly": "partly",
    "not applied": "**no**",
    "crashed": "**crashed**",
}


def markdown(matrix: Matrix) -> str:
    """For people: a table for each area, then what is not as it should be."""
    return "\n".join(_markdown(matrix)) + "\n"


def _markdown(matrix: Matrix) -> Iterator[str]:
    yield "# Parity: which path enforces which setting"
    yield ""
    yield "Made by `zcpolicy parity --format markdown` from drives of every path; a test holds it to what its run produces."
    yield "How the drives work, and how to add a path: [parity.md](parity.md)."
    yield ""
    yield f"{summary(matrix)}. What a path is shown to do with a setting stands in the second column, without it in the"
    yield "third; what shows it on path P is the test whose id ends in `[P-SETTING]`."
    for area, settings in groupby(matrix.settings, key=lambda setting: setting.area):
        yield ""
        yield f"## {area[:1].upper()}{area[1:]}"
        yield ""
        yield f"| setting | with it | without it | {' | '.join(map(_inert, matrix.paths))} |"
        yield "|---|---|---|" + "---|" * len(matrix.paths)
        for setting in settings:
            words = [WORDS[cell.status] for cell in matrix.row(setting.name)]
            shown = " | ".join((_inert(_with_it(setting)), _inert(brief(setting.otherwise)), *words))
            yield f"| {setting.name} | {shown} |"
    wrong = [cell for cell in matrix.cells if cell.status != "enforced"]
    if wrong:
        yield ""
        yield "## Not as it should be"
        yield ""
        for cell in wrong:
            said = f"{'' if cell.status == 'crashed' else 'is '}{cell.status}: {_inert(cell.note)}; seen: {_inert(brief(cell.seen))}"
            yield f"- `{cell.setting}` on `{_inert(cell.path)}` {said}"


def _with_it(setting: Setting) -> str:
    """What is seen with a setting; where each turn has a session of its own, if that is another thing."""
    found = brief(setting.expect)
    return found if setting.apart is None else f"{found}; each turn by itself: {brief(setting.apart)}"


def summary(matrix: Matrix) -> str:
    """One line: how many of how many."""
    wrong = [f"{matrix.count(status)} {status}" for status in WORDS if status != "enforced" and matrix.count(status)]
    said = f"{_counted(len(matrix.settings), 'setting')} on {_counted(len(matrix.paths), 'path')}: "
    return said + (", ".join([f"{matrix.count('enforced')} enforced", *wrong]) if wrong else "all enforced")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def brief(parts: Mapping[str, Json]) -> str:
    """What was seen, in words without blanks at either end: `ran: look, pick; asked: nobody`."""
    return "; ".join(f"{part}: {_value(part, value)}" for part, value in parts.items())


def _value(part: str, value: Json) -> str:
    nothing = {"asked": "nobody", "by": "nobody"}
    if is_list(value):
        words = [_word(one) for one in value[:MAX_SHOWN]] + ["…"] * (len(value) > MAX_SHOWN)
        return ", ".join(words) or nothing.get(part, "nothing")
    return _word(value)


def _word(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_object(value):
        return " ".join(f"{name}={_plain(str(one))}" for name, one in value.items()) or "-"
    return _plain(str(value))


def _plain(text: str) -> str:
    """Text of a host, in one line."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _inert(text: str) -> str:
    """The same where Markdown would read it."""
    return _plain(text).replace("|", "/").replace("`", "'").replace("<", "&lt;")


def as_json(matrix: Matrix) -> dict[str, Json]:
    """`{"paths", "settings": [{"setting", "area", "cells": [{"path", "status", "expected", "seen", "note", "drive"}]}],
    "summary": {"cells", "enforced", "partly", "not_applied", "crashed"}}`.
    """
    return {
        "paths": list(matrix.paths),
        "settings": [
            {
                "setting": setting.name,
                "area": setting.area,
                "without": dict(setting.otherwise),
                "cells": [_cell_json(cell) for cell in matrix.row(setting.name)],
            }
            for setting in matrix.settings
        ],
        "summary": {
            "cells": len(matrix.cells),
            "enforced": matrix.count("enforced"),
            "partly": matrix.count("partly"),
            "not_applied": matrix.count("not applied"),
            "crashed": matrix.count("crashed"),
        },
    }


def _cell_json(cell: Cell) -> dict[str, Json]:
    return {
        "path": cell.path, "status": cell.status, "expected": dict(cell.expected), "seen": dict(cell.seen),
        "note": cell.note, "drive": cell.id,
    }  # fmt: skip


def html(matrix: Matrix) -> str:
    """One page that needs no other file."""
    return "\n".join(_html(matrix)) + "\n"


STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#222;background:#fff}"
    "table{border-collapse:collapse;width:100%;margin-bottom:2rem}th,td{text-align:left;padding:.25rem .5rem;"
    "border-bottom:1px solid #ddd;vertical-align:top}.enforced{color:#17633a}.partly{color:#8a5a00;font-weight:600}"
    ".not-applied,.crashed{color:#a11;font-weight:600}"
)


def _html(matrix: Matrix) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f"<title>Parity</title><style>{STYLE}</style></head><body>"
    yield f"<h1>Which path enforces which setting</h1><p>{escape(summary(matrix))}</p>"
    for area, settings in groupby(matrix.settings, key=lambda setting: setting.area):
        heads = "".join(
            f'<th scope="col">{escape(_plain(name))}</th>' for name in ("setting", "with it", *matrix.paths)
        )
        yield f"<h2>{escape(area)}</h2><table><thead><tr>{heads}</tr></thead><tbody>"
        yield from (_html_row(setting, matrix) for setting in settings)
        yield "</tbody></table>"
    yield "</body></html>"


def _html_row(setting: Setting, matrix: Matrix) -> str:
    cells = "".join(
        f'<td class="{cell.status.replace(" ", "-")}" title="{escape(brief(cell.seen), quote=True)}">{cell.status}'
        f"{f'<br><small>{escape(_plain(cell.note))}</small>' if cell.note else ''}</td>"
        for cell in matrix.row(setting.name)
    )
    return f'<tr><th scope="row">{escape(setting.name)}</th><td>{escape(brief(setting.expect))}</td>{cells}</tr>'


def json(matrix: Matrix) -> str:
    """`as_json` as text."""
    return dumps(as_json(matrix), indent=2, sort_keys=True) + "\n"


FORMATS: Final[Mapping[str, Callable[[Matrix], str]]] = {"md": markdown, "json": json, "html": html}
"""By the ending of a file's name."""

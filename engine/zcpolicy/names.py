"""Whether something is a tool's name, and the name of a tool or a server canonical (SPEC 2).

In: a name as a host sent it, and the names that the policy knows. Out: yes or no.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final, TypeGuard

    from zcpolicy.facts import ToolName

MAX_NAME_CHARACTERS: Final = 1_000
"""Characters of a tool or server name; a longer one is not canonical."""

_DRAWN_AS: Final = {
    "a": "аαᴀɑ", "b": "вβƅь", "c": "сϲᴄ", "d": "ԁ", "e": "еεᴇҽ", "f": "ƒ", "g": "ԍɡɢ", "h": "һнʜհ", "i": "іιıɩɪ",
    "j": "јϳᴊ", "k": "кκӄᴋ", "l": "ӏʟⅼ", "m": "мᴍ", "n": "пηɴո", "o": "оοᴏօ", "p": "рρᴘ", "q": "ԛ", "r": "гʀᴦ",
    "s": "ѕƨꜱ", "t": "тτᴛ", "u": "υᴜս", "v": "νѵᴠ", "w": "ԝωᴡա", "x": "хχ", "y": "уγʏү", "z": "ᴢ",
    "/": "∕⁄", "-": "‐‑‒–—−", "_": "ˍ", ".": "․‧·",
}  # fmt: skip
"""Letters of other scripts, and signs, that fonts draw as these."""
_LOOK_ALIKE: Final = {ord(other): latin for latin, others in _DRAWN_AS.items() for other in others}


def is_tool_name(name: object) -> TypeGuard[ToolName]:
    """Whether it is a text, or a pair of texts, and of no subclass that could say one thing and be another."""
    parts: Any = name
    return type(name) is str or (type(name) is tuple and [*map(type, parts)] == [str, str])


def is_canonical(name: str, looks: Callable[[], Mapping[str, set[str]]]) -> bool:
    """False for names that are not NFC, hold what cannot be seen, have blank edges, or pass for a known name.

    `looks`: the known names by their skeletons.
    """
    if name.isascii() and name.isprintable() and name == name.strip():
        return bool(name) and len(name) <= MAX_NAME_CHARACTERS
    from unicodedata import category, is_normalized

    if not name or len(name) > MAX_NAME_CHARACTERS or name != name.strip() or not is_normalized("NFC", name):
        return False
    if any(
        category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs") or letter in INVISIBLE for letter in name
    ):
        return False
    alike = looks().get(skeleton(name))
    return alike is None or name in alike


INVISIBLE: Final = frozenset(
    "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2800"
    + "".join(
        chr(code)
        for first, end in ((0x180B, 0x1810), (0xFE00, 0xFE10), (0xE0100, 0xE01F0))
        for code in range(first, end)
    )
)
"""Letters and marks that nothing is drawn for; what Unicode calls format and control characters comes besides."""


def skeleton(name: str) -> str:
    """What a name looks like: compatibility forms, marks and letter case folded, look-alikes in Latin."""
    from unicodedata import combining, normalize

    bare = "".join(letter for letter in normalize("NFKD", name.casefold()) if not combining(letter))
    return bare.translate(_LOOK_ALIKE)

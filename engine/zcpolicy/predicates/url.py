"""URLs, read as the WHATWG standard has it, and only where every parser would find the same host.

In: text, or a `UrlRef` of a shell word. Out: a `Url`; `None` where the text is no URL or parsers disagree on it.
The parser (`ada_url`) is loaded when first needed.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from zcpolicy.predicates.refs import PathRef, Truth, UrlRef

MAX_URL_CHARACTERS: Final = 65_536
"""Characters of a URL that is read at all; a longer one is UNKNOWN."""
REMEMBERED_URLS: Final = 1024
"""URLs whose parts are remembered, of those of at most `MAX_REMEMBERED_CHARACTERS`."""
MAX_REMEMBERED_CHARACTERS: Final = 1024
"""Characters of a URL whose parts are remembered."""

_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_TEXT: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?")
_HOST_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]+))?")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\\\\]")
_DEVIATES: Final = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
"""What the two editions of IDNA map to different hosts."""


class Url(NamedTuple):
    """A URL in parts. `scheme`: lower case, without `:`. `host`: lower case, ASCII, IPv6 in brackets, `""` if it has none.

    `port` defaults to the scheme's. `path` and `normal`, the whole in normal form, are `None` where not all is known.
    """

    scheme: str
    host: str
    port: int | None
    path: str | None
    normal: str | None


def parse_url(text: object) -> Url | None:
    """The parts of a URL; `None` is UNKNOWN."""
    if not isinstance(text, str) or len(text) > MAX_URL_CHARACTERS:
        return None
    return _remembered(text) if len(text) <= MAX_REMEMBERED_CHARACTERS else _parse(text)


def read_url(ref: UrlRef) -> Url | None:
    """The parts of a URL in a shell word: what a hole leaves unknown is `None`, and all of it if the host is open."""
    if None not in ref.parts:
        return parse_url("".join(part or "" for part in ref.parts))
    known = "".join(part or "" for part in ref.parts[: ref.parts.index(None)])
    written = _TEXT.match(known)
    # a hole before the authority has ended can change the host
    if written is None or written[2] is None or written.end() == len(known):
        return None
    url = parse_url(known[: written.end()] + "/")
    return None if url is None else url._replace(path=None, normal=None)


def _parse(text: str) -> Url | None:
    from ada_url import URL

    written = _TEXT.match(text)
    if written is None or _CONTROL.search(text) or text.endswith(" "):  # which some programs send, and some cut off
        return None
    try:
        url = URL(text)
    except ValueError:  # UnicodeEncodeError, for half a character, is one too
        return None
    scheme, href, host = url.protocol[:-1], url.href, url.hostname
    if written[2] is None:
        # without `//` a scheme that has hosts is read in more than one way
        return None if scheme in _PORTS or scheme == "file" else Url(scheme, "", None, url.pathname, href)
    name = host.lower().removesuffix(".")
    if url.username or url.password or not _same_authority(written[2], scheme, name, url.port):
        return None
    port = int(url.port) if url.port else _PORTS.get(scheme)
    rest = href[len(f"{scheme}://{host}") :]
    return Url(scheme, name, port, url.pathname, f"{scheme}://{name}{rest}")


_remembered = lru_cache(REMEMBERED_URLS)(_parse)


def _same_authority(written: str, scheme: str, host: str, port: str) -> bool:
    """Whether the text says the host and port that the parser found: letter case, IDNA and the default port apart."""
    parts = _HOST_PORT.fullmatch(written)
    if parts is None or "%" in written or "@" in written:
        return False
    said = parts[2] or ""
    if said != port and (port or said != str(_PORTS.get(scheme))):
        return False
    name = parts[1].removesuffix(".").lower()
    if not host:
        return not written and scheme == "file"
    if ".." in f".{host}.":
        return False
    return name == host if name.isascii() else _same_idna(name, host)


def _same_idna(written: str, host: str) -> bool:
    import unicodedata

    from ada_url import idna_to_unicode

    if _DEVIATES.search(written):
        return False
    return unicodedata.normalize("NFC", written) == idna_to_unicode(host)


def read_host(text: str) -> str | None:
    """A host as `Url.host` has it, however a policy writes it; `None` where no URL can have it."""
    from ada_url import URL

    if any(mark in text for mark in "/?#@%") or _CONTROL.search(text):
        return None
    try:
        url = URL(f"https://{text}/")
    except ValueError:
        return None
    return None if url.port else url.hostname.lower().removesuffix(".") or None


def same_url(operands: tuple[str, ...], granting: bool) -> Callable[[object], Truth]:
    """Whether a URL is one of the operands, in normal form."""
    urls = [parse_url(operand) for operand in operands]
    normals = frozenset(url.normal for url in urls if url is not None)
    otherwise: Truth = False if all(urls) else None

    def test(value: object) -> Truth:
        url = read_url(value) if isinstance(value, UrlRef) else parse_url(value)
        if url is None or url.normal is None:
            return None
        return True if url.normal in normals else otherwise

    return test


# --- `file:` ---------------------------------------------------------------------------------------------------------

_FILE: Final = re.compile(r"\s*file:", re.IGNORECASE)
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?|(?!//))(/[^?#]*)([?#].*)?", re.IGNORECASE | re.DOTALL)
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
ANY_PATH: Final = PathRef((None,))
"""A path that cannot be told: it may be any."""


def file_path(text: str) -> PathRef | None:
    """The path of a `file:` URL, as sent, `%XX` read; `ANY_PATH` where programs disagree; `None` for another URL."""
    if not _FILE.match(text):
        return None
    local = _LOCAL.fullmatch(text)
    if local is None or len(text) > MAX_URL_CHARACTERS or _CONTROL.search(text):
        return ANY_PATH
    # some programs take a query or fragment for part of the name, which matters once it has components
    if local[2] and ("/" in local[2] or "%" in local[2]):
        return ANY_PATH
    try:
        return PathRef((_ESCAPE.sub(lambda escape: bytes((int(escape[1], 16),)), local[1].encode()).decode(),))
    except UnicodeError:
        return ANY_PATH

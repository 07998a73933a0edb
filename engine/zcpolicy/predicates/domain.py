"""Host names: whether one lies in a domain.

In: domains at build time, a host as text at call time. Out: a `Truth`.
What is no host at all (a port, a path, a blank beside the name) is UNKNOWN.
"""

from __future__ import annotations

from zcpolicy.predicates.letters import visible

TYPE_CHECKING = False  # `typing` and `re` cost more than the tests of most policies
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from zcpolicy.predicates.refs import Truth

MAX_HOST_CHARACTERS: Final = 255
"""Characters of a host; longer text is UNKNOWN."""

_MARKS: Final = {ord(mark): None for mark in "._-"}


def is_name(text: str) -> bool:
    """Whether text is a host name or an IPv4 address, in lower-case ASCII: labels and dots, none of them empty."""
    return (
        text.isascii()
        and text.translate(_MARKS).isalnum()
        and text == text.lower()
        and text[0] != "."
        and ".." not in text
    )


def is_numeric(text: str) -> bool:
    """Whether URL parsers take a host for an IPv4 address: its last label is a number."""
    last = text.removesuffix(".").rpartition(".")[2]
    if last[:2] in {"0x", "0X"}:
        return all(digit in "0123456789abcdefABCDEF" for digit in last[2:])
    return last.isascii() and last.isdecimal()


def ipv6(text: str) -> int | None:
    """The value of an IPv6 address, with or without brackets and zone; `None` for other text."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if ":" not in text:
        return None
    from ipaddress import AddressValueError, IPv6Address

    try:
        return int(IPv6Address(text.partition("%")[0]))
    except AddressValueError:
        return None


def idna(text: str) -> str | None:
    """A host in ASCII and lower case as a URL parser makes it; `None` if it is none."""
    if not text.isascii():
        from ada_url import idna_to_ascii

        try:
            text = idna_to_ascii(text).decode()
        except (UnicodeError, ValueError):
            return None
    text = text.lower()
    return text if is_name(text) else None


def _as_people_write(host: str) -> str:
    from ada_url import idna_to_unicode

    try:
        return idna_to_unicode(host)
    except (UnicodeError, ValueError):
        return host


def check_domain(text: str) -> str | None:
    """Why a domain is unusable, or `None`."""
    if text.startswith(("*.", ".")):
        return f"subdomains are included: write `{text.lstrip('*.')}`"
    if text.startswith("[") or is_numeric(text):
        return f"`{text}` is an address, not a domain: use `in_net`"
    if visible(text) != text or len(text) > MAX_HOST_CHARACTERS:
        return "a domain is a name of at most 253 visible characters"
    name = idna(text)
    if name is None:
        return f"`{text}` is no domain: write a name such as `example.org`, without scheme, port or path"
    labels = name.removesuffix(".").split(".")
    if len(name) > 254 or any(len(label) > 63 for label in labels):
        return f"`{text}` is too long for a domain"
    return None


class _Domains:
    """Domains in each form that a host may have, and what a host of any form says."""

    __slots__ = ("suffixes", "written")

    def __init__(self, domains: tuple[str, ...]) -> None:
        for domain in domains:
            if (wrong := check_domain(domain)) is not None:
                raise ValueError(wrong)
        bare = [domain.removesuffix(".") for domain in domains]
        # a dot before both sides makes the name itself and its subdomains one question
        self.suffixes = tuple("." + (idna(domain) or domain) for domain in bare)
        self.written = tuple("." + domain for domain in bare)

    def odd(self, text: str) -> Truth:
        """A host that is not plain lower-case ASCII: upper case, other scripts, invisible characters, no host."""
        if len(text) > MAX_HOST_CHARACTERS:
            return None
        if ipv6(text) is not None:
            return False
        seen = visible(text)
        host = idna(seen)
        if host is None:
            return None
        # the two editions of IDNA map some letters to different hosts
        older = idna(seen.casefold()) or host
        if not any(("." + name.removesuffix(".")).endswith(self.suffixes) for name in (host, older)):
            return False
        kept = "." + text.removesuffix(".")
        same = host == older and (text.isascii() or _as_people_write(host) == text)
        return True if same and kept.endswith(self.written) and text == seen else None


def in_domain(domains: tuple[str, ...]) -> Callable[[object], Truth]:
    """Whether a host is one of the domains or a subdomain of one."""
    known = _Domains(domains)
    names = frozenset(suffix[1:] + dot for suffix in known.suffixes for dot in ("", "."))
    suffixes = known.suffixes + tuple(suffix + "." for suffix in known.suffixes)

    def test(value: object) -> Truth:
        if not isinstance(value, str):
            return None
        if len(value) <= MAX_HOST_CHARACTERS and is_name(value):
            return value in names or value.endswith(suffixes)
        return known.odd(value)

    return test


def must_in_domain(domains: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether `in_domain` is TRUE."""
    test = in_domain(domains)
    return lambda value: test(value) is True


def may_in_domain(domains: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether `in_domain` is not FALSE."""
    test = in_domain(domains)
    return lambda value: test(value) is not False

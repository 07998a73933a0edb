"""Addresses of hosts: whether one lies in a network.

In: networks at build time, a host as text at call time. Out: a `Truth`.
What is no host at all (a port, a path, a blank beside the name) is UNKNOWN. What DNS answers is outside.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from zcpolicy.predicates.domain import (
    MAX_HOST_CHARACTERS,
    check_domain,
    idna,
    in_domain,
    ipv6,
    is_name,
    is_numeric,
    may_in_domain,
    must_in_domain,
)
from zcpolicy.predicates.letters import visible
from zcpolicy.predicates.refs import Truth

__all__ = [
    "MAX_HOST_CHARACTERS",
    "check_domain",
    "check_net",
    "in_domain",
    "in_net",
    "may_in_domain",
    "must_in_domain",
]

REMEMBERED_HOSTS: Final = 1024
"""Hosts whose address is remembered."""

_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_DOTS: Final = re.compile("[\u3002\uff0e\uff61]")  # what IDNA takes for a dot


V4: Final = 32
V6: Final = 128


class Address(NamedTuple):
    """An address: its width in bits, and its value."""

    bits: int
    value: int


class Reading(NamedTuple):
    """One way to read a host as an address.

    `means`: where a connection goes (any of them). `perhaps`: where some systems send it, and the wrapped form itself.
    """

    means: tuple[Address, ...]
    perhaps: tuple[Address, ...] = ()


class Network(NamedTuple):
    """A network: width, bits that are the host's, and the rest of the address shifted by them."""

    bits: int
    host_bits: int
    prefix: int

    def holds(self, address: Address) -> bool:
        """Whether an address lies in the network."""
        return self.bits == address.bits and address.value >> self.host_bits == self.prefix


_LOOPBACK: Final = (Address(V4, 0x7F000001), Address(V6, 1))
NAME: Final = ()
"""The readings of a host that is a name."""


def _ipv4(text: str) -> tuple[Reading, ...] | None:
    """The readings of an IPv4 address in any spelling: one to four numbers, each decimal, octal or hexadecimal."""
    labels = text.removesuffix(".").split(".")
    if len(labels) > 4 or not all(_NUMBER.fullmatch(label) for label in labels):
        return None
    values = {_joined([_number(label, octal) for label in labels]) for octal in (True, False)} - {None}
    readings = tuple(Reading((Address(V4, v),), _LOOPBACK if v == 0 else ()) for v in values if v is not None)
    return readings or None


def _number(label: str, octal: bool) -> int | None:
    """A part of an address. Systems disagree on a leading zero: octal for most, nothing at all for others."""
    if label[:2] in {"0x", "0X"}:
        return int(label[2:] or "0", 16)
    if octal and len(label) > 1 and label[0] == "0":
        return int(label, 8) if all(c in "01234567" for c in label) else None
    return int(label)


def _joined(parts: list[int | None]) -> int | None:
    value = 0
    *heads, last = parts
    for part in heads:
        if part is None or part > 255:
            return None
        value = value << 8 | part
    room = 8 * (4 - len(heads))
    return None if last is None or last >> room else value << room | last


def _unwrapped(value: int) -> Reading:
    """Where an IPv6 address leads: the IPv4 address that it carries, if it does."""
    raw = Address(V6, value)
    if value >> 32 in {0xFFFF, 0x64FF9B << 64}:  # ::ffff:0:0/96, 64:ff9b::/96
        return Reading((Address(V4, value & 0xFFFFFFFF),), (raw,))
    if value >> 112 == 0x2002:  # 6to4
        return Reading((Address(V4, value >> 80 & 0xFFFFFFFF),), (raw,))
    perhaps: list[Address] = []
    low = Address(V4, value & 0xFFFFFFFF)
    compatible = value >> 32 == 0 and value > 1
    translated = value >> 32 == 0xFFFF << 32 - 16  # ::ffff:0:0:0/96
    local_nat64 = value >> 80 == 0x64FF9B0001
    isatap = value >> 32 & 0xFDFFFFFF == 0x5EFE
    if compatible or translated or local_nat64 or isatap:
        perhaps.append(low)
    if value >> 96 == 0x20010000:  # Teredo: the client's address, inverted
        perhaps.append(Address(V4, low.value ^ 0xFFFFFFFF))
    if value == 0:
        perhaps += _LOOPBACK
    return Reading((raw,), tuple(perhaps))


@lru_cache(REMEMBERED_HOSTS)
def readings(host: str) -> tuple[Reading, ...] | None:
    """How a host can be read as an address: `NAME` for a name, `None` for what is no host."""
    if not host.isascii():
        return _in_other_letters(host)
    text = host.lower()
    bare = text.removesuffix(".")
    if bare == "localhost" or bare.endswith(".localhost"):
        return (Reading(_LOOPBACK),) if is_name(text) else None
    if ":" in text:
        value = ipv6(text)
        return None if value is None else (_unwrapped(value),)
    if not is_name(text):
        return None
    return _ipv4(text) if is_numeric(text) else NAME


def _in_other_letters(host: str) -> tuple[Reading, ...] | None:
    """A host with letters or digits outside ASCII: an address only for programs that map them, a name for others."""
    import unicodedata

    text = unicodedata.normalize("NFKC", _DOTS.sub(".", visible(host)))
    if not text.isascii():
        return NAME if idna(text) else None
    found = readings(text)
    if not found:
        return found
    return tuple(Reading((), reading.means + reading.perhaps) for reading in found)


def check_net(text: str) -> str | None:
    """Why a network is unusable, or `None`."""
    from ipaddress import ip_address, ip_network

    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return f"`{text}` is no network: write an address with a prefix length, such as `10.0.0.0/8` or `fd00::/8`"
    address, slash, length = text.partition("/")
    if slash and not (length.isascii() and length.isdecimal()):
        return f"`{text}` is no network: its prefix length is not a number"
    if "%" in text:
        return f"`{text}` is no network: a zone has no place in it"
    if network.network_address != ip_address(address):
        return f"`{address}` has bits outside the network: write `{network}`"
    return None


def _network(text: str) -> Network:
    from ipaddress import ip_network

    net = ip_network(text, strict=False)
    value, bits, host_bits = int(net.network_address), net.max_prefixlen, net.max_prefixlen - net.prefixlen
    if bits == V6 and value >> 32 == 0xFFFF and host_bits <= V4:
        return Network(V4, host_bits, (value & 0xFFFFFFFF) >> host_bits)  # IPv4-mapped: hosts are unwrapped too
    return Network(bits, host_bits, value >> host_bits)


def in_net(networks: tuple[str, ...], granting: bool) -> Callable[[object], Truth]:
    """Whether a host is an address in one of the networks; a name is UNKNOWN for granting and FALSE for withholding."""
    for text in networks:
        if (wrong := check_net(text)) is not None:
            raise ValueError(wrong)
    nets = tuple(_network(text) for text in networks)
    name: Truth = None if granting else False

    def inside(addresses: tuple[Address, ...]) -> bool:
        return any(net.holds(address) for address in addresses for net in nets)

    def test(value: object) -> Truth:
        if not isinstance(value, str) or len(value) > MAX_HOST_CHARACTERS:
            return None
        found = readings(value)
        if not found:
            return found if found is None else name
        if all(inside(reading.means) for reading in found):
            return True
        may = any(inside(reading.means) or inside(reading.perhaps) for reading in found)
        return None if may else False

    return test

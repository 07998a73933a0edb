"""Hosts: domains on label boundaries, addresses in every spelling, other parsers beside ours."""

import ipaddress
import socket
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcpolicy.predicates.net import (
    MAX_HOST_CHARACTERS,
    check_domain,
    check_net,
    in_domain,
    in_net,
    may_in_domain,
    must_in_domain,
)
from zcpolicy.predicates.refs import Truth

# --- domains ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("docs.example", True),
        ("api.docs.example", True),
        ("a_b.docs.example", True),
        ("docs.example.", True),
        ("docs.example.evil.test", False),
        ("evildocs.example", False),
        ("example", False),
        ("evil.test", False),
        ("127.0.0.1", False),
        ("[::1]", False),
        ("::1", False),
        # readings
        ("DOCS.example", None),
        ("api.Docs.Example", None),
        ("docs.exam\u200bple", None),
        ("docs\u3002example", None),
        ("a\x00b.docs.example", None),
        ("a\x7fb.docs.example", None),
        ("\uff44ocs.example", None),
        ("EVIL.test", False),
        ("b\u00fccher.example", False),
        # no hosts
        ("", None),
        (".", None),
        (".docs.example", None),
        ("x..docs.example", None),
        ("docs.example..", None),
        ("docs.example:443", None),
        ("evil.test/.docs.example", None),
        ("evil.test#.docs.example", None),
        ("evil.test\\.docs.example", None),
        ("evil.test\n.docs.example", None),
        ("docs.example\n", None),
        ("a@docs.example", None),
        ("https://docs.example", None),
        (" docs.example", None),
        ("a b.docs.example", None),
        ("%64ocs.example", None),
        ("a" * MAX_HOST_CHARACTERS + ".docs.example", None),
        ("\ud800.docs.example", None),
        (None, None),
        (7, None),
        (b"docs.example", None),
    ],
)
def test_the_name_itself_or_a_subdomain(host: object, expected: Truth) -> None:
    assert in_domain(("docs.example",))(host) is expected
    assert must_in_domain(("docs.example",))(host) is (expected is True)
    assert may_in_domain(("docs.example",))(host) is (expected is not False)


@pytest.mark.parametrize(
    ("domain", "host", "expected"),
    [
        ("GitHub.com", "github.com", True),
        ("GitHub.com", "GitHub.com", True),
        ("GitHub.com", "api.GitHub.com", True),
        ("GitHub.com", "GITHUB.com", None),
        ("docs.example.", "docs.example", True),
        ("b\u00fccher.example", "xn--bcher-kva.example", True),
        ("b\u00fccher.example", "b\u00fccher.example", True),
        ("b\u00fccher.example", "B\u00dcCHER.example", None),
        ("xn--bcher-kva.example", "b\u00fccher.example", None),
        ("localhost", "localhost", True),
        ("fass.example", "fa\u00df.example", None),
        ("fa\u00df.example", "fa\u00df.example", None),
        ("fa\u00df.example", "xn--fa-hia.example", True),
        ("example", "example.", True),
        ("example", "x.example.", True),
    ],
)
def test_domains_as_people_write_them(domain: str, host: str, expected: Truth) -> None:
    assert in_domain((domain,))(host) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("example.org", None),
        ("localhost", None),
        ("b\u00fccher.example", None),
        ("*.example.org", "subdomains are included: write `example.org`"),
        (".example.org", "subdomains are included: write `example.org`"),
        ("10.0.0.1", "`10.0.0.1` is an address, not a domain: use `in_net`"),
        ("[::1]", "`[::1]` is an address, not a domain: use `in_net`"),
        (
            "https://example.org",
            "`https://example.org` is no domain: write a name such as `example.org`, without scheme, port or path",
        ),
        ("", "`` is no domain: write a name such as `example.org`, without scheme, port or path"),
        ("a..b", "`a..b` is no domain: write a name such as `example.org`, without scheme, port or path"),
        ("exam\u200bple.org", "a domain is a name of at most 253 visible characters"),
        ("a" * 64 + ".org", f"`{'a' * 64}.org` is too long for a domain"),
    ],
)
def test_operands_of_in_domain(text: str, message: str | None) -> None:
    assert check_domain(text) == message


# --- networks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.255.255.255", True),
        ("128.0.0.1", False),
        # spellings of the same address
        ("2130706433", True),
        ("0x7f000001", True),
        ("0X7F.1", True),
        ("127.1", True),
        ("127.0.1", True),
        ("127.0.0.1.", True),
        ("017700000001", True),
        ("0177.0.0.1", None),  # octal for most, decimal for others
        ("0127.0.0.1", None),
        ("\uff11\uff12\uff17.0.0.1", None),
        ("127\u30020.0.1", None),
        ("\u2460\u2461\u2466.0.0.1", None),
        # wrapped
        ("::ffff:127.0.0.1", True),
        ("::FFFF:7f00:1", True),
        ("[::ffff:7f00:1]", True),
        ("64:ff9b::7f00:1", True),
        ("64:ff9b::127.0.0.1", True),
        ("2002:7f00:1::", True),
        ("2002:7f00:1:1::5", True),
        ("::127.0.0.1", None),
        ("::ffff:0:127.0.0.1", None),
        ("64:ff9b:1::127.0.0.1", None),
        ("2001:0:1:2:3:4:80ff:fffe", None),
        ("fe80::5efe:127.0.0.1", None),
        # loopback by name, and what systems send there
        ("localhost", True),
        ("LOCALHOST", True),
        ("localhost.", True),
        ("a.b.localhost", True),
        ("0.0.0.0", None),
        ("0", None),
        ("::", None),
        # other addresses
        ("::1", False),
        ("fe80::1%eth0", False),
        ("8.8.8.8", False),
        # no hosts
        ("", None),
        ("127.0.0.1:80", None),
        ("127.0.0.1/8", None),
        ("http://127.0.0.1/", None),
        (" 127.0.0.1", None),
        ("127.0.0.1\n", None),
        ("256.0.0.1", None),
        ("1.2.3.4.5", None),
        ("a.1", None),
        ("0x", None),
        ("127..1", None),
        ("[127.0.0.1]", None),
        ("[::1", None),
        (":", None),
        ("x" * (MAX_HOST_CHARACTERS + 1), None),
        (None, None),
        (2130706433, None),
    ],
)
@pytest.mark.parametrize("granting", [True, False])
def test_addresses_in_every_spelling(host: object, expected: Truth, granting: bool) -> None:
    assert in_net(("127.0.0.0/8",), granting)(host) is expected


@pytest.mark.parametrize("name", ["example.org", "localhost.evil.test", "xlocalhost", "b\u00fccher.example", "a-b"])
def test_what_dns_answers_is_outside(name: str) -> None:
    assert in_net(("127.0.0.0/8",), True)(name) is None
    assert in_net(("127.0.0.0/8",), False)(name) is False


@pytest.mark.parametrize(
    ("network", "host", "expected"),
    [
        ("169.254.0.0/16", "169.254.169.254", True),
        ("169.254.169.254", "169.254.169.254", True),
        ("0.0.0.0/0", "8.8.8.8", True),
        ("0.0.0.0/0", "::ffff:8.8.8.8", True),
        ("::1/128", "localhost", True),
        ("::1", "[::1]", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("fd00::/8", "fd12::1%eth0", True),
        ("fe80::/10", "fe80::1%25eth0", True),
        ("::ffff:10.0.0.0/104", "10.1.1.1", True),
        ("::ffff:10.0.0.0/104", "::ffff:10.1.1.1", True),
        ("::/0", "::5", True),
        # an address that carries another leads there
        ("::/0", "::ffff:10.0.0.1", None),
        ("64:ff9b::/96", "64:ff9b::8.8.8.8", None),
        ("2002::/16", "2002:808:808::", None),
    ],
)
def test_networks(network: str, host: str, expected: Truth) -> None:
    assert check_net(network) is None
    assert in_net((network,), True)(host) is expected
    assert in_net((network,), False)(host) is expected


def test_any_of_several_networks_will_do() -> None:
    private = in_net(("10.0.0.0/8", "192.168.0.0/16", "fd00::/8"), False)
    assert [private(host) for host in ("10.1.1.1", "192.168.1.1", "fd00::1", "9.9.9.9")] == [True, True, True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10.0.0.0/8", None),
        ("10.0.0.1", None),
        ("::/0", None),
        ("10.0.0.1/8", "`10.0.0.1` has bits outside the network: write `10.0.0.0/8`"),
        (
            "example.org",
            "`example.org` is no network: write an address with a prefix length, such as `10.0.0.0/8` or `fd00::/8`",
        ),
        ("10.0.0.0/255.0.0.0", "`10.0.0.0/255.0.0.0` is no network: its prefix length is not a number"),
        ("fe80::%eth0/64", "`fe80::%eth0/64` is no network: a zone has no place in it"),
        ("", "`` is no network: write an address with a prefix length, such as `10.0.0.0/8` or `fd00::/8`"),
    ],
)
def test_operands_of_in_net(text: str, message: str | None) -> None:
    assert check_net(text) == message


def _spelled(value: int, parts: int, bases: list[str]) -> str:
    octets = list(value.to_bytes(4, "big"))
    numbers = [*octets[: parts - 1], int.from_bytes(bytes(octets[parts - 1 :]), "big")]
    forms = {"d": "{}", "x": "{:#x}", "o": "0{:o}"}
    return ".".join(forms[base].format(number) for base, number in zip(bases, numbers, strict=False))


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.lists(st.sampled_from("dxo"), min_size=4, max_size=4))
@settings(max_examples=300, deadline=None)
def test_spellings_against_the_c_library(value: int, parts: int, bases: list[str]) -> None:
    text = _spelled(value, parts, bases)
    assert int.from_bytes(socket.inet_aton(text), "big") == value
    address = str(ipaddress.IPv4Address(value))
    for prefix in (8, 16, 24, 32):
        network = str(ipaddress.ip_network(f"{address}/{prefix}", strict=False))
        # never FALSE for what the C library connects to; TRUE unless a leading zero reads as decimal too
        answer = in_net((network,), True)(text)
        assert answer is True or (answer is None and ("o" in bases[:parts] or value == 0))


@given(st.ip_addresses(v=6), st.integers(0, 128))
@settings(max_examples=200, deadline=None)
def test_ipv6_against_the_library(address: ipaddress.IPv6Address, prefix: int) -> None:
    network = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    carries = address.ipv4_mapped or address.sixtofour or address in ipaddress.ip_network("64:ff9b::/96")
    for text in (str(address), address.exploded, f"[{address.compressed}]", address.exploded.upper()):
        assert in_net((str(network),), False)(text) in ({True, None} if carries else {True})


@given(st.one_of(st.text(max_size=20), st.text("0123456789abcdefx.:[]%\u3002\uff11-", max_size=20)))
@settings(max_examples=300, deadline=None)
def test_what_grants_withholds_as_well(host: str) -> None:
    granting, withholding = (in_net(("0.0.0.0/0", "::/0"), polarity)(host) for polarity in (True, False))
    assert not (granting is True and withholding is False)
    assert in_domain(("x.org",))(host) in {True, False, None}
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except (OSError, ValueError):
        return
    assert withholding is not False


def test_long_hosts_take_no_time() -> None:
    start = time.process_time()
    for host in ("1." * 100_000, ":" * 100_000, "\u3002" * 100_000, "0" * 255, "1" * 255, "a" * 10_000_000):
        assert in_net(("127.0.0.0/8",), False)(host) in {None, False}
        assert in_domain(("x.org",))(host) in {None, False}
    assert time.process_time() - start < 0.5

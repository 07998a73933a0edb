"""URLs: the same host for every parser, or UNKNOWN."""

import time
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcpolicy.predicates.net import in_domain, in_net
from zcpolicy.predicates.refs import PathRef, Truth, UrlRef
from zcpolicy.predicates.url import (
    ANY_PATH,
    MAX_URL_CHARACTERS,
    Url,
    file_path,
    parse_url,
    read_host,
    read_url,
    same_url,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://docs.example/a", Url("https", "docs.example", 443, "/a", "https://docs.example/a")),
        ("HTTPS://DOCS.example:443", Url("https", "docs.example", 443, "/", "https://docs.example/")),
        ("https://docs.example./a", Url("https", "docs.example", 443, "/a", "https://docs.example/a")),
        ("http://a:8080/b/../c?q#f", Url("http", "a", 8080, "/c", "http://a:8080/c?q#f")),
        ("http://a:443/", Url("http", "a", 443, "/", "http://a:443/")),
        ("ws://a/", Url("ws", "a", 80, "/", "ws://a/")),
        ("ftp://a/x", Url("ftp", "a", 21, "/x", "ftp://a/x")),
        ("http://[::1]:80/", Url("http", "[::1]", 80, "/", "http://[::1]/")),
        ("http://127.0.0.1/", Url("http", "127.0.0.1", 80, "/", "http://127.0.0.1/")),
        (
            "http://b\u00fccher.example/",
            Url("http", "xn--bcher-kva.example", 80, "/", "http://xn--bcher-kva.example/"),
        ),
        (
            "http://B\u00dcCHER.example/",
            Url("http", "xn--bcher-kva.example", 80, "/", "http://xn--bcher-kva.example/"),
        ),
        ("foo://BAR:9/x", Url("foo", "bar", 9, "/x", "foo://bar:9/x")),
        ("file:///etc/x", Url("file", "", None, "/etc/x", "file:///etc/x")),
        ("file://h/x", Url("file", "h", None, "/x", "file://h/x")),
        ("mailto:a@b", Url("mailto", "", None, "a@b", "mailto:a@b")),
        ("https://a?x@b", Url("https", "a", 443, "/", "https://a/?x@b")),
        ("https://a#@b", Url("https", "a", 443, "/", "https://a/#@b")),
    ],
)
def test_the_parts_of_a_url(text: str, expected: Url) -> None:
    assert parse_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "not a url",
        "",
        "//a/b",
        "/a",
        # userinfo
        "https://docs.example@evil.test/",
        "https://u:p@a/",
        "https://@a/",
        "https://:@a/",
        "https://docs.example%40evil.test/",
        # backslash and controls
        "https:\\\\docs.example\\@evil.test/",
        "https://evil.test\\.docs.example/",
        "https://a/\\b",
        "https://a\t.b/",
        "ht\ntps://a/",
        "https://a/\0",
        "https://a/\x7f",
        " https://a/",
        # a percent-encoded host
        "https://%64ocs.example/",
        "https://docs.example%2Fevil/",
        # what the parser repairs
        "https:/a/",
        "https:a/",
        "https:///a/",
        "http:///a",
        "https://a:/",
        "https://a:0443/",
        "https://a:443:1/",
        "https://a:65536/",
        "https://a:x/",
        "file:/etc/x",
        "file:etc/x",
        "file://localhost/x",
        # hosts in odd spellings
        "http://0x7f.1/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://[0:0::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::1%25eth0]/",
        "http://a..b/",
        "http://a../",
        "http://./",
        "http://.a/",
        "http:///",
        "http://",
        "http://a b/",
        "http://a\u3002b/",
        "http://ex\u00adample.com/",
        "http://exam\u200bple.com/",
        "http://fa\u00df.de/",
        "http://\u2460.com/",
        "http://\uff45xample.com/",
        "http://a<b/",
        "http://a^b/",
        "http://\ud800/",
        "http://a/\ud800",
        "https://a/" + "x" * MAX_URL_CHARACTERS,
        None,
        7,
    ],
)
def test_what_parsers_may_read_otherwise_is_unknown(text: object) -> None:
    assert parse_url(text) is None


@pytest.mark.parametrize(
    ("text", "scheme", "docs", "metadata"),
    [
        ("https://docs.example/a", "https", True, False),
        ("https://api.docs.example/a", "https", True, False),
        ("https://DOCS.example:443/", "https", True, False),
        ("http://docs.example/a", "http", True, False),
        ("https://docs.example.evil.test/", "https", False, False),
        ("https://evildocs.example/", "https", False, False),
        ("https://evil.test/#docs.example", "https", False, False),
        ("https://169.254.169.254/latest", "https", False, True),
    ],
)
def test_hosts_on_label_boundaries(text: str, scheme: str, docs: Truth, metadata: Truth) -> None:
    url = parse_url(text)
    assert url is not None
    assert url.scheme == scheme
    assert in_domain(("docs.example",))(url.host) is docs
    assert in_net(("169.254.0.0/16",), False)(url.host) is metadata


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("https://a/x",), Url("https", "a", 443, "/x", "https://a/x")),
        (("https://a/", "x"), Url("https", "a", 443, "/x", "https://a/x")),
        (("https://a/", None), Url("https", "a", 443, None, None)),
        (("https://a", "/x", None), Url("https", "a", 443, None, None)),
        (("https://u@a/", None), None),
        (("https://a\\b/", None), None),
        (("https://a/\\@b", None), Url("https", "a", 443, None, None)),
        (("https://a/x?q=", None, "b"), Url("https", "a", 443, None, None)),
        (("https://a", None), None),  # it may be .evil.test, or @evil.test
        (("https://a:", None, "/x"), None),
        (("https://", None, ".docs.example/"), None),
        ((None, "https://a/"), None),
        ((None,), None),
        (("mailto:", None), None),
    ],
)
def test_partly_known_urls(parts: tuple[str | None, ...], expected: Url | None) -> None:
    assert read_url(UrlRef(parts)) == expected


@pytest.mark.parametrize(
    ("operand", "text", "expected"),
    [
        ("https://a/x", "https://A:443/x", True),
        ("https://a/x/../y", "https://a/y", True),
        ("https://a", "https://a/", True),
        ("https://a/x", "https://a/X", False),
        ("https://a/x", "http://a/x", False),
        ("https://a/x", "https://u@a/x", None),
        ("https://a/x", 7, None),
        ("https://a/x", UrlRef(("https://a/x",)), True),
        ("https://a/x", UrlRef(("https://a/", None)), None),
    ],
)
@pytest.mark.parametrize("granting", [True, False])
def test_urls_compare_normal_forms(operand: str, text: object, expected: Truth, granting: bool) -> None:
    assert same_url((operand,), granting)(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("file:///etc/passwd", PathRef(("/etc/passwd",))),
        ("FILE:///etc/passwd", PathRef(("/etc/passwd",))),
        ("file:/etc/passwd", PathRef(("/etc/passwd",))),
        ("file://localhost/etc/passwd", PathRef(("/etc/passwd",))),
        ("file:///w/%2eenv", PathRef(("/w/.env",))),
        ("file:///w/a%2Fb", PathRef(("/w/a/b",))),
        ("file:///w/%252eenv", PathRef(("/w/%2eenv",))),
        ("file:///w/a/../b", PathRef(("/w/a/../b",))),  # links come first
        ("file:///w/a.html#top", PathRef(("/w/a.html",))),
        ("file:///w/a?x#y/../.env", ANY_PATH),
        ("file:////etc/passwd", PathRef(("//etc/passwd",))),
        ("file://host/x", ANY_PATH),
        ("file://localhosts/x", ANY_PATH),
        ("file:x", ANY_PATH),
        ("file:", ANY_PATH),
        (" file:///x", ANY_PATH),
        ("file:///w\\x", ANY_PATH),
        ("file:///w/\n", ANY_PATH),
        ("file:///%ff", ANY_PATH),
        ("file:///" + "x" * MAX_URL_CHARACTERS, ANY_PATH),
        ("https://a/file:///x", None),
        ("/etc/passwd", None),
        ("", None),
    ],
)
def test_the_path_of_a_file_url(text: str, expected: PathRef | None) -> None:
    assert file_path(text) == expected


hosts = st.one_of(
    st.text("ab.-_1", min_size=1, max_size=8),
    st.text("a.:@[]%/\\?#0x1\u00df\u00fc\u3002\u200d\uff0e ", max_size=10),
    st.sampled_from(["docs.example", "evil.test", "[::1]", "127.0.0.1", "xn--a", "b\u00fccher.example"]),
)
urls = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["http:", "https:", "HTTP:", "ftp:", "ws:"]),
    st.sampled_from(["//", "//", "//", "/", "///", "\\\\", ""]),
    hosts,
    st.sampled_from(["", "", ":80", ":443", ":", ":8080", "@evil.test", ":080", ".", "#@evil.test", "?.evil.test"]),
    st.sampled_from(["", "/", "/x/../y", "/@evil.test", "\\x", "/%2e", "?a", "#b"]),
)


@given(urls)
@settings(max_examples=600, deadline=None)
def test_two_parsers_find_one_host(text: str) -> None:
    ours = parse_url(text)
    if ours is None:
        return
    other = urlsplit(text)
    assert other.username is None
    assert other.scheme == ours.scheme
    name = (other.hostname or "").removesuffix(".")
    assert name.encode("idna").decode() == ours.host.strip("[]")
    assert ours.port in {other.port, 80, 443, 21}
    # the normal form is its own
    assert ours.normal is not None
    again = parse_url(ours.normal)
    assert again is not None
    assert (again.scheme, again.host, again.port, again.normal) == (ours.scheme, ours.host, ours.port, ours.normal)


@given(st.one_of(st.text(max_size=40), urls))
@settings(max_examples=200, deadline=None)
def test_any_text_has_an_answer(text: str) -> None:
    assert parse_url(text) is None or isinstance(parse_url(text), Url)
    assert same_url(("https://a/",), True)(text) in {True, False, None}
    assert file_path(text) is None or isinstance(file_path(text), PathRef)


def test_long_urls_take_linear_time() -> None:
    start = time.process_time()
    for text in ("https://" + "a." * 30_000, "https://a/" + "../" * 20_000, "file:///" + "%41" * 20_000, "a:" * 30_000):
        parse_url(text)
        file_path(text)
        parse_url(text * 100)
    assert time.process_time() - start < 1.0


HOSTS: dict[str, str | None] = {
    "example.org": "example.org",
    "EXAMPLE.org.": "example.org",
    "B\u00fccher.de": "xn--bcher-kva.de",
    "xn--bcher-kva.de": "xn--bcher-kva.de",
    "[::0001]": "[::1]",
    "0x7f.1": "127.0.0.1",
    "": None,
    "a/b": None,
    "a:8080": None,
    "user@a": None,
    "a b": None,
    "[::1": None,
    "a\n": None,
}


@pytest.mark.parametrize("written", HOSTS)
def test_a_host_to_compare_with_is_read_as_urls_have_it(written: str) -> None:
    assert read_host(written) == HOSTS[written]


def test_a_blank_at_the_end_is_sent_by_some_and_cut_off_by_others() -> None:
    assert parse_url("https://x.org/a ") is None

"""The paths and URLs that a call mentions: what `paths` and `urls` mean for it (SPEC 7).

In: the tool's schema and judged arguments. Out: `Found`. Shell text is read by `predicates.shell`.
"""

from __future__ import annotations

from zcpolicy.exact import is_list, is_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from zcpolicy.predicates.refs import PathRef, UrlRef
    from zcpolicy.shapes import Schema

MAX_FOUND: Final = 20_000
"""Paths, and URLs, of one call that are looked at; beyond, one more that may be any stands for the rest."""

_PREFIXES: Final = ("http:", "https:", "ws:", "wss:", "ftp:", "file:")


class Found:
    """`paths`, `urls` of one call. `partial`: there may be more (shell text, unreviewed strings).

    `path_unsent`, `url_unsent`: an optional argument that may hold one was not sent.
    """

    __slots__ = ("partial", "path_unsent", "paths", "url_unsent", "urls")

    def __init__(self) -> None:
        self.paths: list[PathRef] = []
        self.urls: list[UrlRef] = []
        self.partial = False
        self.path_unsent = False
        self.url_unsent = False


def find(schema: Schema, arguments: dict[str, Any]) -> Found:
    """All that the arguments mention."""
    found = Found()
    _Search(found).value(schema, arguments)
    return found


class _Search:
    __slots__ = ("found",)

    def __init__(self, found: Found) -> None:
        self.found = found

    def value(self, schema: Schema, value: Any) -> None:
        if value is None:
            self.unsent(schema)
            return
        kind = schema["kind"]
        if kind in _TEXTS:
            if type(value) is str:
                _TEXTS[kind](self, schema, value)
                if schema.get("unreviewed"):  # of any kind: one that a lower layer gave takes nothing out of sight
                    self.unreviewed(schema, value)
        elif kind == "list":
            item = schema.get("item", _ANY)
            for one in value:
                self.value(item, one)
        elif kind == "object":
            self.members(schema, value)
        elif kind == "any":
            self.anything(value)

    def members(self, schema: Schema, value: dict[str, Any]) -> None:
        fields = schema.get("fields", {})
        for name, one in value.items():
            known = fields.get(name)
            if known is not None:
                self.value(known, one)
                continue
            self.unreviewed(schema, name)
            extra = schema.get("extra", "allow")
            self.value(_ANY if isinstance(extra, str) else extra, one)
        for name, field in fields.items():
            if name not in value:
                self.unsent(field)

    def unsent(self, field: Schema) -> None:
        """Null or not there. The tool's own default may be any, a URL's a file; it was not written into the call. One that
        is null names nothing.
        """
        paths, urls = kinds_below(field)
        self.found.path_unsent |= paths
        self.found.url_unsent |= urls
        if field.get("default") is not None:
            if paths or urls:
                self.anywhere()
            if urls:
                self.anyhow()

    def anything(self, value: Any) -> None:
        if type(value) is str:
            self.unreviewed(_ANY, value)
        elif is_list(value):
            for one in value:
                self.anything(one)
        elif is_object(value):
            for name, one in value.items():
                self.unreviewed(_ANY, name)
                self.anything(one)

    def string(self, schema: Schema, text: str) -> None:
        """A reviewed string is text, and nothing else."""

    def path(self, schema: Schema, text: str) -> None:
        from zcpolicy.predicates.refs import PathRef

        self.add_path(PathRef((text,)))
        self.file(text)

    def url(self, schema: Schema, text: str) -> None:
        from zcpolicy.predicates.refs import UrlRef

        self.add_url(UrlRef((text,)))
        self.file(text)

    def unreviewed(self, schema: Schema, text: str) -> None:
        self.found.partial = True
        self.path(schema, text)
        if is_url(text):
            from zcpolicy.predicates.refs import UrlRef

            self.add_url(UrlRef((text,)))

    def file(self, text: str) -> None:
        if ":" in text:
            from zcpolicy.predicates.url import file_path

            named = file_path(text)
            if named is not None:
                self.add_path(named)

    def shell(self, schema: Schema, text: str) -> None:
        from zcpolicy.predicates.shell import mentions

        self.found.partial = True
        read = mentions(text)
        for path in read.paths:
            self.add_path(path)
        for url in read.urls:
            self.add_url(url)
            if url.parts and url.parts[0] is not None:
                self.file("".join(part or "" for part in url.parts))
        if not read.readable:
            self.anywhere()
            self.anyhow()

    def command(self, schema: Schema, text: str) -> None:
        self.found.partial = True
        self.anywhere()
        self.anyhow()

    def anywhere(self) -> None:
        from zcpolicy.predicates.refs import ANYWHERE, PathRef

        self.add_path(PathRef((None,), ANYWHERE))

    def anyhow(self) -> None:
        from zcpolicy.predicates.refs import UrlRef

        self.add_url(UrlRef((None,)))

    def add_path(self, path: PathRef) -> None:
        if len(self.found.paths) < MAX_FOUND:
            self.found.paths.append(path)
        elif len(self.found.paths) == MAX_FOUND:
            from zcpolicy.predicates.refs import ANYWHERE, PathRef

            self.found.paths.append(PathRef((None,), ANYWHERE))

    def add_url(self, url: UrlRef) -> None:
        if len(self.found.urls) < MAX_FOUND:
            self.found.urls.append(url)
        elif len(self.found.urls) == MAX_FOUND:
            from zcpolicy.predicates.refs import UrlRef

            self.found.urls.append(UrlRef((None,)))


_ANY: Final[Schema] = {"kind": "any", "unreviewed": True}
_TEXTS: Final = {
    "string": _Search.string,
    "path": _Search.path,
    "url": _Search.url,
    "shell": _Search.shell,
    "command": _Search.command,
}


def is_url(text: str) -> bool:
    """Whether a string begins as a URL does: a known scheme, or any `scheme://`."""
    text = text.lstrip("\t\n\r\f ")[:200].lower()
    if text.startswith(_PREFIXES):
        return True
    scheme, mark, _ = text.partition("://")
    return bool(mark) and scheme[:1].isalpha() and scheme.isascii() and scheme.translate(_SCHEME_MARKS).isalnum()


_SCHEME_MARKS: Final = {ord(mark): None for mark in "+-."}


def kinds_below(schema: Schema) -> tuple[bool, bool]:
    """Whether values of this schema can hold paths, and URLs, because of their declared kinds."""
    kind = schema["kind"]
    if kind in ("shell", "command", "any"):
        return True, True
    if schema.get("unreviewed"):
        return True, True
    if kind == "list":
        return kinds_below(schema.get("item", _ANY))
    if kind == "object":
        extra = schema.get("extra", "allow")
        below = [kinds_below(field) for field in schema.get("fields", {}).values()]
        below.append((extra == "allow", extra == "allow") if isinstance(extra, str) else kinds_below(extra))
        return any(paths for paths, _ in below), any(urls for _, urls in below)
    return kind == "path", kind == "url"


def sources(schema: Schema) -> tuple[bool, bool]:
    """Whether a tool of this schema has arguments that can hold paths, and URLs."""
    return kinds_below(schema if "extra" in schema else {**schema, "extra": "deny"})

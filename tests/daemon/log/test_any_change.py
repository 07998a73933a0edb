"""Whatever is done to the bytes of a log, it is noticed; whatever an event holds, its line can be read again."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from zcpolicy.daemon.log.line import START, moment, read, write
from zcpolicy.daemon.log.mask import Masker
from zcpolicy.daemon.log.place import line_files
from zcpolicy.daemon.log.settings import Rotation
from zcpolicy.daemon.log.verify import verify

from .scene import event, opened

MASKER = Masker(b"k" * 32)
_ORIGINAL: dict[str, bytes] = {}


def original() -> dict[str, bytes]:
    """The files of a log with a rotated file, made once."""
    if not _ORIGINAL:
        with TemporaryDirectory() as folder:
            with opened(Path(folder), rotation=Rotation(65_536)) as log:
                for number in range(60):
                    log(event(number=number, text="y" * 1_900))
            _ORIGINAL.update((path.name, path.read_bytes()) for path in Path(folder).iterdir())
            assert len(line_files(folder)) == 3
    return _ORIGINAL


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of the log, and what is in it instead."""
    name = draw(st.sampled_from(sorted(name for name in original() if name.startswith("decisions"))))
    raw = original()[name]
    lines = raw.splitlines(keepends=True)
    at, to = sorted((draw(st.integers(0, len(raw) - 1)), draw(st.integers(0, len(raw) - 1))))
    one, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    changed = {
        "a byte": raw[:at] + bytes([raw[at] ^ draw(st.integers(1, 255))]) + raw[at + 1 :],
        "taken out": raw[:at] + raw[to + 1 :],
        "put in": raw[:at] + draw(st.binary(min_size=1, max_size=20)) + raw[at:],
        "cut": raw[:at],
        "twice": raw[:to] + raw[at:to] + raw[to:],
        "a line out": b"".join(lines[:one] + lines[one + 1 :]),
        "a line twice": b"".join([*lines[: one + 1], lines[one], *lines[one + 1 :]]),
        "a line elsewhere": b"".join([*lines[:other], lines[one], *lines[other:]]),
        "two exchanged": b"".join([*lines[:one], lines[other], *lines[one + 1 :]]),
    }
    return name, changed[draw(st.sampled_from(sorted(changed)))]


@given(changes())
@settings(max_examples=150, deadline=None)
def test_whatever_is_changed_is_noticed(change: tuple[str, bytes]) -> None:
    name, content = change
    with TemporaryDirectory() as folder:
        for other, raw in original().items():
            (Path(folder) / other).write_bytes(raw)
        (Path(folder) / name).write_bytes(content)
        assert not verify(folder).is_sound or content in (original()[name], original()[name].removesuffix(b"\n"))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
@settings(max_examples=300, deadline=None)
def test_every_line_is_canonical_and_is_read_again(data: dict[str, Any]) -> None:
    raw, head = write(START, {"at": moment(0.0), "kind": "call", "data": MASKER.fit(data)})
    assert raw[:-1] == rfc8785.dumps(json.loads(raw))
    line = read(raw[:-1])
    assert line.head == head
    assert b"\n" not in raw[:-1]

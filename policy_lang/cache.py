"""Entries kept by content: in this process, and in a folder if one is given.

In: keys (digests of all that an entry was computed from) and plain values of the language's own types. Out: the values,
or nothing: an entry that is missing, damaged or from elsewhere is no entry. Writers in other processes do no harm: an
entry is written aside and renamed, and equal keys mean equal entries. Whoever may write to the folder may change
policies: guard it like the policy files, and let the host name it among the protected ones.
"""

import hashlib
import io
import os
import pickle
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from policy_lang.source import Source

MAX_ENTRIES: Final = 4_096
"""Entries that are kept, in the process and in a folder; then the oldest go."""

MAX_ENTRY_BYTES: Final = 64 * 1024 * 1024
"""The largest entry that is read back."""

_OURS: Final = (
    "policy_lang.ast",
    "policy_lang.source",
    "policy_lang.diagnostics",
    "policy_lang.codes",
    "policy_lang.incremental",
)
_OTHERS: Final = frozenset({("decimal", "Decimal"), ("builtins", "frozenset"), ("builtins", "set")})


class Cache:
    """Entries by key. `folder` is made when the first entry is written; without one they live in this process."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = Path(folder) if folder is not None else None
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._stamp = _stamp()

    def key(self, *parts: str | bytes) -> str:
        """The key of an entry that is computed from these parts by this version of the compiler."""
        digest = hashlib.sha256(self._stamp)
        for part in parts:
            data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()

    def get(self, key: str, sources: Mapping[str, Source]) -> object | None:
        """The entry, with these sources in the place of those that it was made with; or `None`."""
        sealed = self._kept.get(key) or self._read(key)
        if sealed is None or hashlib.sha256(sealed[32:]).digest() != sealed[:32]:
            return None
        try:
            value: object = _Reader(sealed[32:], sources).load()
        except Exception:  # noqa: BLE001 - a pickle of another shape fails in any way; it is no entry then
            return None
        self._keep(key, sealed)
        return value

    def put(self, key: str, value: object) -> None:
        """Keep an entry. A folder that cannot be written to is left alone."""
        out = io.BytesIO()
        _Writer(out).dump(value)
        payload = out.getvalue()
        sealed = hashlib.sha256(payload).digest() + payload
        self._keep(key, sealed)
        if self._folder is not None:
            self._write(self._folder, key, sealed)

    def _keep(self, key: str, sealed: bytes) -> None:
        self._kept[key] = sealed
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_ENTRIES:
            self._kept.popitem(last=False)

    def _read(self, key: str) -> bytes | None:
        if self._folder is None:
            return None
        try:
            with (self._folder / key).open("rb") as stream:
                return stream.read(MAX_ENTRY_BYTES)
        except OSError:
            return None

    def _write(self, folder: Path, key: str, sealed: bytes) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(sealed)
                Path(name).replace(folder / key)
            except OSError:
                Path(name).unlink(missing_ok=True)
            _forget_oldest(folder)
        except OSError:
            return


def _forget_oldest(folder: Path) -> None:
    entries = list(folder.iterdir())
    if len(entries) > MAX_ENTRIES:
        by_age = sorted(entries, key=lambda path: path.stat().st_mtime)
        for path in by_age[: len(entries) - MAX_ENTRIES]:
            path.unlink(missing_ok=True)


def _stamp() -> bytes:
    """What entries depend on besides their parts: this Python, and each file of the compiler as it lies on disk."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("policy_lang", "zcpolicy"):
        module = sys.modules.get(name)
        for folder in getattr(module, "__path__", ()):
            for path in sorted(Path(folder).rglob("*.py")):
                status = path.stat()
                digest.update(f"{path.name}:{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.digest()


class _Writer(pickle.Pickler):
    """Sources are named, not written: they are at hand when the entry is read."""

    def __init__(self, out: io.BytesIO) -> None:
        super().__init__(out, protocol=5)

    def persistent_id(self, obj: object) -> str | None:
        return obj.name if isinstance(obj, Source) else None


class _Reader(pickle.Unpickler):
    """Reads values of the language's own types, and nothing else."""

    def __init__(self, payload: bytes, sources: Mapping[str, Source]) -> None:
        super().__init__(io.BytesIO(payload))
        self._sources = sources

    def persistent_load(self, pid: str) -> Source:
        return self._sources[pid]

    def find_class(self, module_name: str, global_name: str) -> object:
        if (module_name, global_name) in _OTHERS:
            return super().find_class(module_name, global_name)
        if module_name in _OURS:
            found = super().find_class(module_name, global_name)
            if isinstance(found, type) and found.__module__ == module_name:
                return found
        raise pickle.UnpicklingError("not a type of the language")

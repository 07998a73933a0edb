"""What must not happen in a phase: blocking work while a tool is constructed, construction and registration while a call runs.

In: a function that constructs. Out: what it makes, or `Offence`, which names the call.

Three things see a call: audit events of the interpreter (opening, connecting, starting processes and threads, whoever does it, C
extensions included), the profile events of this thread (calls of built-in functions from Python code that raise no audit event,
such as `os.stat` and `time.sleep`), and the tasks of the event loop. Not seen is what a call hands to a thread that runs already or
leaves with the event loop as a callback; what `ctypes` or a C extension asks of the system by itself; a built-in function that another
one calls (`map(os.stat, …)`); and beside a profiler written in C, with which ours cannot stand, everything without an audit event.
"""

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from zcpolicy.refusals import PermitError
from zcpolicy.texts import escaped

T = TypeVar("T")

MAX_OFFENCE: Final = 120
"""Characters of what a message quotes of a refused call."""

_READING: Final = {
    "open", "os.listdir", "os.scandir", "os.stat", "os.lstat", "os.fstat", "os.access", "os.readlink", "glob.glob", "glob.glob/2",
    "pathlib.Path.glob", "mmap.__new__",
}  # fmt: skip
"""What the text of a module that is being imported may do as well: it may have data beside it."""
_ALLOWED_IN_IMPORTS: Final = {"ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle"}
"""Libraries that such a module binds."""
_EVENTS: Final = {
    "builtins.input", "ctypes.dlopen", "fcntl.flock", "fcntl.lockf", "sqlite3.connect", "syslog.syslog", "time.sleep", "webbrowser.open",
    "_thread.start_new_thread", "_thread.start_joinable_thread", "sys.setprofile", *_READING,
}  # fmt: skip
_FAMILIES: Final = (
    "os.", "socket.", "subprocess.", "shutil.", "tempfile.", "urllib.", "http.client.", "ftplib.", "smtplib.", "imaplib.", "poplib.",
    "telnetlib.", "nntplib.", "pty.",
)  # fmt: skip
_HARMLESS: Final = {"os.putenv", "os.unsetenv", "os.add_dll_directory", "os.listdrives"}
_BUILT_IN: Final = {
    "posix": {
        "access", "fstat", "fsync", "fdatasync", "lstat", "pathconf", "pipe", "pread", "preadv", "pwrite", "pwritev", "read", "readlink",
        "readv", "sched_yield", "sendfile", "stat", "statvfs", "fstatvfs", "sync", "times", "wait", "wait3", "wait4", "waitid", "waitpid",
        "write", "writev", "mkfifo", "mknod", "openpty", "copy_file_range", "splice",
    },
    "nt": {"access", "fstat", "lstat", "stat", "read", "write", "readlink", "_getfinalpathname", "_path_exists", "_path_isfile"},
    "_thread": {"start_new_thread", "start_new", "start_joinable_thread"},
    "time": {"sleep"},
    "select": {"select"},
    "_socket": {"getfqdn", "if_nameindex", "socketpair"},
}  # fmt: skip
"""Functions that wait for the outside and raise no audit event, by module."""
_METHODS: Final = {
    "_socket": {"accept", "connect", "connect_ex", "recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "send", "sendall", "sendmsg", "sendto"},
    "_ssl": {"do_handshake", "load_cert_chain", "load_verify_locations", "read", "write"},
    "select": {"poll", "wait"},
}  # fmt: skip
_QUOTED: Final = {
    "open", "os.listdir", "os.scandir", "os.stat", "os.lstat", "os.access", "os.mkdir", "os.remove", "os.rename", "socket.getaddrinfo",
    "socket.gethostbyname", "sqlite3.connect", "subprocess.Popen", "glob.glob", "pathlib.Path.glob", "time.sleep", "os.readlink",
}  # fmt: skip
"""Calls whose first argument is shown: a path, a host, a program. Those of others may be secrets."""
_NAMED: Final = {
    "socket.__new__": "socket.socket", "urllib.Request": "urllib.request.urlopen", "_thread.start_new_thread": "threading.Thread.start",
    "_thread.start_joinable_thread": "threading.Thread.start",
}  # fmt: skip
"""Events by the name of what people write."""
_IMPORTERS: Final = ("<frozen importlib.", "<frozen zipimport>")
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep


class Offence(PermitError):
    """Something that must not happen while a tool is constructed. The message names the call and the place."""


class _Thread(threading.local):
    """What is so in this thread. `offence`: the first, which counts also where the tool has caught it."""

    on = False
    offence: Offence | None = None


_here: Final = _Thread()
_calls: Final = ContextVar("_calls", default=0)
_installing: Final = threading.Lock()
_installed: Final[list[bool]] = []


def constructed(make: Callable[[], T]) -> T:
    """What `make` makes, in this thread, without waiting for anything. Raises Offence, and what `make` raises.

    Importing stays possible. Afterwards everything is as it was, trace and profile functions included.
    """
    _install()
    outer = (_here.on, _here.offence)
    try:
        with _profiled(), _no_task():
            _here.on, _here.offence = True, None
            try:
                made = make()
            finally:
                _here.on, offence = False, _here.offence
    except Exception:
        if _here.offence is not None:
            raise _here.offence from None
        raise
    finally:
        _here.on, _here.offence = outer
    if offence is not None:
        raise offence
    return made


@contextmanager
def executing() -> Generator[None]:
    """A call of a tool runs, in this task and those that it starts."""
    token = _calls.set(_calls.get() + 1)
    try:
        yield
    finally:
        _calls.reset(token)


def not_in_a_call(what: str) -> None:
    """Raises PermitError while a call of a tool runs: tools are constructed and registered before."""
    if _calls.get():
        raise PermitError(f"{what} is no part of a call: a call handles one request")
    if _here.on:
        raise PermitError(f"{what} is no part of construction")


# --- what sees calls ---------------------------------------------------------------------------------------------


def _install() -> None:
    """Once for the process: an audit hook cannot be taken out again. While nothing is constructed it looks at one flag."""
    with _installing:
        if not _installed:
            sys.addaudithook(_audited)
            _installed.append(True)


def _audited(event: str, given: tuple[Any, ...]) -> None:
    if _here.on and _is_refused(event):
        _refuse(event, given, inspect.currentframe())


@contextmanager
def _no_task() -> Generator[None]:
    """Tasks that were started in the event loop of this thread are cancelled, and refused."""
    try:
        before = asyncio.all_tasks()
    except RuntimeError:  # there is no event loop
        yield
        return
    started: set[asyncio.Task[Any]] = set()
    try:
        yield
    finally:
        started = asyncio.all_tasks() - before
        for task in started:
            task.cancel()
    if started:
        raise Offence("a task is started while a tool is constructed: start it in `register`")


@contextmanager
def _profiled() -> Generator[None]:
    """Sees calls of built-in functions. A profiler in Python goes on beside it; one in C is left alone."""
    before: Any = sys.getprofile()
    if before is not None and not callable(before):
        yield
        return

    def profile(frame: FrameType, event: str, called: Any) -> None:
        if before is not None:
            before(frame, event, called)
        if event == "c_call" and (name := _waits(called)) and _here.on:
            _refuse(name, (), frame)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


def _waits(called: Any) -> str:
    """The name of a built-in function that waits for the outside, "" for others."""
    if type(called) is not BuiltinFunctionType:
        return ""
    name, module, owner = called.__name__, called.__module__, called.__self__
    if module in _BUILT_IN and name in _BUILT_IN[module]:
        return f"{'os' if module in ('posix', 'nt') else module}.{name}"
    kinds = (kind.__module__ for kind in type(owner).__mro__)
    kind = next((one for one in kinds if name in _METHODS.get(one, ())), "")
    return f"{kind.lstrip('_')}.{name}" if kind else ""


def _is_refused(event: str) -> bool:
    return event in _EVENTS or (event.startswith(_FAMILIES) and event not in _HARMLESS)


def _refuse(name: str, given: tuple[Any, ...], frame: FrameType | None) -> None:
    frames = list(_outwards(frame))
    if _is_of_import(name, given, [one.f_code for one in frames]):
        return
    found = Offence(f"{_spelled(name, given)} while a tool is constructed{_place(frames)}: do it in `register`")
    _here.offence = _here.offence or found
    raise found


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """From the call to the factory."""
    while frame is not None and frame.f_code is not constructed.__code__:
        if frame.f_code.co_filename != __file__:
            yield frame
        frame = frame.f_back


def _is_of_import(name: str, given: tuple[Any, ...], codes: list[CodeType]) -> bool:
    """Whether the import system does it, or a module that it imports does what such a one may."""
    if not any(code.co_filename.startswith(_IMPORTERS) for code in codes):
        return False
    own = bool(codes) and codes[0].co_filename.startswith(_IMPORTERS)
    return own or name in _ALLOWED_IN_IMPORTS or (name in _READING and not _writes(name, given))


def _writes(name: str, given: tuple[Any, ...]) -> bool:
    return name == "open" and len(given) > 2 and bool(given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _spelled(name: str, given: tuple[Any, ...]) -> str:
    named = _NAMED.get(name, name)
    shown: Any = given[0] if given and name in _QUOTED else None
    if name == "urllib.Request" and given:
        shown = urlsplit(str(given[0])).hostname
    if isinstance(shown, int | float):
        return f"`{named}({shown})`"
    if not isinstance(shown, str | bytes | os.PathLike):
        return f"`{named}`"
    return f'`{named}("{escaped(_text(shown)[:MAX_OFFENCE])}")`'


def _text(path: Any) -> str:
    return os.fsdecode(path)


def _place(frames: list[FrameType]) -> str:
    """Where: the innermost line that is not the standard library's."""
    at = next((one for one in frames if not one.f_code.co_filename.startswith((_LIBRARY, "<frozen"))), None)
    return "" if at is None else f" at {at.f_code.co_filename}:{at.f_lineno}"

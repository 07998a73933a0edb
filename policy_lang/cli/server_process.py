"""An MCP server as a process: started, listened to within bounds, ended with all that it started.

In: a command and its environment. Out: a transport for the official client, and afterwards what was wrong with the server.
The client's own transport reads a line of any length and drops what the server says on stderr; this one does not.
"""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

MAX_SENT: Final = 32 * 1024 * 1024
"""Bytes that a server may send until it has listed its tools."""
MAX_STDERR: Final = 4096
"""Bytes that are kept of what a server says last on its standard error."""
MAX_ENDING_SECONDS: Final = 2.0
"""Seconds that a server has to end after its input is closed, and again after SIGTERM; then it is killed."""

_LAST_LINES: Final = 4
_ON_VARIABLES: Final = "; of your variables it got HOME, PATH and the like, others only where `--env` names them"


class ServerProcess:
    """A server that a command starts, as a transport; entered once. It gets the few variables that the official client passes
    on, and `more`. `complaint`: what was wrong with it, "" for nothing that could be seen from here.
    """

    def __init__(self, command: Sequence[str], more: Mapping[str, str]) -> None:
        self.complaint = ""
        self._command = command
        self._environment = {**get_default_environment(), **more}
        self._said = b""
        self._answers: _Answers | None = None

    async def __aenter__(self) -> "tuple[_Answers, _Requests]":
        """Starts it. Raises OSError; then `complaint` says why."""
        try:
            process = await self._start()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self.complaint = f"it cannot be started: {reason[:1].lower()}{reason[1:]}"
            raise
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._listening = asyncio.create_task(self._keep(process.stderr))
        self._answers = _Answers(process.stdout)
        return self._answers, _Requests(process.stdin)

    async def _start(self) -> asyncio.subprocess.Process:
        """As `asyncio.create_subprocess_exec` does it; but the pipes can be closed, also with a server that still writes."""
        found = shutil.which(self._command[0], path=self._environment.get("PATH"))
        loop = asyncio.get_running_loop()
        self._pipes, protocol = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=MAX_SENT, loop=loop),
            found or self._command[0],
            *self._command[1:],
            env=self._environment,
            start_new_session=True,
        )
        return asyncio.subprocess.Process(self._pipes, protocol, loop)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it and all that it started; the process group is gone afterwards, or was killed."""
        assert self._answers is not None
        if self._answers.ended and not self._answers.too_much:
            await _until(lambda: self._process.returncode is not None)
        self.complaint = self._wrong(self._answers)
        try:
            await self._end()
        finally:
            if not self._gone():  # cut off: the gentle way is over
                self._signal(signal.SIGKILL)
            self._listening.cancel()
            self._pipes.close()

    async def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not self.complaint and await _until(self._gone):
            return
        self._signal(signal.SIGTERM)
        if not await _until(self._gone):
            self._signal(signal.SIGKILL)
            await _until(self._gone)

    def _gone(self) -> bool:
        return self._process.returncode is not None and not self._signal(0)

    def _signal(self, number: int) -> bool:
        """Signals the whole group; whether there is anybody in it."""
        if sys.platform == "win32":  # which has no groups
            if number and self._process.returncode is None:
                self._process.terminate()
            return self._process.returncode is None
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    async def _keep(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(MAX_STDERR):
            self._said = (self._said + piece)[-MAX_STDERR:]

    def _wrong(self, answers: "_Answers") -> str:
        if answers.too_much:
            return f"it sent more than {MAX_SENT:_} bytes"
        status = self._process.returncode
        if status is None:
            return ""
        how = f"it ended with status {status}" if status >= 0 else f"it was ended by signal {-status}"
        return how + self.last_words + (_ON_VARIABLES if status > 0 else "")

    @property
    def last_words(self) -> str:
        """What else is known where it gave no list: rubbish on stdout, the last lines on stderr. As the server wrote it."""
        rubbish = self._answers.rubbish if self._answers is not None else ""
        lines = [line.strip()[:200] for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        return (f"; it prints what is no MCP: `{rubbish}`" if rubbish else "") + (
            f"; it said: {' / '.join(lines[-_LAST_LINES:])}" if lines else ""
        )


async def _until(there: Callable[[], bool]) -> bool:
    """Whether it came to be in the time that an end may take."""
    clock = asyncio.get_running_loop().time
    until = clock() + MAX_ENDING_SECONDS
    while not there():
        if clock() > until:
            return False
        await asyncio.sleep(0.01)
    return True


class _Answers:
    """What a server prints, message by message; a line that is none is passed over, as the official client does."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self.ended = False
        self.too_much = False
        self.rubbish = ""
        self._stream = stream
        self._left = MAX_SENT

    async def __anext__(self) -> SessionMessage | Exception:
        while line := await self._line():
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                self.rubbish = self.rubbish or line[:200].decode("utf-8", "replace").strip()[:60]
        self.ended = True
        raise StopAsyncIteration

    async def _line(self) -> bytes:
        await asyncio.sleep(0)  # many short lines must not keep the time-out from being looked at
        try:
            line = await self._stream.readline()
        except ValueError:
            self.too_much = True
            return b""
        self._left -= len(line)
        self.too_much = self._left < 0
        return b"" if self.too_much else line

    async def receive(self) -> SessionMessage | Exception:
        return await anext(self)

    def __aiter__(self) -> "_Answers":
        return self

    async def aclose(self) -> None:
        """Nothing: the process is ended by who started it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class _Requests:
    """What a server is sent."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    async def send(self, item: SessionMessage, /) -> None:
        """What a server that has ended does not read is lost: its end is seen where its answers are read."""
        self._stream.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        try:
            await self._stream.drain()
        except ConnectionError:
            return

    async def aclose(self) -> None:
        self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()

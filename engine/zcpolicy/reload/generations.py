"""One canonical generation of a policy, and how it comes to the next.

In: a source, a compiler, a folder that keeps the last good policy. Out: a resolver that follows its source. One reload at a time:
read and compile, keep, publish, tell. Whatever goes wrong before a policy is published leaves the old one whole.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

from zcpolicy.program import Program
from zcpolicy.reload.beginning import InForce, Make, begin, files_of, print_of, watched
from zcpolicy.reload.kept import LastGood
from zcpolicy.reload.moments import moment
from zcpolicy.reload.outcomes import Failure, Reloaded, why_of
from zcpolicy.reload.reading import Reading
from zcpolicy.reload.settling import Settling, found_in
from zcpolicy.reload.sources import Compile, PolicySource, Unreadable, reason
from zcpolicy.reload.staleness import Staleness
from zcpolicy.reload.targets import Event, Targets
from zcpolicy.reload.watching import POLL_SECONDS, Watch, ended
from zcpolicy.resolver import Resolver

__all__ = ["Failure", "Generations", "Make", "Reloaded"]

MIN_LOOK_SECONDS: Final = 0.05
"""The shortest time between two looks at how old the policy is."""

_log: Final = logging.getLogger("zcpolicy")


class Generations:
    """Made by `start`. `async with` it to watch the source, tell `targets` and keep to `max_staleness`; leaving ends all that, and
    gives back the folder.

    `resolver`: the first one; it and all that it resolves follow. `targets`: who else has to.
    """

    def __init__(self, sealed: _Start) -> None:
        self._source = sealed.source
        self._compile = sealed.compiler
        self._how = sealed.how
        self._store = sealed.store
        self._bump = sealed.bump
        self._record = sealed.record
        self._follows = sealed.follow
        self._is_behind = False
        self._writing = threading.Lock()
        self._in_line = asyncio.Lock()
        self._failure: Failure | None = sealed.failure
        self._seen = sealed.reading
        self._now_in_force = sealed.in_force
        self._staleness = sealed.staleness
        self.resolver: Final = sealed.resolver
        self.targets: Final = Targets(now=sealed.how.now)
        self._watch = Watch(self._looked, lambda: self._places, sealed.store.files, **sealed.watching)
        self._hangup = sealed.hangup
        self._lapsed = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self._watching: list[asyncio.Task[None]] = []
        self._places = watched(sealed.source, sealed.reading)
        self.resolver.lapse_when(self._why_lapsed)

    @classmethod
    def start(
        cls,
        source: PolicySource,
        compiler: Compile,
        folder: str | os.PathLike[str],
        *,
        make: Make,
        max_staleness: float | None = None,
        bump: Callable[[], object] | None = None,
        record: Callable[[Reloaded | Failure], object] | None = None,
        follow: bool = True,
        hangup: bool = False,
        how: Settling | None = None,
        **watching: Any,
    ) -> Self:
        """The policy of now, or where that is none, the last good one of the folder: then `status` says why.

        It reads and compiles: call it before an event loop runs, or in a thread. `bump`: called as a generation is published.
        `record`: told of every new generation, of every failure that is not the one before, and of the policy in force where it was good
        again after one, in the order in which they came, in a thread. `follow`: False: what changes is loaded when somebody asks; that the source can be read is seen all the same.
        `hangup`: SIGHUP is a request. `max_staleness`: seconds. `watching`: `poll`, `debounce` (seconds), `told=False` to hear nothing
        from the file system. Raises Broken or Unreadable without a last good policy, KeptError, ValueError, and what `make` raises.
        """
        how = how or Settling()
        staleness = Staleness(max_staleness, how.now, how.ticks)
        store = LastGood(folder)
        try:
            found = found_in(source, compiler, how)
            begun = begin(source, found, store, store.load(), make, staleness, how)
        except BaseException:
            store.close()
            raise
        resolver, in_force, failure = begun
        watching.setdefault("told", follow)
        if max_staleness is not None:
            # as often as it takes to notice in time
            watching["poll"] = min(watching.get("poll", POLL_SECONDS), max_staleness / 4)
        return cls(
            _Start(
                source,
                compiler,
                how,
                store,
                bump,
                record,
                follow,
                failure,
                found.reading,
                in_force,
                staleness,
                resolver,
                hangup,
                watching,
            )
        )

    # --- reloads -------------------------------------------------------------------------------------------------------

    async def reload(self) -> Reloaded | Failure:
        """Reads the source now, and publishes what it has become. Cut off, it still ends, whole. Never raises."""
        task = asyncio.get_running_loop().create_task(self._in_turn(self.reload_now))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    def request(self) -> None:
        """The same soon, from any thread or a signal's handler: what is asked for close together is one reload."""
        self._watch.request()

    def reload_now(self) -> Reloaded | Failure:
        """`reload` for threads: waits for writers, for the disk and for other reloads. Never raises."""
        with self._writing:
            found = found_in(self._source, self._compile, self._how)
            self._seen, self._is_behind = found.reading, False
            self._places = watched(self._source, found.reading, self._now_in_force.reading)
            if not isinstance(found.program, Unreadable):
                self._heard(found.at)
            if isinstance(found.program, Program):
                return self._take(found.program, found.reading)
            return self._failed(*why_of(found.program))

    def glance(self) -> None:
        """Makes sure that the source is still as it was seen, by the times of its files; else reads it. For threads."""
        with self._writing:
            failure, at = self._failure, self._how.ticks()
            known = (failure is None or failure.kind == "broken") and self._is_as_seen(self._seen)
            if known:
                self._heard(at)
                if failure is None:
                    self._reinstate()
        if not known:
            self.reload_now()

    def look(self) -> None:
        """Makes sure that the source can be read, and loads nothing: for hosts whose policy changes when somebody asks."""
        with self._writing:
            reading, at = self._now_in_force.reading, self._how.ticks()
            self._is_behind = reading is None or not self._is_as_seen(reading)
            if reading is not None and reading.is_there():
                self._heard(at)
                if self._failure is None or self._failure.kind == "unreadable":
                    self._reinstate()

    def _is_as_seen(self, seen: Reading) -> bool:
        try:
            return self._source.roots() == seen.roots and seen.unchanged()
        except Unreadable:
            return False

    def _take(self, program: Program, reading: Reading) -> Reloaded | Failure:
        """A good policy: if it is another than the one in force, it is kept, and then published."""
        old, files = self._now_in_force, files_of(self._source, reading, self._store)
        changed, print_ = reading.changed(old.reading), print_of(program)
        if print_ == old.print and files == old.files and old.kept:
            self._now_in_force = old._replace(reading=reading)
            before, self._failure = self._failure, None
            self._reinstate()
            same = Reloaded(self.resolver.newest.generation, is_new=False, changed=changed)
            if before is not None:
                self._tell(same)
            return same
        number, since = max(self.resolver.newest.generation, self._store.latest) + 1, self._how.now()
        try:
            self._store.save(number, program, files, since, self._staleness.heard)
            self._publish(program, number, InForce(print_, reading, files, since, kept=True))
        except Exception as fault:  # noqa: BLE001 - a disk that is full, a path that cannot be protected, a function of the host's
            self._now_in_force = self._now_in_force._replace(kept=False)
            what = reason(fault) if isinstance(fault, OSError) else f"{type(fault).__name__}: {fault}"
            return self._failed("not-kept", f"the policy cannot be kept, or not be put in force: {what}")
        self._failure = None
        done = Reloaded(number, is_new=True, changed=changed)
        self._tell(done)
        return done

    def _publish(self, program: Program, number: int, in_force: InForce) -> None:
        """In one step for everybody who decides. What was derived from the old policy is void with it: where the host cannot say
        so, nothing is decided that might rest on it.
        """
        with self.resolver.exclusive:
            self.resolver.publish(program, policy_files=in_force.files, generation=number)
            self._now_in_force = in_force
            try:
                if self._bump is not None:
                    self._bump()
            except Exception as fault:
                self.resolver.suspend(f"what was derived from the policy could not be renewed: {type(fault).__name__}")
                raise

    def _failed(self, kind: Literal["broken", "unreadable", "not-kept"], why: str) -> Failure:
        before = self._failure
        self._failure = failure = Failure(kind, why, self.resolver.newest.generation, self._how.now())
        if before is None or (before.kind, before.why) != (kind, why):
            self._tell(failure)
        return failure

    def _heard(self, ticks: float) -> None:
        self._staleness.confirm(ticks=ticks)
        self._store.confirm(self._staleness.heard)

    def _why_lapsed(self) -> str:
        """Asked by every call that is to be permitted."""
        why = self._staleness.why()
        if why:
            self._lapsed = why
        return why

    def _reinstate(self) -> None:
        """A policy that was suspended because nobody could read it, and has been read since, decides again."""
        with self.resolver.exclusive:
            if self._lapsed and self.resolver.newest.suspended == self._lapsed:
                self.resolver.reinstate()

    def _tell(self, done: Reloaded | Failure) -> None:
        """What the record cannot take changes nothing any more: the policy is in force, or is not."""
        loop = self._loop
        if isinstance(done, Reloaded) and done.is_new and loop is not None:
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(self.targets.tell, Event(done.generation, done.changed))
        try:
            if self._record is not None:
                self._record(done)
        except Exception:  # noqa: BLE001 - it is told to whoever reads the log
            _log.exception("a reload could not be put on record")

    # --- while it runs -------------------------------------------------------------------------------------------------

    async def _in_turn(self, work: Callable[[], Any]) -> Any:
        """In a thread, one after the other, so that no number of requests takes up all threads."""
        async with self._in_line:
            return await asyncio.to_thread(work)

    async def _looked(self, asked: bool) -> None:
        if asked:
            await self.reload()
        else:
            await self._in_turn(self.glance if self._follows else self.look)

    async def __aenter__(self) -> Self:
        self._loop = loop = asyncio.get_running_loop()
        self._watching = [loop.create_task(self._watch.watch(hangup=self._hangup)), loop.create_task(self._grow_old())]
        return self

    async def _grow_old(self) -> None:
        """Has a stale policy suspended at once, also where nobody asks the gate, and while a reload hangs."""
        while True:
            left = self._staleness.left()
            await asyncio.sleep(max(MIN_LOOK_SECONDS, POLL_SECONDS if left is None else left))
            _ = self.resolver.newest  # asks how old it is

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await ended(*self._watching)
        await asyncio.wait(self._running) if self._running else None
        self._loop = None
        await self.targets.close()
        self.close()

    def close(self) -> None:
        """Gives back the folder; the policy stays in force until it is stale. Waits for a reload that is under way."""
        with self._writing:
            self._store.close()

    # --- what is so ----------------------------------------------------------------------------------------------------

    @property
    def files(self) -> tuple[str, ...]:
        """All that decides what the policy is, absolute: what the resolver protects by now."""
        return self._now_in_force.files

    def status(self) -> dict[str, Any]:
        """JSON: the generation in force, the last failure until a reload goes well, targets, staleness, how it is watched."""
        newest, stale = self.resolver.newest, self._staleness
        return {
            "generation": newest.generation,
            "digest": newest.program.digest,
            "since": moment(self._now_in_force.since),
            "source": {"kind": "folder" if self._source.is_folder else "layers", "paths": list(self._source.paths)},
            "behind": self._is_behind,
            "from_source": self._now_in_force.reading is not None,
            "suspended": newest.suspended or None,
            "failure": None if self._failure is None else self._failure.to_json(),
            "staleness": {"limit": stale.limit, "heard": moment(stale.heard), "age": round(stale.age(), 3)},
            "targets": self.targets.status(),
            "watch": self._watch.status(),
        }


class _Start(NamedTuple):
    """All that generations begin with."""

    source: PolicySource
    compiler: Compile
    how: Settling
    store: LastGood
    bump: Callable[[], object] | None
    record: Callable[[Reloaded | Failure], object] | None
    follow: bool
    failure: Failure | None
    reading: Reading
    in_force: InForce
    staleness: Staleness
    resolver: Resolver
    hangup: bool
    watching: dict[str, Any]

"""One canonical generation of a policy, and how it comes to the next.

In: a source, a compiler, a folder that keeps the last good policy. Out: a resolver that follows its source. One reload at a time:
read and compile, keep, publish, tell. Whatever goes wrong before a policy is published leaves the old one whole.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

from zcpolicy.program import Program
from zcpolicy.reload.kept import Kept, LastGood
from zcpolicy.reload.moments import moment
from zcpolicy.reload.reading import Reading, places_of
from zcpolicy.reload.settling import Found, Settling, found_in
from zcpolicy.reload.sources import ROOT, Broken, Compile, PolicySource, Unreadable, reason
from zcpolicy.reload.staleness import Staleness
from zcpolicy.reload.targets import Event, Targets
from zcpolicy.reload.watching import POLL_SECONDS, Watch
from zcpolicy.resolver import Resolver

MIN_LOOK_SECONDS: Final = 0.05
"""The shortest time between two looks at how old the policy is."""

Make = Callable[[Program, int, tuple[str, ...]], Resolver]
"""The host's resolver, from a program, the number of its generation, and the files of the policy, to be protected."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A reload that went well. `changed`: the files that are not what they were; `is_new`: whether a generation was made of it."""

    generation: int
    is_new: bool
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A reload that did not. `generation`: the one that was kept. `why`: with the diagnostics, lines of text. `at`: in seconds
    since 1970. `kind`: the policy has errors; its source cannot be read; it cannot be kept or published.
    """

    kind: Literal["broken", "unreadable", "not-kept"]
    why: str
    generation: int
    at: float

    def to_json(self) -> dict[str, Any]:
        """As `status` shows it."""
        return {"kind": self.kind, "why": self.why, "generation": self.generation, "at": moment(self.at)}


class _InForce(NamedTuple):
    """What the newest generation was made of. `print`: of the compiled policy with its origins. `kept`: False: the next reload has
    to make a generation of it, although it is the same.
    """

    print: str
    reading: Reading | None
    files: tuple[str, ...]
    since: float
    kept: bool


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
        self._writing = threading.Lock()
        self._in_line = asyncio.Lock()
        self._failure: Failure | None = sealed.failure
        self._seen: Reading | None = sealed.reading
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
        self._places = _places(sealed.source, sealed.reading)
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
        hangup: bool = False,
        how: Settling | None = None,
        **watching: Any,
    ) -> Self:
        """The policy of now, or where that is none, the last good one of the folder: then `status` says why.

        It reads and compiles: call it before an event loop runs, or in a thread. `bump`: called as a generation is published.
        `hangup`: SIGHUP is a request. `max_staleness`: seconds. `watching`: `poll`, `debounce` (seconds), `told=False` to hear nothing
        from the file system. Raises Broken or Unreadable without a last good policy, KeptError, ValueError, and what `make` raises.
        """
        how = how or Settling()
        staleness = Staleness(max_staleness, how.now, how.ticks)
        store = LastGood(folder)
        try:
            found = found_in(source, compiler, how)
            begun = _begin(source, found, store, store.load(), make, staleness, how)
        except BaseException:
            store.close()
            raise
        resolver, in_force, failure = begun
        if max_staleness is not None:
            watching["poll"] = min(watching.get("poll", POLL_SECONDS), max_staleness / 4)
        return cls(
            _Start(
                source,
                compiler,
                how,
                store,
                bump,
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
            self._seen = found.reading
            self._places = _places(self._source, found.reading, self._now_in_force.reading)
            if not isinstance(found.program, Unreadable):
                self._heard(found.at)
            if isinstance(found.program, Program):
                return self._take(found.program, found.reading)
            return self._failed(*_why(found.program))

    def glance(self) -> None:
        """Makes sure that the source is still as it was seen, by the times of its files; else reads it. For threads."""
        with self._writing:
            seen, failure, at = self._seen, self._failure, self._how.ticks()
            known = seen is not None and (failure is None or failure.kind == "broken") and self._is_as_seen(seen)
            if known:
                self._heard(at)
                if failure is None:
                    self._reinstate()
        if not known:
            self.reload_now()

    def _is_as_seen(self, seen: Reading) -> bool:
        try:
            return self._source.roots() == seen.roots and seen.unchanged()
        except Unreadable:
            return False

    def _take(self, program: Program, reading: Reading) -> Reloaded | Failure:
        """A good policy: if it is another than the one in force, it is kept, and then published."""
        old, files = self._now_in_force, _files(self._source, reading, self._store)
        changed, print_ = reading.changed(old.reading), _print(program)
        if print_ == old.print and files == old.files and old.kept:
            self._now_in_force = old._replace(reading=reading)
            self._failure = None
            self._reinstate()
            return Reloaded(self.resolver.newest.generation, is_new=False, changed=changed)
        number, since = max(self.resolver.newest.generation, self._store.latest) + 1, self._how.now()
        try:
            self._store.save(number, program, files, since, self._staleness.heard)
            self._publish(program, number, _InForce(print_, reading, files, since, kept=True))
        except Exception as fault:  # noqa: BLE001 - a disk that is full, a path that cannot be protected, a function of the host's
            self._now_in_force = self._now_in_force._replace(kept=False)
            what = reason(fault) if isinstance(fault, OSError) else f"{type(fault).__name__}: {fault}"
            return self._failed("not-kept", f"the policy cannot be kept, or not be put in force: {what}")
        self._failure = None
        self._tell(Event(number, changed))
        return Reloaded(number, is_new=True, changed=changed)

    def _publish(self, program: Program, number: int, in_force: _InForce) -> None:
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
        self._failure = Failure(kind, why, self.resolver.newest.generation, self._how.now())
        return self._failure

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

    def _tell(self, event: Event) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.targets.tell, event)

    # --- while it runs -------------------------------------------------------------------------------------------------

    async def _in_turn(self, work: Callable[[], Any]) -> Any:
        """In a thread, one after the other, so that no number of requests takes up all threads."""
        async with self._in_line:
            return await asyncio.to_thread(work)

    async def _looked(self, asked: bool) -> None:
        if asked:
            await self.reload()
        else:
            await self._in_turn(self.glance)

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
        for task in self._watching:
            task.cancel()
        await asyncio.wait((*self._running, *self._watching))
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
    failure: Failure | None
    reading: Reading
    in_force: _InForce
    staleness: Staleness
    resolver: Resolver
    hangup: bool
    watching: dict[str, Any]


def _begin(
    source: PolicySource,
    found: Found,
    store: LastGood,
    kept: Kept | None,
    make: Make,
    staleness: Staleness,
    how: Settling,
) -> tuple[Resolver, _InForce, Failure | None]:
    """The first resolver: of the source, under the number of before if it is the policy of before; or of what was kept."""
    if isinstance(found.program, Program):
        files, print_ = _files(source, found.reading, store), _print(found.program)
        same = kept is not None and kept.program is not None and _print(kept.program) == print_ and kept.files == files
        number, since = (kept.generation, kept.since) if kept is not None and same else (store.latest + 1, how.now())
        made = make(found.program, number, files)
        staleness.confirm(ticks=found.at)
        if same:
            store.confirm(staleness.heard)
        else:
            store.save(number, found.program, files, since, staleness.heard)
        return made, _InForce(print_, found.reading, files, since, kept=True), None
    kind, why = _why(found.program)
    if kept is None or kept.program is None:
        raise found.program if kept is None else Unreadable(f"{why}\nand {kept.why}")
    if kind == "broken":
        staleness.confirm(ticks=found.at)
    else:
        now = how.now()  # a file of the future is as strange as it is far from now
        staleness.confirm(now=now - abs(now - kept.heard))
    made = make(kept.program, kept.generation, kept.files)
    failure = Failure(kind, why, kept.generation, how.now())
    return made, _InForce(_print(kept.program), None, kept.files, kept.since, kept=True), failure


def _why(error: Broken | Unreadable) -> tuple[Literal["broken", "unreadable"], str]:
    return ("broken", error.diagnostics) if isinstance(error, Broken) else ("unreadable", str(error))


def _print(program: Program) -> str:
    """What two policies have in common that are the same in every word that a decision can quote."""
    return sha256(program.dump()).hexdigest()


def _files(source: PolicySource, reading: Reading, store: LastGood) -> tuple[str, ...]:
    """What no tool may write: the files, what leads to them, and the folder where the policy is one."""
    of_source = [place for path in source.paths for place in places_of(path)]
    return tuple(dict.fromkeys((*of_source, *reading.places(), *store.files)))


def _places(source: PolicySource, *readings: Reading | None) -> tuple[str, ...]:
    """Whose folders are watched: of what was read last, also where no policy came of it, and of what is in force."""
    inside = [os.path.join(path, ROOT) for path in source.paths] if source.is_folder else []
    read = [place for reading in readings if reading is not None for place in reading.places()]
    return tuple(dict.fromkeys((*inside, *source.paths, *read)))

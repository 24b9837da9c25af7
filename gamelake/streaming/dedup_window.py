"""The deduplication window in the driver: the files with the identities of recently ingested events."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from obstore.exceptions import BaseError

from gamelake.model.clocks import SteadyClock
from gamelake.model.logs import event_logger
from gamelake.model.naming import events_folder
from gamelake.storage.manifests import BatchManifest, EventsFile, Manifests
from gamelake.storage.store import Store
from gamelake.streaming.plan import EVENTS_IN_MEMORY, DedupPlan, KnownFile

_READERS = 8
_MICROSECONDS = 1_000_000

log = event_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupLimits:
    """How long an event's identity is kept, and how many at most: beyond that the oldest are dropped.

    Attributes:
        events: on the store, of all partitions together.
        in_memory: of each worker process; it keeps the others in scratch files.
    """

    window: timedelta = timedelta(minutes=10)
    events: int = 400_000_000
    in_memory: int = EVENTS_IN_MEMORY

    @property
    def is_off(self) -> bool:
        """Whether deduplication is off."""
        return not self.window


class DedupWindow:
    """The identity files of the window, from the manifests; a file that no manifest has does not count.

    For each Kafka partition the window ends with the newest event in silver, and begins `limits.window` before.

    Attributes:
        left_out: how many events of the window the last plan leaves out, as there are more than `limits.events`.

    Args:
        clock: the present time in microseconds since 1970. A jump of it would move events out of the window.
    """

    def __init__(self, store: Store, stream: str, limits: DedupLimits, clock: Callable[[], int] | None = None) -> None:
        self._store = store
        self._clock = clock or SteadyClock()
        self._folder = events_folder(stream)
        self._limits = limits
        self._files: dict[str, EventsFile] = {}
        self._expired_files: set[str] = set()
        self.left_out = 0

    def resume(self, manifests: Manifests) -> None:
        """Read the window at a start from existing files and the manifests of their batches.

        Files that no manifest has are deleted, except those of a batch that is not decided yet: another driver may be
        about to decide it.
        """
        paths = self._store.paths(self._folder)
        there: defaultdict[int, set[str]] = defaultdict(set)
        for path in paths:
            there[batch_of(path)].add(path)
        unnamed = set()
        with ThreadPoolExecutor(_READERS) as pool:
            for manifest in pool.map(manifests.read, sorted(there)):
                if manifest is not None:
                    found = there[manifest.batch_id]
                    unnamed |= found - self._add(manifest, found)
        self._remove(unnamed | self._expired())

    def _add(self, manifest: BatchManifest, there: set[str]) -> set[str]:
        """Add the existing files of a batch; gives their paths."""
        named = {file.path: file for file in manifest.events if file.path in there}
        if lost := len(manifest.events) - len(named):
            log.warning(
                "dedup_files_missing",
                batch=manifest.batch_id,
                files=lost,
                action="duplicates of these events can't be found",
            )
        self._files |= named
        return set(named)

    def took(self, manifest: BatchManifest) -> None:
        """Add the files of a committed batch, and delete files that are older than the window."""
        self._files |= {file.path: file for file in manifest.events}
        self._remove(self._expired())

    def _newest(self) -> dict[int, int]:
        newest: dict[int, int] = {}
        for file in self._files.values():
            for section in file.sections:
                newest[section.partition] = max(section.newest, newest.get(section.partition, 0))
        return newest

    def _expired(self) -> set[str]:
        """The files with only events older than the window of their partition."""
        newest, seconds = self._newest(), int(self._limits.window.total_seconds())
        return {
            file.path
            for file in self._files.values()
            if all(section.newest < newest[section.partition] - seconds for section in file.sections)
        }

    def _remove(self, paths: set[str]) -> None:
        for path in paths:
            self._files.pop(path, None)
        self._expired_files |= paths
        try:
            # Those of the oldest batch first: by the oldest file another stream knows how long the window is.
            for _, of_batch in groupby(sorted(self._expired_files), batch_of):
                going = list(of_batch)
                self._store.delete_all(going)
                self._expired_files.difference_update(going)
        except (BaseError, OSError) as error:
            # No plan has them any more.
            log.warning("dedup_files_not_deleted", error=error, action="the next batch tries again")

    def plan(self, seed: str, batch_id: int) -> DedupPlan:
        """The plan for the tasks of a batch: the identity files of the window, the newest first."""
        newest, seconds = self._newest(), int(self._limits.window.total_seconds())
        known: defaultdict[int, list[KnownFile]] = defaultdict(list)
        left, left_out = self._limits.events, 0
        # Names begin with the batch id.
        for path, file in sorted(self._files.items(), reverse=True):
            for section in file.sections:
                if section.newest < newest[section.partition] - seconds:
                    continue
                left -= section.events
                if left >= 0:
                    known[section.partition].append(KnownFile(path, section.start, section.events, section.newest))
                else:
                    left_out += section.events
        self._report(left_out)
        return DedupPlan(
            folder=self._folder,
            batch_id=batch_id,
            seed=seed,
            window_seconds=seconds,
            known={partition: tuple(files) for partition, files in known.items()},
            # A clock that went back between two starts must not make new events older than those before them.
            clock=max(self._clock(), max(newest.values(), default=0) * _MICROSECONDS),
            in_memory=self._limits.in_memory,
        )

    def _report(self, left_out: int) -> None:
        if left_out and not self.left_out:
            log.warning(
                "dedup_window_full",
                events=self._limits.events,
                action="duplicates of the oldest are not found; raise GAMELAKE_DEDUP_MAX_EVENTS, or shorten the window",
            )
        self.left_out = left_out


def batch_of(path: str) -> int:
    """The batch id in the name of an identity file."""
    return int(path.rsplit("/", 1)[-1].partition("-")[0])

"""Keeps the deduplication window in the driver: the files with the identities of recently ingested events."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from obstore.exceptions import BaseError

from gamelake.ledger.manifests import BatchManifest, EventsFile, Manifests
from gamelake.model.clocks import SteadyClock
from gamelake.model.logs import event_logger
from gamelake.model.naming import events_folder
from gamelake.objects.store import Store
from gamelake.streaming.dedup.identity_files import files_to_merge, is_small, merge, newest_of
from gamelake.streaming.plan import EVENTS_IN_MEMORY, DedupPlan, KnownFile

_READERS = 8
_MICROSECONDS = 1_000_000
# The longest time from a batch's plan, in this stream or another, until its tasks have read the identity files.
LONGEST_BATCH_SECONDS = 3_600

log = event_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupLimits:
    """The limits of a deduplication window.

    Attributes:
        window: the time for which an event's identity is kept; 0 turns deduplication off.
        events: the largest number of identities that a batch's plan has, of all partitions together; beyond it the
            oldest are left out.
        in_memory: the largest number that each worker process keeps in memory; the rest is in scratch files.
        small_files: if the window has more small files of identities, each batch merges some.
    """

    window: timedelta = timedelta(minutes=10)
    events: int = 400_000_000
    in_memory: int = EVENTS_IN_MEMORY
    small_files: int = 256

    @property
    def is_off(self) -> bool:
        """True if deduplication is off."""
        return not self.window


class DedupWindow:
    """The identity files of the window, as the manifests name them; a file that no manifest names does not count.

    For each Kafka partition the window ends with the newest event in silver, and begins `limits.window` before.

    Attributes:
        left_out: the number of the window's events that the last plan leaves out, because the window has more than
            `limits.events`.

    Args:
        store: the lakehouse.
        stream: the name of the stream.
        limits: of the window.
        clock: returns the time in microseconds since 1970. It must not jump: that would move events out of the window.
    """

    def __init__(self, store: Store, stream: str, limits: DedupLimits, clock: Callable[[], int] | None = None) -> None:
        self._store = store
        self._clock = clock or SteadyClock()
        self._folder = events_folder(stream)
        self._limits = limits
        self._files: dict[str, EventsFile] = {}
        # Merged files by path, each with the time of the merge, in seconds since 1970.
        self._replaced: dict[str, tuple[EventsFile, int]] = {}
        # Files to delete, each with its newest timestamp.
        self._going: dict[str, int] = {}
        self.left_out = 0

    def resume(self, manifests: Manifests) -> None:
        """Read the window at a start from the existing files and the manifests of their batches.

        Files that no manifest names are deleted, except those of an undecided batch: another driver may be about to
        decide that batch.
        """
        paths = self._store.paths(self._folder)
        there: defaultdict[int, set[str]] = defaultdict(set)
        for path in paths:
            there[batch_of(path)].add(path)
        with ThreadPoolExecutor(_READERS) as pool:
            read = pool.map(manifests.read, sorted(there))
            events = {manifest.batch_id: manifest.events for manifest in read if manifest is not None}
        for batch, files in events.items():
            self._add(file for file in files if file.path in there[batch])
            self._going |= dict.fromkeys(there[batch] - {file.path for file in files}, 0)
        merged_through = max((batch_of(path) for path, file in self._files.items() if file.replaces), default=-1)
        for batch, files in events.items():
            lost = [file for file in files if file.path not in there[batch]]
            # Small files may be missing because they were merged.
            self._report_lost(batch, lost if batch >= merged_through else [each for each in lost if not is_small(each)])
        self._remove_old()

    @staticmethod
    def _report_lost(batch: int, lost: Sequence[EventsFile]) -> None:
        if lost:
            action = "duplicates of these events can't be found"
            log.warning("dedup_files_missing", batch=batch, files=len(lost), action=action)

    def _add(self, files: Iterable[EventsFile]) -> None:
        for file in files:
            self._files[file.path] = file
            for path in file.replaces:
                if (replaced := self._files.pop(path, None)) is not None:
                    self._replaced[path] = (replaced, file.merged_at)

    def merged(self, batch_id: int) -> tuple[EventsFile, ...]:
        """Merge some small files if there are many; the merged file counts once the batch's manifest names it."""
        chosen = files_to_merge(self._files.values(), self._seconds, self._limits.small_files)
        merged = merge(self._store, self._folder, batch_id, chosen, self._now()) if chosen else None
        return () if merged is None else (merged,)

    def took(self, manifest: BatchManifest) -> None:
        """Add the files of a committed batch; delete files that are older than the window or were merged long ago."""
        self._add(manifest.events)
        self._remove_old()

    @property
    def _seconds(self) -> int:
        return int(self._limits.window.total_seconds())

    def _now(self) -> int:
        return self._clock() // _MICROSECONDS

    def _newest(self) -> dict[int, int]:
        newest: dict[int, int] = {}
        for file in self._files.values():
            for section in file.sections:
                newest[section.partition] = max(section.newest, newest.get(section.partition, 0))
        return newest

    def _remove_old(self) -> None:
        """Delete the files whose events are all older than their partition's window, and those merged long ago."""
        newest, seconds, now = self._newest(), self._seconds, self._now()

        def is_expired(file: EventsFile) -> bool:
            return all(each.newest < newest.get(each.partition, 0) - seconds for each in file.sections)

        expired = [file for file in self._files.values() if is_expired(file)]
        replaced = [
            file for file, at in self._replaced.values() if is_expired(file) or now - at > LONGEST_BATCH_SECONDS
        ]
        for file in (*expired, *replaced):
            self._files.pop(file.path, None)
            self._replaced.pop(file.path, None)
            self._going[file.path] = newest_of(file)
        self._delete()

    def _delete(self) -> None:
        try:
            # The oldest events first: other streams derive the length of the window from the oldest file.
            for _, of_one_time in groupby(sorted(self._going, key=self._going.__getitem__), self._going.__getitem__):
                going = list(of_one_time)
                self._store.delete_all(going)
                for path in going:
                    del self._going[path]
        except (BaseError, OSError) as error:
            # No later plan names them.
            log.warning("dedup_files_not_deleted", error=error, action="the next batch tries again")

    def plan(self, seed: str, batch_id: int) -> DedupPlan:
        """Return the plan for the tasks of a batch: the identity files of the window, the newest first.

        Args:
            seed: of the identities.
            batch_id: of the batch.
        """
        newest, seconds = self._newest(), self._seconds
        known: defaultdict[int, list[KnownFile]] = defaultdict(list)
        left, left_out = self._limits.events, 0
        for path, file in sorted(self._files.items(), key=lambda item: (newest_of(item[1]), item[0]), reverse=True):
            for section in file.sections:
                if section.newest < newest[section.partition] - seconds:
                    continue
                left -= section.events
                if left >= 0:
                    known[section.partition].append(KnownFile(path, section.start, section.events, section.newest))
                else:
                    left_out += section.events
        self._report_left_out(left_out)
        return DedupPlan(
            folder=self._folder,
            batch_id=batch_id,
            seed=seed,
            window_seconds=seconds,
            known={partition: tuple(files) for partition, files in known.items()},
            # If the clock was set to an earlier time between two starts, new events must not count as older.
            clock=max(self._clock(), max(newest.values(), default=0) * _MICROSECONDS),
            in_memory=self._limits.in_memory,
        )

    def _report_left_out(self, left_out: int) -> None:
        if left_out and not self.left_out:
            log.warning(
                "dedup_window_full",
                events=self._limits.events,
                action="duplicates of the oldest are not found; raise GAMELAKE_DEDUP_MAX_EVENTS, or shorten the window",
            )
        self.left_out = left_out


def batch_of(path: str) -> int:
    """Return the batch id in the name of an identity file."""
    return int(path.rsplit("/", 1)[-1].partition("-")[0])

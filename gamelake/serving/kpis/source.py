"""Silver's log as the KPI query must see it: commits that only append; it refuses to go on after one that did not.

Spark passes over commits that change rows (`skipChangeCommits`), which is right for two kinds of them and wrong for the
others. A compaction changes no row. An erasure takes out rows of people who were forgotten, and what they did stays
counted. After a deletion or a restore the counts would be wrong for good, without any sign of it.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Add File and Remove File".
"""

from datetime import UTC, datetime
from threading import Lock

import msgspec

from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.kpis.generations import KpiGeneration, SourceChangedError, SourceRevisedError, source_path
from gamelake.storage.delta_log import (
    ERASURE_NOTE,
    Action,
    changes_rows,
    commit_info_of,
    decode_entry,
    entry_path,
    following_entries,
    is_revision,
)
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table

_REMEDY = "To count what silver holds now, start once with --rebuild"


class _Seen(msgspec.Struct, frozen=True):
    version: int


class _Offset(msgspec.Struct, frozen=True):
    """Spark's offset of a Delta source (DeltaSourceOffset.scala), as far as it is needed here."""

    version: int = msgspec.field(name="reservoirVersion")
    is_first: bool = msgspec.field(name="isStartingVersion")


class SourceLog:
    """Follows silver's log for one generation; records in the lakehouse how far it has read."""

    def __init__(self, store: Store, generation: KpiGeneration) -> None:
        self._store = store
        self._generation = generation
        self._path = source_path(generation)
        kept = store.get(self._path)
        self._version = self._newest() if kept is None else msgspec.json.decode(kept, type=_Seen).version
        self._following = Lock()
        # When each version was committed that the query has not taken in yet (seconds since 1970).
        self._waiting: dict[int, float] = {}

    def follow(self) -> None:
        """Read the commits since the last time.

        Raises:
            SourceRevisedError: one of them restored or replayed rows.
            SourceChangedError: one of them deleted or rewrote rows.
        """
        with self._following:
            self._follow()

    def remember(self) -> None:
        """Read the commits since the last time, and do not read them again after a restart.

        Raises:
            SourceChangedError: see `follow`.
        """
        self.follow()
        self._store.put(self._path, msgspec.json.encode(_Seen(self._version)))

    def _follow(self) -> None:
        for version, entry in following_entries(self._store, SILVER_EVENTS, self._version):
            actions = decode_entry(entry)
            self._check(version, actions)
            self._version = version
            if changes_rows(actions, ("add",)):
                self._waiting[version] = _committed_at(actions)

    def check_is_whole(self) -> None:
        """See that the log still has what comes next.

        Raises:
            SourceChangedError: commits were cleaned up before they were read.
        """
        self.remember()
        # A commit may have come meanwhile: what is there now must have its entry.
        if self._newest() > self._version and self._store.get(entry_path(SILVER_EVENTS, self._version + 1)) is None:
            raise SourceChangedError(
                f"the log of {SILVER_EVENTS} was cleaned up beyond version {self._version}, where the query stopped: "
                f"it is unknown whether the commits since only appended. {_REMEDY}"
            )

    def taken(self, version: int) -> None:
        """The query has all versions up to this one in its tables."""
        for each in [each for each in self._waiting if each <= version]:
            del self._waiting[each]

    def waiting_since(self) -> float | None:
        """When the oldest commit was made that is not in the tables, None if there is none."""
        return min(list(self._waiting.values()), default=None)

    def erased_unread(self) -> int | None:
        """The first version with an erasure that no finished batch has taken in, None if there is none."""
        offset = _offset(self._store, self._generation)
        if offset is None:
            return None
        # A first read of the whole table has what its version says; otherwise a version may have been read in part.
        after = offset.version if offset.is_first else offset.version - 1
        for version, entry in following_entries(self._store, SILVER_EVENTS, after):
            actions = decode_entry(entry)
            if ERASURE_NOTE in commit_info_of(actions) and changes_rows(actions, ("remove",)):
                return version
        return None

    def _newest(self) -> int:
        return open_table(self._store.location, SILVER_EVENTS).version()

    def _check(self, version: int, actions: list[Action]) -> None:
        info = commit_info_of(actions)
        removes = changes_rows(actions, ("remove",))
        # One that only restores rows looks like an append.
        if is_revision(info):
            raise SourceRevisedError(
                f"version {version} of {SILVER_EVENTS} ({info.get('operation')}) set rows back, or brought some back"
            )
        if removes and ERASURE_NOTE not in info:
            raise SourceChangedError(
                f"version {version} of {SILVER_EVENTS} ({info.get('operation', 'a commit')}) took rows out that are "
                f"counted. {_REMEDY}"
            )


def needed_since(store: Store, generation: KpiGeneration) -> datetime | None:
    """Since when the query needs silver's versions; None if it has not begun, or has forgotten what it stopped at."""
    kept = store.get(source_path(generation))
    seen = None if kept is None else msgspec.json.decode(kept, type=_Seen)
    entry = None if seen is None else store.get(entry_path(SILVER_EVENTS, seen.version))
    if entry is None:
        return None
    return datetime.fromtimestamp(_committed_at(decode_entry(entry)), UTC)


def needed_from(store: Store, generation: KpiGeneration) -> int | None:
    """The version from which on the query needs the log's entries; None if it has not begun."""
    kept = store.get(source_path(generation))
    if kept is None:
        return None
    seen = msgspec.json.decode(kept, type=_Seen).version
    # It may be behind what was read.
    offset = _offset(store, generation)
    return seen if offset is None else min(seen, offset.version)


def _offset(store: Store, generation: KpiGeneration) -> _Offset | None:
    """Where the next batch begins to read: the offset of the last finished batch, or of the first one that is not."""
    offsets, commits = (
        {
            int(name)
            for path in store.paths(f"{generation.checkpoint}/{each}")
            if (name := path.rsplit("/", 1)[-1]).isdigit()
        }
        for each in ("offsets", "commits")
    )
    batch = max(offsets & commits, default=min(offsets, default=None))
    content = None if batch is None else store.get(f"{generation.checkpoint}/offsets/{batch}")
    # A header, the batch's settings, then the offset of each source.
    return msgspec.json.decode(content.splitlines()[-1], type=_Offset) if content else None


def _committed_at(actions: list[Action]) -> float:
    return float(commit_info_of(actions).get("timestamp", 0)) / 1000

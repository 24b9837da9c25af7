"""Silver's log as the KPI query must see it: commits that only append; it refuses to go on after one that did not.

Spark passes over commits that change rows (`skipChangeCommits`), which is right for two kinds of them and wrong for the
others. A compaction changes no row. An erasure takes out rows of people who were forgotten, and what they did stays
counted. After a deletion or a restore the counts would be wrong for good, without any sign of it.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Add File and Remove File".
"""

import json
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


class SourceLog:
    """Follows silver's log for one generation; records in the lakehouse how far it has read."""

    def __init__(self, store: Store, generation: KpiGeneration) -> None:
        self._store = store
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
    offsets = [path for path in store.paths(f"{generation.checkpoint}/offsets") if path.rsplit("/", 1)[-1].isdigit()]
    newest = max(offsets, key=lambda path: int(path.rsplit("/", 1)[-1]), default="")
    # Spark's offset of a Delta source, the last line of a batch's: it may be behind what was read.
    lines = (store.get(newest) or b"").splitlines() if newest else []
    seen = msgspec.json.decode(kept, type=_Seen).version
    return min(
        [seen, *(int(json.loads(line)["reservoirVersion"]) for line in lines[-1:] if b"reservoirVersion" in line)]
    )


def _committed_at(actions: list[Action]) -> float:
    return float(commit_info_of(actions).get("timestamp", 0)) / 1000

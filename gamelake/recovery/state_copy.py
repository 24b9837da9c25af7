"""Copies the state of a lakehouse (all but its tables) to files, and restores it; never over existing objects.

Only the newest generation of Spark's checkpoints is copied, and restored only if the stream has not gone on since: a
stale checkpoint would skip or duplicate records. It is rebuilt from the manifests, or the key figures start anew.
"""

import os
import re
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec
from deltalake.exceptions import TableNotFoundError

from gamelake.storage.generations import Generations
from gamelake.storage.listing import own_tables
from gamelake.storage.manifests import Manifests
from gamelake.storage.store import Store, StoredObject
from gamelake.storage.tables import open_table

_STATE = "_gamelake"
# Temporary state, and state of the store itself.
_NOT_COPIED = re.compile(r"_gamelake/(leases/|settled/|kpis/driver/|upkeep/lease/|backups/|store-self-test)")
_CHECKPOINT = re.compile(r"(_gamelake/(?:streams/[^/]+|kpis)/checkpoints)/(\d+)/")
_WRITTEN_ONCE = re.compile(r"_gamelake/(streams/[^/]+/(manifests|generations)|schemas|erasures|kpis/generations)/")
_KPIS = "_gamelake/kpis"
_AT_ONCE = 16


class RestoredState(msgspec.Struct, frozen=True, kw_only=True):
    """What was restored: objects written, objects that existed already, and stale checkpoints that were left out."""

    objects: int
    there: int
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateCopy:
    """The state of a lakehouse, and a folder for its copy; immutable files in the older copy `former` are linked."""

    store: Store
    folder: Path
    former: Path | None = None

    def is_empty(self) -> bool:
        """Whether no stream has started in the lakehouse."""
        return not self.store.folders(f"{_STATE}/streams/")

    def save(self) -> int:
        """Copy the state; returns the number of objects.

        Checkpoints come first, so that one that becomes stale during the copy is recognized as stale.
        """
        objects = sorted(self._wanted(), key=lambda each: _CHECKPOINT.match(each.path) is None)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return sum(pool.map(self._copy, objects))

    def _wanted(self) -> Iterator[StoredObject]:
        there = [each for each in self.store.objects(_STATE) if not _NOT_COPIED.match(each.path)]
        newest: dict[str, str] = {}
        for each in there:
            if match := _CHECKPOINT.match(each.path):
                newest[match[1]] = max(newest.get(match[1], ""), match[2])
        return (each for each in there if not (m := _CHECKPOINT.match(each.path)) or newest[m[1]] == m[2])

    def _copy(self, wanted: StoredObject) -> int:
        target = self.folder / wanted.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if self._link(wanted, target):
            return 1
        content = self.store.get(wanted.path)
        if content is None:
            return 0  # deleted meanwhile, such as a file of the deduplication window
        target.write_bytes(content)
        return 1

    def _link(self, wanted: StoredObject, target: Path) -> bool:
        """Link an immutable file from the former copy."""
        if self.former is None or not _WRITTEN_ONCE.match(wanted.path):
            return False
        source = self.former / wanted.path
        if not source.is_file() or source.stat().st_size != wanted.size:
            return False
        os.link(source, target)
        return True

    def restore(self) -> RestoredState:
        """Restore missing objects except checkpoints, which may be stale: see `restore_checkpoints`."""
        put = self._put_all(self._paths() - self._checkpoints())
        return RestoredState(objects=sum(put), there=len(put) - sum(put))

    def restore_checkpoints(self) -> RestoredState:
        """Restore the checkpoints of streams that have not gone on since the copy."""
        paths = self._checkpoints()
        stale = tuple(folder for folder in sorted(_folders(paths)) if not self._is_current(folder, paths))
        put = self._put_all({path for path in paths if not path.startswith(tuple(f"{each}/" for each in stale))})
        return RestoredState(objects=sum(put), there=len(put) - sum(put), stale=stale)

    def _paths(self) -> set[str]:
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}

    def _checkpoints(self) -> set[str]:
        return {path for path in self._paths() if _CHECKPOINT.match(path)}

    def _put_all(self, paths: Set[str]) -> list[bool]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._put, sorted(paths)))

    def _put(self, path: str) -> bool:
        if self.store.get(path) is not None:
            return False
        return self.store.put_new(path, (self.folder / path).read_bytes())

    def _is_current(self, folder: str, paths: Set[str]) -> bool:
        """Whether the stream has not gone on since its checkpoint was copied."""
        offsets, commits = _newest(paths, f"{folder}/offsets/"), _newest(paths, f"{folder}/commits/")
        if offsets != commits:
            return False
        if folder.startswith(_KPIS):
            return self._newest_of_kpis() <= offsets
        stream = folder.split("/")[2]
        last, generations = Manifests(self.store, stream).last(1), Generations(self.store, stream).all()
        decided = last[0].batch_id if last else -1
        return bool(generations) and generations[-1].checkpoint == folder and decided == offsets

    def _newest_of_kpis(self) -> int:
        """The newest batch of the key figures in any of their tables."""
        records = [self.store.get(path) or b"{}" for path in self.store.paths(f"{_KPIS}/generations")]
        app_id = msgspec.json.decode(records[-1], type=dict[str, object]).get("app_id", "") if records else ""
        taken = [self._taken(table, str(app_id)) for table in own_tables(self.store) if "/kpi_" in table]
        return max(taken, default=-1)

    def _taken(self, table: str, app_id: str) -> int:
        try:
            version = open_table(self.store.location, table).transaction_version(app_id)
        except TableNotFoundError:
            return -1
        return -1 if version is None else version


def _folders(checkpoints: Set[str]) -> set[str]:
    matches = (_CHECKPOINT.match(path) for path in checkpoints)
    return {f"{match[1]}/{match[2]}" for match in matches if match}


def _newest(paths: Set[str], folder: str) -> int:
    names = (path.removeprefix(folder) for path in paths if path.startswith(folder))
    return max((int(name) for name in names if name.isdigit()), default=-1)

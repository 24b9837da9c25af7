"""What a lakehouse holds beside its tables, copied to files and put back: never over what is there.

Of Spark's checkpoints only the newest generation's are copied, and they are put back only while they are the truth:
where a stream has gone on since, a stale one would skip or double; it is rebuilt from the manifests, or counts anew.
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
# What holds for this moment, or for the store itself.
_NOT_COPIED = re.compile(r"_gamelake/(leases/|kpis/driver/|upkeep/lease/|backups/|store-self-test)")
_CHECKPOINT = re.compile(r"(_gamelake/(?:streams/[^/]+|kpis)/checkpoints)/(\d+)/")
_WRITTEN_ONCE = re.compile(r"_gamelake/(streams/[^/]+/(manifests|generations)|schemas|erasures|kpis/generations)/")
_KPIS = "_gamelake/kpis"
_AT_ONCE = 16


class RestoredState(msgspec.Struct, frozen=True, kw_only=True):
    """What was put back, what was there already, and the checkpoints that are the truth no more."""

    objects: int
    there: int
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateCopy:
    """The state of a lakehouse, and a folder for its copy; files that an older copy, `former`, has are linked."""

    store: Store
    folder: Path
    former: Path | None = None

    def is_empty(self) -> bool:
        """Whether no stream has begun in the lakehouse."""
        return not self.store.folders(f"{_STATE}/streams/")

    def save(self) -> int:
        """Copy the state; gives how many objects that are.

        Checkpoints come first: one that is older than what is copied after it is seen to be so.
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
            return 0  # it was this moment's, such as a file of the dedup window
        target.write_bytes(content)
        return 1

    def _link(self, wanted: StoredObject, target: Path) -> bool:
        """Take a file that is only ever written once from the copy before."""
        if self.former is None or not _WRITTEN_ONCE.match(wanted.path):
            return False
        source = self.former / wanted.path
        if not source.is_file() or source.stat().st_size != wanted.size:
            return False
        os.link(source, target)
        return True

    def restore(self) -> RestoredState:
        """Put back what is not there; checkpoints wait until it is known which are still the truth."""
        put = self._put_all(self._paths() - self._checkpoints())
        return RestoredState(objects=sum(put), there=len(put) - sum(put))

    def restore_checkpoints(self) -> RestoredState:
        """Put back the checkpoints of streams that have not gone on since."""
        paths = self._checkpoints()
        stale = tuple(folder for folder in sorted(_folders(paths)) if not self._is_true(folder, paths))
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

    def _is_true(self, folder: str, paths: Set[str]) -> bool:
        """Whether nothing has happened since a checkpoint was copied."""
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
        """The newest batch of the key figures that one of their tables has."""
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

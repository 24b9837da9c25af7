"""Copies the state of a lakehouse (everything except its tables) to files, and restores missing objects from them.

Only the newest generation of Spark's checkpoints is copied. It is restored only if its stream has processed no batch
since, because a stale checkpoint would skip or duplicate records. A stale checkpoint is rebuilt from the manifests.
"""

import os
import re
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gamelake.ledger.generations import Generations
from gamelake.ledger.manifests import Manifests
from gamelake.objects.store import Store, StoredObject

_STATE = "_gamelake"
# Temporary state, and state of the store itself.
_NOT_COPIED = re.compile(r"_gamelake/(leases/|settled/|maintenance/lease/|backups/|store-self-test)")
_CHECKPOINT = re.compile(r"(_gamelake/streams/[^/]+/checkpoints)/(\d+)/")
_WRITTEN_ONCE = re.compile(r"_gamelake/(streams/[^/]+/(manifests|generations)|schemas|erasures)/")
_AT_ONCE = 16


class RestoredState(msgspec.Struct, frozen=True, kw_only=True):
    """The result of restoring state.

    Attributes:
        objects: number of objects that were written.
        there: number of objects that existed already, and were left as they are.
        stale: folders of the checkpoints that are not restored, because their streams have continued.
    """

    objects: int
    there: int
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateCopy:
    """The state of a lakehouse, and a folder for its copy.

    Attributes:
        store: the store of the lakehouse.
        folder: the folder of the copy.
        former: an older copy, whose immutable files are linked instead of copied; None for none.
    """

    store: Store
    folder: Path
    former: Path | None = None

    def is_empty(self) -> bool:
        """Return True if no stream has ever started in the lakehouse."""
        return not self.store.folders(f"{_STATE}/streams/")

    def save(self) -> int:
        """Copy the state, and return the number of objects.

        Checkpoints are copied first, so that a restore recognizes one that became stale during the copy.
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
        """Link an immutable file from the former copy; return False if that has no such file."""
        if self.former is None or not _WRITTEN_ONCE.match(wanted.path):
            return False
        source = self.former / wanted.path
        if not source.is_file() or source.stat().st_size != wanted.size:
            return False
        os.link(source, target)
        return True

    def restore(self) -> RestoredState:
        """Restore missing objects, except checkpoints, which may be stale: see `restore_checkpoints`."""
        put = self._put_all(self._paths() - self._checkpoints())
        return RestoredState(objects=sum(put), there=len(put) - sum(put))

    def restore_checkpoints(self) -> RestoredState:
        """Restore the checkpoints of streams that have processed no batch since the copy."""
        paths = self._checkpoints()
        folders = {f"{match[1]}/{match[2]}" for path in paths if (match := _CHECKPOINT.match(path))}
        stale = tuple(folder for folder in sorted(folders) if not self._is_current(folder, paths))
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
        """Return True if the stream has processed no batch since its checkpoint was copied."""
        offsets, commits = _newest(paths, f"{folder}/offsets/"), _newest(paths, f"{folder}/commits/")
        if offsets != commits:
            return False
        stream = folder.split("/")[2]
        last, generations = Manifests(self.store, stream).last(1), Generations(self.store, stream).all()
        decided = last[0].batch_id if last else -1
        return bool(generations) and generations[-1].checkpoint == folder and decided == offsets


def _newest(paths: Set[str], folder: str) -> int:
    names = (path.removeprefix(folder) for path in paths if path.startswith(folder))
    return max((int(name) for name in names if name.isdigit()), default=-1)

"""Measures what a table's log checkpoint costs by its live files: `python -m benchmarks.scaling.log_checkpoints`.

The table has the 12 common columns, and statistics of random ids. The commits since its former checkpoint are those of
batches, one file each. Checkpoints are written by delta-rs at the table and from a copy of the log's end, in turn; the
platform copies where the store is not the local disk. The cores are arithmetic: what the driver needs of them if a
thousand such tables get a batch each two seconds. CPU seconds are of all threads of the process, so that what else the
machine does changes them little; those of an object store's server are not among them.

The table is in a temporary folder of the local disk, or, if GAMELAKE_LAKEHOUSE is set, in a folder of its own there,
which stays.
"""

import argparse
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import median

import pyarrow as pa

from benchmarks.scaling.wide_batches import a_file, cpu_seconds, statistics
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.storage.appends import BatchTransaction, TableHead
from gamelake.storage.comments import NO_COMMENTS
from gamelake.storage.log_checkpoints import checkpoint_from_copy, commits_between_checkpoints
from gamelake.storage.manifests import TableFiles
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import delta_schema_json, open_table

_SCHEMA = delta_schema_json(COMMON_SCHEMA.append(pa.field("event_date", pa.date32())))
_TABLES, _BATCH = 1_000, timedelta(seconds=2)
_TABLE, _DAY, _FILES_OF_A_COMMIT = "silver/events_of_a_game", "2026-06-01", 1_000


class GrowingTable:
    """A table whose files are named in its log and exist nowhere.

    Attributes:
        checkpoints: the ways to write a log checkpoint of the newest version, by name; each gives whether it did.
    """

    def __init__(self, place: Location) -> None:
        self._place, self._store = place, Store(place)
        self._random, self._batch = Random(1), 0  # ids of a benchmark are no secret
        self._size_and_statistics = statistics()
        self._head: TableHead | None = None
        self.checkpoints: dict[str, Callable[[], bool]] = {"at the table": self._checkpoint, "from a copy": self._copy}

    def commit(self, files: int) -> None:
        """Add files in one commit."""
        self._batch += 1
        entry = TableFiles(
            table=_TABLE,
            partition_by=("event_date",),
            schema=_SCHEMA,
            files=tuple(a_file(_DAY, *self._size_and_statistics, self._random) for _ in range(files)),
        )
        transaction = BatchTransaction("benchmark", self._batch)
        if self._head is None:
            self._head = TableHead.create(self._store, entry, transaction, NO_COMMENTS)
        else:
            self._head.put(self._store, entry, transaction)

    def _checkpoint(self) -> bool:
        open_table(self._place, _TABLE).create_checkpoint()
        return True

    def _copy(self) -> bool:
        if self._head is None:
            return False
        return checkpoint_from_copy(self._store, _TABLE, self._head.version) is not None


@contextmanager
def a_place() -> Iterator[Location]:
    """An empty lakehouse: see the module."""
    if "GAMELAKE_LAKEHOUSE" in os.environ:
        place = LakehouseSettings.from_env().location
        yield replace(place, uri=place.child(f"benchmark-{uuid.uuid4()}"))
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Location(uri=Path(folder).as_uri())


def measure(files: int, between: int, runs: int) -> None:
    """Print a row for a table of so many files, and so many commits between two checkpoints, and each way."""
    with a_place() as place:
        table = GrowingTable(place)
        for _ in range(files // _FILES_OF_A_COMMIT):
            table.commit(_FILES_OF_A_COMMIT)
        table.commit(files % _FILES_OF_A_COMMIT)
        table.checkpoints["at the table"]()
        cpu: dict[str, list[float]] = {way: [] for way in table.checkpoints}
        seconds: dict[str, list[float]] = {way: [] for way in table.checkpoints}
        for _ in range(runs):
            for way, write in table.checkpoints.items():
                for _ in range(between):
                    table.commit(1)
                started, used = time.monotonic(), list[float]()
                with cpu_seconds(used):
                    is_written = write()
                if is_written:
                    seconds[way].append(time.monotonic() - started)
                    cpu[way] += used
    for way in table.checkpoints:
        if not cpu[way]:
            print(f"| {files:,} | {between} | {way} | too large a log | | |", flush=True)
            continue
        cores = median(cpu[way]) * _TABLES / between / _BATCH.total_seconds()
        print(
            f"| {files:,} | {between} | {way} | {median(seconds[way]):.2f} | {median(cpu[way]):.3f} | {cores:.2f} |",
            flush=True,
        )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 1_000, 10_000, 50_000])
    parser.add_argument("--between", type=int, help="commits between two checkpoints, if not as many as the driver has")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| live files | commits between two | written | seconds | CPU seconds | cores for 1,000 tables |")
    print("| --- | --- | --- | --- | --- | --- |")
    for files in arguments.files:
        measure(files, arguments.between or commits_between_checkpoints(files), arguments.runs)


if __name__ == "__main__":
    main()

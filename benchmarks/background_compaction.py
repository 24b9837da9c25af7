"""Runs compaction of small files in the background: `python -m benchmarks.background_compaction FOLDER`.

It compacts the same tables repeatedly: after its compaction, a table is reset to its first version. It pauses after
each table, as the runs of contracts/schedule.yaml, and has the lowest priority, as the maintenance container. It prints
`ready` when the tables exist, and ends at the end of its standard input.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import cycle, takewhile
from pathlib import Path
from threading import Event, Thread

from benchmarks.compaction import CompactionSizes, fill, names_of
from gamelake.delta.log.codec import entry_path
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.compaction_run import paced
from gamelake.objects.store import Location, Store
from tools.embedded.service import REPOSITORY

_SIZES = CompactionSizes(tables=8, files=500, rows=100)
_TARGET_BYTES = 128 * 2**20
_REST = 3.0


@contextmanager
def background_compaction(folder: Path) -> Iterator[None]:
    """Run the program for as long as the block lasts."""
    command = (sys.executable, "-m", "benchmarks.background_compaction", str(folder))
    process = subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            raise RuntimeError("benchmarks.background_compaction did not start")
        yield
    finally:
        process.communicate()
    if process.returncode:
        raise RuntimeError(f"benchmarks.background_compaction ended with {process.returncode}")


def main() -> int:
    """Compact until the input ends; 1 if nothing was compacted."""
    store = Store(Location(uri=Path(sys.argv[1]).as_uri()))
    fill(store, _SIZES)
    os.nice(19)
    stop = Event()

    def wait() -> None:
        sys.stdin.read()
        stop.set()

    Thread(target=wait, daemon=True).start()
    print("ready", flush=True)
    rule = CompactionRule(target_bytes=_TARGET_BYTES, hot_files=1, today=datetime.now(UTC).date())
    tables = takewhile(lambda _: not stop.is_set(), cycle(names_of(_SIZES)))
    compacted = sum(paced((partial(_compact, store, table, rule) for table in tables), _REST, stop.wait))
    return int(not compacted)


def _compact(store: Store, table: str, rule: CompactionRule) -> int:
    files = TableCompaction(store.location, table, rule)().files_before
    store.delete(entry_path(table, 1))
    return files


if __name__ == "__main__":
    sys.exit(main())

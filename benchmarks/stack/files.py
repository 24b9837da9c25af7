"""Measures the ingestion of files in the running stack: `python -m benchmarks.stack.files`.

First the time for many files that are uploaded as fast as possible, from the first upload to the last committed event.
Then the delay of single files at a steady rate, from the start of each upload until its events are in all tables.
"""

import argparse
import json
import sys
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.files import content
from gamelake.model.naming import BRONZE_FILES
from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.store import Location, Store, open_objects
from gamelake.storage.tables import open_table
from tools.stack import lakehouse

_STREAM, _BUCKET = "ingest_files", "s3://landing"
_PUTS_AT_ONCE = 8
_PATIENCE = timedelta(minutes=15)
_POLL_SECONDS = 0.2


class FilesMissingError(Exception):
    """Not every file was read in time, or not every event was committed."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of the stream of files since a point in time."""

    manifests: Manifests
    first: int

    @classmethod
    def from_now(cls) -> "Batches":
        """The batches from now on."""
        manifests = Manifests(Store(lakehouse("catalog")), _STREAM)
        last = manifests.last(1)
        return cls(manifests, last[-1].batch_id + 1 if last else 0)

    def all(self) -> list[BatchManifest]:
        """The batches so far."""
        found: list[BatchManifest] = []
        while (manifest := self.manifests.read(self.first + len(found))) is not None:
            found.append(manifest)
        return found


def main() -> int:
    """Measure, and print the results as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stack.files", description=__doc__)
    parser.add_argument("--files", type=int, default=5_000, help="put as fast as the store takes them (%(default)s)")
    parser.add_argument("--events", type=int, default=1_000, help="in each (%(default)s)")
    parser.add_argument("--slowly", type=int, default=120, help="files at a steady pace (%(default)s)")
    parser.add_argument("--pace", type=float, default=2.0, help="of these, files per second (%(default)s)")
    arguments = parser.parse_args()
    figures = {
        "all_at_once": all_at_once(arguments.files, arguments.events),
        "one_by_one": one_by_one(arguments.slowly, arguments.pace, arguments.events),
    }
    print(json.dumps(figures, indent=2))
    return 0


def all_at_once(files: int, events: int) -> dict[str, float]:
    """Upload all files at once; returns the figures until all their events were committed.

    Raises:
        FilesMissingError: not all events were committed in time.
    """
    contents = _contents(files, events)
    keys, batches, started = _keys(files), Batches.from_now(), time.monotonic()
    put = partial(obstore.put, open_objects(_landing()))
    with ThreadPoolExecutor(_PUTS_AT_ONCE) as pool:
        list(pool.map(put, keys, contents))
    uploaded = time.monotonic() - started
    decided = _await(batches, files, files * events)
    seconds = time.monotonic() - started
    return {
        "files": files,
        "events": files * events,
        "stored_mib": round(sum(map(len, contents)) / 2**20, 1),
        "batches": len(decided),
        "upload_seconds": round(uploaded, 1),
        "seconds": round(seconds, 1),
        "events_per_second": round(files * events / seconds),
    }


def one_by_one(files: int, pace: float, events: int) -> dict[str, float]:
    """Upload files at a steady rate; returns the delays (seconds) from each upload to its commit.

    Raises:
        FilesMissingError: not all events were committed in time.
    """
    contents = _contents(files, events)
    keys, batches, objects = _keys(files), Batches.from_now(), open_objects(_landing())
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(_watch, batches, files)
        uploaded, started = {}, time.monotonic()
        for number, (key, each) in enumerate(zip(keys, contents, strict=True)):
            time.sleep(max(0.0, number / pace - (time.monotonic() - started)))
            uploaded[key] = time.monotonic()
            obstore.put(objects, key, each)
        ages = [moment - uploaded[key] for key, moment in seen.result().items()]
    _check(batches.all(), files * events)
    p50, p95, most = (round(float(each), 2) for each in np.percentile(ages, (50, 95, 100)))
    return {"files": files, "a_second": pace, "p50_seconds": p50, "p95_seconds": p95, "most_seconds": most}


def _watch(batches: Batches, files: int) -> dict[str, float]:
    """Wait for `files` files; returns the time at which each one was first seen committed."""
    seen: dict[str, float] = {}
    done, latest = 0, time.monotonic() + _PATIENCE.total_seconds()
    while len(seen) < files:
        for manifest in batches.all()[done:]:
            if not _is_committed(manifest):
                break
            seen |= dict.fromkeys(_objects_of(manifest), time.monotonic())
            done += 1
        if time.monotonic() > latest:
            raise FilesMissingError(f"{len(seen):,} of {files:,} files were read within {_PATIENCE}")
        time.sleep(_POLL_SECONDS)
    return seen


def _objects_of(manifest: BatchManifest) -> list[str]:
    store = Store(lakehouse("catalog"))
    paths = [
        f"{entry.table}/{file.path}" for entry in manifest.tables if entry.table == BRONZE_FILES for file in entry.files
    ]
    contents = [store.get(path) or b"" for path in paths]
    return [
        name
        for each in contents
        for name in pq.read_table(pa.BufferReader(each), columns=["object"])["object"].to_pylist()
    ]


def _contents(files: int, events: int) -> list[bytes]:
    """Contents of files with new events."""
    first = uuid.uuid4().int
    return [content(first + number, events) for number in range(files)]


def _keys(files: int) -> list[str]:
    run = uuid.uuid4().hex
    return [f"incoming/{run}/{number % 24:02d}/{number:06d}.json.gz" for number in range(files)]


def _landing() -> Location:
    return Location(uri=_BUCKET, options=lakehouse("uploads").options)


def _await(batches: Batches, files: int, events: int) -> list[BatchManifest]:
    latest = time.monotonic() + _PATIENCE.total_seconds()
    while True:
        decided = batches.all()
        named = sum(sum(each.files.objects.values()) for each in decided if each.files)
        if named >= files and _is_committed(decided[-1]):
            _check(decided, events)
            return decided
        if time.monotonic() > latest:
            raise FilesMissingError(f"{named:,} of {files:,} files were read within {_PATIENCE}")
        time.sleep(_POLL_SECONDS)


def _check(decided: Sequence[BatchManifest], events: int) -> None:
    taken = sum(each.silver_rows for each in decided)
    if taken != events:
        raise FilesMissingError(f"{taken:,} of {events:,} events are in the games' tables")


def _is_committed(manifest: BatchManifest) -> bool:
    location = lakehouse("catalog")
    versions = (open_table(location, entry.table).transaction_version(manifest.app_id) for entry in manifest.tables)
    return all(version is not None and version >= manifest.batch_id for version in versions)


if __name__ == "__main__":
    sys.exit(main())

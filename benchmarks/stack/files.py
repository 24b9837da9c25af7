"""Measures the ingestion of files in the running stack: `python -m benchmarks.stack.files`.

First the time for many files that are uploaded as fast as possible, from the first upload to the last committed event.
Then the delay of single files at a steady rate, from the start of each upload until its events are in all tables.
"""

import gzip
import json
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random

import obstore
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.goals import Goal, figure_of
from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.results import MIB, BenchmarkError, Measurement, Values, percentiles
from benchmarks.traffic import CONTRACTS
from gamelake.contract.games import load_games
from gamelake.delta.tables import open_table
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.naming import BRONZE_FILES
from gamelake.objects.store import Location, Store, open_objects
from tools.stack import lakehouse

_AT_ONCE, _STEADILY = "all at once", "at a steady pace"
_STREAM, _BUCKET = "ingest_files", "s3://landing"
_PUTS_AT_ONCE = 8
_PATIENCE = timedelta(minutes=15)
_POLL_SECONDS = 0.2


class FilesMissingError(BenchmarkError):
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


@dataclass(frozen=True, slots=True)
class StackFilesSettings:
    """Options of the benchmark."""

    files: int = option(5_000, "files that are put as fast as the store takes them")
    events: int = option(1_000, "events of each")
    slowly: int = option(120, "files at a steady pace")
    pace: float = option(2.0, "of these, files per second")


def measure(run: Run[StackFilesSettings]) -> Iterator[Measurement]:
    """Upload many files at once, then some at a steady pace.

    Raises:
        FilesMissingError: not all events were committed in time.
    """
    settings = run.settings
    at_once = all_at_once(settings.files, settings.events)
    yield Measurement(part=_AT_ONCE, subject=f"{settings.files:,} files", values=at_once)
    steadily = one_by_one(settings.slowly, settings.pace, settings.events)
    yield Measurement(part=_STEADILY, subject=f"{settings.pace:g} files/s", values=steadily)


def all_at_once(files: int, events: int) -> Values:
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
        "s": seconds,
        "events/s": files * events / seconds,
        "upload s": uploaded,
        "batches": len(decided),
        "stored MiB": sum(map(len, contents)) / MIB,
    }


def one_by_one(files: int, pace: float, events: int) -> Values:
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
    return percentiles(ages)


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


def _content(number: int, events: int) -> bytes:
    """A compressed file of `events` events; each `number` has other events."""
    return gzip.compress("\n".join(_lines(number, events)).encode(), compresslevel=1)


def _lines(number: int, events: int) -> Iterator[str]:
    """Generate a few minutes of one game's events, as its server collects them."""
    random = Random(number)
    titles = [game.match[0] for game in load_games(CONTRACTS / "games.yaml").games]
    title, begun = titles[number % len(titles)], datetime.now(UTC) - timedelta(minutes=number % 600)
    for second in range(events):
        moment = (begun + timedelta(milliseconds=50 * second)).isoformat()
        params = {"platform": random.choice(("ios", "android")), "app_version": "1.4.2", "level": second % 80}
        yield json.dumps(
            {
                "event_id": str(uuid.UUID(int=random.getrandbits(128), version=4)),
                "event_name": "level_completed",
                "event_time": moment,
                "ingest_time": moment,
                "game_name": title,
                "gamer_id": f"{random.randrange(20_000):032x}",
                "session_id": str(uuid.UUID(int=random.getrandbits(128), version=4)),
                "event_params": params,
                "experiment_ids": ["control"],
                "attributes": {"mode": "ranked"},
                "connection_type": "CONNECTION_TYPE_WIFI",
            }
        )


def _contents(files: int, events: int) -> list[bytes]:
    """Contents of files with new events."""
    first = uuid.uuid4().int
    return [_content(first + number, events) for number in range(files)]


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


BENCHMARK = Benchmark(
    name="stack-files",
    measures="Measure the ingestion of files in the running stack.",
    settings=StackFilesSettings(),
    quick=StackFilesSettings(files=20, events=100, slowly=5),
    measure=measure,
    goals=(
        Goal("5,000 files at once", (120, 90), figure_of(_AT_ONCE, "5,000 files", "s"), " s", at_most=True),
        Goal("from file to silver, p95", (10,), figure_of(_STEADILY, "2 files/s", "p95 s"), " s", at_most=True),
    ),
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))

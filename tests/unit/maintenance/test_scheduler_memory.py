"""The maintenance scheduler and the tasks that it runs stay within their container's memory."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile, encode_parquet, new_file_name
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.maintenance.run_records import TaskRecord, TaskRecords
from tests.support.eventually import eventually
from tests.support.process_table import anonymous_mib, descendants_of
from tests.support.silver_events import Silver, as_rows, some_events

ROOT = Path(__file__).parents[3]
# The container's limit (MAINTENANCE_SCHEDULER_MEMORY in compose/.env), less a sixth for what the samples leave out.
_LIMIT_MIB = 240
_AS_IN_COMPOSE = {
    "GAMELAKE_COMPACT_HERE_MIB": "8",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
}
_TASKS = ("compact", "vacuum", "clean_logs")
_SCHEDULE = """
tasks:
  - {name: compact, when: every 600 hours, job: compact, arguments: [--no-spark]}
  - {name: vacuum, when: every 600 hours, job: vacuum, arguments: ["--yes"]}
  - {name: clean_logs, when: every 600 hours, job: clean_logs, arguments: ["--yes"]}
"""
_TABLES, _FILES, _ROWS = ("silver/events", "silver/kart_rumble_events"), 400, 1_000


def add_small_files(silver: Silver, table: str) -> None:
    """Commit files as a busy hour leaves them: a thousand events each, every event with an id of its own."""
    rows = as_rows(some_events(_ROWS, seed=7, days=1))
    ids = pa.array([str(uuid.uuid4()) for _ in range(_ROWS)], pa.string())
    rows = rows.set_column(rows.schema.get_field_index("event_id"), rows.schema.field("event_id"), ids)
    content, statistics = encode_parquet(rows.drop_columns(["event_date"]), frozenset())
    day = str(rows["event_date"][0])
    files = []
    for _ in range(_FILES):
        path = new_file_name(f"event_date={day}")
        silver.store.put(f"{table}/{path}", content.to_pybytes())
        files.append(
            DataFile(path=path, size=content.size, rows=_ROWS, partition={"event_date": day}, statistics=statistics)
        )
    schema = delta_schema_json(rows.schema)
    entry = TableFiles(table=table, partition_by=("event_date",), schema=schema, files=tuple(files))
    with DeltaTables(silver.location) as tables:
        tables.append(entry, BatchTransaction("test", 0))


@pytest.fixture
def silver(tmp_path: Path) -> Silver:
    """A lakehouse in which all tasks are due."""
    silver = Silver(tmp_path / "lake")
    for table in _TABLES:
        add_small_files(silver, table)
    for task in _TASKS:
        TaskRecords(silver.store).keep(task, TaskRecord(known_since=datetime.now(UTC) - timedelta(days=60)))
    return silver


@contextmanager
def running(silver: Silver, folder: Path) -> Iterator[int]:
    """Run the scheduler for the time of the block, and yield its process id."""
    schedule, log = folder / "schedule.yaml", folder / "log"
    schedule.write_text(_SCHEDULE)
    environment = os.environ | {
        "GAMELAKE_LAKEHOUSE": silver.location.uri,
        "GAMELAKE_GAMES_FILE": str(ROOT / "contracts/games.yaml"),
        "GAMELAKE_SCHEDULE_FILE": str(schedule),
        **_AS_IN_COMPOSE,
    }
    command = [sys.executable, "-m", "jobs.maintenance"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        yield process.pid
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux says what processes share")
def test_the_scheduler_and_its_tasks_stay_within_the_containers_memory(silver: Silver, tmp_path: Path) -> None:
    records, samples = TaskRecords(silver.store), list[float]()
    with running(silver, tmp_path) as scheduler:

        def are_done() -> bool:
            samples.append(anonymous_mib({scheduler} | descendants_of(scheduler)))
            return all(records.of(task, datetime.now(UTC)).runs_ok for task in _TASKS)

        eventually(are_done, timeout=120)

    for table in _TABLES:
        assert len(open_table(silver.location, table).file_uris()) < _FILES / 20
    assert max(samples) < _LIMIT_MIB, f"{max(samples):.0f} MiB"

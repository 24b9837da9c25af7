"""Measures the decision of a batch of many files without its tasks: `python -m benchmarks.scaling.wide_batches`.

Each task reports one file of each table and day, with statistics of random ids. The driver's
own code reads the reports, merges the columns, encodes the manifest and reads it again, as the next start does. Each
number of files has a process of its own. Nothing is written but the figures.
"""

import argparse
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa

from benchmarks.scaling.dedup import PeakMemory, run_alone
from gamelake.layers.silver import COMMON_SCHEMA, UNIQUE_COLUMNS
from gamelake.model.naming import game_table
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.manifests import BatchManifest
from gamelake.streaming.plan import TaskReport, WrittenFile, decode_reports
from gamelake.streaming.table_columns import TableColumns
from tests.stack.rows import a_manifest

_IDS, _ID = ("gamer_id", "session_id", "event_id"), re.compile("[0-9a-f]{32}")
_ROWS, _FIRST_DAY = 20, date(2026, 6, 1)


@dataclass(frozen=True, slots=True)
class BatchShape:
    """How many tasks write files, of how many tables, and of how many days each."""

    tasks: int
    tables: int
    days: int

    @property
    def files(self) -> int:
        """Files of the batch."""
        return self.tasks * self.tables * self.days


def statistics() -> tuple[int, str]:
    """The size and the statistics of a file of random rows."""
    random, columns = np.random.default_rng(1), []
    for field in COMMON_SCHEMA:
        numbers = random.integers(1_782_000_000_000_000, 1_782_000_002_000_000, _ROWS)
        if not pa.types.is_string(field.type):
            columns.append(pa.array(numbers).cast(field.type))
        elif field.name in _IDS:
            columns.append(pa.array([f"{each:032x}" for each in numbers]))
        else:
            columns.append(pa.array([field.name] * _ROWS))
    content, text = encode_parquet(pa.Table.from_arrays(columns, schema=COMMON_SCHEMA), UNIQUE_COLUMNS)
    return content.size, text


def a_file(day: str, size: int, text: str, random: Random) -> DataFile:
    """A file of a day of a table, with the given size, and the statistics `text` with other ids as bounds."""
    return DataFile(
        path=new_file_name(f"event_date={day}"),
        size=size,
        rows=_ROWS,
        partition={"event_date": day},
        statistics=_ID.sub(lambda _: f"{random.getrandbits(128):032x}", text),
    )


def reports(shape: BatchShape) -> Iterator[bytes]:
    """What the tasks report, encoded."""
    columns = COMMON_SCHEMA.append(pa.field("event_date", pa.date32())).serialize().to_pybytes()
    (size, text), random = statistics(), Random(1)  # ids of a benchmark are no secret
    for _ in range(shape.tasks):
        files = []
        for number in range(shape.tables * shape.days):
            day = str(_FIRST_DAY + timedelta(days=number % shape.days))
            files.append(
                WrittenFile(
                    table=game_table(f"game_{number // shape.days:04d}"),
                    partition_by=("event_date",),
                    columns=columns,
                    schema_ids=(1,),
                    file=a_file(day, size, text, random),
                )
            )
        yield msgspec.msgpack.encode(
            TaskReport(task=str(uuid4()), files=tuple(files), offsets=(), dead_letters={}, duplicates={})
        )


@contextmanager
def cpu_seconds(into: list[float]) -> Iterator[None]:
    """Add the CPU seconds of the block to a list."""
    started = time.process_time()
    yield
    into.append(time.process_time() - started)


def measure(shape: BatchShape) -> None:
    """Decide a batch, and print what it took."""
    found, cpu = list(reports(shape)), list[float]()
    with PeakMemory() as peak:
        with cpu_seconds(cpu):
            decoded = decode_reports(found)
        with cpu_seconds(cpu):
            tables = TableColumns({}).agree(file for report in decoded for file in report.files)
        with cpu_seconds(cpu):
            text = msgspec.json.encode(msgspec.structs.replace(a_manifest(0, "query"), tables=tables))
            content = pa.compress(text, "zstd", asbytes=True)
        with cpu_seconds(cpu):
            msgspec.json.decode(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read(), type=BatchManifest)
    cells = (
        f"{shape.tasks} x {shape.tables:,} x {shape.days}",
        f"{shape.files:,}",
        _mebibytes(sum(map(len, found))),
        _mebibytes(len(text)),
        _mebibytes(len(content)),
        f"{peak[0]:,.0f} MiB",
        *(f"{each:.1f} s" for each in cpu),
    )
    print(f"| {' | '.join(cells)} |", flush=True)


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def main() -> None:
    """Measure each shape in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="+", default=[2, 20, 200])
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=3)
    arguments = parser.parse_args()
    head = ("tasks x tables x days", "files", "reports", "manifest", "compressed", "memory", "reading", "merging")
    print(f"| {' | '.join((*head, 'writing', 'reading again'))} |\n|{' --- |' * 10}", flush=True)
    for tasks in arguments.tasks:
        run_alone(measure, BatchShape(tasks, arguments.tables, arguments.days))


if __name__ == "__main__":
    main()

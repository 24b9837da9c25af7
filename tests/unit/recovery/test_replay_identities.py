"""A replay gives the streams the identities of the events that they may still get again."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gamelake.objects.store import Location, Store
from gamelake.recovery.replay.identities import DAY, EVENTS_OF_RECORDS, IdentityPlan, IdentityWriter, ReplayWindows
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES

TABLE = "silver/archery_events"
END = 1_800_000_000
PLAN = IdentityPlan(seed="secret", records_since=END - 600, files_since=END - 14 * DAY)
RECORD, FILE = 0, -3


def written(folder: Path, record_at: int, file_at: int, ids: list[str | None]) -> dict[int, int]:
    """Count the identities that a chunk writes, by kind, with these ids both of Kafka records and of files."""
    writer = IdentityWriter(Store(Location(uri=f"file://{folder}")), PLAN, 1)
    writer.saw(np.array([RECORD, FILE]), np.array([record_at, file_at]) * 1_000_000)
    for partition in (RECORD, FILE):
        columns = {"event_id": pa.array(ids, pa.string()), "kafka_partition": pa.array([partition] * len(ids))}
        writer.add(TABLE, pa.RecordBatch.from_pydict(columns))
    file = writer.write()
    return {} if file is None else {section.partition: section.events for section in file.sections}


@pytest.mark.parametrize(
    ("record_at", "file_at", "kept"),
    [
        (END, END, {EVENTS_OF_RECORDS: 2, EVENTS_OF_FILES: 2}),
        (END - DAY, END - DAY, {EVENTS_OF_FILES: 2}),
        (END - 15 * DAY, END - 15 * DAY, {}),
    ],
)
def test_records_that_left_their_window_are_not_remembered(
    tmp_path: Path, record_at: int, file_at: int, kept: dict[int, int]
) -> None:
    assert written(tmp_path, record_at, file_at, ["a", "b"]) == kept


def test_an_event_without_an_id_has_no_identity(tmp_path: Path) -> None:
    assert written(tmp_path, END, END, ["a", None, ""]) == {EVENTS_OF_RECORDS: 1, EVENTS_OF_FILES: 1}


def test_events_of_files_are_remembered_as_long_as_the_stream_of_files_remembers_them(tmp_path: Path) -> None:
    writer = IdentityWriter(Store(Location(uri=f"file://{tmp_path}")), PLAN, 1)
    writer.saw(np.array([FILE]), np.array([END]) * 1_000_000)
    writer.add(TABLE, pa.RecordBatch.from_pydict({"event_id": ["a"], "kafka_partition": [FILE]}))
    file = writer.write()
    assert file is not None
    windows = ReplayWindows(of_records=600, of_files=20 * DAY)

    assert (windows.remembered([file]), windows.remembered([])) == (20 * DAY, DAY)

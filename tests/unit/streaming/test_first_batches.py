"""The first batch of a driver, which knows no table yet."""

from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from gamelake.delta import tables as storage_tables
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import OffsetRange
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from tests.unit.streaming.streams import TOPIC_ID, StandingTopic, a_stream, location_of, log_batch

# As many requests as are made to a local disk at once.
TABLES = [game_table(f"game_{number}") for number in range(8)]


class OneRowEach:
    """Decides batches of one row for each table."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def decide(self, records: object, planned: object, plan: object) -> Decision:
        del records, planned, plan
        rows = pa.table({"event_id": ["a"]})
        entries = tuple(
            TableFiles(
                table=table,
                partition_by=(),
                schema=delta_schema_json(rows.schema),
                files=(write_rows(self._store, table, rows, {}),),
            )
            for table in TABLES
        )
        taken = OffsetRange(partition=0, first=0, last=len(TABLES) - 1, records=len(TABLES))
        return Decision((taken,), entries, {}, {}, ())

    def learn(self, columns: object) -> bool:
        del columns
        return False


def take(folder: Path, batch: int) -> None:
    """Take a batch by a new driver."""
    stream = a_stream(folder)
    generation = stream.open(TOPIC_ID)
    log_batch(folder, generation, batch, {0: 8})
    with stream_tables(location_of(folder)) as tables:
        source = OpenStream(stream, generation, tables, cast("Any", StandingTopic()))
        decider = cast("Any", OneRowEach(Store(location_of(folder))))
        FanOut(source, decider, FloodBreaker(FloodLimit(1, 1)), Failpoints())(cast("Any", None), batch)


@pytest.mark.usefixtures("checkpoints_at_once")  # else one table would be opened for its log checkpoint
@pytest.mark.parametrize("earlier", [0, 1], ids=["that are new", "that are there"])
def test_tables_are_opened_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: int) -> None:
    for batch in range(earlier):
        take(tmp_path, batch)
    together = Barrier(len(TABLES))

    def open_with_all_others(location: Location, table: str) -> DeltaTable:
        # Raises an error unless all are here within the time.
        together.wait(60)
        return open_table(location, table)

    monkeypatch.setattr(storage_tables, "open_table", open_with_all_others)
    take(tmp_path, earlier)

    assert {open_table(location_of(tmp_path), table).version() for table in TABLES} == {earlier}

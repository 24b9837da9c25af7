"""The first batch of a driver, which knows no table yet."""

from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from gamelake.delta import tables as storage_tables
from gamelake.delta.tables import open_table
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.streaming.driver.decision import Decision
from tests.support.manifests import files_of, offsets_of
from tests.unit.streaming.streams import location_of, run_batch

# As many requests as are made to a local disk at once.
TABLES = [game_table(f"game_{number}") for number in range(8)]


class OneRowEach:
    """Decides batches of one row for each table."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def decide(self, records: object, planned: object, plan: object) -> Decision:
        del records, planned, plan
        rows = pa.table({"event_id": ["a"]})
        entries = tuple(files_of(self._store, table, rows) for table in TABLES)
        return Decision((offsets_of(0, len(TABLES) - 1),), entries, {}, {}, ())

    def learn(self, columns: object) -> bool:
        del columns
        return False


@pytest.mark.usefixtures("checkpoints_at_once")  # else one table would be opened for its log checkpoint
@pytest.mark.parametrize("earlier", [0, 1], ids=["that are new", "that are there"])
def test_tables_are_opened_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: int) -> None:
    decider = OneRowEach(Store(location_of(tmp_path)))
    for batch in range(earlier):
        run_batch(tmp_path, decider, batch=batch, records=len(TABLES))
    together = Barrier(len(TABLES))

    def open_with_all_others(location: Location, table: str) -> DeltaTable:
        # Raises an error unless all are here within the time.
        together.wait(60)
        return open_table(location, table)

    monkeypatch.setattr(storage_tables, "open_table", open_with_all_others)
    run_batch(tmp_path, decider, batch=earlier, records=len(TABLES))

    assert {open_table(location_of(tmp_path), table).version() for table in TABLES} == {earlier}

"""Every column of the tables of live operations says in the contract what it means, and no other one does."""

from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.model.games import load_games
from gamelake.serving.live_ops.player_table import PLAYER_STATE, ROW_SCHEMA
from gamelake.serving.live_ops.watch_tables import MINUTES, MINUTES_SCHEMA, SIGNALS, SIGNALS_SCHEMA

TABLES = [
    (PLAYER_STATE, ROW_SCHEMA, "bucket"),
    (MINUTES, MINUTES_SCHEMA, "event_date"),
    (SIGNALS, SIGNALS_SCHEMA, "event_date"),
]


@pytest.mark.parametrize(("table", "schema", "partition"), TABLES)
def test_every_column_says_what_it_means_and_no_other(table: str, schema: pa.Schema, partition: str) -> None:
    described = load_games(Path("contracts/games.yaml")).tables[table]

    assert described.description
    assert described.columns.keys() == {*schema.names, partition}

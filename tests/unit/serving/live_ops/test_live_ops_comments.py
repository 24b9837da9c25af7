"""Every column of the tables of live operations, and nothing else, has its meaning in the contract."""

from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.contract.games import load_games
from gamelake.serving.live_ops.signals.watch_tables import MINUTES, MINUTES_SCHEMA, SIGNALS, SIGNALS_SCHEMA
from gamelake.serving.live_ops.states.player_table import PLAYER_STATE, ROW_SCHEMA

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

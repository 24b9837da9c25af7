"""The dbt project of sql/dbt builds its models and passes its tests over a silver table."""

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NoReturn

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
DBT = REPOSITORY / "build/engines/bin/dbt"
PLAYED = [
    ("Archery", "ann", 20),
    ("Archery", "bob", 26),
    ("Archery", "ann", 26),
    ("Bingo", "ann", 26),
    ("Bingo", "eve", 10),
    # In Tokyo it is the day after.
    ("Neon Runner", "ann", 9),
]


@pytest.fixture
def built(tmp_path: Path, missing_service: Callable[[str], NoReturn]) -> "duckdb.DuckDBPyConnection":
    if not DBT.exists():
        missing_service("dbt is not installed: run make engines")
    games, players, days = zip(*PLAYED, strict=True)
    rows = pa.table(
        {
            "game_name": games,
            "gamer_id": players,
            "event_name": ["start"] * len(PLAYED),
            "event_time": pa.array(
                [datetime(2026, 11, day, 20, tzinfo=UTC) for day in days], pa.timestamp("us", "UTC")
            ),
            "event_date": [date(2026, 11, day) for day in days],
        }
    )
    write_deltalake(tmp_path / "silver/events", rows, partition_by=["event_date"])
    database = tmp_path / "gamelake.duckdb"
    places = {"DBT_DATABASE": database, "DBT_TARGET_PATH": tmp_path / "target", "DBT_LOG_PATH": tmp_path / "logs"}
    environment = {**os.environ, **{name: str(path) for name, path in places.items()}}

    run = subprocess.run(
        (str(DBT), "build", "--project-dir", "sql/dbt", "--profiles-dir", "sql/dbt"),
        cwd=REPOSITORY,
        env=environment | {"GAMELAKE_LAKEHOUSE": f"file://{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout
    assert "Deprecat" not in run.stdout
    return duckdb.connect(str(database), read_only=True)


def test_its_models_are_what_sql_over_silver_says(built: "duckdb.DuckDBPyConnection") -> None:
    daily = built.execute("SELECT game_name, day(event_date), players, events FROM daily_games ORDER BY ALL").fetchall()
    weekly = built.execute(
        "SELECT game_name, day(event_date), players FROM weekly_active_players ORDER BY ALL"
    ).fetchall()

    assert daily == [
        ("Archery", 20, 1, 1),
        ("Archery", 26, 2, 2),
        ("Bingo", 10, 1, 1),
        ("Bingo", 26, 1, 1),
        ("Neon Runner", 10, 1, 1),
    ]
    assert weekly == [
        ("Archery", 20, 1),
        ("Archery", 26, 2),
        ("Bingo", 10, 1),
        ("Bingo", 26, 1),
        ("Neon Runner", 10, 1),
    ]

"""The job that validates a day, as it is run: what it prints and keeps, and its exit codes."""

import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from gamelake.ledger.holds import holds
from gamelake.model.naming import SILVER_EVENTS, VALIDATIONS, game_table
from gamelake.objects.store import Location, Store
from gamelake.program import OK
from jobs import validate
from tests.conftest import JARS
from tests.spark.planted import DAY, SCHEMA, events, week
from tests.support.job_processes import run_job

pytestmark = pytest.mark.spark

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(Location(uri=f"file://{tmp_path}/lakehouse"))
    day = {"archery_duel": events("archery_duel", DAY), "chess_royale": events("chess_royale", DAY)}
    day["chess_royale"].append(day["chess_royale"][0])
    for game, rows in day.items():
        _write(store, game_table(game), week(game) + rows)
        _write(store, SILVER_EVENTS, rows)
    return store


def _write(store: Store, table: str, rows: list[dict[str, object]]) -> None:
    whole = pa.Table.from_pylist(rows, schema=SCHEMA)
    write_deltalake(store.location.child(table), whole, partition_by=["event_date"], mode="append")


def _settings(store: Store) -> dict[str, str]:
    return {
        "GAMELAKE_LAKEHOUSE": store.location.uri,
        "GAMELAKE_GAMES_FILE": "contracts/games.yaml",
        "GAMELAKE_RULES": "quality/rules",
        "GAMELAKE_SPARK_JARS": str(JARS),
    }


def _validate(store: Store, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_job("validate", *arguments, **_settings(store))


def _validate_in_this_process(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, store: Store, *arguments: str
) -> int:
    """Run the job on this process's Spark, as starting another takes longer than the job. Return the exit code."""
    with monkeypatch.context() as patch:
        for name, value in _settings(store).items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["validate", *arguments])
        patch.setattr(validate, "own_session", lambda *_: nullcontext(spark.newSession()))
        return validate.main()


def test_a_wrong_day_is_named_before_anything_starts(store: Store) -> None:
    done = _validate(store, "--day", "2026-02-30")

    assert done.returncode == 2
    assert "argument --day: '2026-02-30' is not a day" in done.stderr


@pytest.mark.slow
def test_a_day_is_validated_held_back_and_released(
    spark: SparkSession,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    docs = tmp_path / "docs"
    asked = ("--day", DAY.isoformat(), "--docs", str(docs), "--hold")

    clean = _validate_in_this_process(monkeypatch, spark, store, "archery_duel", *asked)
    shown = capsys.readouterr().out
    damaged = _validate(store, "chess_royale", *asked)

    assert clean == OK
    assert f"Data Docs: {docs / 'index.html'}" in shown
    assert damaged.returncode == 1, damaged.stderr
    assert "FAILED chess_royale tables: event_ids_are_unique (critical): 1 instead of 0" in damaged.stdout
    kept = DeltaTable(store.location.child(VALIDATIONS)).to_pyarrow_table().to_pylist()
    assert [(row["game"], row["expectation"]) for row in kept if row["status"] == "failed"] == [
        ("chess_royale", "event_ids_are_unique")
    ]
    assert set(holds(store, datetime.now(UTC))) == {"silver/chess_royale_events"}
    assert _validate(store, "chess_royale", "--release").returncode == 0
    assert holds(store, datetime.now(UTC)) == {}


def test_a_game_without_a_table_is_no_game_to_validate(store: Store) -> None:
    ended = _validate(store, "no_such_game")

    assert ended.returncode == 2
    assert "there is no table silver/no_such_game_events" in ended.stderr

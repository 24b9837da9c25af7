"""The job that packs small files, as it is run: all tables at once, and killed in the middle."""

import json
import secrets
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.contract.games import load_games
from gamelake.maintenance import compaction_run
from gamelake.maintenance.compaction_run import CompactionRun, CompactionScope
from jobs.compact import compact_with_spark
from tests.conftest import JARS
from tests.support.job_processes import run_job
from tests.support.silver_events import Event, Silver

REPOSITORY = Path(__file__).parents[2]
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
TABLE = "silver/events"


@pytest.fixture
def silver(tmp_path: Path) -> Silver:
    silver = Silver(tmp_path)
    for number in range(12):
        silver.append([Event(at=YESTERDAY, gamer=f"g{number}")])
    return silver


def job(silver: Silver, *options: str, failpoint: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    settings = {
        "GAMELAKE_LAKEHOUSE": silver.store.location.uri,
        "GAMELAKE_GAMES_FILE": str(REPOSITORY / "contracts/games.yaml"),
        "GAMELAKE_SPARK_JARS": str(JARS),
        "GAMELAKE_FAILPOINT": failpoint,
        **variables,
    }
    return run_job("compact", *options, **settings)


def results(run: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    assert run.returncode == 0, run.stderr
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def players(silver: Silver) -> Sequence[str]:
    return sorted(DeltaTable(silver.folder / TABLE).to_pyarrow_table(columns=["gamer_id"])["gamer_id"].to_pylist())


def files(silver: Silver) -> int:
    return len(DeltaTable(silver.folder / TABLE).file_uris())


def test_a_dry_run_reports_what_the_run_then_does(spark: SparkSession, silver: Silver) -> None:
    before = players(silver)

    [would] = results(job(silver, "--dry-run"))
    assert (would["table"], would["files"], would["into_files"]) == (TABLE, 12, 1)
    assert files(silver) == 12

    [done] = results(job(silver))
    assert (done["files_before"], done["files_after"]) == (12, 1)
    assert (files(silver), players(silver)) == (1, before)
    assert results(job(silver)) == []


def test_a_table_that_is_not_there_is_refused_by_name(silver: Silver) -> None:
    run = job(silver, "silver/no_such_events")

    assert run.returncode == 2
    assert "'silver/no_such_events' is not a table that compaction covers; these are: silver/events" in run.stderr


def test_one_that_was_killed_before_its_commit_is_done_again(spark: SparkSession, silver: Silver) -> None:
    before = players(silver)
    killed = job(silver, failpoint="after_compacted_files")
    assert killed.returncode != 0
    assert files(silver) == 12

    [done] = results(job(silver))

    assert done["files_before"] == 12
    assert (files(silver), players(silver)) == (1, before)


def test_a_larger_amount_is_compacted_in_the_tasks_of_a_spark_job(spark: SparkSession, silver: Silver) -> None:
    before = players(silver)
    contract = load_games(REPOSITORY / "contracts/games.yaml")
    of_all = CompactionRun(silver.store, contract, CompactionScope.DAILY, datetime.now(UTC).date())

    [done] = compact_with_spark(spark, of_all.due())

    assert (done.files_before, done.files_after) == (12, 1)  # type: ignore[union-attr]
    assert (files(silver), players(silver)) == (1, before)


def test_what_is_too_large_without_spark_is_left_with_the_command_that_packs_it(silver: Silver) -> None:
    # Half a mebibyte each, which no compression makes smaller: two of them are more than one may hold here.
    for number in range(2):
        silver.append([Event(at=YESTERDAY, gamer=secrets.token_hex(600_000), session=f"s{number}")])

    done, rest = results(job(silver, "--no-spark", GAMELAKE_COMPACT_HERE_MIB="1"))

    assert done["files_before"] >= 12
    assert (rest["table"], rest["skipped_files"]) == (TABLE, 2)
    assert rest["command"] == f"python -m jobs.compact --scope daily {TABLE}"


def test_a_table_too_big_for_a_task_is_compacted_by_spark(
    spark: SparkSession, silver: Silver, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = players(silver)
    monkeypatch.setattr(compaction_run, "TASK_BYTES", 1)
    contract = load_games(REPOSITORY / "contracts/games.yaml")
    of_all = CompactionRun(silver.store, contract, CompactionScope.WEEKLY, datetime.now(UTC).date())

    [done] = compact_with_spark(spark, of_all.due())

    assert (done.files_before, done.files_after) == (12, 1)  # type: ignore[union-attr]
    assert (files(silver), players(silver)) == (1, before)

"""The KPI query over silver: whatever comes late, twice, or in which order, its tables are the batch answer."""

import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event as Stop

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import TableHistory
from gamelake.serving.kpis.definitions import OCCURRED, ExactUpTo
from gamelake.serving.kpis.generations import KpiGenerations, SourceChangedError
from gamelake.serving.kpis.query import KpiStart, batches, driver_lease, prepare, run_until, start
from gamelake.serving.kpis.settings import KpiSettings
from gamelake.storage.comments import Comments
from gamelake.storage.player_rows import PlayerFilter, player_tables
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.tables import describe, open_table
from gamelake.streaming.runner import TriggerMode
from jobs.kpis import Asked, run_stream
from tests.conftest import JARS
from tests.eventually import eventually
from tests.kpi_answers import Rows, expected_kpis, in_order
from tests.silver_events import BEGINNING, Event, Silver, some_events

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Kpis:
    """The KPI query of one lakehouse, run to silver's present end."""

    def __init__(self, spark: SparkSession, silver: Silver) -> None:
        self.spark = spark
        self.silver = silver
        self.exact = ExactUpTo()
        self.batch_bytes = 2**26

    @property
    def settings(self) -> KpiSettings:
        return KpiSettings(
            lakehouse=LakehouseSettings(location=self.silver.location),
            partitions=1,
            exact=self.exact,
            max_bytes_per_trigger=self.batch_bytes,
        )

    def run(self, beginning: KpiStart = KpiStart.WHERE_IT_STOPPED) -> None:
        store = self.silver.store
        source_id = str(open_table(store.location, SILVER_EVENTS).metadata().id)
        with driver_lease(store) as driver:
            generation, source = prepare(self.settings, store, source_id, beginning)
            body = batches(self.settings, store, generation, source, driver)
            query = start(self.spark, self.settings, generation, body, TriggerMode.AVAILABLE_NOW)
            run_until(Stop(), query, body, source)

    def take(self, *commits: Sequence[Event]) -> None:
        """Append and count, commit by commit."""
        for events in commits:
            self.silver.append(events)
            self.run()

    def rows(self, table: str) -> Rows:
        path = self.silver.folder / "gold" / table
        found = DeltaTable(path)
        names = [field.name for field in found.schema().fields]
        return in_order([tuple(row[name] for name in names) for row in found.to_pyarrow_table().to_pylist()])

    def batches(self) -> int:
        commits = self.silver.folder.glob("_gamelake/kpis/checkpoints/**/commits/*")
        return sum(each.name.isdigit() for each in commits)

    def late(self) -> int:
        return sum(int(str(row[-1])) for row in self.rows("kpi_late"))


@pytest.fixture
def kpis(spark: SparkSession, tmp_path: Path) -> Kpis:
    return Kpis(spark, Silver(tmp_path))


def check_equal(kpis: Kpis, events: Sequence[Event]) -> None:
    for table, expected in expected_kpis(events).items():
        assert kpis.rows(table) == expected, table


@pytest.mark.parametrize(
    ("event", "arrival", "counted"), [(5, 10, 5), (12, 10, 10), (-3, 10, -3), (50, 60, 15)], ids=str
)
def test_an_arrival_minutes_after_the_clock_of_the_query_keeps_its_hour(
    spark: SparkSession, event: int, arrival: int, counted: int
) -> None:
    moments = f"""SELECT current_timestamp() + INTERVAL {event} MINUTES AS event_time,
      current_timestamp() + INTERVAL {arrival} MINUTES AS ingest_time"""

    minutes = spark.sql(moments).selectExpr(f"timestampdiff(MINUTE, current_timestamp(), {OCCURRED})")

    assert minutes.collect()[0][0] == counted


def test_events_in_any_order_within_the_watermark_give_the_batch_answer(kpis: Kpis) -> None:
    events = some_events(600, seed=1, days=3, lateness=170 * MINUTE)

    kpis.take(events[:200], events[200:250], events[250:])

    check_equal(kpis, events)
    assert kpis.late() == 0


def test_a_backlog_is_taken_in_batches_of_so_many_bytes(kpis: Kpis) -> None:
    events = some_events(60, seed=1, days=1, lateness=MINUTE)
    for first in range(0, 60, 20):
        kpis.silver.append(events[first : first + 20])
    # A batch takes one file at least.
    kpis.batch_bytes = 1

    kpis.run()

    assert kpis.batches() >= 3
    check_equal(kpis, events)


def test_what_comes_after_its_hour_is_closed_is_counted_as_late_and_as_nothing_else(kpis: Kpis) -> None:
    on_time = [Event(at=BEGINNING + n * MINUTE, gamer=f"g{n}", session=f"s{n}") for n in range(60)]
    later = [Event(at=BEGINNING + 4 * HOUR), Event(at=BEGINNING + 4 * HOUR + MINUTE)]
    corrects = [Event(at=BEGINNING + HOUR + MINUTE, gamer="within")]
    too_late = [Event(at=BEGINNING + 5 * MINUTE, gamer="beyond"), Event(at=BEGINNING + 6 * MINUTE, gamer="beyond")]

    # What is late is said by the watermark of the batch before, which that one took from the batch before itself.
    kpis.take(on_time, later, later[:1], [*corrects, *too_late])

    check_equal(kpis, [*on_time, *later, *corrects, later[0]])
    assert [row[3:] for row in kpis.rows("kpi_late") if row[-1]] == [(62, 60, 2)]
    assert sum(int(str(row[3])) for row in kpis.rows("kpi_late")) == len(kpis.silver.events)


def test_one_event_with_a_clock_that_is_days_ahead_makes_no_other_late(kpis: Kpis) -> None:
    ahead = Event(at=BEGINNING + 40 * HOUR, taken_in=BEGINNING, gamer="ahead")
    others = [Event(at=BEGINNING + n * MINUTE) for n in range(30)]

    kpis.take([ahead, others[0]], others[1:20], others[20:])

    assert kpis.late() == 0
    check_equal(kpis, [ahead, *others])


@pytest.mark.slow
def test_events_whose_ingest_time_is_unknown_or_absurd_make_no_other_late(kpis: Kpis) -> None:
    ahead = BEGINNING + 45 * HOUR
    unknown = Event(at=ahead, gamer="unknown", arrival_is_known=False)
    absurd = Event(at=ahead, taken_in=datetime(1, 1, 2, tzinfo=UTC), gamer="absurd", game="Bingo")
    others = [Event(at=BEGINNING + n * MINUTE, game="Bingo") for n in range(30)]

    kpis.take([unknown, absurd, others[0]], others[1:20], others[20:])

    assert kpis.late() == 0
    check_equal(kpis, [unknown, replace(absurd, taken_in=None), *others])


@pytest.mark.slow
def test_amounts_that_no_decimal_number_can_hold_are_left_out_and_stop_nothing(kpis: Kpis) -> None:
    absurd = [math.nan, math.inf, -math.inf, 1e12, 1e13, -1e13, 1e308, -1e308]
    bad = [Event(at=BEGINNING + n * MINUTE, name="purchase", amount=each) for n, each in enumerate(absurd)]
    others = some_events(60, seed=9, days=1)

    kpis.take([*bad, *others[:30]], [*bad, *others[30:]])

    check_equal(kpis, [*bad, *others[:30], *bad, *others[30:]])


def test_a_batch_whose_commit_was_lost_runs_again_and_counts_nothing_twice(kpis: Kpis) -> None:
    events = some_events(200, seed=3, lateness=100 * MINUTE)
    kpis.take(events[:100], events[100:])
    commits = sorted((kpis.silver.folder / "_gamelake/kpis/checkpoints/000000/commits").glob("[0-9]*"))

    commits[-1].unlink()
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    kpis.run()

    check_equal(kpis, events)
    assert kpis.late() == 0


@pytest.mark.slow
def test_a_checkpoint_that_is_lost_makes_the_query_count_all_of_silver_again(kpis: Kpis) -> None:
    events = some_events(200, seed=4, lateness=100 * MINUTE)
    kpis.take(events[:150])
    shutil.rmtree(kpis.silver.folder / "_gamelake/kpis/checkpoints")

    kpis.take(events[150:])

    check_equal(kpis, events)


def test_after_rows_were_deleted_the_query_stops_until_a_rebuild_is_requested(kpis: Kpis) -> None:
    events = some_events(150, seed=5)
    kpis.take(events[:100])
    DeltaTable(kpis.silver.folder / SILVER_EVENTS).delete("game_name = 'Bingo'")

    with pytest.raises(SourceChangedError, match="--rebuild"):
        kpis.run()
    kpis.run(KpiStart.ANEW)

    check_equal(kpis, [event for event in events[:100] if event.game != "Bingo"])


@pytest.mark.slow
def test_after_files_were_vacuumed_unread_the_query_stops_until_a_rebuild_is_requested(kpis: Kpis) -> None:
    kpis.take(some_events(100, seed=5))
    before = set((kpis.silver.folder / SILVER_EVENTS).rglob("*.parquet"))
    kpis.silver.append(some_events(20, seed=6))
    for unread in set((kpis.silver.folder / SILVER_EVENTS).rglob("*.parquet")) - before:
        unread.unlink()

    with pytest.raises(SourceChangedError, match=r"vacuumed.*--rebuild"):
        kpis.run()


@pytest.mark.parametrize("is_planned", [False, True], ids=["before a batch", "during a batch"])
def test_a_query_rebuilds_by_itself_when_an_erasure_purged_files_that_were_yet_to_be_counted(
    kpis: Kpis, is_planned: bool
) -> None:
    events = some_events(150, seed=5)
    kpis.take(events[:100])
    kpis.silver.append(events[100:])
    unread = set(DeltaTable(kpis.silver.folder / SILVER_EVENTS).file_uris())
    erase(kpis, "g1")
    if is_planned:
        kpis.run()
        forget_last_commit(kpis)
    for purged in unread - set(DeltaTable(kpis.silver.folder / SILVER_EVENTS).file_uris()):
        Path(purged.removeprefix("file://")).unlink()

    run_stream(kpis.settings, lambda: nullcontext(kpis.spark.newSession()), Stop(), Asked(TriggerMode.AVAILABLE_NOW))

    check_equal(kpis, [event for event in events if event.gamer != "g1"])
    assert len(KpiGenerations(kpis.silver.store).all()) == 2


def erase(kpis: Kpis, gamer: str) -> None:
    (silver,) = (table for table in player_tables(kpis.silver.store) if table.name == SILVER_EVENTS)
    RowEraser(kpis.silver.store, silver, PlayerFilter(frozenset({gamer})), "run", Failpoints()).erase()


def forget_last_commit(kpis: Kpis) -> None:
    """As if the process had ended during the last batch."""
    folder = kpis.silver.folder / "_gamelake/kpis/checkpoints/000000/commits"
    last = max((each for each in folder.iterdir() if each.name.isdigit()), key=lambda each: int(each.name))
    last.unlink()
    (folder / f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_query_rebuilds_by_itself_when_silver_is_restored_whether_it_runs_or_not(kpis: Kpis) -> None:
    events = some_events(150, seed=6)
    kpis.take(events[:100])
    kpis.silver.append(events[100:])
    restore(kpis, 0)
    stop = Stop()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_stream, kpis.settings, lambda: nullcontext(kpis.spark.newSession()), stop)
        try:
            eventually(lambda: running.done() or equals(kpis, events[:100]), timeout=60)
            restore(kpis, 1)
            eventually(lambda: running.done() or equals(kpis, events), timeout=60)
        finally:
            stop.set()
        running.result(60)

    check_equal(kpis, events)


def restore(kpis: Kpis, version: int) -> None:
    """Set silver back, or forth again, as the job does."""
    history = TableHistory.read(kpis.silver.store, SILVER_EVENTS)
    with maintenance_lease(kpis.silver.store, SILVER_EVENTS) as lease:
        TableRestore(kpis.silver.store, history, version).commit(lease)


def equals(kpis: Kpis, events: Sequence[Event]) -> bool:
    return all(kpis.rows(table) == expected for table, expected in expected_kpis(events).items())


def test_comments_on_silver_leave_the_query_as_it_is(kpis: Kpis) -> None:
    events = some_events(150, seed=8)
    kpis.take(events[:50])
    kpis.silver.append(events[50:100])
    comments = Comments("All events.", {"event_name": "What happened."})
    assert describe(kpis.silver.store, SILVER_EVENTS, comments, lambda: open_table(kpis.silver.location, SILVER_EVENTS))

    kpis.take(events[100:])

    check_equal(kpis, events)


def test_compactions_and_erasures_of_silver_neither_stop_the_query_nor_count_anything_twice(kpis: Kpis) -> None:
    events = some_events(200, seed=6, days=1)
    kpis.take(events[:50], events[50:100])
    DeltaTable(kpis.silver.folder / SILVER_EVENTS).optimize.compact()
    erase(kpis, "g1")
    rest = [event for event in events[100:] if event.gamer != "g1"]

    kpis.take(rest)

    expected = expected_kpis([*events[:100], *rest])
    assert kpis.rows("kpi_hourly") == expected["kpi_hourly"]
    assert kpis.rows("kpi_daily") == expected["kpi_daily"]


@pytest.mark.slow
def test_a_job_that_is_killed_after_it_has_written_goes_on_where_it_was(spark: SparkSession, kpis: Kpis) -> None:
    events = some_events(200, seed=7, lateness=100 * MINUTE)
    kpis.silver.append(events[:100])
    job = [sys.executable, "-m", "jobs.kpis", "--available-now"]
    variables = {
        **os.environ,
        "GAMELAKE_LAKEHOUSE": kpis.silver.location.uri,
        "GAMELAKE_SPARK_JARS": str(JARS),
        "GAMELAKE_KPIS_PARTITIONS": "1",
        "GAMELAKE_FAILPOINT": "after_commits",
        "GAMELAKE_METRICS_PORT": "",
    }

    killed = subprocess.run(job, env=variables, check=False, capture_output=True, timeout=300)
    kpis.take(events[100:])

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    check_equal(kpis, events)

"""The benchmark's pipelines that write one table: what is in it afterwards, also after a failed append."""

import multiprocessing
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from benchmarks.approaches import ApproachFailedError, WorkerProcesses
from benchmarks.delta_rs_consumer import append_rows
from benchmarks.duckdb_consumer import append_unique_rows
from benchmarks.long_events import fill_with_long_events
from benchmarks.machine import SPARK_JARS
from benchmarks.one_table import Append, EventRows, consume_into_one_table
from benchmarks.traffic import Filled, fill
from benchmarks.workload import ONE_TABLE, Workload
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.java import spark_environment

pytestmark = pytest.mark.embedded

EVENTS = 50_000
Fill: TypeAlias = Callable[[str, str, str, int], Filled]


@pytest.fixture
def filled(kafka: EmbeddedKafka, registry: EmbeddedRegistry, tmp_path: Path) -> Callable[[Fill], Workload]:
    """Fills a topic, and gives the workload to read it."""

    def fill_topic(fill_with: Fill) -> Workload:
        topic = f"benchmark-{uuid.uuid4().hex}"
        content = fill_with(kafka.bootstrap_servers, registry.url, topic, EVENTS)
        return Workload(
            bootstrap_servers=kafka.bootstrap_servers,
            registry_url=registry.url,
            kafka_pid=kafka.process.pid,
            topic=topic,
            records=content.records,
            value_bytes=content.value_bytes,
            spark_jars=SPARK_JARS,
            directory=tmp_path,
        )

    return fill_topic


@pytest.mark.parametrize("append", [append_rows, append_unique_rows])
def test_a_consumer_that_fails_between_two_appends_goes_on_without_loss_or_repetition(
    filled: Callable[[Fill], Workload], append: Append
) -> None:
    workload, appends = filled(fill), 0

    def append_once(table: DeltaTable, rows: EventRows) -> None:
        nonlocal appends
        appends += 1
        if appends > 1:
            raise OSError("the disk is full")
        append(table, rows)

    with pytest.raises(OSError, match="disk is full"):
        consume_into_one_table(workload, append_once, rows_per_append=20_000)

    outcome = consume_into_one_table(workload, append, rows_per_append=10_000)

    rows = DeltaTable(str(workload.directory / "lakehouse" / ONE_TABLE)).to_pyarrow_table()
    assert outcome.records == len(rows) == EVENTS
    assert pc.count_distinct(rows["event_id"]).as_py() == EVENTS
    assert rows["attributes"].type == pa.map_(pa.string(), pa.string())


@pytest.mark.slow
def test_a_fan_out_alone_writes_the_tables_of_games_and_no_other(
    filled: Callable[[Fill], Workload], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in spark_environment().items():
        monkeypatch.setenv(name, value)
    workload = filled(fill_with_long_events)

    with WorkerProcesses(tmp_path / "logs") as processes:
        outcome = processes.run("fan_out_alone_1_kb", workload)

    lakehouse = workload.directory / "lakehouse"
    tables = {str(log.parent.relative_to(lakehouse)) for log in lakehouse.rglob("_delta_log")}
    assert tables == {"silver/game_001_events"}
    assert outcome.records == EVENTS
    assert outcome.game_table_bytes > EVENTS * 300


@pytest.mark.slow
def test_an_approach_whose_process_is_killed_is_an_error_that_names_its_log(
    filled: Callable[[Fill], Workload], tmp_path: Path
) -> None:
    workload = filled(fill)

    with WorkerProcesses(tmp_path / "logs") as processes:
        assert processes.run("delta_rs_consumer", workload).records == EVENTS
        (process,) = (each for each in multiprocessing.active_children() if each.name == "delta_rs")
        process.kill()
        with pytest.raises(ApproachFailedError, match=r"delta_rs_consumer: its process ended; see .*delta_rs\.log"):
            processes.run("delta_rs_consumer", workload)

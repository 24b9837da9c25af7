"""The compared approaches, and the processes that they run in: one for each kind, which stays warm between rounds."""

import multiprocessing
import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from benchmarks.delta_rs_consumer import consume_with_delta_rs
from benchmarks.duckdb_consumer import consume_with_duckdb
from benchmarks.fan_out import Dedup, fan_out_alone, fan_out_during_compaction, fan_out_into, fan_out_with_rules
from benchmarks.python_loop import consume_and_append
from benchmarks.spark import read_fan_out_columns_into_nowhere, read_into_nowhere
from benchmarks.textbook import append_partitioned, append_to_each
from benchmarks.workload import Approach, ApproachResult, Workload

CEILING, CEILING_OF_COLUMNS = "ceiling", "ceiling_of_columns"
TEXTBOOK, PARTITIONED, PYTHON_LOOP = "textbook", "textbook_partitioned", "python_loop"
NO_DEDUP, DEDUP_BY_SPARK = "fan_out_30_no_dedup", "fan_out_30_dedup_by_spark"
DURING_COMPACTION, WITH_RULES = "fan_out_30_beside_packing", "fan_out_30_with_rules"
FAN_OUT_TABLES = (1, 10, 30, 100)
ALONE, DELTA_RS, DUCKDB = "fan_out_alone", "delta_rs_consumer", "duckdb_consumer"
LONG_ALONE, LONG_DELTA_RS, LONG_DUCKDB = "fan_out_alone_1_kb", "delta_rs_consumer_1_kb", "duckdb_consumer_1_kb"


class BenchmarkTopic(StrEnum):
    """A topic that approaches read."""

    EVENTS = "benchmark"
    LONG_EVENTS = "benchmark-long"


@dataclass(frozen=True, slots=True)
class ApproachInProcess:
    """An approach, the kind of process that it runs in, and the topic that it reads."""

    peer: str
    run: Approach
    topic: BenchmarkTopic = BenchmarkTopic.EVENTS


def fan_out_name(tables: int) -> str:
    """The name of the fan-out into `tables` tables."""
    return f"fan_out_{tables}"


APPROACHES: Mapping[str, ApproachInProcess] = {
    CEILING: ApproachInProcess("ceiling", read_into_nowhere),
    CEILING_OF_COLUMNS: ApproachInProcess("ceiling", read_fan_out_columns_into_nowhere),
    **{fan_out_name(tables): ApproachInProcess("fan_out", fan_out_into(tables)) for tables in FAN_OUT_TABLES},
    NO_DEDUP: ApproachInProcess("fan_out", fan_out_into(30, Dedup.NONE)),
    DURING_COMPACTION: ApproachInProcess("fan_out", fan_out_during_compaction),
    WITH_RULES: ApproachInProcess("fan_out", fan_out_with_rules),
    DEDUP_BY_SPARK: ApproachInProcess("fan_out_after_spark_dedup", fan_out_into(30, Dedup.BY_SPARK)),
    TEXTBOOK: ApproachInProcess("textbook", append_to_each),
    PARTITIONED: ApproachInProcess("textbook", append_partitioned),
    PYTHON_LOOP: ApproachInProcess("python_loop", consume_and_append),
    ALONE: ApproachInProcess("fan_out", fan_out_alone),
    DELTA_RS: ApproachInProcess("delta_rs", consume_with_delta_rs),
    DUCKDB: ApproachInProcess("duckdb", consume_with_duckdb),
    LONG_ALONE: ApproachInProcess("fan_out", fan_out_alone, BenchmarkTopic.LONG_EVENTS),
    LONG_DELTA_RS: ApproachInProcess("delta_rs", consume_with_delta_rs, BenchmarkTopic.LONG_EVENTS),
    LONG_DUCKDB: ApproachInProcess("duckdb", consume_with_duckdb, BenchmarkTopic.LONG_EVENTS),
}


class ApproachFailedError(Exception):
    """An approach failed."""


class WorkerProcesses:
    """Starts a process when an approach first needs it; ends all of them with the `with` block."""

    def __init__(self, log_folder: Path) -> None:
        self._log_folder = log_folder
        self._context = multiprocessing.get_context("spawn")
        self._running: dict[str, tuple[SpawnProcess, Connection]] = {}

    def __enter__(self) -> "WorkerProcesses":
        """Start nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, and wait for them."""
        for process, connection in self._running.values():
            connection.close()
            process.join()

    def run(self, way: str, workload: Workload) -> ApproachResult:
        """Run an approach in its process.

        Raises:
            ApproachFailedError: it failed; the message has the traceback, or names the log of a process that ended.
        """
        peer = APPROACHES[way].peer
        if peer not in self._running:
            self._running[peer] = self._start(peer)
        connection = self._running[peer][1]
        try:
            connection.send((way, workload))
            answer = connection.recv()
        except (EOFError, ConnectionError) as error:
            raise ApproachFailedError(f"{way}: its process ended; see {self._log_of(peer)}") from error
        if not isinstance(answer, ApproachResult):
            raise ApproachFailedError(f"{way}: {answer}")
        return answer

    def _start(self, peer: str) -> tuple[SpawnProcess, Connection]:
        ours, theirs = self._context.Pipe()
        self._log_folder.mkdir(parents=True, exist_ok=True)
        process = self._context.Process(target=partial(_serve, theirs, self._log_of(peer)), name=peer)
        process.start()
        theirs.close()
        return process, ours

    def _log_of(self, peer: str) -> Path:
        return self._log_folder / f"{peer}.log"


def _serve(connection: Connection, log_file: Path) -> None:
    """Run approaches until the connection is closed."""
    # The JVM and its workers inherit both file descriptors: their output belongs in the log.
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    while True:
        try:
            way, workload = connection.recv()
        except EOFError:
            return
        connection.send(_answer(APPROACHES[way].run, workload))


def _answer(run: Approach, workload: Workload) -> ApproachResult | str:
    try:
        return run(workload)
    except Exception:  # the parent process reports it
        return traceback.format_exc()

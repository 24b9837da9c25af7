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
from benchmarks.results import BenchmarkError
from benchmarks.spark import read_fan_out_columns_into_nowhere, read_into_nowhere
from benchmarks.textbook import append_partitioned, append_to_each
from benchmarks.workload import Approach, ApproachResult, Workload


class BenchmarkTopic(StrEnum):
    """A topic that approaches read."""

    EVENTS = "benchmark"
    LONG_EVENTS = "benchmark-long"


@dataclass(frozen=True, slots=True)
class ApproachInProcess:
    """An approach: its name in results, the kind of process that it runs in, and the topic that it reads."""

    label: str
    peer: str
    run: Approach
    topic: BenchmarkTopic = BenchmarkTopic.EVENTS


_LONG = BenchmarkTopic.LONG_EVENTS
# By the name that `--only` takes.
APPROACHES: Mapping[str, ApproachInProcess] = {
    "ceiling": ApproachInProcess("Spark's read alone", "ceiling", read_into_nowhere),
    "ceiling_of_columns": ApproachInProcess(
        "Spark's read, fan-out's columns", "ceiling", read_fan_out_columns_into_nowhere
    ),
    **{
        f"fan_out_{tables}": ApproachInProcess(f"fan-out, {tables} + 2 tables", "fan_out", fan_out_into(tables))
        for tables in (1, 10, 30, 100)
    },
    "fan_out_30_no_dedup": ApproachInProcess("fan-out, 30 + 2, no dedup", "fan_out", fan_out_into(30, Dedup.NONE)),
    "fan_out_30_beside_packing": ApproachInProcess(
        "fan-out, 30 + 2, during compaction", "fan_out", fan_out_during_compaction
    ),
    "fan_out_30_with_rules": ApproachInProcess("fan-out, 30 + 2, 20 rules per game", "fan_out", fan_out_with_rules),
    "fan_out_30_dedup_by_spark": ApproachInProcess(
        "fan-out, 30 + 2, Spark's dedup", "fan_out_after_spark_dedup", fan_out_into(30, Dedup.BY_SPARK)
    ),
    "textbook": ApproachInProcess("textbook, 30 + 2 appends", "textbook", append_to_each),
    "textbook_partitioned": ApproachInProcess("textbook, 1 partitioned + 2", "textbook", append_partitioned),
    "fan_out_alone": ApproachInProcess("fan-out, 1 table, no bronze", "fan_out", fan_out_alone),
    "delta_rs_consumer": ApproachInProcess("delta-rs consumer, 1 table", "delta_rs", consume_with_delta_rs),
    "duckdb_consumer": ApproachInProcess("DuckDB consumer, 1 table", "duckdb", consume_with_duckdb),
    "fan_out_alone_1_kb": ApproachInProcess(
        "fan-out, 1 table, no bronze, 1-KB events", "fan_out", fan_out_alone, _LONG
    ),
    "delta_rs_consumer_1_kb": ApproachInProcess(
        "delta-rs consumer, 1 table, 1-KB events", "delta_rs", consume_with_delta_rs, _LONG
    ),
    "duckdb_consumer_1_kb": ApproachInProcess(
        "DuckDB consumer, 1 table, 1-KB events", "duckdb", consume_with_duckdb, _LONG
    ),
}


class ApproachFailedError(BenchmarkError):
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

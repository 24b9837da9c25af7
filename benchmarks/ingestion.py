"""Ingestion: pipelines that read the same topic in turn, commits to many tables, and the age of events in tables."""

import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks import freshness
from benchmarks.approaches import APPROACHES, BenchmarkTopic, WorkerProcesses
from benchmarks.charts import bar_chart
from benchmarks.commits import TABLES, commit_seconds
from benchmarks.documents import Report, circumstances, goals_table, subjects_table
from benchmarks.goals import Figure, Goal, figure_of, ratio
from benchmarks.harness import Benchmark, Run, alternate, option
from benchmarks.long_events import fill_with_long_events
from benchmarks.machine import SPARK_JARS
from benchmarks.results import Measurement, Results, Values, percentiles
from benchmarks.traffic import fill
from benchmarks.workload import Workload
from tools.embedded import EmbeddedServices
from tools.embedded.service import fetched

PIPELINES, COMMITS, FRESHNESS = "pipelines", "commits", "freshness"
NAMES = (*APPROACHES, COMMITS, FRESHNESS)
# In the appendix; the results have more.
FIGURES = ("records/s", "CPU s per million")
_WARM_UP_SHARE, _WARM_UPS = 8, 2
# The events of one kilobyte are six times as long, so half as many are enough.
_LONG_SHARE = 2


@dataclass(frozen=True, slots=True)
class IngestionSettings:
    """Options of the benchmark."""

    events: int = option(2_000_000, "events in the topic")
    repeats: int = option(3, "rounds; each one runs everything once")
    only: tuple[str, ...] = option((), "measure only these, and write no report", NAMES)

    @property
    def names(self) -> tuple[str, ...]:
        """Options of the benchmark."""
        return self.only or NAMES


def measure(run: Run[IngestionSettings]) -> Iterator[Measurement]:
    """Fill the topics, and measure what the settings name.

    Raises:
        BenchmarkError: a pipeline failed, or lost a record.
    """
    settings = run.settings
    ways = [name for name in APPROACHES if name in settings.names]
    with EmbeddedServices(run.folder / "services") as services, WorkerProcesses(run.folder / "logs") as processes:
        workload = Workload(
            bootstrap_servers=services.kafka.bootstrap_servers,
            registry_url=services.registry.url,
            kafka_pid=services.kafka.process.pid,
            topic=BenchmarkTopic.EVENTS,
            records=settings.events,
            spark_jars=fetched(SPARK_JARS),
            directory=run.folder,
        )
        topics = {}
        for topic in {APPROACHES[way].topic for way in ways}:
            run.emit(f"filling the topic {topic}")
            topics[topic] = _filled(workload, topic, settings.events)
        pipelines = {APPROACHES[way].label: partial(_measured, processes, way, topics) for way in ways}
        yield from alternate(PIPELINES, pipelines, settings.repeats, run.emit, _WARM_UPS)
        others = {
            COMMITS: {f"{TABLES} tables": lambda _: percentiles(commit_seconds(_fresh(run.folder)))},
            FRESHNESS: {"ingest job": lambda _: freshness.measure(replace(workload, directory=_fresh(run.folder)))},
        }
        for part, subjects in others.items():
            if part in settings.names:
                yield from alternate(part, subjects, settings.repeats, run.emit, warm_up=0)


def _filled(workload: Workload, topic: BenchmarkTopic, events: int) -> tuple[Workload, Workload]:
    """Fill a topic, and a smaller one for warm-ups."""
    is_long = topic is BenchmarkTopic.LONG_EVENTS
    count = events // _LONG_SHARE if is_long else events
    sizes = {f"{topic}-warm-up": max(count // _WARM_UP_SHARE, 1), str(topic): count}
    warm_up, whole = (
        replace(workload, topic=name, records=filled.records, value_bytes=filled.value_bytes)
        for name, size in sizes.items()
        for filled in [
            (fill_with_long_events if is_long else fill)(workload.bootstrap_servers, workload.registry_url, name, size)
        ]
    )
    return warm_up, whole


def _measured(
    processes: WorkerProcesses,
    way: str,
    topics: Mapping[BenchmarkTopic, tuple[Workload, Workload]],
    number: int,
) -> Values:
    workload = topics[APPROACHES[way].topic][number > 0]
    workload = replace(workload, directory=_fresh(workload.directory))
    outcome = processes.run(way, workload)
    shutil.rmtree(workload.directory)
    return outcome.values(workload.value_bytes * outcome.records / workload.records)


def _fresh(folder: Path) -> Path:
    fresh = folder / uuid.uuid4().hex[:8]
    fresh.mkdir(parents=True)
    return fresh


def label(way: str) -> str:
    """Return the name of an approach in results."""
    return APPROACHES[way].label


def _batches(way: str, *others: str) -> Figure:
    """Compare rates of micro-batches: the start of a query takes the same time for all Spark queries."""
    return ratio(PIPELINES, "records/s of batches", label(way), *map(label, others))


def _whole(way: str, *others: str) -> Figure:
    """Compare rates of whole runs: the others are not Spark queries, so the start of a query counts."""
    return ratio(PIPELINES, "records/s", label(way), *map(label, others))


def _cpu(way: str, *others: str) -> Figure:
    return ratio(PIPELINES, "CPU s per million", label(way), *map(label, others), least=True)


def _of(way: str, figure: str) -> Figure:
    return figure_of(PIPELINES, label(way), figure)


_ALONE = "one table without bronze"
_FASTEST, _CHEAPEST = (
    "relative to the fastest consumer without Spark",
    "relative to the cheapest consumer without Spark",
)
_CONSUMERS = ("delta_rs_consumer", "duckdb_consumer")
_LONG_CONSUMERS = ("delta_rs_consumer_1_kb", "duckdb_consumer_1_kb")

GOALS: tuple[Goal, ...] = (
    Goal(
        "30 game tables: rate, relative to Spark's read alone",
        (0.7, 1),
        _batches("fan_out_30", "ceiling", "ceiling_of_columns"),
    ),
    Goal(
        "30 game tables, bronze and `silver/events`: CPU seconds per million records",
        (5.5, 4),
        _of("fan_out_30", "CPU s per million"),
        " s",
        at_most=True,
    ),
    Goal("30 game tables: rate, relative to the textbook", (12, 16), _batches("fan_out_30", "textbook")),
    Goal(f"{_ALONE}, 1-KB events: MB/s per CPU core", (40, 60), _of("fan_out_alone_1_kb", "MB per CPU s")),
    Goal(
        "freshness: age of an event when it can be read, p95",
        (1.2, 0.8),
        figure_of(FRESHNESS, "ingest job", "p95 s"),
        " s",
        at_most=True,
    ),
    Goal(f"{_ALONE}: rate, {_FASTEST}", (1,), _whole("fan_out_alone", *_CONSUMERS)),
    Goal(f"{_ALONE}, 1-KB events: rate, {_FASTEST}", (1,), _whole("fan_out_alone_1_kb", *_LONG_CONSUMERS)),
    Goal(f"{_ALONE}: CPU time, {_CHEAPEST}", (1,), _cpu("fan_out_alone", *_CONSUMERS), at_most=True),
    Goal(
        f"{_ALONE}, 1-KB events: CPU time, {_CHEAPEST}",
        (1,),
        _cpu("fan_out_alone_1_kb", *_LONG_CONSUMERS),
        at_most=True,
    ),
    Goal("30 game tables: rate, relative to one", (0.75,), _batches("fan_out_30", "fan_out_1")),
    Goal("100 game tables: rate, relative to one", (0.6,), _batches("fan_out_100", "fan_out_1")),
    Goal("deduplication: rate, relative to none", (0.75,), _batches("fan_out_30", "fan_out_30_no_dedup")),
    Goal("deduplication: rate, relative to Spark's own", (1,), _batches("fan_out_30", "fan_out_30_dedup_by_spark")),
    Goal(
        "compaction of small files at the same time: rate, relative to none",
        (0.85,),
        _batches("fan_out_30_beside_packing", "fan_out_30"),
    ),
    Goal("20 rules for each game: rate, relative to none", (0.85,), _batches("fan_out_30_with_rules", "fan_out_30")),
    Goal(
        "32 concurrent idempotent commits", (0.4,), figure_of(COMMITS, f"{TABLES} tables", "p50 s"), " s", at_most=True
    ),
    Goal(
        "bytes per event in the game tables", (60,), _of("fan_out_30", "bytes per event in game tables"), at_most=True
    ),
)


def _chart(results: Results, file: Path) -> None:
    # Rates of longer records do not fit on the same scale.
    shown = [name for name in results.subjects(PIPELINES) if not name.endswith("1-KB events")]
    rates = {name: results.values(PIPELINES, name, "records/s") for name in shown}
    bar_chart(file, "From Kafka to committed tables; + 2: bronze and silver/events", "records/s", rates, "fan-out")


BENCHMARK = Benchmark(
    name="ingestion",
    measures=f"Measure ingestion: {', '.join(NAMES)}.",
    settings=IngestionSettings(),
    measure=measure,
    goals=GOALS,
    is_partial=lambda settings: bool(settings.only),
    runs_spark=True,
    report=Report(
        page=(circumstances("Kafka and the registry share the cores"), goals_table(GOALS)),
        appendix=(subjects_table(PIPELINES, "pipeline", *FIGURES),),
        charts={"performance.svg": _chart},
    ),
)

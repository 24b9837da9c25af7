"""Reads the event topic into bronze, one silver table per game, and the dead letters.

Settings come from GAMELAKE_* variables (docs/settings.md). On SIGTERM it ends after the running batch.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry

from gamelake.observability.lineage.flow import TopicDataset
from gamelake.observability.lineage.ingest import IngestLineage, IngestSource, RegisteredVersions, from_kafka
from gamelake.observability.stream_job import OpenJob, StreamJob, run_program
from gamelake.observability.traces.batches import tracing_batches
from gamelake.program import run
from gamelake.quality.daily import QualityTable
from gamelake.schemas.registry import SchemaRegistry
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.observers import BatchObserver, updating_quality_table
from gamelake.streaming.driver.runner import fan_out
from gamelake.streaming.driver.settings import IngestSettings
from gamelake.streaming.plan import DedupPlan

_RECENT_BATCHES = 20


def main() -> int:
    """Run the query until it is stopped; with --available-now, to the current end of the topic."""
    return run_program(__doc__, lambda: stream_job(IngestSettings.from_env()))


def stream_job(settings: IngestSettings) -> StreamJob:
    """Return the job that reads the topic of events."""
    return IngestQuery(
        settings=settings,
        reads=from_kafka(TopicDataset(settings.kafka.bootstrap_servers, settings.topic)),
        schemas_of=settings.topic,
        batch_function=partial(fan_out, settings),
    ).job()


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestQuery:
    """The parts in which ingest queries differ.

    Attributes:
        reads: the name of the job and its inputs, for lineage.
        schemas_of: the topic whose registered schemas the events have.
        batch_function: makes the batch function of an open stream, for a number of cores and its observers.
        observers: more observers, with metrics in a registry.
    """

    settings: IngestSettings
    reads: IngestSource
    schemas_of: str
    batch_function: Callable[[OpenStream, int, Sequence[BatchObserver]], FanOut[DedupPlan]]
    observers: Callable[[CollectorRegistry], Sequence[BatchObserver]] = lambda registry: ()

    def job(self) -> StreamJob:
        """Return the job that runs the query with its telemetry and lineage."""
        return StreamJob(
            name=self.reads.name,
            settings=self.settings,
            query=self._opened,
            counted_batches=_RECENT_BATCHES,
            only_plans=True,
            schemas=RegisteredVersions(SchemaRegistry(self.settings.registry_url), self.schemas_of),
        )

    @contextmanager
    def _opened(self, job: OpenJob) -> Iterator[FanOut[DedupPlan]]:
        stream = self.settings.stream
        with (
            updating_quality_table(QualityTable(job.store, stream, job.comments)) as quality,
            tracing_batches(self.settings.traces, job.store, stream) as tracer,
        ):
            lineage = IngestLineage(job.lineage, self.reads, job.source.generation.query_id, job.kind)
            observers = (job.telemetry, *self.observers(job.metrics), lineage, quality, tracer)
            body = self.batch_function(job.source, job.spark.sparkContext.defaultParallelism, observers)
            lineage.begin(job.observed.recent)
            yield body


if __name__ == "__main__":
    run(main)

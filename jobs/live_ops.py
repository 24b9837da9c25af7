"""Keeps what live operations act on: each player's state in a compacted topic, and signals about games.

Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after the batch that runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from gamelake.observability.lineage.job_flows import flow
from gamelake.observability.live_ops import LiveOpsReporter
from gamelake.observability.metrics.serving.live_ops import LiveOpsTelemetry
from gamelake.observability.stream_job import OpenJob, StreamJob, run_program
from gamelake.program import run
from gamelake.serving.live_ops.plan import StatePlan
from gamelake.serving.live_ops.query import live_ops
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.streaming.driver.batch import FanOut


def main() -> int:
    """Run the query until it is stopped; with --available-now, to the current end of the topic."""
    return run_program(__doc__, lambda: stream_job(LiveOpsSettings.from_env()))


def stream_job(settings: LiveOpsSettings) -> StreamJob:
    """Return the job that reads the topic of events for live operations."""
    return StreamJob(
        name="live_ops", settings=settings.reading, query=partial(_opened, settings), has_concurrent_stream=False
    )


@contextmanager
def _opened(settings: LiveOpsSettings, job: OpenJob) -> Iterator[FanOut[StatePlan]]:
    detector = Detector()
    reporter = LiveOpsReporter(LiveOpsTelemetry(settings.reading.stream, job.metrics), detector)
    job.lineage.emit(flow(settings, job.source.generation.query_id, job.kind))
    parts = live_ops(settings, job.source, job.spark, detector, reporter, [job.telemetry])
    yield parts.body
    parts.keeper.refresh()


if __name__ == "__main__":
    run(main)

"""Emits the lineage of a job: no failure or delay of it reaches the job."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Protocol

from gamelake.model.errors import GamelakeError
from gamelake.model.logs import event_logger
from gamelake.model.options import LineageOptions
from gamelake.objects.store import Location
from gamelake.observability.lineage.flow import Flow, SchemaVersions, nothing_known

log = event_logger(__name__)

# How often a table that a query is to create is looked up until it exists.
_RETRY_SECONDS = 10.0
_TRY_AGAIN_SECONDS = 60.0
# A job's end waits so long for its last events, whatever the object store does.
_PATIENCE_SECONDS = 30.0


class Emitter(Protocol):
    """Is given what a job reads and writes."""

    def emit(self, *flows: Flow) -> None:
        """Queue the flows; the newest flow of a job replaces the former. Returns at once, and never raises."""


class NoOpEmitter:
    """Emits nothing."""

    def emit(self, *flows: Flow) -> None:
        """Do nothing."""


class SendLineage(Protocol):
    """Turns flows into events; each of its methods may take long, and may raise."""

    def started(self, flows: Sequence[Flow]) -> None:
        """Send the first event of each job."""

    def running(self, flows: Sequence[Flow]) -> None:
        """Send how each job stands now."""

    def ended(self, flows: Sequence[Flow], error: str) -> None:
        """Send the last event of each job; `error` is empty if all went well."""

    def lacks(self, flow: Flow) -> frozenset[str]:
        """Return the tables of a flow that don't exist yet."""


class LineageEmitter:
    """Keeps the flows, and sends them from a thread of its own: new ones at once, all at an interval."""

    def __init__(self, open_sender: Callable[[], SendLineage], every_seconds: float) -> None:
        self._open_sender = open_sender
        self._every = every_seconds
        self._changed = Condition()
        self._flows: dict[str, Flow] = {}
        self._new: set[str] = set()
        self._started: set[str] = set()
        self._lacking: dict[str, frozenset[str]] = {}
        self._due = time.monotonic() + every_seconds
        self._error: str | None = None
        self._fails = False
        self._thread = Thread(target=self._run, name="lineage", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def emit(self, *flows: Flow) -> None:
        """See `Emitter`."""
        with self._changed:
            changed = {flow.job: flow for flow in flows if self._flows.get(flow.job) != flow}
            self._flows |= changed
            self._new |= changed.keys()
            self._changed.notify()

    def end(self, error: str) -> None:
        """Send the last events, and wait for that, but not for ever."""
        with self._changed:
            self._error = error
            self._changed.notify()
        self._thread.join(_PATIENCE_SECONDS)
        if self._thread.is_alive():
            log.warning("last_lineage_not_sent", seconds=_PATIENCE_SECONDS, action="the job ends without them")

    def _run(self) -> None:
        sender: SendLineage | None = None
        while self._error is None or self._new:
            new, flows, is_due = self._wait()
            try:
                sender = sender or self._open_sender()
                self._send(sender, set(flows) if is_due else new, flows)
                self._fails = False
            except Exception:
                self._failed()
        if sender is not None:
            self._send_last(sender)

    def _failed(self) -> None:
        """Try again before long; an outage is worth one stack in the log, not one a minute."""
        log.warning("lineage_not_sent", action="the job continues, and sending is retried", exc_info=not self._fails)
        self._fails = True
        self._due = min(self._due, time.monotonic() + _TRY_AGAIN_SECONDS)

    def _wait(self) -> tuple[set[str], dict[str, Flow], bool]:
        """Wait for new flows or for the interval. Return the new jobs, all flows, and True if all are due."""
        with self._changed:
            pause = max(0.0, self._due - time.monotonic())
            if any(self._lacking.values()):
                pause = min(pause, _RETRY_SECONDS)
            self._changed.wait_for(lambda: self._new or self._error is not None, timeout=pause)
            new, self._new = self._new, set()
            is_due = time.monotonic() >= self._due
            if is_due:
                self._due = time.monotonic() + self._every
            return new, dict(self._flows), is_due

    def _send(self, sender: SendLineage, jobs: set[str], flows: dict[str, Flow]) -> None:
        jobs = jobs | {job for job, lacking in self._lacking.items() if lacking and lacking != sender.lacks(flows[job])}
        self._lacking |= {job: sender.lacks(flows[job]) for job in jobs}
        first = jobs - self._started
        self._started |= first
        if first:
            sender.started([flows[job] for job in sorted(first)])
        if others := jobs - first:
            sender.running([flows[job] for job in sorted(others)])

    def _send_last(self, sender: SendLineage) -> None:
        try:
            sender.ended([self._flows[job] for job in sorted(self._started)], self._error or "")
        except Exception:
            log.exception("last_lineage_lost", action="the job ends as it would")


@contextmanager
def lineage_emitter(
    options: LineageOptions, program: str, location: Location, schemas: SchemaVersions = nothing_known
) -> Iterator[Emitter]:
    """Emit the lineage of a program of `jobs/` until the end of the block, and how that ended."""
    if not options.are_wanted:
        yield NoOpEmitter()
        return

    def open_sender() -> SendLineage:
        # OpenLineage's client takes half a second to load, which no job's start should wait for.
        from gamelake.observability.lineage.sender import EventSender  # noqa: PLC0415

        return EventSender.of(options, program, location, schemas)

    emitter = LineageEmitter(open_sender, options.every.total_seconds())
    emitter.start()
    try:
        yield emitter
    except BaseException as error:
        # Texts of errors that are not ours may have anything in them.
        emitter.end(f"{type(error).__name__}: {error}" if isinstance(error, GamelakeError) else type(error).__name__)
        raise
    emitter.end("")

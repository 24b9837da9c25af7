"""The metrics of one query, from its batches and Spark's events; and its heartbeat."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest, Judged
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, SILVER_EVENTS, game_of
from gamelake.model.observers import harmless
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.instruments import Instruments, StreamCounter, StreamGauge
from gamelake.observability.metrics.lag import UNKNOWN, Lag
from gamelake.streaming.driver.observers import BatchObserver

_BATCHES = 100


class _Greatest(msgspec.Struct, frozen=True):
    """The greatest values of a file, of which two matter here; absent where the file has none."""

    event_time: Any = None
    kafka_timestamp: Any = None


class _Statistics(msgspec.Struct, frozen=True):
    """A file's statistics, as Delta has them."""

    maxValues: _Greatest = _Greatest()  # noqa: N815 # Delta's name


class Games:
    """The games by the batches that they were in."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, dict[str, int]]] = deque(maxlen=_BATCHES)
        self.last_event: dict[str, float] = {}

    def count(self, manifest: BatchManifest) -> None:
        """Add a batch."""
        games = {game: entry for entry in manifest.tables if (game := game_of(entry.table))}
        self._batches.append((manifest.records, {game: entry.rows for game, entry in games.items()}))
        latest = newest_record(manifest)
        for game, entry in games.items():
            event = _greatest(entry, "event_time")
            if event is not None:
                # A device's clock may be ahead; no event is later than its Kafka timestamp.
                event = event if latest is None else min(event, latest)
                self.last_event[game] = max(event, self.last_event.get(game, event))

    def share(self, game: str) -> float:
        """Return the game's share of the records of the last batches."""
        batches = list(self._batches)
        records = sum(batch for batch, _ in batches)
        return sum(rows.get(game, 0) for _, rows in batches) / records if records else 0.0


def newest_record(manifest: BatchManifest) -> float | None:
    """Return the time when Kafka received the newest record of a batch, None if the batch does not have it."""
    bronze = next((entry for entry in manifest.tables if entry.table == BRONZE_EVENTS), None)
    return _greatest(bronze, "kafka_timestamp") if bronze else None


def _greatest(entry: TableFiles, column: str) -> float | None:
    bounds = [getattr(msgspec.json.decode(file.statistics, type=_Statistics).maxValues, column) for file in entry.files]
    moments = [datetime.fromisoformat(bound).timestamp() for bound in bounds if isinstance(bound, str)]
    return max(moments, default=None)


class QualityFigures:
    """The figures of one query's rules."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._rules = ""
        instruments.gauge(StreamGauge.RULES_REFUSED).set(0)

    def count(self, judged: Judged) -> None:
        """Count the judgements of a committed batch."""
        self._instruments.gauge(StreamGauge.RULES_REFUSED).set(bool(judged.refused))
        self._show_rules(judged.rules)
        counter = self._instruments.counter
        for game, rows in judged.rows.items():
            counter(StreamCounter.JUDGED, game).inc(rows)
        for each in judged.counts:
            if each.broken:
                counter(StreamCounter.BROKEN, each.game, each.rule, each.severity).inc(each.broken)
            if each.unjudged:
                counter(StreamCounter.UNJUDGED, each.game, each.rule).inc(each.unjudged)
        for rule, rows in judged.dropped.items():
            counter(StreamCounter.DROPPED, rule).inc(rows)

    def _show_rules(self, fingerprint: str) -> None:
        if fingerprint == self._rules:
            return
        if self._rules:
            self._instruments.forget(StreamGauge.RULES_SINCE, self._rules)
        if fingerprint:
            self._instruments.gauge(StreamGauge.RULES_SINCE, fingerprint).set(time.time())
        self._rules = fingerprint


_STATISTICS: Mapping[str, Callable[[list[int]], float]] = {
    "min": min,
    "avg": lambda values: sum(values) / len(values),
    "max": max,
    "sum": sum,
}
_LAYERS = {"bronze": BRONZE_EVENTS, "silver": SILVER_EVENTS, "dead_letters": DEAD_LETTERS, "quarantine": QUARANTINE}
# Spark's names of its measurements; others are its own affair.
_PHASES = {
    "latestOffset": "latest_offset",
    "getBatch": "get_batch",
    "queryPlanning": "query_planning",
    "walCommit": "wal_commit",
    "addBatch": "add_batch",
    "commitBatch": "commit_batch",
    "commitOffsets": "commit_offsets",
    "triggerExecution": "trigger_execution",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A query before it starts: its names, its positions, and its last batches."""

    query: str
    topic: str
    trigger_seconds: float
    positions: Mapping[int, int]
    recent: tuple[BatchManifest, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """Spark's progress report of a trigger: milliseconds by phase, and how many offsets the batch left in the topic."""

    milliseconds: Mapping[str, int]
    left: int

    @property
    def had_batch(self) -> bool:
        """True if the trigger had any work."""
        return "addBatch" in self.milliseconds


class StreamTelemetry(BatchObserver):
    """Is notified of a query's batches and of its life; none of its methods raises."""

    def __init__(self, observed: Observed, registry: CollectorRegistry, heartbeat: Heartbeat) -> None:
        self.lag = Lag(observed.positions, observed.trigger_seconds)
        self.on_commit: Callable[[], None] = lambda: None
        self._instruments = Instruments(registry, observed.query)
        self._heartbeat = heartbeat
        self._games = Games()
        self._shown_games: set[str] = set()
        self._quality = QualityFigures(self._instruments)
        self._show_zeros()
        self._show_lag(observed.topic)
        for manifest in observed.recent:
            self._count_games(manifest)

    def _show_zeros(self) -> None:
        """A series that is there from the start has a rate at its first event."""
        for metric in (
            StreamGauge.UP,
            StreamGauge.STARTED,
            StreamGauge.LAST_PROGRESS,
            StreamGauge.FORGOTTEN,
            StreamGauge.HELD_TABLES,
        ):
            self._instruments.gauge(metric).set(0)
        for counted in (StreamCounter.RECORDS, StreamCounter.COMMIT_FAILURES, StreamCounter.LOG_CHECKPOINT_FAILURES):
            self._instruments.counter(counted)
        for layer in _LAYERS:
            self._instruments.counter(StreamCounter.ROWS, layer)
        for reason in DeadLetterReason:
            self._instruments.counter(StreamCounter.DEAD_LETTERS, reason.value)

    def _show_lag(self, topic: str) -> None:
        show = self._instruments.gauge
        for name, over in _STATISTICS.items():
            show(StreamGauge.OFFSETS_BEHIND, topic, name).set_function(partial(self._behind, over))
        show(StreamGauge.SECONDS_BEHIND).set_function(lambda: self.lag.seconds_behind(time.time()))
        show(StreamGauge.CATCH_UP).set_function(lambda: self.lag.catch_up_seconds(time.time()))
        show(StreamGauge.RETENTION_USED, topic).set_function(self.lag.retention_used)
        show(StreamGauge.LAST_POLL).set_function(lambda: self.lag.last_poll)

    def _behind(self, over: Callable[[list[int]], float]) -> float:
        values = list(self.lag.behind().values())
        return over(values) if values else UNKNOWN

    @harmless
    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Count a batch that every table has."""
        self.lag.committed(
            {each.partition: each.last + 1 for each in manifest.offsets}, decide_seconds + commit_seconds
        )
        self.on_commit()
        self._instruments.batch_seconds("decide").observe(decide_seconds)
        self._instruments.batch_seconds("commit").observe(commit_seconds)
        self._count_rows(manifest)
        self._quality.count(manifest.judged)
        self._count_games(manifest)

    @harmless
    def commit_failed(self) -> None:
        """Count a commit of one table that ended in an error."""
        self._instruments.counter(StreamCounter.COMMIT_FAILURES).inc()

    @harmless
    def log_checkpoint_failed(self) -> None:
        """Count a log checkpoint of a table that was not written."""
        self._instruments.counter(StreamCounter.LOG_CHECKPOINT_FAILURES).inc()

    @harmless
    def window_checked(self, left_out: int) -> None:
        """Show the number of events that the deduplication window of a batch left out."""
        self._instruments.gauge(StreamGauge.FORGOTTEN).set(left_out)

    @harmless
    def tables_held_back(self, count: int) -> None:
        """Show the number of tables that have not got a committed batch."""
        self._instruments.gauge(StreamGauge.HELD_TABLES).set(count)

    @harmless
    def started(self) -> None:
        """Show that Spark runs the query."""
        self._instruments.gauge(StreamGauge.UP).set(1)
        self._instruments.gauge(StreamGauge.STARTED).set(time.time())
        self._mark_alive()

    @harmless
    def progressed(self, progress: StreamProgress) -> None:
        """Show the durations and the age of a trigger that is done."""
        self._mark_alive()
        if progress.had_batch:
            self.lag.planned(progress.left)
            for name, phase in _PHASES.items():
                if name in progress.milliseconds:
                    seconds = progress.milliseconds[name] / 1000
                    self._instruments.batch_seconds(phase).observe(seconds)

    @harmless
    def idled(self) -> None:
        """Record that the query is alive, and waits for records."""
        self._mark_alive()

    @harmless
    def terminated(self) -> None:
        """Show that Spark no longer runs the query."""
        self._instruments.gauge(StreamGauge.UP).set(0)

    def _mark_alive(self) -> None:
        self._instruments.gauge(StreamGauge.LAST_PROGRESS).set(time.time())
        self._heartbeat.beat()

    def _count_rows(self, manifest: BatchManifest) -> None:
        count = self._instruments.counter
        count(StreamCounter.RECORDS).inc(manifest.records)
        for layer, table in _LAYERS.items():
            count(StreamCounter.ROWS, layer).inc(manifest.rows_in(table))
        for reason, letters in manifest.dead_letters.items():
            count(StreamCounter.DEAD_LETTERS, reason).inc(letters)
        for game, again in manifest.duplicates.items():
            count(StreamCounter.DUPLICATES, game).inc(again)
        for entry in manifest.tables:
            count(StreamCounter.TABLE_ROWS, entry.table).inc(entry.rows)
            count(StreamCounter.FILES, entry.table).inc(len(entry.files))
            count(StreamCounter.BYTES, entry.table).inc(sum(file.size for file in entry.files))

    def _count_games(self, manifest: BatchManifest) -> None:
        self._games.count(manifest)
        for game, moment in self._games.last_event.items():
            self._instruments.gauge(StreamGauge.GAME_LAST_EVENT, game).set(moment)
            if game not in self._shown_games:
                self._show_game(game)

    def _show_game(self, game: str) -> None:
        self._shown_games.add(game)
        self._instruments.counter(StreamCounter.DUPLICATES, game)
        show = self._instruments.gauge
        show(StreamGauge.GAME_OFFSETS_BEHIND, game).set_function(lambda: self._game_behind(game))
        show(StreamGauge.GAME_SECONDS_BEHIND, game).set_function(lambda: self._game_seconds(game))

    def _game_behind(self, game: str) -> float:
        return self._games.share(game) * self._behind(sum)

    def _game_seconds(self, game: str) -> float:
        # Not "at least one" but "less than one": what is not known yet is not known for a game either.
        return 0.0 if self._game_behind(game) < 1 else self.lag.seconds_behind(time.time())

"""What the service counts, of all of its processes together."""

import os
from collections.abc import Iterable
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from services.gateway.errors import Rejection

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15)

_requests = Counter("gamelake_ingest_requests", "Requests to send events, by HTTP status.", ["status"])
_accepted = Counter("gamelake_ingest_events_accepted", "Events that Kafka has confirmed.", ["game"])
_rejected = Counter("gamelake_ingest_events_rejected", "Events that were not taken, by reason.", ["game", "reason"])
_throttled = Counter(
    "gamelake_ingest_events_throttled", "Events of requests that were over their game's rate.", ["game"]
)
_looked_after = Counter(
    "gamelake_ingest_player_requests", "What support did about players, by game.", ["game", "action"]
)
_bytes = Counter("gamelake_ingest_body_bytes", "Bytes of bodies as they were sent.")
_seconds = Histogram("gamelake_ingest_request_seconds", "From a request's headers to its answer.", buckets=_SECONDS)
_waiting = Gauge(
    "gamelake_ingest_waiting_records", "Records that Kafka has yet to confirm.", multiprocess_mode="livesum"
)
_most_waiting = Gauge(
    "gamelake_ingest_waiting_records_limit", "Beyond so many, requests are refused.", multiprocess_mode="livesum"
)
_memory = Gauge("gamelake_ingest_memory_bytes", "What the processes have in memory.", multiprocess_mode="livesum")
_vault_failures = Counter("gamelake_ingest_vault_failures", "Requests that the vault did not answer for.")
# Of all processes the one that has asked last: they ask the same vault.
_vault_up = Gauge("gamelake_ingest_vault_up", "Whether the vault answers.", multiprocess_mode="mostrecent")
_vault_seconds = Gauge(
    "gamelake_ingest_vault_response_seconds", "How long the vault's last answer took.", multiprocess_mode="mostrecent"
)


class Action(StrEnum):
    """What support does about a player."""

    ERASED = "erased"
    EXPORTED = "exported"


def begin(games: Iterable[str], most_waiting: int) -> None:
    """What is known before the first request; a rate of a counter that is not there yet misses its first events."""
    for game in games:
        _accepted.labels(game)
        _throttled.labels(game)
        for action in Action:
            _looked_after.labels(game, action.value)
    _most_waiting.set(most_waiting)


def count_request(status: HTTPStatus, seconds: float) -> None:
    """One more answer."""
    _requests.labels(str(int(status))).inc()
    _seconds.observe(seconds)


def count_body(size: int) -> None:
    """A body has come in."""
    _bytes.inc(size)


def count_events(game: str, accepted: int, rejections: list[Rejection]) -> None:
    """What became of a body's events."""
    _accepted.labels(game).inc(accepted)
    for rejection in rejections:
        _rejected.labels(game, rejection.reason.value).inc()


def count_throttled(game: str, events: int) -> None:
    """A game was over its rate."""
    _throttled.labels(game).inc(events)


def count_looked_after(game: str, action: Action) -> None:
    """Support did something about a player."""
    _looked_after.labels(game, action.value).inc()


def count_vault_failure() -> None:
    """A request could not be taken for want of the vault."""
    _vault_failures.inc()


def show_vault(seconds: float | None) -> None:
    """How long the vault took to answer just now; None if it did not."""
    _vault_up.set(seconds is not None)
    if seconds is not None:
        _vault_seconds.set(seconds)


def show_memory() -> None:
    """What this process has in memory now."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # not on Linux
        return
    _memory.set(pages * os.sysconf("SC_PAGE_SIZE"))


def show_waiting(records: int) -> None:
    """How much waits for Kafka now, in this process."""
    _waiting.set(records)


def exposition() -> bytes:
    """All figures in Prometheus' text format."""
    _forget_the_dead()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _forget_the_dead() -> None:
    """A process that was killed leaves its gauges behind, and they would be added to its successor's."""
    for file in Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).glob("gauge_live*_*.db"):
        process = int(file.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process)  # type: ignore[no-untyped-call]
        except PermissionError:
            continue

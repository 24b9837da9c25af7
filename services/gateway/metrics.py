"""The service's metrics, summed over its processes."""

import os
from collections.abc import Iterable
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from gamelake.observability.metrics.container import ContainerMemoryCollector
from services.gateway.errors import EventRejection

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15)

_requests = Counter("gamelake_ingest_requests", "Requests to send events, by HTTP status.", ["status"])
_accepted = Counter("gamelake_ingest_events_accepted", "Events that Kafka has acknowledged.", ["game"])
_rejected = Counter("gamelake_ingest_events_rejected", "Events that were rejected, by reason.", ["game", "reason"])
_throttled = Counter(
    "gamelake_ingest_events_throttled", "Events of requests above their key's rate or quota.", ["game"]
)
_locked_out = Counter(
    "gamelake_ingest_locked_out_requests", "Requests of clients that sent too many wrong signatures.", ["game"]
)
# Of the process that knows least of what the others have accepted.
_quota_used = Gauge(
    "gamelake_ingest_quota_used_ratio",
    "Used share of a key's quota for this day.",
    ["game", "key"],
    multiprocess_mode="livemin",
)
_player_requests = Counter(
    "gamelake_ingest_player_requests", "Requests of support staff about players, by game.", ["game", "action"]
)
_bytes = Counter("gamelake_ingest_body_bytes", "Bytes of bodies as they were sent.")
_seconds = Histogram("gamelake_ingest_request_seconds", "From a request's headers to its response.", buckets=_SECONDS)
_waiting = Gauge(
    "gamelake_ingest_waiting_records", "Records that Kafka has not acknowledged yet.", multiprocess_mode="livesum"
)
_max_waiting = Gauge(
    "gamelake_ingest_waiting_records_limit",
    "Limit of waiting records above which requests get 503.",
    multiprocess_mode="livesum",
)
_memory = Gauge("gamelake_ingest_memory_bytes", "Resident memory of the processes.", multiprocess_mode="livesum")
_vault_failures = Counter("gamelake_ingest_vault_failures", "Requests that failed because the vault did not respond.")
# The value of the process that asked last: all ask the same vault.
_vault_up = Gauge("gamelake_ingest_vault_up", "Whether the vault responds.", multiprocess_mode="mostrecent")
_vault_seconds = Gauge(
    "gamelake_ingest_vault_response_seconds", "How long the vault's last response took.", multiprocess_mode="mostrecent"
)


class Action(StrEnum):
    """What support staff requested about a player."""

    ERASED = "erased"
    EXPORTED = "exported"


def initialize(games: Iterable[str], max_waiting: int) -> None:
    """Create the time series before the first request: a rate misses the events that create its counter."""
    for game in games:
        _accepted.labels(game)
        _throttled.labels(game)
        _locked_out.labels(game)
        for action in Action:
            _player_requests.labels(game, action.value)
    _max_waiting.set(max_waiting)


def count_request(status: HTTPStatus, seconds: float) -> None:
    """Count a response."""
    _requests.labels(str(int(status))).inc()
    _seconds.observe(seconds)


def count_body(size: int) -> None:
    """Count the bytes of a body."""
    _bytes.inc(size)


def count_events(game: str, accepted: int, rejections: list[EventRejection]) -> None:
    """Count the accepted and rejected events of a body."""
    _accepted.labels(game).inc(accepted)
    for rejection in rejections:
        _rejected.labels(game, rejection.reason.value).inc()


def count_throttled(game: str, events: int) -> None:
    """Count events that were over their key's rate or quota."""
    _throttled.labels(game).inc(events)


def count_locked_out(game: str) -> None:
    """Count a request that was refused because of earlier wrong signatures."""
    _locked_out.labels(game).inc()


def set_quota_used(game: str, key_id: str, ratio: float) -> None:
    """Set the used share of a key's quota."""
    _quota_used.labels(game, key_id).set(ratio)


def count_player_request(game: str, action: Action) -> None:
    """Count a request of support staff."""
    _player_requests.labels(game, action.value).inc()


def count_vault_failure() -> None:
    """Count a request that failed because the vault did not respond."""
    _vault_failures.inc()


def set_vault_response(seconds: float | None) -> None:
    """Set how long the vault took to answer; None if it did not."""
    _vault_up.set(seconds is not None)
    if seconds is not None:
        _vault_seconds.set(seconds)


def set_memory() -> None:
    """Set the resident memory of this process."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # not on Linux
        return
    _memory.set(pages * os.sysconf("SC_PAGE_SIZE"))


def set_waiting(records: int) -> None:
    """Set how many records of this process wait for Kafka."""
    _waiting.set(records)


def exposition() -> bytes:
    """All metrics in Prometheus' text format."""
    _remove_ended_processes()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(ContainerMemoryCollector())
    return generate_latest(registry)


def _remove_ended_processes() -> None:
    """Remove the gauges of killed processes, which would be added to those of their successors."""
    for file in Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).glob("gauge_live*_*.db"):
        process = int(file.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process)  # type: ignore[no-untyped-call]
        except PermissionError:
            continue

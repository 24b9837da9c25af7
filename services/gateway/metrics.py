"""The service's metrics, summed over its processes."""

import os
from collections.abc import Iterable, Mapping
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from gamelake.observability.metrics.container import ContainerMemoryCollector
from gamelake.observability.metrics.declared import counter, gauge, histogram
from services.gateway.errors import EventRejection

_requests = counter(REGISTRY, "gamelake_ingest_requests_total", "status")
_accepted = counter(REGISTRY, "gamelake_ingest_events_accepted_total", "game")
_rejected = counter(REGISTRY, "gamelake_ingest_events_rejected_total", "game", "reason")
_throttled = counter(REGISTRY, "gamelake_ingest_events_throttled_total", "game")
_quota_used = gauge(REGISTRY, "gamelake_ingest_quota_used_ratio", "game", "key")
_player_requests = counter(REGISTRY, "gamelake_ingest_player_requests_total", "game", "action")
_evaluations = counter(REGISTRY, "gamelake_ingest_flag_evaluations_total", "game", "result")
_bytes = counter(REGISTRY, "gamelake_ingest_body_bytes_total")
_seconds = histogram(REGISTRY, "gamelake_ingest_request_seconds")
_waiting = gauge(REGISTRY, "gamelake_ingest_waiting_records")
_reserved = gauge(REGISTRY, "gamelake_ingest_reserved_bytes")
_budget = gauge(REGISTRY, "gamelake_ingest_memory_budget_bytes")
_cached = gauge(REGISTRY, "gamelake_ingest_player_cache_bytes")
_over_memory = counter(REGISTRY, "gamelake_ingest_over_memory_requests_total", "game")
_memory = gauge(REGISTRY, "gamelake_ingest_memory_bytes")
_vault_failures = counter(REGISTRY, "gamelake_ingest_vault_failures_total")
_vault_up = gauge(REGISTRY, "gamelake_ingest_vault_up")
_vault_seconds = gauge(REGISTRY, "gamelake_ingest_vault_response_seconds")


class Action(StrEnum):
    """A request of support staff about a player."""

    ERASED = "erased"
    EXPORTED = "exported"


class EvaluationResult(StrEnum):
    """The result of an evaluation of a flag, or why a request has none."""

    SPLIT = "split"
    DEFAULT = "default"
    DISABLED = "disabled"
    NOT_FOUND = "not_found"
    INVALID = "invalid"
    THROTTLED = "throttled"


def initialize(games: Iterable[str], memory_budget: int) -> None:
    """Create the time series before the first request: a rate misses the events that create its counter."""
    for game in games:
        _accepted.labels(game)
        _throttled.labels(game)
        _over_memory.labels(game)
        for action in Action:
            _player_requests.labels(game, action.value)
        for result in EvaluationResult:
            _evaluations.labels(game, result.value)
    _budget.set(memory_budget)


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


def set_quota_used(game: str, key_id: str, ratio: float) -> None:
    """Set the used share of a key's quota."""
    _quota_used.labels(game, key_id).set(ratio)


def count_player_request(game: str, action: Action) -> None:
    """Count a request of support staff."""
    _player_requests.labels(game, action.value).inc()


def count_evaluations(game: str, results: Mapping[EvaluationResult, int]) -> None:
    """Count evaluations of flags."""
    for result, number in results.items():
        _evaluations.labels(game, result.value).inc(number)


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


def count_over_memory(game: str) -> None:
    """Count a request that got 503 because its game held too much memory."""
    _over_memory.labels(game).inc()


def set_waiting(records: int) -> None:
    """Set how many records of this process wait for Kafka."""
    _waiting.set(records)


def set_reserved(requests: int, players: int) -> None:
    """Set the bytes that requests of this process have reserved, and those of its cached players."""
    _reserved.set(requests)
    _cached.set(players)


def registry_of_service() -> CollectorRegistry:
    """Return a registry with the metrics of all processes: each of them can answer for all."""
    registry = CollectorRegistry()
    registry.register(_ProcessesCollector(None))  # type: ignore[no-untyped-call]
    registry.register(ContainerMemoryCollector())
    return registry


class _ProcessesCollector(MultiProcessCollector):
    """Merges the metrics of all processes that run or have run."""

    def collect(self) -> Iterable[Metric]:
        """Return the merged metrics."""
        _remove_ended_processes()
        merged: Iterable[Metric] = super().collect()  # type: ignore[no-untyped-call]
        return merged


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

"""What the service counts, of all of its processes together."""

from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from services.ingest.rejections import Rejection

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15)

_requests = Counter("gamelake_ingest_requests", "Requests to send events, by HTTP status.", ["status"])
_accepted = Counter("gamelake_ingest_events_accepted", "Events that Kafka has confirmed.", ["game"])
_rejected = Counter("gamelake_ingest_events_rejected", "Events that were not taken, by reason.", ["game", "reason"])
_bytes = Counter("gamelake_ingest_body_bytes", "Bytes of bodies as they were sent.")
_seconds = Histogram("gamelake_ingest_request_seconds", "From a request's headers to its answer.", buckets=_SECONDS)
_waiting = Gauge(
    "gamelake_ingest_waiting_records", "Records that Kafka has yet to confirm.", multiprocess_mode="livesum"
)


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


def show_waiting(records: int) -> None:
    """How much waits for Kafka now, in this process."""
    _waiting.set(records)


def exposition() -> bytes:
    """All figures in Prometheus' text format."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)

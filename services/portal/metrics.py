"""Metrics of the portal; monitoring/metrics.yaml describes each name."""

from enum import StrEnum
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from gamelake.model.options import EndpointTls
from gamelake.observability.metrics.endpoint import export_certificate_expiry, registry_of_process

_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class QuestionOutcome(StrEnum):
    """The outcome of a question; also a label of its counter."""

    OK = "ok"
    FAILED = "failed"
    BUSY = "busy"


class PortalMetrics:
    """Responses by their status, and the questions that were run."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._responses = Counter("gamelake_portal_responses", "Responses by status", ["status"], registry=registry)
        self._questions = Counter("gamelake_portal_questions", "Questions by outcome", ["outcome"], registry=registry)
        self._seconds = Histogram(
            "gamelake_portal_question_seconds", "How long questions ran", buckets=_SECONDS, registry=registry
        )
        self._responses.labels(str(int(HTTPStatus.OK)))
        for outcome in QuestionOutcome:
            self._questions.labels(outcome)

    def responded(self, status: HTTPStatus) -> None:
        """Count a response."""
        self._responses.labels(str(int(status))).inc()

    def question_ended(self, outcome: QuestionOutcome, seconds: float) -> None:
        """Count a question; how long it ran counts only if it ran."""
        self._questions.labels(outcome).inc()
        if outcome is not QuestionOutcome.BUSY:
            self._seconds.observe(seconds)

    def exposition(self) -> bytes:
        """All metrics of the process in Prometheus' text format."""
        return generate_latest(self._registry)


def metrics_of_process(tls: EndpointTls | None) -> PortalMetrics:
    """The metrics of this process; by TLS also when the portal's certificate expires."""
    registry = registry_of_process()
    if tls is not None:
        export_certificate_expiry(registry, tls)
    return PortalMetrics(registry)

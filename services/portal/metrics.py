"""Metrics of the portal."""

from enum import StrEnum
from http import HTTPStatus

from prometheus_client import CollectorRegistry, generate_latest

from gamelake.http_server import HttpServer
from gamelake.observability.metrics import declared
from gamelake.observability.metrics.endpoint import CertificateExpiryCollector, registry_of_process


class QuestionOutcome(StrEnum):
    """The outcome of a question; also a label of its counter."""

    OK = "ok"
    FAILED = "failed"
    BUSY = "busy"


class PortalMetrics:
    """Responses by their status, and the questions that were run."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._responses = declared.counter(registry, "gamelake_portal_responses_total", "status")
        self._questions = declared.counter(registry, "gamelake_portal_questions_total", "outcome")
        self._seconds = declared.histogram(registry, "gamelake_portal_question_seconds")
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

    def export_certificate_of(self, server: HttpServer) -> None:
        """Add when the certificate that a server serves expires."""
        self._registry.register(CertificateExpiryCollector(server))

    def exposition(self) -> bytes:
        """Return all metrics of the process in Prometheus' text format."""
        return generate_latest(self._registry)


def metrics_of_process() -> PortalMetrics:
    """Create the metrics of this process."""
    return PortalMetrics(registry_of_process())

"""An alert end to end: a query is stopped, Prometheus sees it, Alertmanager notifies the receiver; then it resolves."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from services.alert_receiver.notification import AlertLine
from tests.stack.platform import Stack
from tests.stack.prometheus import Prometheus
from tests.support.eventually import eventually
from tools.stack import page

QUERY = "ingest_events"
ALERTS = ("StreamQueryDown", "GatewayDown")
# A scrape at 5 s, an evaluation at 15 s and the rule's own minute.
FIRES_WITHIN_SECONDS = 120
# The driver's start, a scrape, an evaluation, and what the rule keeps on for.
ENDS_WITHIN_SECONDS = 240
# Alertmanager waits for 5 s before the first word about a thing, and for 30 s before each further one.
REPORTED_WITHIN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class AlertFile:
    """What the stack's receiver has written."""

    stack: Stack

    def lines(self) -> list[AlertLine]:
        """All of it, oldest first."""
        command = (
            "exec",
            "--no-TTY",
            "alert-receiver",
            "sh",
            "-c",
            "touch $ALERT_RECEIVER_FILE; cat $ALERT_RECEIVER_FILE",
        )
        return [AlertLine(**json.loads(line)) for line in self.stack.compose(*command).splitlines()]

    def reported(self, alert: str, status: str, after: int) -> list[AlertLine]:
        """The notifications of an alert, of the query if it is one of a query's, leaving out the first lines."""
        return [
            line
            for line in self.lines()[after:]
            if (line.alertname, line.status) == (alert, status) and line.labels.get("query", QUERY) == QUERY
        ]

    def ends_of(self, began: AlertLine) -> list[AlertLine]:
        """The notification of the end of an alert: the one that began then, for an earlier one may end late."""
        ends = self.reported(began.alertname, "resolved", 0)
        return [line for line in ends if line.starts_at == began.starts_at]


@contextmanager
def stopped(stack: Stack, service: str) -> Iterator[None]:
    """The service is stopped as a person would stop it, and started again at the end."""
    stack.compose("stop", service)
    try:
        yield
    finally:
        stack.compose("start", service)


@pytest.mark.slow
def test_a_query_and_a_gateway_that_are_stopped_fire_alerts_that_resolve_on_their_return(stack: Stack) -> None:
    """Both at once: each takes minutes."""
    prometheus, file = Prometheus(), AlertFile(stack)
    # One process runs both queries, of Kafka and of files, and the alert fires for both.
    fires = 'count by (alertname) (ALERTS{alertname=~"StreamQueryDown|GatewayDown", alertstate="firing"})'
    stack.await_health("ingest-events")
    stack.await_health("ingest")
    eventually(lambda: not prometheus.values(fires), timeout=ENDS_WITHIN_SECONDS)
    already = len(file.lines())

    with stopped(stack, "ingest-events"), stopped(stack, "ingest"):
        eventually(lambda: len(prometheus.values(fires)) == len(ALERTS), timeout=FIRES_WITHIN_SECONDS)
        for alert in ALERTS:
            eventually(lambda: bool(file.reported(alert, "firing", already)), timeout=REPORTED_WITHIN_SECONDS)  # noqa: B023 # at once
    eventually(lambda: not prometheus.values(fires), timeout=ENDS_WITHIN_SECONDS)
    for began in (file.reported(alert, "firing", already)[-1] for alert in ALERTS):
        eventually(lambda: bool(file.ends_of(began)), timeout=REPORTED_WITHIN_SECONDS)  # noqa: B023 # at once

        ended = file.ends_of(began)[0]
        assert began.labels["severity"] == "critical"
        runbook = page("PORTAL_PORT", urlsplit(began.annotations["runbook_url"]).path)
        assert (runbook.status, began.alertname in runbook.text) == (200, True)
        assert ended.ends_at > began.starts_at

"""Front door, for on-call and for a game's own people: is it taken, what is not and why, and what it leans on."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row
from monitoring.grafana.panels import Ask, Course, Figure, Limits, Stack

_NOW = Row(
    "Does it take what comes?",
    (
        Figure(
            title="Ingest gateway",
            description="Whether it answers; see the runbook GatewayDown.",
            unit=units.NoUnit,
            asks=(Ask('max(up{job="ingest"})', "answers"),),
            limits=Limits(1, 0.5),
            words=((1, "up"), (0, "down")),
            width=6,
        ),
        Figure(
            title="Vault",
            description="Whether it answered when the front door last asked; see the runbook VaultUnreachable.",
            unit=units.NoUnit,
            asks=(Ask("max(gamelake_ingest_vault_up)", "answers"),),
            limits=Limits(1, 0.5),
            words=((1, "up"), (0, "down")),
            width=6,
        ),
        Figure(
            title="Answered with 503",
            description="Share of the requests; senders come again. See the runbook GatewayUnavailable.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    '(sum(gamelake:ingest_requests:rate5m{status="503"}) or vector(0)) '
                    "/ (sum(gamelake:ingest_requests:rate5m) > 0) or vector(0)",
                    "503",
                ),
            ),
            limits=Limits(0.01, 0.05),
            width=6,
        ),
        Figure(
            title="Waiting for Kafka",
            description="Share of the records that may wait; see the runbook GatewayQueueFilling.",
            unit=units.PercentUnit,
            asks=(Ask("sum(gamelake_ingest_waiting_records) / sum(gamelake_ingest_waiting_records_limit)", "waiting"),),
            limits=Limits(0.25, 0.5),
            width=6,
        ),
        Course(
            title="Requests by status",
            description="200: Kafka has the events. 429 and 503: come again. docs/gateway.md explains each.",
            unit=units.RequestsPerSecond,
            asks=(Ask("sum by (status) (rate(gamelake_ingest_requests_total[$__rate_interval]))", "{{status}}"),),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Time to answer",
            description="From a request's headers to its answer: its body, the vault and Kafka are in it.",
            unit=units.Seconds,
            asks=tuple(
                Ask(
                    f"histogram_quantile({quantile}, "
                    "sum by (le) (rate(gamelake_ingest_request_seconds_bucket[$__rate_interval])))",
                    f"p{quantile * 100:.0f}",
                )
                for quantile in (0.5, 0.95, 0.99)
            ),
        ),
    ),
)

_GAMES = Row(
    "Whose events, and whose not?",
    (
        Course(
            title="Events accepted",
            description="By game, the twelve busiest. Accepted means that Kafka's in-sync replicas have them.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    "topk(12, sum by (game) (rate(gamelake_ingest_events_accepted_total[$__rate_interval])))",
                    "{{game}}",
                ),
            ),
        ),
        Course(
            title="Events rejected",
            description="By reason; docs/gateway.md has each reason's remedy. See the runbook EventsRejected.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask("sum by (reason) (rate(gamelake_ingest_events_rejected_total[$__rate_interval]))", "{{reason}}"),
            ),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Share rejected, by game",
            description="The twelve highest of the last ten minutes. From 5 % on: see the runbook EventsRejected.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    "topk(12, gamelake:ingest_events_rejected:rate10m / (gamelake:ingest_events_rejected:rate10m "
                    "+ sum by (game) (rate(gamelake_ingest_events_accepted_total[10m]))))",
                    "{{game}}",
                ),
            ),
            limits=Limits(0.01, 0.05),
        ),
        Course(
            title="Events over a game's rate",
            description="Told to come again by 429; see the runbook GameThrottled.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    "topk(12, sum by (game) (rate(gamelake_ingest_events_throttled_total[$__rate_interval])))",
                    "{{game}}",
                ),
            ),
        ),
    ),
)

_WITHIN = Row(
    "How is it within?",
    (
        Course(
            title="Records that wait for Kafka",
            description="Now, and how many may. At the limit requests are answered with 503.",
            unit=units.Short,
            asks=(
                Ask("sum(gamelake_ingest_waiting_records)", "waiting"),
                Ask("sum(gamelake_ingest_waiting_records_limit)", "limit"),
            ),
        ),
        Course(
            title="Memory",
            description="Resident memory of the processes that take requests. It must stay flat, whatever comes.",
            unit=units.BytesIEC,
            asks=(Ask("sum(gamelake_ingest_memory_bytes)", "resident"),),
        ),
        Course(
            title="The vault's answer",
            description="How long the vault took to say who was forgotten, which it is asked every two seconds.",
            unit=units.Seconds,
            asks=(Ask("max(gamelake_ingest_vault_response_seconds)", "answer"),),
        ),
        Course(
            title="Requests that the vault failed",
            description="Answered with 503 because the vault did not answer; see the runbook VaultUnreachable.",
            unit=units.RequestsPerSecond,
            asks=(Ask("sum(rate(gamelake_ingest_vault_failures_total[$__rate_interval]))", "failed"),),
        ),
        Course(
            title="Players looked after",
            description="Whom support had forgotten or handed out through the front door, in an hour.",
            unit=units.Short,
            asks=(Ask("sum by (action) (increase(gamelake_ingest_player_requests_total[1h]))", "{{action}}"),),
        ),
        Course(
            title="Body bytes",
            description="As they were sent, before they are unpacked.",
            unit=units.BytesPerSecondIEC,
            asks=(Ask("sum(rate(gamelake_ingest_body_bytes_total[$__rate_interval]))", "bytes"),),
        ),
    ),
)

GATEWAY = Page(
    uid="gamelake-gateway",
    title="Ingest gateway",
    description="What games send: what is taken, what is not and why, how fast, and what the front door leans on.",
    variables=(),
    rows=(_NOW, _GAMES, _WITHIN),
)

"""Ingest gateway, for on-call engineers and game teams: accepted and rejected events, and its dependencies."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.dashboards.shared import UP
from monitoring.grafana.page import Page, Row
from monitoring.grafana.panels import MOST_SERIES, Query, Stack, Stat, Thresholds, TimeSeries
from monitoring.grafana.promql import quantile, top, top_rates

_NOW = Row(
    "Does it accept events?",
    (
        Stat(
            title="Ingest gateway",
            description="Whether it responds; see the runbook GatewayDown.",
            unit=units.NoUnit,
            queries=(Query('max(up{job="ingest"})', "responds"),),
            thresholds=Thresholds(1, 0.5),
            words=UP,
            width=6,
        ),
        Stat(
            title="Vault",
            description="Whether it responded to the gateway's last check; see the runbook VaultUnreachable.",
            unit=units.NoUnit,
            queries=(Query("max(gamelake_ingest_vault_up)", "responds"),),
            thresholds=Thresholds(1, 0.5),
            words=UP,
            width=6,
        ),
        Stat(
            title="503 responses",
            description="Share of the requests; senders retry. See the runbook GatewayUnavailable.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    '(sum(gamelake:ingest_requests:rate5m{status="503"}) or vector(0)) '
                    "/ (sum(gamelake:ingest_requests:rate5m) > 0) or vector(0)",
                    "503",
                ),
            ),
            thresholds=Thresholds(0.01, 0.05),
            width=6,
        ),
        Stat(
            title="Memory of requests",
            description="Reserved share of the budget; see the runbook GatewayMemoryFilling.",
            unit=units.PercentUnit,
            queries=(
                Query("sum(gamelake_ingest_reserved_bytes) / sum(gamelake_ingest_memory_budget_bytes)", "reserved"),
            ),
            thresholds=Thresholds(0.2, 0.4),
            width=6,
        ),
        TimeSeries(
            title="Requests by status",
            description="200: Kafka has the events. 429 and 503: senders retry. docs/gateway.md explains each status.",
            unit=units.RequestsPerSecond,
            queries=(Query("sum by (status) (rate(gamelake_ingest_requests_total[$__rate_interval]))", "{{status}}"),),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Request duration",
            description="From a request's headers to the response: includes the body, the vault and Kafka.",
            unit=units.Seconds,
            queries=tuple(
                Query(
                    quantile(share, "le", "gamelake_ingest_request_seconds_bucket"),
                    f"p{share * 100:.0f}",
                )
                for share in (0.5, 0.95, 0.99)
            ),
        ),
    ),
)

_GAMES = Row(
    "Which games' events?",
    (
        TimeSeries(
            title="Events accepted",
            description="By game, the ten busiest. Accepted means that Kafka's in-sync replicas have them.",
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "game", "gamelake_ingest_events_accepted_total"),
                    "{{game}}",
                ),
            ),
        ),
        TimeSeries(
            title="Events rejected",
            description="By reason; docs/gateway.md has each reason's remedy. See the runbook EventsRejected.",
            unit=units.RecordsPerSecond,
            queries=(Query(top_rates(MOST_SERIES, "reason", "gamelake_ingest_events_rejected_total"), "{{reason}}"),),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Share rejected, by game",
            description=(
                "The ten highest shares of the last ten minutes. From 5 % on: see the runbook EventsRejected."
            ),
            unit=units.PercentUnit,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "game",
                        "gamelake:ingest_events_rejected:rate10m / (gamelake:ingest_events_rejected:rate10m "
                        "+ sum by (game) (rate(gamelake_ingest_events_accepted_total[10m])) > 0)",
                    ),
                    "{{game}}",
                ),
            ),
            thresholds=Thresholds(0.01, 0.05),
        ),
        TimeSeries(
            title="Throttled events",
            description="Events of requests that got 429; see the runbook GameThrottled.",
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "game", "gamelake_ingest_events_throttled_total"),
                    "{{game}}",
                ),
            ),
        ),
        TimeSeries(
            title="Quotas used",
            description="Used share of keys' quotas of the day, the ten highest; see the runbook GameThrottled.",
            unit=units.PercentUnit,
            queries=(Query(top(MOST_SERIES, "key", "max by (key) (gamelake_ingest_quota_used_ratio)"), "{{key}}"),),
            thresholds=Thresholds(0.8, 1),
            empty="no key has a quota",
        ),
        TimeSeries(
            title="Experiments evaluated",
            description="Evaluations of experiments for players, by result. docs/gateway.md explains each result.",
            unit=units.RequestsPerSecond,
            queries=(Query(top_rates(MOST_SERIES, "result", "gamelake_ingest_flag_evaluations_total"), "{{result}}"),),
            stack=Stack.NORMAL,
        ),
    ),
)

_WITHIN = Row(
    "What is its internal state?",
    (
        TimeSeries(
            title="Records that wait for Kafka",
            description="Records that Kafka has not acknowledged yet.",
            unit=units.Short,
            queries=(Query("sum(gamelake_ingest_waiting_records)", "waiting"),),
        ),
        TimeSeries(
            title="Memory that requests reserve",
            description="And the budget. A game may hold as much as is then left; beyond, its requests get 503.",
            unit=units.BytesIEC,
            queries=(
                Query("sum(gamelake_ingest_reserved_bytes)", "reserved"),
                Query("sum(gamelake_ingest_memory_budget_bytes)", "budget"),
                Query("sum(gamelake_ingest_player_cache_bytes)", "cached players"),
            ),
        ),
        TimeSeries(
            title="Requests over their game's memory",
            description="By game: they got 503, and their senders retry; see the runbook GameOverMemory.",
            unit=units.RequestsPerSecond,
            queries=(Query(top_rates(MOST_SERIES, "game", "gamelake_ingest_over_memory_requests_total"), "{{game}}"),),
        ),
        TimeSeries(
            title="Memory",
            description="Resident memory of the gateway's processes. It must stay constant under any load.",
            unit=units.BytesIEC,
            queries=(Query("sum(gamelake_ingest_memory_bytes)", "resident"),),
        ),
        TimeSeries(
            title="Vault response time",
            description=(
                "How long the vault took to return the erased players, which the gateway requests every two seconds."
            ),
            unit=units.Seconds,
            queries=(Query("max(gamelake_ingest_vault_response_seconds)", "response"),),
        ),
        TimeSeries(
            title="Requests failed by the vault",
            description="Requests that got 503 because the vault did not respond; see the runbook VaultUnreachable.",
            unit=units.RequestsPerSecond,
            queries=(Query("sum(rate(gamelake_ingest_vault_failures_total[$__rate_interval]))", "failed"),),
        ),
        TimeSeries(
            title="Erasure and export requests",
            description="Requests of support to erase or export a player's data, per hour.",
            unit=units.Short,
            queries=(Query("sum by (action) (increase(gamelake_ingest_player_requests_total[1h]))", "{{action}}"),),
        ),
        TimeSeries(
            title="Body bytes",
            description="As they were sent, before decompression.",
            unit=units.BytesPerSecondIEC,
            queries=(Query("sum(rate(gamelake_ingest_body_bytes_total[$__rate_interval]))", "bytes"),),
        ),
    ),
)

GATEWAY = Page(
    uid="gamelake-gateway",
    title="Ingest gateway",
    description="Accepted and rejected events, latency, and the gateway's dependencies.",
    variables=(),
    rows=(_NOW, _GAMES, _WITHIN),
)

"""Stream lag, for on-call engineers: which query is behind, since when, for which game, and what to check next."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import BarGauge, Query, Stack, Stat, Thresholds, TimeSeries

# The thresholds are those of the alerts StreamLagGrows and StreamTooFarBehind.
_SECONDS_BEHIND = Thresholds(60, 300)

_IS_IT_BEHIND = Row(
    "Is it behind?",
    (
        Stat(
            title="Query",
            description=(
                "Whether each query runs. Down: nothing is read, see the runbook StreamQueryDown. A driver that "
                "is gone counts as down."
            ),
            unit=units.NoUnit,
            queries=(
                Query(
                    'max by (query) (gamelake_stream_up{query=~"$query"}) '
                    'or on (query) max by (query) (up{job="ingest-events", query=~"$query"}) * 0',
                    "{{query}}",
                ),
            ),
            thresholds=Thresholds(1, 0.5),
            words=((0, "down"), (1, "runs")),
        ),
        Stat(
            title="Seconds behind",
            description="Age of the oldest record that is not in all its tables yet. The main measure of lag.",
            unit=units.Seconds,
            queries=(Query('max by (query) (gamelake_stream_seconds_behind{query=~"$query"})', "{{query}}"),),
            thresholds=_SECONDS_BEHIND,
        ),
        Stat(
            title="Records behind",
            description="Records in Kafka that are not in all their tables yet, over all partitions.",
            unit=units.Short,
            queries=(
                Query('sum by (query) (gamelake_stream_offsets_behind{query=~"$query", statistic="sum"})', "{{query}}"),
            ),
        ),
        Stat(
            title="Catch-up time",
            description=(
                "Time until the backlog is read at the rate of the last five minutes. 0: the query keeps up. "
                "Infinite: the backlog does not shrink, see the runbook StreamNeverCatchesUp."
            ),
            unit=units.Seconds,
            queries=(Query('max by (query) (gamelake_stream_catch_up_seconds{query=~"$query"})', "{{query}}"),),
            thresholds=_SECONDS_BEHIND,
        ),
        Stat(
            title="Retention used",
            description=(
                "Share of the records that Kafka still holds and that are unread, in the worst partition. At 100 "
                "% Kafka deletes unread records. A new topic may reach it without danger."
            ),
            unit=units.PercentUnit,
            queries=(Query('max by (query) (gamelake_stream_retention_used_ratio{query=~"$query"})', "{{query}}"),),
            thresholds=Thresholds(0.25, 0.5),
        ),
        Stat(
            title="Alerts",
            description="Alerts of any kind that fire now. Prometheus' alerts page lists them.",
            unit=units.NoUnit,
            queries=(Query('count(ALERTS{alertstate="firing"}) or vector(0)', "firing"),),
            thresholds=Thresholds(1, 2),
        ),
    ),
)

_SINCE_WHEN = Row(
    "Since when?",
    (
        TimeSeries(
            title="Seconds behind",
            description=(
                "A saw tooth of a few seconds is normal: one batch after the other. A rise of one second per "
                "second is a query that has stopped; a slower one is a query that is too slow."
            ),
            unit=units.Seconds,
            queries=(Query('max by (query) (gamelake_stream_seconds_behind{query=~"$query"})', "{{query}}"),),
            thresholds=_SECONDS_BEHIND,
        ),
        TimeSeries(
            title="Records arriving and committed",
            description=(
                "The lag starts where the two lines separate. More arriving: higher load. Less committed: see the "
                "panels below."
            ),
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    'sum by (topic) (rate(kafka_topic_records_in_total{topic!~"__.+"}[$__rate_interval]))',
                    "arrives in {{topic}}",
                ),
                Query(
                    'sum by (query) (rate(gamelake_stream_records_total{query=~"$query"}[$__rate_interval]))',
                    "committed by {{query}}",
                ),
            ),
        ),
        TimeSeries(
            title="Records behind per partition",
            description=(
                "Maximum, mean and minimum over the partitions. Far apart: one partition gets most of the "
                "records, or its broker is slow."
            ),
            unit=units.Short,
            queries=(
                Query(
                    'max by (query, statistic) (gamelake_stream_offsets_behind{query=~"$query", statistic!="sum"})',
                    "{{query}} {{statistic}}",
                ),
            ),
        ),
        TimeSeries(
            title="Firing alerts",
            description="When each alert started. Empty is good.",
            unit=units.NoUnit,
            queries=(
                Query(
                    'count by (alertname, query) (ALERTS{alertstate="firing", query=~"$query|"})',
                    "{{alertname}} {{query}}",
                ),
            ),
        ),
    ),
)

_WHICH_GAME = Row(
    "Which game?",
    (
        BarGauge(
            title="Games by seconds behind",
            description=(
                "An estimate: all games are read in one order, so a game is as far behind as the query, or not at all."
            ),
            unit=units.Seconds,
            queries=(
                Query(
                    'topk(10, max by (game) (gamelake_game_seconds_behind{query=~"$query", game=~"$game"}))', "{{game}}"
                ),
            ),
            thresholds=_SECONDS_BEHIND,
            width=8,
        ),
        BarGauge(
            title="Games by records behind",
            description="An estimate: the query's records behind, divided by each game's share of recent records.",
            unit=units.Short,
            queries=(
                Query(
                    'topk(10, sum by (game) (gamelake_game_offsets_behind{query=~"$query", game=~"$game"}))', "{{game}}"
                ),
            ),
            width=8,
        ),
        BarGauge(
            title="Silent for",
            description=(
                "How much older a game's newest event is than the newest of all games. Long for an active game: "
                "check its servers and its release; see the runbook GameSilent."
            ),
            unit=units.Seconds,
            queries=(
                Query(
                    'topk(10, max by (game) (gamelake:game_silence_seconds{query=~"$query", game=~"$game"}))',
                    "{{game}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Table per game",
            description=(
                "Committed rows, the twelve busiest games. A drop of one line alone is a problem of that game."
            ),
            unit=units.RowsPerSecond,
            queries=(
                Query(
                    'topk(12, sum by (game) (gamelake:game_rows:rate10m{query=~"$query", game=~"$game"}))', "{{game}}"
                ),
            ),
        ),
        TimeSeries(
            title="Age of the newest event per game",
            description=(
                "The twelve oldest, in event time. All at once: the stream is behind. One alone: that game is silent."
            ),
            unit=units.Seconds,
            queries=(
                Query(
                    "topk(12, time() - max by (game) "
                    '(gamelake_game_last_event_timestamp_seconds{query=~"$query", game=~"$game"}))',
                    "{{game}}",
                ),
            ),
        ),
    ),
)

_WHERE_NEXT = Row(
    "What to check next?",
    (
        TimeSeries(
            title="Batch duration by phase",
            description=(
                "Mean per batch. decide grows: more records, fewer cores, or Kafka is slow. commit grows: the "
                "object store is slow. The rest is Spark's own overhead."
            ),
            unit=units.Seconds,
            queries=(
                Query(
                    "sum by (phase) (rate(gamelake_stream_batch_seconds_sum"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))'
                    " / sum by (phase) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))',
                    "{{phase}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Since the last progress",
            description=(
                "Time since the query last finished a batch or reported that it waits, and since the driver last "
                "got the end offsets from Kafka. The first rises: a batch hangs. The second rises: Kafka does not "
                "respond, and the lag metrics above are out of date."
            ),
            unit=units.Seconds,
            queries=(
                Query(
                    'time() - (max by (query) (gamelake_stream_last_progress_timestamp_seconds{query=~"$query"}) > 0)',
                    "{{query}} progress",
                ),
                Query(
                    'time() - (max by (query) (gamelake_stream_last_poll_timestamp_seconds{query=~"$query"}) > 0)',
                    "{{query}} polled Kafka",
                ),
            ),
        ),
        TimeSeries(
            title="Share of dead letters",
            description="Share of all records. Above 2 %: see the runbook DeadLetterFlood; at 50 % the query stops.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    'sum by (query) (rate(gamelake_stream_dead_letters_total{query=~"$query"}[5m])) '
                    '/ (gamelake:stream_records:rate5m{query=~"$query"} > 0)',
                    "{{query}}",
                ),
            ),
            thresholds=Thresholds(0.01, 0.02),
        ),
        TimeSeries(
            title="Services that respond",
            description="1: Prometheus reaches it. Check a service that drops when the lag starts.",
            unit=units.NoUnit,
            queries=(Query("min by (job) (up)", "{{job}}"),),
        ),
    ),
)

LAG = Page(
    uid="gamelake-lag",
    title="Stream lag",
    description="Which query is behind, since when, which game is affected, and what to check next.",
    variables=(Variable.QUERY, Variable.GAME),
    rows=(_IS_IT_BEHIND, _SINCE_WHEN, _WHICH_GAME, _WHERE_NEXT),
)

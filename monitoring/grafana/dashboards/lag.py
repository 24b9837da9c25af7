"""Stream lag, for who is on call: is it behind, since when, which game, and where to look next."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import Ask, Bars, Course, Figure, Limits, Stack

# The limits are those of the alerts StreamLagGrows and StreamTooFarBehind.
_SECONDS_BEHIND = Limits(60, 300)

_IS_IT_BEHIND = Row(
    "Is it behind?",
    (
        Figure(
            title="Query",
            description=(
                "Whether each query runs. Down: nothing is read; go to the runbook StreamQueryDown. A driver that is "
                "gone counts as down."
            ),
            unit=units.NoUnit,
            asks=(
                Ask(
                    'max by (query) (gamelake_stream_up{query=~"$query"}) '
                    'or on (query) max by (query) (up{job="ingest-events", query=~"$query"}) * 0',
                    "{{query}}",
                ),
            ),
            limits=Limits(1, 0.5),
            words=((0, "down"), (1, "runs")),
        ),
        Figure(
            title="Seconds behind",
            description="Age of the oldest record that is not in all its tables yet. Seconds are what to judge by.",
            unit=units.Seconds,
            asks=(Ask('max by (query) (gamelake_stream_seconds_behind{query=~"$query"})', "{{query}}"),),
            limits=_SECONDS_BEHIND,
        ),
        Figure(
            title="Records behind",
            description="Records that Kafka has and not all tables have, over all partitions.",
            unit=units.Short,
            asks=(
                Ask('sum by (query) (gamelake_stream_offsets_behind{query=~"$query", statistic="sum"})', "{{query}}"),
            ),
        ),
        Figure(
            title="Caught up in",
            description=(
                "Time until all is read at the pace of the last five minutes. 0: it keeps up. Endless: it comes no "
                "nearer; see the runbook StreamNeverCatchesUp."
            ),
            unit=units.Seconds,
            asks=(Ask('max by (query) (gamelake_stream_catch_up_seconds{query=~"$query"})', "{{query}}"),),
            limits=_SECONDS_BEHIND,
        ),
        Figure(
            title="Retention used",
            description=(
                "Share of what Kafka still holds that is unread, in the worst partition. At 100 % Kafka deletes unread "
                "records. A young topic may be there without danger."
            ),
            unit=units.PercentUnit,
            asks=(Ask('max by (query) (gamelake_stream_retention_used_ratio{query=~"$query"})', "{{query}}"),),
            limits=Limits(0.25, 0.5),
        ),
        Figure(
            title="Alerts",
            description="Alerts that fire now, of any kind. Prometheus' page of alerts names them.",
            unit=units.NoUnit,
            asks=(Ask('count(ALERTS{alertstate="firing"}) or vector(0)', "firing"),),
            limits=Limits(1, 2),
        ),
    ),
)

_SINCE_WHEN = Row(
    "Since when?",
    (
        Course(
            title="Seconds behind",
            description=(
                "A saw tooth of a few seconds is one batch after the other. A straight climb of one second per second "
                "is a query that stands still; a flatter one is a query that is too slow."
            ),
            unit=units.Seconds,
            asks=(Ask('max by (query) (gamelake_stream_seconds_behind{query=~"$query"})', "{{query}}"),),
            limits=_SECONDS_BEHIND,
        ),
        Course(
            title="What arrives, and what is committed",
            description="Where the two part, the lag begins. Arrives rises: more load. Committed falls: look below.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    'sum by (topic) (rate(kafka_topic_records_in_total{topic!~"__.+"}[$__rate_interval]))',
                    "arrives in {{topic}}",
                ),
                Ask(
                    'sum by (query) (rate(gamelake_stream_records_total{query=~"$query"}[$__rate_interval]))',
                    "committed by {{query}}",
                ),
            ),
        ),
        Course(
            title="Records behind per partition",
            description=(
                "Largest, mean and smallest partition. Far apart: one partition gets most of the records, or its "
                "broker is slow."
            ),
            unit=units.Short,
            asks=(
                Ask(
                    'max by (query, statistic) (gamelake_stream_offsets_behind{query=~"$query", statistic!="sum"})',
                    "{{query}} {{statistic}}",
                ),
            ),
        ),
        Course(
            title="Alerts that fire",
            description="When what began. Empty is good.",
            unit=units.NoUnit,
            asks=(
                Ask(
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
        Bars(
            title="Games furthest behind, in seconds",
            description=(
                "An estimate: all games are read in one order, so a game is as far behind as the query, or not at all."
            ),
            unit=units.Seconds,
            asks=(
                Ask(
                    'topk(10, max by (game) (gamelake_game_seconds_behind{query=~"$query", game=~"$game"}))', "{{game}}"
                ),
            ),
            limits=_SECONDS_BEHIND,
            width=8,
        ),
        Bars(
            title="Games with most records behind",
            description="An estimate: the query's records behind, shared out by what each game sent lately.",
            unit=units.Short,
            asks=(
                Ask(
                    'topk(10, sum by (game) (gamelake_game_offsets_behind{query=~"$query", game=~"$game"}))', "{{game}}"
                ),
            ),
            width=8,
        ),
        Bars(
            title="Silent for",
            description=(
                "How much older a game's newest event is than the newest of all games. Long for a lively game: its "
                "servers or its release; see the runbook GameSilent."
            ),
            unit=units.Seconds,
            asks=(
                Ask(
                    'topk(10, max by (game) (gamelake:game_silence_seconds{query=~"$query", game=~"$game"}))',
                    "{{game}}",
                ),
            ),
            width=8,
        ),
        Course(
            title="Rows per game",
            description="Rows committed, the twelve liveliest games. One line that drops alone is that game's matter.",
            unit=units.RowsPerSecond,
            asks=(
                Ask('topk(12, sum by (game) (gamelake:game_rows:rate10m{query=~"$query", game=~"$game"}))', "{{game}}"),
            ),
        ),
        Course(
            title="Age of the newest event per game",
            description=(
                "The twelve oldest, by the clock of the game's own events. All at once: the stream is behind. One "
                "alone: that game is silent."
            ),
            unit=units.Seconds,
            asks=(
                Ask(
                    "topk(12, time() - max by (game) "
                    '(gamelake_game_last_event_timestamp_seconds{query=~"$query", game=~"$game"}))',
                    "{{game}}",
                ),
            ),
        ),
    ),
)

_WHERE_NEXT = Row(
    "Where to look next?",
    (
        Course(
            title="A batch's time by phase",
            description=(
                "Mean per batch. decide grows: more records, fewer cores, or Kafka slow. commit grows: the object "
                "store. The rest: Spark's own book-keeping."
            ),
            unit=units.Seconds,
            asks=(
                Ask(
                    "sum by (phase) (rate(gamelake_stream_batch_seconds_sum"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))'
                    " / sum by (phase) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))',
                    "{{phase}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Since the last sign of life",
            description=(
                "Since the query last finished a batch or said that it waits, and since Kafka last told how far the "
                "topic goes. The first climbs: a batch hangs. The second climbs: Kafka does not answer, and the lag "
                "above stands still."
            ),
            unit=units.Seconds,
            asks=(
                Ask(
                    'time() - (max by (query) (gamelake_stream_last_progress_timestamp_seconds{query=~"$query"}) > 0)',
                    "{{query}} moved",
                ),
                Ask(
                    'time() - (max by (query) (gamelake_stream_last_poll_timestamp_seconds{query=~"$query"}) > 0)',
                    "{{query}} asked Kafka",
                ),
            ),
        ),
        Course(
            title="Share of dead letters",
            description="Of all records. Above 2 %: see the runbook DeadLetterFlood; at half the query stops.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    'sum by (query) (rate(gamelake_stream_dead_letters_total{query=~"$query"}[5m])) '
                    '/ (gamelake:stream_records:rate5m{query=~"$query"} > 0)',
                    "{{query}}",
                ),
            ),
            limits=Limits(0.01, 0.02),
        ),
        Course(
            title="Services that answer",
            description="1: Prometheus reaches it. A service that drops where the lag begins is the one to look at.",
            unit=units.NoUnit,
            asks=(Ask("min by (job) (up)", "{{job}}"),),
        ),
    ),
)

LAG = Page(
    uid="gamelake-lag",
    title="Stream lag",
    description="Is a query behind, since when, which game suffers, and where to look next.",
    variables=(Variable.QUERY, Variable.GAME),
    rows=(_IS_IT_BEHIND, _SINCE_WHEN, _WHICH_GAME, _WHERE_NEXT),
)

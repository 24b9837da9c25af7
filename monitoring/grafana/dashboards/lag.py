"""Stream lag, for on-call engineers: which query is behind, since when, for which game, and what to do next."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.dashboards.shared import alert_history, firing_alerts, mean_by_phase, responding_services
from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import (
    DURATION,
    FULL_WIDTH,
    MOST_SERIES,
    Column,
    Link,
    Query,
    Rating,
    Stack,
    Table,
    Thresholds,
    TimeSeries,
    Word,
)
from monitoring.grafana.promql import age, finite, top

# The thresholds are those of the alerts StreamLagGrows and StreamTooFarBehind.
_SECONDS_BEHIND = Thresholds(60, 300)
_CHOSEN = 'query=~"$query"'
_OF_CHOSEN = ', query=~"$query|"'


def _by_query(metric: str) -> str:
    return f"max by (query) ({metric}{{{_CHOSEN}}})"


_LAG = _by_query("gamelake_stream_seconds_behind")
# 0 as well if the driver is gone, which reports nothing.
_RUNS = (
    f"{_by_query('gamelake_stream_up')} "
    f'or on (query) 0 * max by (query) (up{{job=~"ingest-events|ingest-files|live-ops", {_CHOSEN}}})'
)
# While the driver is gone, what it has not committed is as old as its last progress, or older.
_LAST_KNOWN_PROGRESS = (
    f"max by (query) (last_over_time(gamelake_stream_last_progress_timestamp_seconds{{{_CHOSEN}}}[1d]))"
)
_BEHIND = f"{_LAG} or on (query) ({age(_LAST_KNOWN_PROGRESS)})"
_IS_BEHIND = f"(({_BEHIND}) > 60)"
# The last time at which a query was less than a minute behind; 6 hours stand for "6 hours or longer".
_SINCE = (
    f"(time() - max_over_time(timestamp({_LAG} <= 60)[6h:30s]) and on (query) {_IS_BEHIND}) "
    f"or on (query) (0 * {_IS_BEHIND} + 21600)"
)
_GROWTH = f"gamelake:stream_offsets_behind:deriv10m{{{_CHOSEN}}}"
_NOTABLE_GROWTH = f"0.05 * clamp_min(gamelake:stream_records:rate5m{{{_CHOSEN}}}, 1)"
_TREND = (
    f"(({_GROWTH} > bool on (query) {_NOTABLE_GROWTH}) - on (query) ({_GROWTH} < bool on (query) -{_NOTABLE_GROWTH})) "
    f"or on (query) (0 * (({_RUNS}) == 0) + 1)"
)
_PROGRESS_AGE = age(_by_query("gamelake_stream_last_progress_timestamp_seconds"))
_POLL_AGE = age(_by_query("gamelake_stream_last_poll_timestamp_seconds"))
# By time; retention by size is in the column "Retention used".
_UNTIL_DELETED = (
    'clamp_min(scalar(max(gamelake_maintenance_retention_seconds{span="kafka"})) '
    f"- max by (query) ({_BEHIND}), 0) >= 0"
)
# In the order of the causes: the first that applies is the step.
_NEXT_STEP = (
    f"(0 * (({_RUNS}) == 0) + 1) "
    f"or on (query) (0 * ({_PROGRESS_AGE} > 120) + 2) "
    f"or on (query) (0 * ({_POLL_AGE} > 60) + 3) "
    f"or on (query) (0 * ({_IS_BEHIND} and on (query) ({_TREND}) > 0) + 4) "
    f"or on (query) (0 * {_IS_BEHIND} + 5) "
    f"or on (query) 0 * ({_RUNS})"
)

_IS_IT_BEHIND = Row(
    "Which query is behind, since when, and what next?",
    (
        Table(
            title="Queries",
            description=(
                "The query that is furthest behind comes first. While a driver is gone, its lag is the time since its "
                "last progress. Behind since: how long it has been more than a minute behind (06:00:00: or longer). "
                "Deleted in: until Kafka deletes the oldest unread record by its age. Retention used: the unread share "
                "of Kafka's records, in the worst partition. Next steps: driver down, runbook StreamQueryDown; batch "
                "hangs, runbook StreamStalled; Kafka silent, runbook StreamLagUnknown; too slow, runbook "
                "StreamLagGrows."
            ),
            label="query",
            columns=(
                Column(
                    "Next step",
                    units.NoUnit,
                    _NEXT_STEP,
                    words=(
                        Word(0, "none"),
                        Word(1, "driver down: start it", Rating.BAD),
                        Word(2, "batch hangs: phases below", Rating.BAD),
                        Word(3, "Kafka silent: check it", Rating.BAD),
                        Word(4, "too slow: add cores", Rating.BAD),
                        Word(5, "catches up: wait", Rating.WARN),
                    ),
                    width=210,
                ),
                Column("Behind", DURATION, _BEHIND, _SECONDS_BEHIND),
                Column("Behind since", DURATION, _SINCE),
                Column(
                    "Trend",
                    units.NoUnit,
                    _TREND,
                    words=(Word(-1, "shrinks"), Word(0, "steady"), Word(1, "grows", Rating.BAD)),
                ),
                Column(
                    "Deleted in",
                    DURATION,
                    finite(f"({_UNTIL_DELETED})", "query"),
                    Thresholds(86_400, 14_400),
                    words=(Word(-1, "never"),),
                ),
                Column(
                    "Retention used",
                    units.PercentUnit,
                    _by_query("gamelake_stream_retention_used_ratio"),
                    Thresholds(0.25, 0.5),
                ),
                Column(
                    "Records behind",
                    units.Short,
                    f'sum by (query) (gamelake_stream_offsets_behind{{{_CHOSEN}, statistic="sum"}})',
                ),
                Column(
                    "Caught up in",
                    DURATION,
                    finite(_by_query("gamelake_stream_catch_up_seconds"), "query"),
                    _SECONDS_BEHIND,
                    words=(Word(-1, "never", Rating.BAD),),
                ),
                Column("Last progress", DURATION, _PROGRESS_AGE, Thresholds(60, 120)),
                Column("Polled Kafka", DURATION, _POLL_AGE, Thresholds(30, 60)),
                Column(
                    "Starts in 1 h",
                    units.NoUnit,
                    f"max by (query) (changes((gamelake_stream_started_timestamp_seconds{{{_CHOSEN}}} > 0)[1h:15s]))",
                    Thresholds(1, 3),
                ),
            ),
            sort="Behind",
            links=(Link("Only this query", "gamelake-lag", "query"), Link("Its batches", "gamelake-pipeline", "query")),
            height=8,
        ),
        firing_alerts(_OF_CHOSEN),
    ),
)

_SINCE_WHEN = Row(
    "Since when?",
    (
        TimeSeries(
            title="Seconds behind",
            description=(
                "A saw tooth of a few seconds is normal: one batch after the other. A rise of one second per "
                "second is a query that has stopped; a slower one is a query that is too slow: see the runbook "
                "StreamTooFarBehind."
            ),
            unit=DURATION,
            queries=(Query(_LAG, "{{query}}"),),
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
                    'sum by (topic) (rate(kafka_topic_records_in_total{topic=~"events|files.notifications"}'
                    "[$__rate_interval]))",
                    "arrives in {{topic}}",
                ),
                Query(
                    f"sum by (query) (rate(gamelake_stream_records_total{{{_CHOSEN}}}[$__rate_interval]))",
                    "committed by {{query}}",
                ),
            ),
        ),
        TimeSeries(
            title="Records behind per partition",
            description=(
                "Maximum and mean over the partitions. Far apart: one partition gets most of the records, or its "
                "broker is slow."
            ),
            unit=units.Short,
            queries=(
                Query(
                    f'max by (query, statistic) (gamelake_stream_offsets_behind{{{_CHOSEN}, statistic=~"avg|max"}})',
                    "{{query}} {{statistic}}",
                ),
            ),
        ),
        alert_history(_OF_CHOSEN),
    ),
)

_WHICH_GAME = Row(
    "Which game?",
    (
        Table(
            title="Games",
            description=(
                "The game that is silent longest comes first: how much older its newest event is than the newest of "
                "all games. Long for an active game: check its servers and its release, see the runbook GameSilent. "
                "All games are read in one order, so a game is as far behind as the query, or not at all; both columns "
                "are estimates."
            ),
            label="game",
            columns=(
                Column(
                    "Silent for",
                    DURATION,
                    f'max by (game) (gamelake:game_silence_seconds{{{_CHOSEN}, game=~"$game"}})',
                    Thresholds(150, 300),
                ),
                Column(
                    "Newest event",
                    DURATION,
                    age(f'max by (game) (gamelake_game_last_event_timestamp_seconds{{{_CHOSEN}, game=~"$game"}})'),
                ),
                Column(
                    "Rows now",
                    units.RowsPerSecond,
                    f'sum by (game) (gamelake:game_rows:rate10m{{{_CHOSEN}, game=~"$game"}})',
                ),
                Column(
                    "Rows in a day",
                    units.RowsPerSecond,
                    f'sum by (game) (avg_over_time(gamelake:game_rows:rate10m{{{_CHOSEN}, game=~"$game"}}[1d]))',
                ),
                Column(
                    "Behind",
                    DURATION,
                    f'max by (game) (gamelake_game_seconds_behind{{{_CHOSEN}, game=~"$game"}})',
                    _SECONDS_BEHIND,
                ),
                Column(
                    "Records behind",
                    units.Short,
                    f'sum by (game) (gamelake_game_offsets_behind{{{_CHOSEN}, game=~"$game"}})',
                ),
            ),
            sort="Silent for",
            links=(
                Link("Only this game", "gamelake-lag", "game"),
                Link("Its baseline", "gamelake-live-ops", "game"),
                Link("Its table", "gamelake-tables", "table", "silver/{}_events"),
                Link("Its commits", "gamelake-pipeline", "table", "silver/{}_events"),
            ),
            height=20,
        ),
        TimeSeries(
            title="Rows per game",
            description=(
                "Committed rows, the ten busiest games of the shown range. A drop of one line alone is a problem of "
                "that game."
            ),
            unit=units.RowsPerSecond,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "game",
                        f'sum by (game) (gamelake:game_rows:rate10m{{{_CHOSEN}, game=~"$game"}})',
                        by=f'sum by (game) (avg_over_time(gamelake:game_rows:rate10m{{{_CHOSEN}, game=~"$game"}}'
                        "[$__range]))",
                    ),
                    "{{game}}",
                ),
            ),
        ),
        TimeSeries(
            title="Age of the newest event per game",
            description=(
                "The ten oldest now, in event time. All at once: the stream is behind. One alone: that game is silent."
            ),
            unit=DURATION,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "game",
                        age(f'max by (game) (gamelake_game_last_event_timestamp_seconds{{{_CHOSEN}, game=~"$game"}})'),
                    ),
                    "{{game}}",
                ),
            ),
        ),
    ),
)


_WHERE_NEXT = Row(
    "Which phase, and which service?",
    (
        Table(
            title="Phases",
            description=(
                "Mean duration per batch, the longest first; a batch that hangs is not included, so the newest batches "
                "may be up to an hour old. decide is longer than usual: more records, fewer cores, or Kafka is slow. "
                "commit: the object store is slow. The rest is Spark's own overhead."
            ),
            label="phase",
            columns=(
                Column("Newest batches", units.Seconds, f"last_over_time(({mean_by_phase('10m')})[1h:1m])"),
                Column("Last hour", units.Seconds, mean_by_phase("1h")),
                Column("Last day", units.Seconds, mean_by_phase("1d")),
            ),
            sort="Newest batches",
            height=10,
        ),
        TimeSeries(
            title="Batch duration by phase",
            description="Mean of the batches of ten minutes. Empty: no batch ended; see the panel to the right.",
            unit=units.Seconds,
            queries=(Query(mean_by_phase("10m"), "{{phase}}"),),
            stack=Stack.NORMAL,
            empty="no batch has ended",
        ),
        TimeSeries(
            title="Since the last progress",
            description=(
                "Time since the query last finished a batch or reported that it waits, and since the driver last "
                "got the end offsets from Kafka. The first rises: a batch hangs, see the runbook StreamStalled. The "
                "second rises: Kafka does not respond, and the lag metrics above are out of date."
            ),
            unit=DURATION,
            queries=(Query(_PROGRESS_AGE, "{{query}} progress"), Query(_POLL_AGE, "{{query}} polled Kafka")),
            thresholds=Thresholds(60, 120),
        ),
        TimeSeries(
            title="Share of dead letters",
            description="Share of all records. Above 2 %: see the runbook DeadLetterFlood; at 50 % the query stops.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    f"sum by (query) (rate(gamelake_stream_dead_letters_total{{{_CHOSEN}}}[5m])) "
                    f"/ (gamelake:stream_records:rate5m{{{_CHOSEN}}} > 0)",
                    "{{query}}",
                ),
            ),
            thresholds=Thresholds(0.01, 0.02),
            empty="no records",
            width=FULL_WIDTH // 2,
            height=13,
        ),
        responding_services(),
    ),
)

LAG = Page(
    uid="gamelake-lag",
    title="Stream lag",
    description="Which query is behind, since when, which game is affected, and what to do next.",
    variables=(Variable.QUERY, Variable.GAME),
    rows=(_IS_IT_BEHIND, _SINCE_WHEN, _WHICH_GAME, _WHERE_NEXT),
)

"""KPIs, for game managers: the newest day, hour and cohorts, and how fresh the figures are."""

from collections.abc import Sequence

from grafana_foundation_sdk.models import units

from monitoring.grafana.dashboards.shared import UP
from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import (
    DURATION,
    MOST_SERIES,
    BarGauge,
    Column,
    Link,
    Query,
    Stack,
    Stat,
    Table,
    Thresholds,
    TimeSeries,
)
from monitoring.grafana.promql import age, top

_DOLLARS = units.Dollars
# Those of the job's metrics: gamelake.observability.kpis.CURVE_DAYS.
CURVE_DAYS = (1, 3, 7, 14, 30, 60, 90, 180, 365)
_CHOSEN = '{title=~"$title"}'


def _of_titles(metric: str) -> str:
    """A metric's newest value of each selected game; two drivers in a row may both have left a series."""
    return f"max by (title) ({metric}{_CHOSEN})"


def _active(window: str) -> str:
    return f'max by (title) (gamelake_kpi_active_players{{title=~"$title", window="{window}"}})'


def _curve(metric: str, days: Sequence[int]) -> tuple[Query, ...]:
    """One query for each day after the first one, in the order of the days."""
    return tuple(
        Query(f'avg(max by (title) ({metric}{{title=~"$title", after="{day}d"}}))', f"day {day}") for day in days
    )


def _mean_seconds(histogram: str) -> str:
    return f"sum(rate({histogram}_sum[5m])) / (sum(rate({histogram}_count[5m])) > 0)"


_TODAY = Row(
    "How is today?",
    (
        Stat(
            title="Events",
            description="Events of the newest day (UTC), the same day of all games, sum of the selected ones.",
            unit=units.Short,
            queries=(Query(f"sum({_of_titles('gamelake_kpi_day_events')})", "events"),),
        ),
        Stat(
            title="Bookings",
            description="Bookings of the newest day, sum of the selected games.",
            unit=_DOLLARS,
            queries=(Query(f"sum({_of_titles('gamelake_kpi_day_bookings')})", "bookings"),),
        ),
        Stat(
            title="Paying players",
            description="Players who paid on the newest day; a player of two games counts twice.",
            unit=units.Short,
            queries=(Query(f"sum({_of_titles('gamelake_kpi_payers')})", "paying"),),
        ),
        Stat(
            title="New players",
            description="Players whose first day is the newest one; a player of two games counts twice.",
            unit=units.Short,
            queries=(Query(f"sum({_of_titles('gamelake_kpi_new_players')})", "new"),),
        ),
        Stat(
            title="Sessions",
            description="Sessions of the newest day, sum of the selected games.",
            unit=units.Short,
            queries=(Query(f"sum({_of_titles('gamelake_kpi_sessions')})", "sessions"),),
        ),
        Stat(
            title="Behind",
            description=(
                "Age of the oldest commit of silver that is in no KPI table. From 120 s on: see the runbook KpisBehind."
            ),
            unit=DURATION,
            queries=(Query("max(gamelake_kpis_seconds_behind)", "behind"),),
            thresholds=Thresholds(60, 120),
        ),
        Table(
            title="Games",
            description="The newest day (UTC) so far, the same of all games; without events on it a game is left out.",
            label="title",
            columns=(
                Column(
                    "Players",
                    units.Short,
                    _active("1d"),
                ),
                Column(
                    "In 7 days",
                    units.Short,
                    _active("7d"),
                ),
                Column(
                    "In 30 days",
                    units.Short,
                    _active("30d"),
                ),
                Column("Stickiness", units.PercentUnit, _of_titles("gamelake_kpi_stickiness_ratio")),
                Column("New", units.Short, _of_titles("gamelake_kpi_new_players")),
                Column("Conversion", units.PercentUnit, _of_titles("gamelake_kpi_conversion_ratio")),
                Column("Bookings", _DOLLARS, _of_titles("gamelake_kpi_day_bookings")),
                Column("Per player", _DOLLARS, _of_titles("gamelake_kpi_arpdau")),
                Column("Late events", units.Short, _of_titles("gamelake_kpi_day_late_events")),
            ),
            sort="Players",
            links=(Link("Only this game", "gamelake-kpis", "title"),),
            height=20,
        ),
    ),
)

_NOW = Row(
    "How is this hour?",
    (
        TimeSeries(
            title="Events of the hour",
            description="Events of the newest hour so far, the ten busiest games. Starts at 0 each hour.",
            unit=units.Short,
            queries=(Query(top(MOST_SERIES, "title", _of_titles("gamelake_kpi_hour_events")), "{{title}}"),),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Bookings of the hour",
            description="Bookings of the newest hour so far, the top ten games.",
            unit=_DOLLARS,
            queries=(Query(top(MOST_SERIES, "title", _of_titles("gamelake_kpi_hour_bookings")), "{{title}}"),),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Players of the day",
            description="Distinct players of the newest day so far, the top ten games.",
            unit=units.Short,
            queries=(Query(top(MOST_SERIES, "title", _active("1d")), "{{title}}"),),
        ),
        TimeSeries(
            title="Bookings per player of the day",
            description="Bookings of the newest day, divided by its players (ARPDAU), the top ten games.",
            unit=_DOLLARS,
            queries=(Query(top(MOST_SERIES, "title", _of_titles("gamelake_kpi_arpdau")), "{{title}}"),),
        ),
    ),
)

_STAY = Row(
    "Do players return and pay?",
    (
        BarGauge(
            title="Retention curve",
            description=(
                "Share of new players who returned on exactly that day, of the newest cohort of each age; the mean "
                "over the selected games. The table gold/kpi_cohorts has all days."
            ),
            unit=units.PercentUnit,
            width=8,
            queries=_curve("gamelake_kpi_retention_ratio", CURVE_DAYS),
        ),
        BarGauge(
            title="Lifetime value",
            description=(
                "Bookings of new players up to that day for each of them (LTV), of the newest cohort of each age; the "
                "mean over the selected games. The table gold/kpi_cohorts has all days."
            ),
            unit=_DOLLARS,
            width=8,
            queries=_curve("gamelake_kpi_ltv", (0, *CURVE_DAYS)),
        ),
        BarGauge(
            title="Session duration",
            description="Quantiles of the newest day's sessions, each the mean over the selected games.",
            unit=DURATION,
            width=8,
            queries=(
                Query(
                    'avg by (quantile) (max by (title, quantile) (gamelake_kpi_session_seconds{title=~"$title"}))',
                    "{{quantile}}",
                ),
            ),
        ),
    ),
)

_HEALTH = Row(
    "Are the games healthy?",
    (
        TimeSeries(
            title="Concurrent players",
            description="Most players in sessions at once, in a minute of the newest day so far, the top ten games.",
            unit=units.Short,
            queries=(
                Query(top(MOST_SERIES, "title", _of_titles("gamelake_kpi_peak_concurrent_players")), "{{title}}"),
            ),
        ),
        TimeSeries(
            title="Crashes",
            description="Share of today's sessions with a fatal error, the ten games with the largest share.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    top(MOST_SERIES, "title", f"1 - {_of_titles('gamelake_kpi_crash_free_sessions_ratio')}"),
                    "{{title}}",
                ),
            ),
        ),
        TimeSeries(
            title="Load time",
            description=(
                "90th percentile of today's load times, of the event, platform and version with the most; the ten "
                "slowest games."
            ),
            unit=units.Seconds,
            queries=(Query(top(MOST_SERIES, "title", _of_titles("gamelake_kpi_load_seconds")), "{{title}}"),),
        ),
        TimeSeries(
            title="Unusual sources",
            description=(
                "Sources of currencies and items that gave more than three times their baseline today; see the runbook "
                "EconomySourceUnusual."
            ),
            unit=units.Short,
            queries=(Query(top(MOST_SERIES, "title", _of_titles("gamelake_kpi_unusual_sources")), "{{title}}"),),
            thresholds=Thresholds(1, 1),
        ),
    ),
)

_TRUST = Row(
    "Are the figures complete?",
    (
        TimeSeries(
            title="Behind",
            description="Age of the oldest commit of silver that is in no KPI table.",
            unit=DURATION,
            queries=(Query("max(gamelake_kpis_seconds_behind)", "behind"),),
            thresholds=Thresholds(60, 120),
        ),
        TimeSeries(
            title="Games held back",
            description="Games whose figures can't be computed; all others continue. See the runbook KpiGamesHeldBack.",
            unit=units.Short,
            queries=(Query("max(gamelake_kpis_failed_games)", "games"),),
            thresholds=Thresholds(1, 1),
        ),
        TimeSeries(
            title="Segments behind",
            description="Time for which a segment of players could not be refreshed; see the runbook SegmentsBehind.",
            unit=DURATION,
            queries=(Query("max(gamelake_segments_seconds_behind)", "behind"),),
            thresholds=Thresholds(60, 120),
        ),
        TimeSeries(
            title="Players who enter or leave a segment",
            description="Players who enter or leave a segment, per second; each is published to live-ops.segments.",
            unit=units.Short,
            queries=(Query("sum(rate(gamelake_segments_moves_total[5m]))", "players"),),
        ),
        TimeSeries(
            title="Experiments refreshed",
            description="Time since the last refresh of all experiments.",
            unit=DURATION,
            queries=(Query(age("max(gamelake_experiments_refreshed_timestamp_seconds)"), "age"),),
        ),
        TimeSeries(
            title="Experiments held back",
            description="Experiments whose statistics can't be computed; see the runbook ExperimentsHeldBack.",
            unit=units.Short,
            queries=(Query("max(gamelake_experiments_held_back)", "experiments"),),
            thresholds=Thresholds(1, 1),
        ),
        TimeSeries(
            title="Experiments with unequal groups",
            description="Experiments whose players don't match the shares; see the runbook ExperimentSampleRatio.",
            unit=units.Short,
            queries=(
                Query(
                    top(
                        MOST_SERIES, "experiment", "max by (experiment) (gamelake_experiment_sample_ratio_mismatch) > 0"
                    ),
                    "{{experiment}}",
                ),
            ),
            thresholds=Thresholds(1, 1),
            empty="all player counts match the shares",
        ),
        TimeSeries(
            title="Late events",
            description=(
                "Events of the newest day that arrived more than three hours after the end of their hour, the top ten "
                "games; see the runbook KpiEventsLate."
            ),
            unit=units.Short,
            queries=(Query(top(MOST_SERIES, "title", _of_titles("gamelake_kpi_day_late_events")), "{{title}}"),),
        ),
        TimeSeries(
            title="Refresh duration",
            description=(
                "Duration of a run of gold, which merges what is new in silver, and of the refresh of the tables that "
                "are made of those, mean of five minutes."
            ),
            unit=units.Seconds,
            queries=(
                Query(_mean_seconds("gamelake_gold_run_seconds"), "run of gold"),
                Query(_mean_seconds("gamelake_kpis_refresh_seconds"), "days, players, cohorts"),
                Query(_mean_seconds("gamelake_segments_refresh_seconds"), "segments"),
            ),
        ),
        Stat(
            title="Gold job",
            description="Whether the gold job, which keeps the KPI tables up, responds.",
            unit=units.NoUnit,
            queries=(Query('max(up{job="serving"})', "up"),),
            words=UP,
            thresholds=Thresholds(1, 0.5),
            width=6,
            height=8,
        ),
        Stat(
            title="Start of the newest hour",
            description="How long ago the newest hour with events started; more than an hour: no events arrive.",
            unit=DURATION,
            queries=(Query(age("max(gamelake_kpi_newest_hour_timestamp_seconds)"), "ago"),),
            width=6,
            height=8,
        ),
    ),
)

KPIS = Page(
    uid="gamelake-kpis",
    title="Game KPIs",
    description="Players, bookings, retention, sessions and health of each game, from gold.",
    variables=(Variable.TITLE,),
    rows=(_TODAY, _NOW, _STAY, _HEALTH, _TRUST),
)

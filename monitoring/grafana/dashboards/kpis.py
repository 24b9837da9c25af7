"""Key figures (KPIs), for game managers: the newest day, hour and cohorts, and how fresh the figures are."""

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
from monitoring.grafana.promql import age, top, top_rates

_DOLLARS = units.Dollars
_CHOSEN = '{title=~"$title"}'


def _of_titles(metric: str) -> str:
    """A metric's newest value of each selected game; two drivers in a row may both have left a series."""
    return f"max by (title) ({metric}{_CHOSEN})"


def _active(window: str) -> str:
    return f'max by (title) (gamelake_kpi_active_players{{title=~"$title", window="{window}"}})'


_TODAY = Row(
    "How is today?",
    (
        Stat(
            title="Events",
            description="Events of the newest day (UTC), sum of the selected games.",
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
            description=(
                "Each game's newest day (UTC) so far. An error above 0 means that the number of players is estimated."
            ),
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
                Column("Error", units.PercentUnit, _of_titles("gamelake_kpi_players_error_ratio")),
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
    "Do players return?",
    (
        BarGauge(
            title="Retention after 1, 7 and 30 days",
            description=(
                "Share of new players who returned on that day, over the selected games, of the newest cohorts."
            ),
            unit=units.PercentUnit,
            queries=(
                Query(
                    'avg by (after) (max by (title, after) (gamelake_kpi_retention_ratio{title=~"$title"}))',
                    "after {{after}}",
                ),
            ),
        ),
        BarGauge(
            title="Session duration",
            description="Quantiles of the newest day's sessions, each the mean over the selected games.",
            unit=DURATION,
            queries=(
                Query(
                    'avg by (quantile) (max by (title, quantile) (gamelake_kpi_session_seconds{title=~"$title"}))',
                    "{{quantile}}",
                ),
            ),
        ),
    ),
)

_TRUST = Row(
    "Are the figures complete?",
    (
        TimeSeries(
            title="Behind",
            description="Age of the oldest commit that is in no KPI table, and time since the query's last progress.",
            unit=DURATION,
            queries=(
                Query("max by (query) (gamelake_kpis_seconds_behind)", "{{query}} behind"),
                Query(
                    age("max by (query) (gamelake_kpis_last_progress_timestamp_seconds)"),
                    "{{query}} since its last progress",
                ),
            ),
            thresholds=Thresholds(60, 120),
        ),
        TimeSeries(
            title="Late events",
            description=(
                "Events per second that arrived after their hour was closed, the top ten games; see the runbook "
                "KpiEventsLate."
            ),
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "title", 'gamelake_kpi_late_events_total{title=~"$title"}'),
                    "{{title}}",
                ),
            ),
        ),
        TimeSeries(
            title="Batch duration",
            description=(
                "Duration of a batch and its phases, mean of five minutes: trigger_execution is the whole batch, "
                "add_batch Spark's and our work, merge the writing of the tables."
            ),
            unit=units.Seconds,
            queries=(
                Query(
                    "sum by (phase) (rate(gamelake_kpis_batch_seconds_sum[5m])) "
                    "/ (sum by (phase) (rate(gamelake_kpis_batch_seconds_count[5m])) > 0)",
                    "{{phase}}",
                ),
            ),
        ),
        Stat(
            title="KPI query",
            description="Whether Spark runs the KPI query.",
            unit=units.NoUnit,
            queries=(Query("max(gamelake_kpis_up)", "up"),),
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
    description="Players, bookings, retention and sessions of each game, from the tables gold/kpi_*.",
    variables=(Variable.TITLE,),
    rows=(_TODAY, _NOW, _STAY, _TRUST),
)

"""Key figures of the games, for who runs them: today against the days before, and how fresh the figures are."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import Ask, Bars, Column, Course, Figure, Limits, Stack, rows

_DOLLARS = units.Dollars
_CHOSEN = '{title=~"$title"}'


def _of_titles(metric: str) -> str:
    """A metric's newest value of each chosen game; two drivers in a row may both have left one."""
    return f"max by (title) ({metric}{_CHOSEN})"


def _active(window: str) -> str:
    return f'max by (title) (gamelake_kpi_active_players{{title=~"$title", window="{window}"}})'


_TODAY = Row(
    "How is today?",
    (
        Figure(
            title="Events",
            description="Events of the newest day (UTC), of the chosen games together.",
            unit=units.Short,
            asks=(Ask(f"sum({_of_titles('gamelake_kpi_day_events')})", "events"),),
        ),
        Figure(
            title="Bookings",
            description="Bookings of the newest day, of the chosen games together.",
            unit=_DOLLARS,
            asks=(Ask(f"sum({_of_titles('gamelake_kpi_day_bookings')})", "bookings"),),
        ),
        Figure(
            title="Paying players",
            description="Players who paid on the newest day; who plays two games counts in both.",
            unit=units.Short,
            asks=(Ask(f"sum({_of_titles('gamelake_kpi_payers')})", "paying"),),
        ),
        Figure(
            title="New players",
            description="Players whose first day is the newest one; who plays two games counts in both.",
            unit=units.Short,
            asks=(Ask(f"sum({_of_titles('gamelake_kpi_new_players')})", "new"),),
        ),
        Figure(
            title="Sessions",
            description="Sessions of the newest day, of the chosen games together.",
            unit=units.Short,
            asks=(Ask(f"sum({_of_titles('gamelake_kpi_sessions')})", "sessions"),),
        ),
        Figure(
            title="Behind",
            description="Age of the oldest commit of silver that the KPI tables lack. From 120 s on: KpisBehind.",
            unit=units.Seconds,
            asks=(Ask("max(gamelake_kpis_seconds_behind)", "behind"),),
            limits=Limits(60, 120),
        ),
        rows(
            "Games",
            "Each game's newest day (UTC), as far as it has come. An error above 0 says that players are estimated.",
            "title",
            (
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
        ),
    ),
)

_NOW = Row(
    "How is this hour?",
    (
        Course(
            title="Events of the hour",
            description="Events of the newest hour so far, the twelve busiest games: teeth of an hour each.",
            unit=units.Short,
            asks=(Ask(f"topk(12, {_of_titles('gamelake_kpi_hour_events')})", "{{title}}"),),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Bookings of the hour",
            description="Bookings of the newest hour so far, the twelve games with most.",
            unit=_DOLLARS,
            asks=(Ask(f"topk(12, {_of_titles('gamelake_kpi_hour_bookings')})", "{{title}}"),),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Players of the day",
            description="How the day's players gather, the twelve games with most.",
            unit=units.Short,
            asks=(Ask(f"topk(12, {_active('1d')})", "{{title}}"),),
        ),
        Course(
            title="Bookings per player of the day",
            description="Bookings of the newest day by its players (ARPDAU), the twelve games with most.",
            unit=_DOLLARS,
            asks=(Ask(f"topk(12, {_of_titles('gamelake_kpi_arpdau')})", "{{title}}"),),
        ),
    ),
)

_STAY = Row(
    "Do players stay?",
    (
        Bars(
            title="Back after 1, 7 and 30 days",
            description="Share of new players who came back on that day, over the chosen games, of the newest cohorts.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    'avg by (after) (max by (title, after) (gamelake_kpi_retention_ratio{title=~"$title"}))',
                    "after {{after}}",
                ),
            ),
        ),
        Bars(
            title="Length of a session",
            description="Quantiles of the newest day's sessions, each the mean over the chosen games.",
            unit=units.Seconds,
            asks=(
                Ask(
                    'avg by (quantile) (max by (title, quantile) (gamelake_kpi_session_seconds{title=~"$title"}))',
                    "{{quantile}}",
                ),
            ),
        ),
    ),
)

_TRUST = Row(
    "Can the figures be trusted?",
    (
        Course(
            title="Behind",
            description="Age of the oldest commit that the KPI tables lack, and since when the query has been silent.",
            unit=units.Seconds,
            asks=(
                Ask("max by (query) (gamelake_kpis_seconds_behind)", "{{query}} behind"),
                Ask("time() - max by (query) (gamelake_kpis_last_progress_timestamp_seconds)", "{{query}} moved"),
            ),
            limits=Limits(60, 120),
        ),
        Course(
            title="Late events",
            description="Events per second that came after their hour was closed, the twelve games with most; see "
            "KpiEventsLate.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    "topk(12, sum by (title) "
                    '(rate(gamelake_kpi_late_events_total{title=~"$title"}[$__rate_interval])))',
                    "{{title}}",
                ),
            ),
        ),
        Course(
            title="A batch",
            description="How long a part of a batch takes, mean of five minutes: all of it, what Spark and we take, "
            "and what the tables alone do.",
            unit=units.Seconds,
            asks=(
                Ask(
                    "sum by (phase) (rate(gamelake_kpis_batch_seconds_sum[5m])) "
                    "/ sum by (phase) (rate(gamelake_kpis_batch_seconds_count[5m]))",
                    "{{phase}}",
                ),
            ),
        ),
        Figure(
            title="The query",
            description="Whether Spark runs the KPI query.",
            unit=units.NoUnit,
            asks=(Ask("max(gamelake_kpis_up)", "up"),),
            words=((0, "down"), (1, "up")),
            limits=Limits(1, 0.5),
            width=6,
            height=8,
        ),
        Figure(
            title="The newest hour began",
            description="How long ago the newest hour with events began; more than an hour: nobody plays.",
            unit=units.Seconds,
            asks=(Ask("time() - max(gamelake_kpi_newest_hour_timestamp_seconds)", "ago"),),
            width=6,
            height=8,
        ),
    ),
)

KPIS = Page(
    uid="gamelake-kpis",
    title="Game KPIs",
    description="Players, bookings, retention and sessions of each game, as the tables gold/kpi_* have them now.",
    variables=(Variable.TITLE,),
    rows=(_TODAY, _NOW, _STAY, _TRUST),
)

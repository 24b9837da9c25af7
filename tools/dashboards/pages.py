"""The four dashboards: portfolio, one game, live operations and experiments."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.dashboards.datasets import Figure, Wanted

DOLLARS, SHARE, DECIMAL = "$,.2f", ".1%", ",.3f"
# Today in each game's time zone.
TODAY = "begins <= current_timestamp AND ends > current_timestamp"
WEEK, MONTH = "DATEADD(DATETIME('today'), -6, day) : ", "DATEADD(DATETIME('today'), -29, day) : "
YESTERDAY_ON = "DATEADD(DATETIME('today'), -1, day) : "

KPI_DAILY, ACTIVE, COHORTS = "gold.kpi_daily", "gold.kpi_active_players", "gold.kpi_cohorts"
HOURLY, LATE, REVENUE, MARKETS = "gold.kpi_hourly", "gold.kpi_late", "gold.revenue_per_day", "gold.revenue"
STABILITY, LOADS, ECONOMY = "gold.version_stability", "gold.load_times", "gold.economy"
SIGNALS, MINUTES, CONCURRENT = "gold.live_ops_signals", "gold.live_ops_minutes", "gold.concurrent_players"
RESULTS, EXPOSURES = "gold.experiment_results", "gold.experiment_exposures"
COHORTS_BY, ROAS, ACQUISITION = "gold.kpi_cohorts_by", "gold.roas", "gold.acquisition"
SUBSCRIPTIONS, FUNNEL, SEGMENTS = "gold.subscriptions_per_day", "gold.funnel_first_purchase", "gold.segments"


def _retention(day: int) -> Figure:
    only = f"FILTER (WHERE day = {day})"
    sql = f"CAST(sum(returned_players) {only} AS double) / nullif(sum(new_players) {only}, 0)"
    return Figure(f"retention_{day}", f"Day {day}", sql, SHARE, f"share of new players who played {day} days later")


_RETURNED = Figure(
    "returned", "Retention", "CAST(sum(returned_players) AS double) / nullif(sum(new_players), 0)", SHARE
)
_LTV = Figure("ltv", "LTV", "CAST(sum(cumulative_bookings) AS double) / nullif(sum(new_players), 0)", DOLLARS)


def _newest(column: str) -> str:
    return f"max_by({column}, event_date)"


DATASETS: Mapping[str, Wanted] = {
    KPI_DAILY: Wanted(
        {
            "events": "events",
            "active_players": "players",
            "payers": "payers",
            "sessions": "sessions",
            "purchases": "purchases",
            "bookings": "bookings",
        },
        (
            Figure("peak", "Peak concurrent players", "sum(peak_concurrent_players)"),
            Figure("length_p50", "Session median, s", "max(session_seconds_p50)", ",.0f"),
            Figure("length_p90", "Session p90, s", "max(session_seconds_p90)", ",.0f"),
        ),
    ),
    ACTIVE: Wanted(
        more=(
            Figure("dau", "DAU", "sum(dau)"),
            Figure("wau", "WAU", "sum(wau)"),
            Figure("mau", "MAU", "sum(mau)"),
        )
    ),
    COHORTS: Wanted(
        more=(
            *(_retention(day) for day in (1, 7, 30)),
            _RETURNED,
            _LTV,
            Figure("new_players", "New players", "sum(new_players) FILTER (WHERE day = 0)"),
        ),
        day="cohort_date",
    ),
    COHORTS_BY: Wanted(
        more=(_RETURNED, _LTV, Figure("cohort_players", "New players", "sum(new_players)")), day="cohort_date"
    ),
    HOURLY: Wanted({"events": "events", "purchases": "purchases", "bookings": "bookings"}),
    LATE: Wanted(
        {"arrived": "events", "late": "late_events"},
        (
            Figure("late_share", "Late", "CAST(sum(late) AS double) / nullif(sum(arrived), 0)", ".2%"),
            Figure("newest_hour", "Newest hour", "max(hour) FILTER (WHERE hour <= current_timestamp)", "smart_date"),
            Figure(
                "minutes_old",
                "Minutes since it began",
                "date_diff('minute', max(hour) FILTER (WHERE hour <= current_timestamp), current_timestamp)",
                ",d",
            ),
        ),
    ),
    REVENUE: Wanted(
        more=(
            Figure("revenue", "Revenue", "sum(revenue)", DOLLARS),
            Figure("net", "Net sales", "sum(net)", DOLLARS),
            Figure("ads", "Ad revenue", "sum(ad_revenue)", DOLLARS),
        )
    ),
    MARKETS: Wanted(
        more=(
            Figure("gross", "Gross sales", "sum(gross)", DOLLARS),
            Figure("refunded", "Refunded", "sum(refunded)", DOLLARS),
            Figure("net", "Net sales", "sum(net)", DOLLARS),
            Figure("ads", "Ad revenue", "sum(ad_revenue)", DOLLARS),
        )
    ),
    STABILITY: Wanted(
        more=(
            Figure(
                "crash_free_sessions",
                "Crash-free sessions",
                "1e0 - CAST(sum(crashed_sessions) AS double) / nullif(sum(sessions), 0)",
                ".2%",
            ),
            Figure(
                "crash_free_players",
                "Crash-free players",
                "1e0 - CAST(sum(crashed_players) AS double) / nullif(sum(players), 0)",
                ".2%",
            ),
            Figure("version_sessions", "Sessions", "sum(sessions)"),
            Figure("crashes", "Crashes", "sum(crashes)"),
        )
    ),
    LOADS: Wanted(
        more=(
            Figure("loads", "Loads", "sum(loads)"),
            Figure("p50", "Highest median, ms", "max(load_ms_p50)"),
            Figure("p90", "Highest p90, ms", "max(load_ms_p90)"),
            Figure("p99", "Highest p99, ms", "max(load_ms_p99)"),
        )
    ),
    ECONOMY: Wanted(
        more=(
            Figure("gained", "Gained", "sum(gained)"),
            Figure("spent", "Spent", "sum(spent)"),
            Figure("net", "Net", "sum(net)"),
        )
    ),
    ACQUISITION: Wanted(
        more=(
            Figure("installs", "Installs", "sum(installs)"),
            Figure("cost", "Cost", "sum(cost)", DOLLARS),
            Figure("cpi", "Cost per install", "sum(cost) / nullif(sum(installs), 0)", DOLLARS),
        )
    ),
    ROAS: Wanted(
        more=(Figure("roas", "ROAS", "CAST(sum(revenue) AS double) / nullif(CAST(sum(cost) AS double), 0)", SHARE),),
        day="cohort_date",
    ),
    SUBSCRIPTIONS: Wanted(
        more=(
            Figure("active", "Active", "sum(active)"),
            Figure("started", "New", "sum(started)"),
            Figure("renewed", "Renewed", "sum(renewed)"),
            Figure("expired", "Ended", "sum(expired)"),
            Figure("mrr", "MRR", "sum(mrr)", DOLLARS),
        )
    ),
    FUNNEL: Wanted(
        more=(
            Figure("reached", "Reached", "sum(reached)"),
            Figure("share", "Share of entries", "CAST(sum(reached) AS double) / nullif(sum(entered), 0)", SHARE),
            Figure(
                "drop_off", "Drop-off", "1e0 - CAST(sum(reached) AS double) / nullif(sum(reached_before), 0)", SHARE
            ),
        )
    ),
    SEGMENTS: Wanted(more=(Figure("members", "Players", "sum(players)"),), day="computed_at"),
    SIGNALS: Wanted(more=(Figure("signals", "Signals", "count(DISTINCT signal_id)"),), day="noticed_at"),
    MINUTES: Wanted(
        more=(
            Figure("minute_events", "Events", "sum(events)"),
            Figure("errors", "Errors", "sum(errors)"),
            Figure("minute_purchases", "Purchases", "sum(purchases)"),
        ),
        day="minute",
    ),
    CONCURRENT: Wanted(more=(Figure("concurrent", "Concurrent players", "max(players)"),)),
    RESULTS: Wanted(
        more=(
            Figure("newest_verdict", "Verdict", _newest("verdict"), ""),
            Figure("newest_players", "Players", _newest("players")),
            Figure("newest_lift", "Lift", _newest("lift"), ".1%"),
            Figure("difference", "Difference", _newest("difference"), DECIMAL),
            Figure("low", "Lower end", _newest("low"), DECIMAL),
            Figure("high", "Upper end", _newest("high"), DECIMAL),
            Figure("newest_p_value", "p-value", _newest("p_value"), ".4f"),
        )
    ),
    EXPOSURES: Wanted(more=(Figure("exposed", "Exposed players", "count(DISTINCT gamer_id)"),)),
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: one figure, lines, bars or a table over a dataset.

    Attributes:
        kind: number, line, bar or table.
        figures: names of the dataset's figures.
        across: the column of the x axis.
        by: the columns whose values each get a line or a row.
        columns: the columns of a table that shows rows; empty for other charts.
        days: the range of days, in Superset's terms.
        where: a further condition in SQL.
        width: in twelfths of the page.
        order_by: the column that sorts a table of rows, the largest first.
    """

    title: str
    kind: str
    dataset: str
    figures: tuple[str, ...] = ()
    across: str = "event_date"
    by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    days: str = MONTH
    where: str = ""
    width: int = 4
    order_by: str = ""


@dataclass(frozen=True, slots=True)
class SupersetDashboard:
    """A dashboard: rows of charts in tabs, and filters by column.

    Attributes:
        tabs: the rows of charts of each tab; a single tab named "" is a page without tabs.
        filters: the title of each filter, with the dataset and the column of its values.
        first_value: True if filters start with their first value, and accept one only.
    """

    slug: str
    title: str
    description: str
    tabs: Mapping[str, tuple[tuple[Chart, ...], ...]]
    filters: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    first_value: bool = False


def _day_7(dimension: str) -> Chart:
    return Chart(
        f"Day 7 by {dimension}",
        "table",
        COHORTS_BY,
        ("cohort_players", "returned", "ltv"),
        by=("value",),
        where=f"dimension = '{dimension}' AND day = 7",
        width=6,
    )


GAME = ("game_name",)
PORTFOLIO = SupersetDashboard(
    "portfolio",
    "Portfolio",
    "All games: players, bookings and revenue, retention, and how fresh the figures are.",
    {
        "": (
            (
                Chart("Players today", "number", KPI_DAILY, ("players",), days="", where=TODAY, width=3),
                Chart("Bookings today", "number", KPI_DAILY, ("bookings",), days="", where=TODAY, width=3),
                Chart("Payers today", "number", KPI_DAILY, ("payers",), days="", where=TODAY, width=3),
                Chart("ARPDAU today", "number", KPI_DAILY, ("arpdau",), days="", where=TODAY, width=3),
            ),
            (
                Chart("Players per day", "line", KPI_DAILY, ("players",), by=GAME, width=6),
                Chart("Bookings per day", "bar", KPI_DAILY, ("bookings",), by=GAME, width=6),
            ),
            (
                Chart("Revenue per day", "bar", REVENUE, ("revenue",), by=GAME, width=6),
                Chart("Conversion per day", "line", KPI_DAILY, ("conversion",), by=GAME, width=6),
            ),
            (
                Chart(
                    "Retention of new players",
                    "table",
                    COHORTS,
                    ("new_players", "retention_1", "retention_7", "retention_30"),
                    by=GAME,
                    days="DATEADD(DATETIME('today'), -59, day) : ",
                    width=6,
                ),
                Chart(
                    "Freshness and late events",
                    "table",
                    LATE,
                    ("newest_hour", "minutes_old", "events", "late_events", "late_share"),
                    by=GAME,
                    days=YESTERDAY_ON,
                    width=6,
                ),
            ),
        )
    },
    {"Game": (KPI_DAILY, "game_name")},
)

ONE_GAME = SupersetDashboard(
    "one-game",
    "One game",
    "A game that you choose: players, revenue, cohorts, acquisition, funnel, segments, versions and economy.",
    {
        "Players and money": (
            (
                Chart("Game's players today", "number", KPI_DAILY, ("players",), days="", where=TODAY, width=4),
                Chart("Game's bookings today", "number", KPI_DAILY, ("bookings",), days="", where=TODAY, width=4),
                Chart("Game's sessions today", "number", KPI_DAILY, ("sessions",), days="", where=TODAY, width=4),
            ),
            (
                Chart("DAU, WAU and MAU", "line", ACTIVE, ("dau", "wau", "mau"), width=6),
                Chart("Bookings and ARPDAU", "line", KPI_DAILY, ("bookings", "arpdau"), width=6),
            ),
            (
                Chart("Retention curve", "line", COHORTS, ("returned",), across="day", where="day <= 30", width=6),
                Chart("Lifetime value", "line", COHORTS, ("ltv",), across="day", where="day <= 30", width=6),
            ),
            (
                Chart(
                    "Revenue by country", "table", MARKETS, ("gross", "refunded", "net", "ads"), by=("market",), width=6
                ),
                Chart("Session length", "line", KPI_DAILY, ("length_p50", "length_p90"), width=6),
            ),
            (
                Chart("Active subscriptions", "line", SUBSCRIPTIONS, ("active", "mrr"), width=6),
                Chart("Subscriptions per day", "bar", SUBSCRIPTIONS, ("started", "renewed", "expired"), width=6),
            ),
        ),
        "Cohorts and acquisition": (
            (
                _day_7("country"),
                _day_7("source"),
            ),
            (
                Chart("Installs and cost", "table", ACQUISITION, ("installs", "cost", "cpi"), by=("source",), width=6),
                Chart(
                    "Return on ad spend",
                    "line",
                    ROAS,
                    ("roas",),
                    across="day",
                    by=("source",),
                    where="day <= 30",
                    width=6,
                ),
            ),
        ),
        "Funnel and segments": (
            (
                Chart(
                    "Funnel to the first purchase",
                    "table",
                    FUNNEL,
                    ("reached", "share", "drop_off"),
                    by=("step", "step_name"),
                    days=WEEK,
                    order_by="step",
                    width=6,
                ),
                Chart("Segments of players", "table", SEGMENTS, ("members",), by=("segment",), days="", width=6),
            ),
        ),
        "Versions and economy": (
            (
                Chart(
                    "Crash-free by version",
                    "table",
                    STABILITY,
                    ("version_sessions", "crashes", "crash_free_sessions", "crash_free_players"),
                    by=("app_version",),
                    width=6,
                ),
                Chart("Economy", "table", ECONOMY, ("gained", "spent", "net"), by=("item", "reason"), width=6),
            ),
        ),
    },
    {"Game": (KPI_DAILY, "game_name")},
    first_value=True,
)

LIVE_OPERATIONS = SupersetDashboard(
    "live-operations",
    "Live operations",
    "Now and in the last week: signals, concurrent players, events and load times.",
    {
        "": (
            (
                Chart("Signals of the last week", "number", SIGNALS, ("signals",), days=WEEK, width=3),
                Chart(
                    "Signals",
                    "table",
                    SIGNALS,
                    columns=("noticed_at", "game", "kind", "phase", "app_version", "observed", "expected"),
                    days=WEEK,
                    order_by="noticed_at",
                    width=9,
                ),
            ),
            (
                Chart(
                    "Concurrent players",
                    "line",
                    CONCURRENT,
                    ("concurrent",),
                    across="minute",
                    by=GAME,
                    days=YESTERDAY_ON,
                    width=6,
                ),
                Chart(
                    "Events by hour",
                    "bar",
                    HOURLY,
                    ("events",),
                    across="hour",
                    by=GAME,
                    days=YESTERDAY_ON,
                    width=6,
                ),
            ),
            (
                Chart(
                    "Events and errors by minute",
                    "line",
                    MINUTES,
                    ("minute_events", "errors"),
                    across="minute",
                    days=YESTERDAY_ON,
                    width=6,
                ),
                Chart(
                    "Load times",
                    "table",
                    LOADS,
                    ("loads", "p50", "p90", "p99"),
                    by=("game_name", "event_name"),
                    days=WEEK,
                    width=6,
                ),
            ),
        )
    },
)

EXPERIMENTS = SupersetDashboard(
    "experiments",
    "Experiments",
    "Verdicts with their intervals, differences by day, and exposures.",
    {
        "": (
            (
                Chart("Players exposed this month", "number", EXPOSURES, ("exposed",), width=3),
                Chart(
                    "Verdicts of the newest day",
                    "table",
                    RESULTS,
                    (
                        "newest_verdict",
                        "newest_players",
                        "newest_lift",
                        "difference",
                        "low",
                        "high",
                        "newest_p_value",
                    ),
                    by=("experiment", "metric", "variant", "role"),
                    width=9,
                ),
            ),
            (
                Chart(
                    "Difference and interval per day",
                    "line",
                    RESULTS,
                    ("low", "difference", "high"),
                    by=("metric", "variant"),
                    width=6,
                ),
                Chart("Exposures per day", "bar", EXPOSURES, ("exposed",), by=("experiment", "variant"), width=6),
            ),
        )
    },
    {"Experiment": (RESULTS, "experiment")},
)

PAGES = (PORTFOLIO, ONE_GAME, LIVE_OPERATIONS, EXPERIMENTS)

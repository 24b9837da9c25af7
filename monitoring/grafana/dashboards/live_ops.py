"""Live operations, for game teams: active signals, each game against its baseline, and published player states."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import DURATION, MOST_SERIES, Column, Link, Query, Stat, Table, Thresholds, TimeSeries
from monitoring.grafana.promql import age, top

_QUERY = 'query="live_ops"'


def _active(kind: str) -> str:
    return f'sum(max by (game) (gamelake_live_ops_signal_active{{kind="{kind}", game=~"$game"}}))'


def _observed(measure: str) -> str:
    return f'max by (game) (gamelake_live_ops_observed_ratio{{measure="{measure}", game=~"$game"}})'


def _signals(title: str, kind: str, description: str) -> Stat:
    return Stat(
        title=title,
        description=description,
        unit=units.NoUnit,
        queries=(Query(_active(kind), "games"),),
        thresholds=Thresholds(1, 3),
    )


_SIGNALS = Row(
    "Which signals are active?",
    (
        _signals("Silent", "silent", "Games from which nothing comes: see the runbook LiveOpsGameSilent."),
        _signals("Events drop", "events_fall", "Games with far too few events: see the runbook LiveOpsEventsDrop."),
        _signals(
            "Bookings drop", "bookings_fall", "Games with far too few purchases: see the runbook LiveOpsBookingsDrop."
        ),
        _signals(
            "Error surge", "errors_rise", "Games with a new version that fails: see the runbook LiveOpsErrorSurge."
        ),
        Stat(
            title="Age of the evaluation",
            description="Age of the newest evaluated minute, in event time; one to three minutes are normal.",
            unit=DURATION,
            queries=(Query(age("max(gamelake_live_ops_evaluated_timestamp_seconds)"), "ago"),),
            thresholds=Thresholds(240, 420),
        ),
        Stat(
            title="Late events",
            description="Events of the last hour that arrived after their minute was evaluated.",
            unit=units.Short,
            queries=(Query("sum(increase(gamelake_live_ops_late_events_total[1h]))", "late"),),
        ),
    ),
)

_GAMES = Row(
    "How does each game compare with its baseline?",
    (
        Table(
            title="Games",
            description="Each game's last five evaluated minutes, divided by its baseline for this time of the week.",
            label="game",
            columns=(
                Column("Events", units.PercentUnit, _observed("events")),
                Column("Purchases", units.PercentUnit, _observed("purchases")),
                Column("Bookings", units.PercentUnit, _observed("bookings")),
            ),
            sort="Events",
            smallest_first=True,
            links=(
                Link("Only this game", "gamelake-live-ops", "game"),
                Link("Its lag", "gamelake-lag", "game"),
                Link("Its table", "gamelake-tables", "table", "silver/{}_events"),
            ),
            height=20,
        ),
        TimeSeries(
            title="Events / baseline",
            description=(
                "The ten games furthest below their baseline, the game's usual value for this time of the week: 100 %."
            ),
            unit=units.PercentUnit,
            queries=(Query(top(MOST_SERIES, "game", _observed("events"), least=True), "{{game}}"),),
            empty="no baseline yet",
        ),
        TimeSeries(
            title="Purchases / baseline",
            description=(
                "The ten games furthest below. Small games have few purchases in five minutes, so their ratio varies "
                "without a signal."
            ),
            unit=units.PercentUnit,
            queries=(Query(top(MOST_SERIES, "game", _observed("purchases"), least=True), "{{game}}"),),
            empty="no baseline yet",
        ),
    ),
)

_STATES = Row(
    "Are player states published?",
    (
        TimeSeries(
            title="Behind",
            description=(
                "Age of the oldest event that is in no player state. From 30 s on: see the runbook LiveOpsBehind."
            ),
            unit=DURATION,
            queries=(Query(f"max(gamelake_stream_seconds_behind{{{_QUERY}}})", "behind"),),
            thresholds=Thresholds(15, 30),
        ),
        TimeSeries(
            title="States published",
            description="Player states per second that were sent to the topic live-ops.player-state.",
            unit=units.Short,
            queries=(Query("sum(rate(gamelake_live_ops_states_total[1m]))", "states"),),
        ),
    ),
)

LIVE_OPS = Page(
    uid="gamelake-live-ops",
    title="Live operations",
    description="Active signals, each game against its baseline, and the feed of player states.",
    rows=(_SIGNALS, _GAMES, _STATES),
    variables=(Variable.QUERY, Variable.GAME),
)

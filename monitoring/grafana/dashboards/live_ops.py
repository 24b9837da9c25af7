"""Live operations, for who runs the games: which signals last, how each game does, and whether states go out."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import Ask, Column, Course, Figure, Limits, rows

_QUERY = 'query="live_ops"'


def _lasts(kind: str) -> str:
    return f'sum(max by (game) (gamelake_live_ops_signal_active{{kind="{kind}", game=~"$game"}}))'


def _observed(measure: str) -> str:
    return f'max by (game) (gamelake_live_ops_observed_ratio{{measure="{measure}", game=~"$game"}})'


def _signals(title: str, kind: str, description: str) -> Figure:
    return Figure(
        title=title, description=description, unit=units.NoUnit, asks=(Ask(_lasts(kind), "games"),), limits=Limits(1, 3)
    )


_SIGNALS = Row(
    "Which signals last?",
    (
        _signals("Silent", "silent", "Games from which nothing comes: see the runbook LiveOpsGameSilent."),
        _signals("Events fall", "events_fall", "Games with far too few events: see the runbook LiveOpsEventsDrop."),
        _signals(
            "Bookings fall", "bookings_fall", "Games with far too few purchases: see the runbook LiveOpsBookingsDrop."
        ),
        _signals(
            "Errors rise", "errors_rise", "Games with a new version that fails: see the runbook LiveOpsErrorSurge."
        ),
        Figure(
            title="Judged",
            description="How old the newest judged minute is, by the events' clocks; one to three minutes are usual.",
            unit=units.Seconds,
            asks=(Ask("time() - max(gamelake_live_ops_evaluated_timestamp_seconds)", "ago"),),
            limits=Limits(240, 420),
        ),
        Figure(
            title="Late events",
            description="Events of the last hour that came after their minute was judged.",
            unit=units.Short,
            asks=(Ask("sum(increase(gamelake_live_ops_late_events_total[1h]))", "late"),),
        ),
    ),
)

_GAMES = Row(
    "How does each game do?",
    (
        rows(
            "Games",
            "What each game had in the last five judged minutes, as a part of what it has at this time of the week.",
            "game",
            (
                Column("Events", units.PercentUnit, _observed("events")),
                Column("Purchases", units.PercentUnit, _observed("purchases")),
                Column("Bookings", units.PercentUnit, _observed("bookings")),
            ),
        ),
        Course(
            title="Events against what is expected",
            description="1 is what the game has at this time of the week.",
            unit=units.PercentUnit,
            asks=(Ask(_observed("events"), "{{game}}"),),
        ),
        Course(
            title="Purchases against what is expected",
            description="Small games have few purchases in five minutes: theirs jump about without any signal.",
            unit=units.PercentUnit,
            asks=(Ask(_observed("purchases"), "{{game}}"),),
        ),
    ),
)

_STATES = Row(
    "Do states of players go out?",
    (
        Course(
            title="Behind",
            description="Age of the oldest event that is in no player's state. From 30 s on: LiveOpsBehind.",
            unit=units.Seconds,
            asks=(Ask(f"max(gamelake_stream_seconds_behind{{{_QUERY}}})", "behind"),),
        ),
        Course(
            title="States published",
            description="States of players per second that went to the topic live-ops.player-state.",
            unit=units.Short,
            asks=(Ask("sum(rate(gamelake_live_ops_states_total[1m]))", "states"),),
        ),
    ),
)

LIVE_OPS = Page(
    uid="gamelake-live-ops",
    title="Live operations",
    description="Signals about games as they last, games against what is expected of them, and the feed for offers.",
    rows=(_SIGNALS, _GAMES, _STATES),
    variables=(Variable.QUERY, Variable.GAME),
)

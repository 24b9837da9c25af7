"""The answers to the questions about one game, and about records that became no row."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from tests.answers.figures import FIGURES, ago, by_number, grouped
from tests.answers.play import ONE_GAME, Event
from tests.answers.rounding import Rounded, cents, share

Rows = list[tuple[Any, ...]]

DEAD_LETTERS = [
    (ago(days), reason, detail, datetime.combine(ago(days), time(12, minute), UTC))
    for days, reason, detail, minute in (
        (1, "bad_framing", "short", 1),
        (1, "bad_framing", "shorter", 2),
        (1, "unroutable", "no table takes this game_name", 1),
        (2, "unroutable", "no table takes this game_name", 7),
        (20, "unroutable", "too long ago", 1),
    )
]

EXPERIMENT, EXPERIMENT_START = "kart_new_offer", ago(20)


def variant_of(event: Event) -> str | None:
    """Return the variant that an event exposes its player to."""
    if event.game_name != ONE_GAME or event.event_name != "session_start" or event.experiment_ids is None:
        return None
    return "offer_b" if "offer_b" in event.experiment_ids else "control"


def _exposures() -> list[tuple[str, Event]]:
    """Return the variant and the event of each exposure, in order of time."""
    events = sorted(FIGURES.one_game, key=lambda event: event.event_time)
    exposed = [(variant_of(event), event) for event in events if event.day >= EXPERIMENT_START]
    return [(variant, event) for variant, event in exposed if variant is not None]


def experiment_exposures() -> Rows:
    rows = []
    for variant, pairs in sorted(grouped(_exposures(), lambda pair: pair[0]).items()):
        days = [event.day for _, event in pairs]
        players = len({event.gamer_id for _, event in pairs})
        rows.append(("kart_rumble", EXPERIMENT, variant, players, min(days), max(days)))
    return rows


def experiment_results() -> Rows:
    first: dict[str, tuple[str, datetime]] = {}
    for variant, event in _exposures():
        first.setdefault(event.gamer_id, (variant, event.event_time))
    values: dict[str, dict[str, list[float]]] = {"bookings": {}, "sessions_begun": {}}
    for gamer, (variant, exposed) in first.items():
        later = [event for event in FIGURES.one_game if event.gamer_id == gamer and event.event_time > exposed]
        values["bookings"].setdefault(variant, []).append(sum(event.paid for event in later))
        begun = sum(event.event_name == "session_start" for event in later)
        values["sessions_begun"].setdefault(variant, []).append(begun)
    rows = []
    for metric, by_variant in values.items():
        control, offer = by_variant["control"], by_variant["offer_b"]
        role = "primary" if metric == "bookings" else "guardrail"
        means = (share(sum(each), len(each)) for each in (offer, control))
        numbers = (len(offer), len(control), *means)
        rows.append(("kart_rumble", EXPERIMENT, "offer_b", metric, role, "undecided", *numbers))
    return rows


def _players(events: list[Event], name: str) -> int:
    return len({event.gamer_id for event in events if event.event_name == name})


def one_game_level_funnel() -> Rows:
    names = ("level_started", "level_completed", "level_failed")
    levels = grouped(
        (event for event in FIGURES.one_game if event.day >= ago(30) and event.event_name in names),
        lambda e: e.level or 0,
    )
    rows = []
    for level, events in levels.items():
        if level <= 30:
            started, completed = (_players(events, name) for name in names[:2])
            failures = sum(event.event_name == names[2] for event in events)
            rows.append((level, started, completed, failures, share(completed, started)))
    return rows


def one_game_products() -> Rows:
    recent = [event for event in FIGURES.one_game if event.day >= ago(30) and event.event_name == "purchase"]
    sold = [event for event in recent if event.product_id is not None]
    rows: Rows = []
    for product, events in grouped(sold, lambda event: event.product_id or "").items():
        payers, paid = len({event.gamer_id for event in events}), sum(event.paid for event in events)
        pieces = sum(event.quantity or 0 for event in events)
        rows.append((product, len(events), pieces, payers, cents(paid), share(len(events), len(sold))))
    return sorted(rows, key=lambda row: (-row[4].value, row[0]))


def one_game_offer_test() -> Rows:
    recent = (event for event in FIGURES.one_game if event.day >= ago(30) and event.event_name != "smoke_test")
    groups: dict[str, list[float]] = {"control": [], "offer_b": []}
    for events in grouped(recent, lambda event: event.gamer_id).values():
        enrolled = any("offer_b" in (event.experiment_ids or ()) for event in events)
        groups["offer_b" if enrolled else "control"].append(sum(event.paid for event in events))
    rows = []
    for name, paid in groups.items():
        payers = sum(amount > 0 for amount in paid)
        rows.append((name, len(paid), payers, share(payers, len(paid)), share(sum(paid), len(paid))))
    return rows


def one_game_errors() -> Rows:
    recent = (event for event in FIGURES.one_game if event.day >= ago(14) and event.app_version)
    rows = []
    for version, events in sorted(grouped(recent, lambda event: event.app_version or "").items(), key=by_number):
        errors = [event for event in events if event.event_name == "error"]
        fatal = sum(bool(event.fatal) for event in errors)
        rows.append((version, len(events), len(errors), fatal, Rounded(1000 * len(errors) / len(events), 2)))
    return rows


def one_game_day() -> Rows:
    played = (event for event in FIGURES.one_game if event.event_name != "smoke_test")
    recent = (event for event in played if event.day >= ago(14) and event.platform)
    rows = []
    for key, events in grouped(recent, lambda event: (event.day, event.platform or "")).items():
        by_version = grouped(events, lambda event: event.app_version or "").values()
        players = sum(len({event.gamer_id for event in part}) for part in by_version)
        sessions = sum(
            len({(each.gamer_id, each.session_id) for each in part if each.session_id}) for part in by_version
        )
        bought = [[each for each in part if each.amount is not None] for part in by_version]
        payers = sum(_players(part, "purchase") for part in bought)
        paid = sum(event.paid for event in events)
        rows.append((*key, players, sessions, payers, cents(paid), share(paid, players)))
    return rows


def one_game_best_players() -> Rows:
    players = [player for player in FIGURES.players if player.game == ONE_GAME and player.paid > 0]
    players.sort(key=lambda player: (-round(player.paid, 6), player.gamer))
    return [
        (each.gamer, cents(each.paid), each.sessions, len(each.events), (each.last - each.first).days)
        for each in players[:20]
    ]


def one_game_device_clocks() -> Rows:
    stamped = [event for event in FIGURES.one_game if event.day >= ago(7) and event.client_event_time is not None]
    rows = []
    for platform, events in grouped(stamped, lambda event: event.platform or "").items():
        off = [
            (event.device_id, abs(event.event_time - event.client_event_time) // timedelta(seconds=1))
            for event in events
            if event.client_event_time is not None
        ]
        far = {device for device, seconds in off if seconds > 60}
        rows.append((platform, len({device for device, _ in off}), len(far), max(seconds for _, seconds in off)))
    return rows


def dead_letters_by_reason() -> Rows:
    recent = (letter for letter in DEAD_LETTERS if letter[0] >= ago(14))
    rows = []
    for key, letters in grouped(recent, lambda letter: letter[:2]).items():
        latest = max(letters, key=lambda letter: letter[3])
        rows.append((*key, len(letters), latest[2], latest[3]))
    return sorted(rows, key=lambda row: (row[0], -row[2], row[1]))


OF_ONE_GAME: Mapping[str, Callable[[], Rows]] = {
    answer.__name__: answer
    for answer in (
        dead_letters_by_reason, experiment_exposures, experiment_results, one_game_best_players, one_game_day,
        one_game_device_clocks, one_game_errors,
        one_game_level_funnel, one_game_offer_test, one_game_products,
    )
}  # fmt: skip

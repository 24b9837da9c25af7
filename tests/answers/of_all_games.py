"""The answers to the questions about all games."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from tests.answers.figures import FIGURES, Player, Sitting, ago, by_number, grouped
from tests.answers.play import TODAY
from tests.answers.rounding import Rounded, cents, share

Rows = list[tuple[Any, ...]]


def daily_active_players() -> Rows:
    days = grouped((day for day in FIGURES.player_days if day.day >= ago(30)), lambda day: (day.day, day.game))
    return [(*key, len(group), sum(len(day.events) for day in group)) for key, group in days.items()]


def newest_first(hours: Mapping[tuple[Any, ...], Sequence[Any]]) -> list[tuple[tuple[Any, ...], Sequence[Any]]]:
    """The newest hour first, and the games of an hour in order."""
    return sorted(hours.items(), key=lambda each: (-each[0][0].timestamp(), each[0][1]))


def events_per_hour() -> Rows:
    recent = (event for event in FIGURES.events if event.day >= ago(3))
    hours = grouped(
        recent, lambda event: (event.event_time.replace(minute=0, second=0, microsecond=0), event.game_name)
    )
    return [(*key, len(group)) for key, group in newest_first(hours)]


def bookings_per_hour() -> Rows:
    recent = (event for event in FIGURES.purchases if event.day >= ago(3))
    hours = grouped(
        recent, lambda event: (event.event_time.replace(minute=0, second=0, microsecond=0), event.game_name)
    )
    return [
        (*key, len(group), len({event.gamer_id for event in group}), cents(sum(event.paid for event in group)))
        for key, group in newest_first(hours)
    ]


def bookings_by_platform() -> Rows:
    recent = (event for event in FIGURES.purchases if event.day >= ago(30))
    days = grouped(recent, lambda event: (event.day, event.platform or ""))
    return [
        (*key, cents(sum(event.paid for event in group)), len({event.gamer_id for event in group}))
        for key, group in days.items()
    ]


def paying_players() -> Rows:
    rows = []
    for game, players in grouped(FIGURES.players, lambda player: player.game).items():
        payers, paid = sum(player.paid > 0 for player in players), sum(player.paid for player in players)
        rows.append((game, len(players), payers, share(payers, len(players)), cents(paid / payers)))
    return rows


def returning_players() -> Rows:
    played = {(day.day, day.game, day.gamer) for day in FIGURES.player_days}
    recent = (each for each in sorted(played) if ago(7) <= each[0] < TODAY)
    rows = []
    for (day, game), group in grouped(recent, lambda each: each[:2]).items():
        back = sum((day + timedelta(days=1), game, gamer) in played for _, _, gamer in group)
        rows.append((day, game, len(group), back, share(back, len(group)), day >= ago(1)))
    return rows


def retention() -> Rows:
    played = {(day.day, day.game, day.gamer) for day in FIGURES.player_days}
    newcomers = (player for player in FIGURES.players if player.first >= ago(45))

    def of(cohort: list[Player], first: date, days: int) -> Rounded | None:
        back = sum((first + timedelta(days=days), player.game, player.gamer) in played for player in cohort)
        return share(back, len(cohort)) if first < ago(days) else None

    return [
        (first, game, len(cohort), *(of(cohort, first, days) for days in (1, 7, 30)), first >= TODAY)
        for (first, game), cohort in grouped(newcomers, lambda player: (player.first, player.game)).items()
    ]


def recent_cohorts(game: str, day: int) -> list[Player]:
    """The new players of the last 90 days whose day `day` is over."""
    return [player for player in FIGURES.players if player.game == game and ago(90) <= player.first < ago(day)]


def retention_curve() -> Rows:
    played = {(day.day, day.game, day.gamer) for day in FIGURES.player_days}
    rows: Rows = []
    for game in grouped(FIGURES.players, lambda player: player.game):
        for day in range(91):
            players = recent_cohorts(game, day)
            back = sum((player.first + timedelta(days=day), game, player.gamer) in played for player in players)
            if players:
                rows.append((game, day, len(players), back, share(back, len(players))))
    return rows


def lifetime_value() -> Rows:
    rows: Rows = []
    for game in grouped(FIGURES.players, lambda player: player.game):
        for day in range(91):
            players = recent_cohorts(game, day)
            bought = [
                [each for each in player.events if each.is_purchase and (each.day - player.first).days <= day]
                for player in players
            ]
            paid, payers = sum(each.paid for of_player in bought for each in of_player), sum(map(bool, bought))
            if players:
                value = Rounded(paid / len(players), 4)
                rows.append((game, day, len(players), cents(paid), value, payers, share(payers, len(players))))
    return rows


def stickiness() -> Rows:
    month = (day for day in FIGURES.player_days if day.day > ago(30))
    rows: Rows = []
    for game, days in grouped(month, lambda day: day.game).items():
        players = len({day.gamer for day in days})
        rows.append((game, cents(len(days) / 30), players, share(len(days) / 30, players)))
    return sorted(rows, key=lambda row: (-row[3].value, row[0]))


def bookings_per_player() -> Rows:
    recent = (day for day in FIGURES.player_days if day.day >= ago(14))
    rows = []
    for key, days in grouped(recent, lambda day: (day.day, day.game)).items():
        payers, paid = sum(day.purchases > 0 for day in days), sum(day.paid for day in days)
        rows.append(
            (*key, len(days), payers, cents(paid), share(paid, len(days)), cents(paid / payers) if payers else None)
        )
    return rows


def new_players() -> Rows:
    recent = (day for day in FIGURES.player_days if day.day >= ago(14))
    first = {(player.game, player.gamer): player.first for player in FIGURES.players}
    rows = []
    for key, days in grouped(recent, lambda day: (day.day, day.game)).items():
        new = sum(first[day.game, day.gamer] == day.day for day in days)
        rows.append((*key, len(days), new, share(new, len(days))))
    return rows


def conversion() -> Rows:
    def monday(day: date) -> date:
        return day - timedelta(days=day.weekday())

    paid = grouped(
        (day for day in FIGURES.player_days if day.day >= ago(45) and day.purchases), lambda day: (day.game, day.gamer)
    )
    first_paid = {key: min(day.day for day in days) for key, days in paid.items()}
    newcomers = (player for player in FIGURES.players if monday(player.first) >= ago(45))
    rows = []
    for key, group in grouped(newcomers, lambda player: (monday(player.first), player.game)).items():
        waits = [
            (first_paid[player.game, player.gamer] - player.first).days
            for player in group
            if (player.game, player.gamer) in first_paid
        ]
        at_once, in_a_week = waits.count(0), sum(wait < 7 for wait in waits)
        rows.append((*key, len(group), at_once, in_a_week, len(waits), share(len(waits), len(group))))
    return rows


def session_funnel() -> Rows:
    rows = []
    for game, group in grouped(_recent_sessions(), lambda sitting: sitting.game).items():
        completed = [sitting for sitting in group if sitting.has("level_completed")]
        bought = sum(any(event.is_purchase for event in sitting.events) for sitting in completed)
        played_on = sum(len(sitting.events) > 2 for sitting in group)
        shares = share(len(completed), len(group)), share(bought, len(group))
        rows.append((game, len(group), played_on, len(completed), bought, *shares))
    return rows


def _recent_sittings(days: int) -> list[Sitting]:
    return [sitting for sitting in FIGURES.sittings if sitting.day >= ago(days)]


def _recent_sessions() -> list[Sitting]:
    return [session for session in FIGURES.sessions if session.day >= ago(7)]


def sessions() -> Rows:
    days = grouped(_recent_sittings(14), lambda sitting: (sitting.day, sitting.game))
    return [
        (
            *key,
            len(group),
            cents(sum(sitting.minutes for sitting in group) / len(group)),
            cents(sum(len(sitting.events) for sitting in group) / len(group)),
        )
        for key, group in days.items()
    ]


def session_lengths() -> Rows:
    classes = {0: "0 to 1 minute", 1: "1 to 5 minutes", 5: "5 to 15 minutes", 15: "15 to 30 minutes"}

    def least(sitting: Sitting) -> int:
        return max(bound for bound in (*classes, 30) if sitting.minutes >= bound)

    rows = []
    for platform, group in grouped(_recent_sessions(), lambda sitting: sitting.platform).items():
        for bound, part in grouped(group, least).items():
            text = classes.get(bound, "30 minutes or more")
            rows.append((platform, bound, text, len(part), share(len(part), len(group))))
    return rows


def whales() -> Rows:
    rows = []
    for game, players in grouped(FIGURES.players, lambda player: player.game).items():
        paid = sorted((player.paid for player in players if player.paid > 0), reverse=True)
        count = -(-len(paid) // 10)
        most, total = sum(paid[:count]), sum(paid)
        rows.append((game, len(paid), count, cents(total), cents(most), share(most, total)))
    return rows


def version_adoption() -> Rows:
    rows = []
    for key, sittings in grouped(_recent_sittings(14), lambda sitting: (sitting.day, sitting.game)).items():
        by_version = dict(sorted(grouped(sittings, lambda sitting: sitting.version).items(), key=by_number))
        rows += [(*key, version, len(part), share(len(part), len(sittings))) for version, part in by_version.items()]
    return rows


def offers() -> Rows:
    def offer(player: Player) -> str:
        if player.paid > 0 and player.last < ago(7):
            return "come back: half price"
        if player.paid > 0:
            return "large bundle" if player.paid >= 20 else "season pass"
        return "starter pack" if player.sessions >= 3 else "none yet"

    recent = (player for player in FIGURES.players if player.last >= ago(30))
    groups = grouped(recent, lambda player: (player.game, offer(player)))
    return [(*key, len(group), cents(sum(player.paid for player in group))) for key, group in groups.items()]


def offers_to_players() -> Rows:
    away = [player for player in FIGURES.players if player.paid > 0 and ago(30) <= player.last < ago(7)]
    away.sort(key=lambda player: (-round(player.paid, 6), player.game, player.gamer))
    return [
        (player.game, player.gamer, cents(player.paid), player.sessions, (TODAY - player.last).days)
        for player in away[:100]
    ]


def lapsed_players() -> Rows:
    rows = []
    for game, players in grouped(FIGURES.players, lambda player: player.game).items():
        day, week = (sum(player.last >= ago(days) for player in players) for days in (1, 7))
        lapsed = sum(player.last < ago(14) for player in players)
        rows.append((game, len(players), day, week, lapsed, share(lapsed, len(players))))
    return rows


def week_over_week() -> Rows:
    rows = []
    for game, days in grouped(FIGURES.player_days, lambda day: day.game).items():
        week = [day for day in days if ago(7) <= day.day < TODAY]
        before = [day for day in days if ago(14) <= day.day < ago(7)]
        paid, paid_before = (sum(day.paid for day in part) for part in (week, before))
        change = share(len(week) - len(before), len(before))
        rows.append(
            (
                game,
                len(week),
                len(before),
                change,
                cents(paid),
                cents(paid_before),
                share(paid - paid_before, paid_before),
            )
        )
    return rows


def busiest_hours() -> Rows:
    week = [session for session in _recent_sessions() if session.day < TODAY]
    rows = []
    for platform, group in grouped(week, lambda sitting: sitting.platform).items():
        hours = grouped(group, lambda sitting: sitting.began.hour)
        rows += [(platform, hour, len(part), share(len(part), len(group))) for hour, part in hours.items()]
    return rows


def late_events() -> Rows:
    stamped = [
        (event.day, event.game_name, event.ingest_time - event.event_time)
        for event in FIGURES.events
        if event.ingest_time is not None and event.day >= ago(7)
    ]
    rows = []
    for key, group in grouped(stamped, lambda each: each[:2]).items():
        waits = [wait for _, _, wait in group]
        late = sum(wait > timedelta(hours=1) for wait in waits)
        rows.append((*key, len(group), late, max(waits) // timedelta(minutes=1)))
    return rows


OF_ALL_GAMES: Mapping[str, Callable[[], Rows]] = {
    answer.__name__: answer
    for answer in (
        bookings_by_platform, bookings_per_hour, bookings_per_player, busiest_hours, conversion, daily_active_players,
        events_per_hour, lapsed_players, late_events, lifetime_value, new_players, offers, offers_to_players,
        paying_players, retention, retention_curve, returning_players, session_funnel, session_lengths, sessions,
        stickiness, version_adoption, week_over_week, whales,
    )
}  # fmt: skip

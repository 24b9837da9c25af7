"""A lakehouse whose segments are kept up as gold's job does, and the segments that silver says, player by player."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from pyroaring import BitMap

from gamelake.contract.games import GameSpec
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.players.contract import SegmentSpec
from gamelake.serving.players.refresh import SegmentRefresh, SegmentsRefreshed
from tests.unit.serving.kpis.kpi_lake import GOLD, KpiLake

# Each condition, and the same in Python over a player of `played`.
CONDITIONS: Mapping[str, tuple[str, Any]] = {
    "newcomers": ("days_since_first_seen < 2", lambda p: p["first"] < 2),
    "away": ("days_since_last_seen BETWEEN 2 AND 10", lambda p: 2 <= p["last"] <= 10),
    "lapsed": ("payer_state = 'lapsed'", lambda p: p["bought"] is not None and p["bought"] >= 30),
    "first_time": ("payer_state = 'first_time'", lambda p: p["purchases"] == 1 and p["bought"] < 30),
    "spenders": ("bookings_30d >= 5 AND purchases_30d > 0", lambda p: p["bookings_30d"] >= 5),
    "busy": ("events_7d + sessions_7d > 2", lambda p: p["events_7d"] + p["sessions_7d"] > 2),
    "many": ("events > 3 OR bookings > 5", lambda p: p["events"] > 3 or p["bookings"] > 5),
    "french": ("country = 'FR' OR country IS NULL", lambda p: p["country"] in {"FR", None}),
    "on_ios": ("platform = 'ios'", lambda p: p["platform"] == "ios"),
    "updated": ("app_version <> first_version", lambda p: p["version"] != p["first_version"]),
}
SEGMENTS = tuple(
    SegmentSpec(name=name, description="a test", where=where) for name, (where, _) in sorted(CONDITIONS.items())
)
GAMES = msgspec.structs.replace(
    GOLD, games=(GameSpec(name="archery", match=("Archery",)), GameSpec(name="bingos", match=("Bingo's",)))
)
Player = tuple[str, str]


@dataclass
class Topic:
    """What a consumer of the topic knows: the newest segments of each player."""

    values: dict[Player, list[str]] = field(default_factory=dict)
    sent: list[tuple[Player, list[str] | None]] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)

    def publish(self, title: str, gamer_ids: pa.Array, segments: pa.Array) -> None:
        for gamer, names in zip(gamer_ids.to_pylist(), segments.to_pylist(), strict=True):
            self.values[(title, gamer)] = names
            self.sent.append(((title, gamer), names))

    def forget(self, title: str, gamer_ids: pa.Array) -> None:
        for gamer in gamer_ids.to_pylist():
            self.values.pop((title, gamer), None)
            self.sent.append(((title, gamer), None))

    def follow_erasures(self) -> None:
        self.values = {player: names for player, names in self.values.items() if player[1] not in self.erased}
        self.erased.clear()


@dataclass
class PlayerLake(KpiLake):
    """A lakehouse with KPIs and segments."""

    segments: Sequence[SegmentSpec] = SEGMENTS
    topic: Topic = field(default_factory=Topic)
    job: SegmentRefresh = field(init=False)

    def begin_again(self) -> None:
        super().begin_again()
        self.job = SegmentRefresh(self.silver.store, GAMES, self.refresh, self.topic)
        self.job.states.rebuild_seconds = 0
        self.job.use(self.segments, ())

    def run_segments(self) -> SegmentsRefreshed:
        """Bring gold, the KPIs, then the segments up to date."""
        assert self.run().failed == ()
        return self.job()

    def erase(self, gamer: str, tables: Collection[str] = ()) -> None:
        """Erase a player as the job does, which records the erasure for the topic's consumers."""
        super().erase(gamer, tables)
        self.topic.erased.add(gamer)

    def members(self) -> dict[tuple[str, str], set[str]]:
        """The members of each segment, by game and segment."""
        players = DeltaTable(self.silver.folder / "gold/kpi_players").to_pyarrow_table().to_pylist()
        names = {(row["game_name"], row["number"]): row["gamer_id"] for row in players}
        path = self.silver.folder / "gold/segments"
        rows = DeltaTable(path).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(str(path)) else []
        found = {}
        for row in rows:
            members = BitMap.deserialize(row["members"])
            assert len(members) == row["players"]
            found[(row["game_name"], row["segment"])] = {names[(row["game_name"], each)] for each in members}
        return found

    def expected(self) -> dict[tuple[str, str], set[str]]:  # type: ignore[override] # other tables than the KPIs'
        """The members of each segment, from all events of silver."""
        players = played(self.silver.table(SILVER_EVENTS).to_pylist(), self.zones, self)
        return {
            (game, segment.name): {
                gamer for (title, gamer), p in players.items() if title == game and CONDITIONS[segment.name][1](p)
            }
            for game in {title for title, _ in players}
            for segment in self.segments
        }

    def check(self) -> None:
        """Compare the sets and the topic with silver."""
        expected, found = self.expected(), self.members()
        assert {key: each for key, each in found.items() if each} == {key: e for key, e in expected.items() if e}
        players = {(game, gamer) for game, _ in expected for gamer in set().union(*(expected.values()))}
        for player in players:
            names = sorted(segment for (game, segment), e in expected.items() if game == player[0] and player[1] in e)
            assert self.topic.values.get(player, []) == names, player
        present = played(self._events(), self.zones, self)
        # A player of no segment who is gone keeps an empty value; an erasure's tombstone does not depend on segments.
        # New numbers are of no use for players who are gone.
        notes = (each.get("gamelake.kpis") for each in DeltaTable(self.silver.folder / "gold/kpi_players").history())
        if len({each for each in notes if each}) == 1:
            assert not any(names for player, names in self.topic.values.items() if player not in present)

    def _events(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.silver.table(SILVER_EVENTS).to_pylist()
        return events


def played(events: Sequence[Mapping[str, Any]], zones: Mapping[str, str], lake: KpiLake) -> dict[Player, Any]:
    """Each player, event by event."""
    days: defaultdict[Player, defaultdict[date, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        zone = ZoneInfo(zones.get(event["game_name"], "UTC"))
        if event["gamer_id"] is not None:
            day = event["event_time"].astimezone(zone).date()
            days[(event["game_name"], event["gamer_id"])][day].append(event)
    found = {}
    for (game, gamer), of_player in days.items():
        # Days with nothing but the platform's own tests don't count.
        kept = {day: es for day, es in sorted(of_player.items()) if any(e["event_name"] != "smoke_test" for e in es)}
        if kept:
            today = lake.now().astimezone(ZoneInfo(zones.get(game, "UTC"))).date()
            found[(game, gamer)] = _player(kept, today)
    return found


def _player(days: Mapping[date, Sequence[Mapping[str, Any]]], today: date) -> dict[str, Any]:
    def ago(day: date) -> int:
        return max((today - day).days, 0)

    def count(condition: Callable[[Mapping[str, Any]], object], window: int = 10**6) -> int:
        return sum(bool(condition(e)) for day, es in days.items() if (today - day).days < window for e in es)

    def bookings(window: int = 10**6) -> Decimal:
        found = [e for day, es in days.items() if (today - day).days < window for e in es if _is_purchase(e)]
        return sum((Decimal(str(e["amount"])) for e in found), Decimal(0))

    def values(name: str) -> list[str]:
        of_days = [[e[name] for e in es if e[name] is not None] for es in days.values()]
        return [max(each) for each in of_days if each]

    bought = [day for day, es in days.items() if any(map(_is_purchase, es))]
    return {
        "first": ago(min(days)),
        "last": ago(max(days)),
        "bought": ago(max(bought)) if bought else None,
        "purchases": count(_is_purchase),
        "bookings": bookings(),
        "bookings_30d": bookings(30),
        "events": count(_is_game_event),
        "events_7d": count(_is_game_event, 7),
        "sessions_7d": count(lambda e: e["event_name"] == "session_start", 7),
        "country": next(iter(values("country")[::-1]), None),
        "platform": next(iter(values("platform")[::-1]), None),
        "version": next(iter(values("app_version")[::-1]), None),
        "first_version": next(iter(values("app_version")), None),
    }


def _is_game_event(event: Mapping[str, Any]) -> bool:
    return bool(event["event_name"] != "smoke_test")


def _is_purchase(event: Mapping[str, Any]) -> bool:
    return bool(event["event_name"] == "purchase" and event["amount"] is not None)

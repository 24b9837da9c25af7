"""What Prometheus is shown of each game's own gold tables: the current day's figures, of the tables that changed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from statistics import median

import msgspec
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.observability.game_figures import GameFiguresReporter
from gamelake.observability.metrics.serving.kpis import KpiTelemetry
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.runner import GoldTables, attempt
from tests.unit.properties import examples

TODAY = date(2026, 6, 20)
CONTRACT = load_gold(Path("contracts/games.yaml"))
OWN = msgspec.structs.replace(
    CONTRACT,
    aggregates=tuple(
        each for each in CONTRACT.aggregates if each.name in {"economy_daily", "version_stability", "load_times"}
    ),
)
SCHEMA = pa.schema(
    [
        ("event_time", pa.timestamp("us", "UTC")),
        ("event_name", pa.string()),
        ("game_name", pa.string()),
        ("gamer_id", pa.string()),
        ("session_id", pa.string()),
        ("platform", pa.string()),
        ("app_version", pa.string()),
        ("load_ms", pa.int64()),
        ("error", pa.struct([("fatal", pa.bool_())])),
        ("resource", pa.struct([("item", pa.string()), ("change", pa.int64()), ("reason", pa.string())])),
        ("event_date", pa.date32()),
    ]
)


class Shown:
    """A lakehouse with one game, and what is scraped of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.today = folder, TODAY
        self.registry = CollectorRegistry()
        self.store = Store(Location(uri=folder.as_uri()))
        titles = {each.name: each.game_name for each in CONTRACT.games}
        self.reporter = GameFiguresReporter(
            self.store, titles, KpiTelemetry(self.registry), lambda: datetime.combine(self.today, time(12), UTC)
        )

    def send(self, *events: Mapping[str, object], day: date = TODAY, game: str = "kart_rumble") -> None:
        titles = {each.name: each.game_name for each in CONTRACT.games}
        noon = datetime.combine(day, time(12), UTC)
        given = {"event_date": day, "event_time": noon, "game_name": titles[game]}
        rows = [{**given, "platform": "ios", "app_version": "1.0", **event} for event in events]
        table = pa.Table.from_pylist(rows, SCHEMA)
        write_deltalake(self.folder / game_table(game), table, mode="append", partition_by=["event_date"])

    def run(self) -> None:
        """Refresh gold once."""
        for refresh in GoldTables(self.store, OWN).now():
            self.reporter.table_refreshed(refresh, attempt(refresh))
        self.reporter.run_finished(0.1)

    def value(self, name: str, title: str = "Kart Rumble") -> float | None:
        return self.registry.get_sample_value(f"gamelake_kpi_{name}", {"title": title})


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


def gain(amount: int, item: str = "gems", reason: str = "shop") -> dict[str, object]:
    return {"resource": {"item": item, "change": amount, "reason": reason}}


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def test_a_source_that_gives_four_times_its_baseline_is_unusual_at_once(shown: Shown) -> None:
    for days in (3, 2, 1):
        shown.send(gain(100), gain(30, reason="ad"), day=ago(days))
    shown.send(gain(30), gain(30, reason="ad"))
    shown.run()
    assert shown.value("unusual_sources") == 0

    shown.send(gain(371))
    shown.run()

    assert shown.value("unusual_sources") == 1


def test_a_new_source_and_one_that_is_spent_are_not_unusual(shown: Shown) -> None:
    for days in (2, 1):
        shown.send(gain(1), gain(-1, "coins"), day=ago(days))
    shown.send(gain(1000), gain(-1000, "coins"))
    shown.run()

    assert shown.value("unusual_sources") == 0


def test_on_a_new_day_the_figures_of_yesterday_are_not_shown(shown: Shown) -> None:
    shown.send(gain(1) | {"load_ms": 5, "gamer_id": "ann", "session_id": "1"})
    shown.run()
    assert shown.value("load_seconds") == 0.005

    shown.today += timedelta(days=1)
    shown.run()

    assert [shown.value(name) for name in ("unusual_sources", "load_seconds", "crash_free_sessions_ratio")] == [
        None
    ] * 3


def test_crash_free_sessions_are_those_without_a_fatal_error(shown: Shown) -> None:
    sessions = [{"gamer_id": "ann", "session_id": str(number)} for number in range(8)]
    shown.send(*sessions, sessions[0] | {"error": {"fatal": True}}, sessions[1] | {"error": {"fatal": False}})
    shown.send(sessions[0] | {"error": {"fatal": True}}, sessions[5] | {"error": {"fatal": True}})
    shown.run()

    assert shown.value("crash_free_sessions_ratio") == 0.75


def test_the_load_time_is_that_of_the_version_with_the_most_loads(shown: Shown) -> None:
    shown.send(*({"load_ms": 1000 * number} for number in range(1, 11)), {"load_ms": 99_000, "app_version": "2.0"})
    shown.run()

    assert shown.value("load_seconds") == 9


def test_a_game_without_the_fields_has_no_series_and_stops_no_other(shown: Shown) -> None:
    shown.send(gain(1))
    rows = pa.table({"event_date": [TODAY], "event_name": ["level_started"]})
    write_deltalake(shown.folder / game_table("bingo_harbor"), rows, partition_by=["event_date"])
    shown.run()

    assert shown.value("unusual_sources") == 0
    assert shown.value("unusual_sources", "Bingo Harbor") is None


GAINS = st.lists(
    st.tuples(st.integers(0, 17), st.sampled_from(["gems", "coins"]), st.integers(-50, 400)), min_size=1, max_size=40
)


@examples(25)
@given(gains=GAINS)
def test_unusual_sources_are_those_of_a_count_by_hand(
    gains: Sequence[tuple[int, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown = Shown(tmp_path_factory.mktemp("lake"))
    for days, item, amount in gains:
        shown.send(gain(amount, item), day=ago(days))
    shown.run()

    by_day: dict[str, dict[int, int]] = {"gems": {}, "coins": {}}
    for days, item, amount in gains:
        by_day[item][days] = by_day[item].get(days, 0) + max(amount, 0)
    unusual = 0
    for of_days in by_day.values():
        before = [given for days, given in of_days.items() if 1 <= days <= 14 and given > 0]
        unusual += len(before) >= 3 and of_days.get(0, 0) > 3 * median(before)
    gave_today = any(of_days.get(0, 0) > 0 for of_days in by_day.values())
    assert shown.value("unusual_sources") == (unusual if gave_today else None)

"""What Prometheus is shown of the KPI tables: the newest day, and nothing old."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gamelake.observability.kpis import KpiReporter
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.kpis import KpiTelemetry
from gamelake.observability.metrics.stream import StreamProgress
from gamelake.serving.kpis import definitions as kpi
from gamelake.serving.kpis.aggregation import aggregate
from gamelake.serving.kpis.day_tables import DayTable
from gamelake.serving.kpis.definitions import ExactUpTo
from gamelake.storage.store import Location, Store
from tests.silver_events import BEGINNING, Event
from tests.unit.serving.kpis.kpi_facts import facts_of

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


class Shown:
    """A lakehouse with KPI tables, and what is scraped of them."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(Location(uri=f"file://{folder}"))
        self.tables = {table.name: DayTable(self._store, table, "first", ()) for table in kpi.ALL}
        self._batch = 0
        self.start()

    def start(self) -> None:
        """Begin as a new driver does."""
        self.registry = CollectorRegistry()
        self.telemetry = KpiTelemetry("kpis", self.registry, Heartbeat(None))
        for table in self.tables.values():
            table.open()
        self.reported = KpiReporter(self.telemetry, self.tables)

    def bring(self, events: Sequence[Event]) -> None:
        self.reported.updated(aggregate(self.tables, ExactUpTo(), facts_of(events), self._batch), 0.5)
        self._batch += 1

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"title": "Archery", **labels})


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


def test_the_newest_day_and_hour_of_each_game_are_shown(shown: Shown) -> None:
    yesterday = [Event(at=BEGINNING, gamer=f"g{n}", session=f"s{n}") for n in range(4)]
    today = [
        Event(at=BEGINNING + DAY, gamer="g0", session="t0"),
        Event(at=BEGINNING + DAY + HOUR, gamer="g1", session="t1", name="purchase", amount=4.99),
    ]

    shown.bring([*yesterday, *today])

    assert shown.value("gamelake_kpi_day_events") == 2
    assert shown.value("gamelake_kpi_hour_events") == 1
    assert shown.value("gamelake_kpi_hour_bookings") == 4.99
    assert shown.value("gamelake_kpi_active_players", window="1d") == 2
    assert shown.value("gamelake_kpi_active_players", window="7d") == 4
    assert shown.value("gamelake_kpi_conversion_ratio") == 0.5
    assert shown.value("gamelake_kpi_retention_ratio", after="1d") == 0.5
    assert shown.registry.get_sample_value("gamelake_kpi_newest_hour_timestamp_seconds") == (
        (BEGINNING + DAY + HOUR).timestamp()
    )


def test_late_events_of_an_older_day_do_not_take_the_newest_ones_place(shown: Shown) -> None:
    shown.bring([Event(at=BEGINNING + DAY)])

    shown.bring([Event(at=BEGINNING), Event(at=BEGINNING)])

    assert shown.value("gamelake_kpi_day_events") == 1


def test_events_that_are_late_are_counted_as_they_come(shown: Shown) -> None:
    facts = facts_of([Event(at=BEGINNING), Event(at=BEGINNING + HOUR)])
    dropped = facts.filter([row["facet"] == "arrival" or row["hour"].hour == 1 for row in facts.to_pylist()])

    for batch in range(2):
        shown.reported.updated(aggregate(shown.tables, ExactUpTo(), dropped, batch), 0.1)

    assert shown.value("gamelake_kpi_late_events_total") == 1


def test_a_driver_that_starts_shows_what_the_tables_have(shown: Shown) -> None:
    shown.bring([Event(at=BEGINNING), Event(at=BEGINNING)])

    shown.start()

    assert shown.value("gamelake_kpi_day_events") == 2


def test_a_query_is_up_from_its_start_to_its_end_and_behind_by_its_oldest_commit(shown: Shown) -> None:
    telemetry, value = shown.telemetry, shown.registry.get_sample_value
    assert value("gamelake_kpis_up", {"query": "kpis"}) == 0

    telemetry.started()
    telemetry.watch(lambda: 0.0)
    telemetry.progressed(StreamProgress({"addBatch": 1500, "triggerExecution": 2000}, 0))

    assert value("gamelake_kpis_up", {"query": "kpis"}) == 1
    assert (value("gamelake_kpis_seconds_behind", {"query": "kpis"}) or 0) > 1e9
    assert value("gamelake_kpis_batch_seconds_sum", {"query": "kpis", "phase": "add_batch"}) == 1.5
    telemetry.terminated()
    assert value("gamelake_kpis_up", {"query": "kpis"}) == 0

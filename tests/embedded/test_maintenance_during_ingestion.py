"""The real fan-out commits on and on while all maintenance tasks and readers run concurrently.

A dozen batches by default; SOAK_BATCHES makes it more.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from gamelake.delta.appends import schema_of
from gamelake.delta.listing import appended_tables, table_paths
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.ledger.manifests import Manifests
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender, an_event, contract_text, framed
from tests.support.delta_validator import problems
from tests.support.eventually import eventually

ROOT = Path(__file__).parents[2]
BATCHES = int(os.environ.get("SOAK_BATCHES", "12"))
GAMES = ("Archery", "Bingo", "Chess", "Darts", "Escape", "Farm")
# Longer than any reader here takes; a real retention is days.
RETENTION = timedelta(seconds=15)
COMPACTION = CompactionRule(target_bytes=2**20, hot_files=3, today=datetime.now(UTC).date())


@dataclass
class Maintenance:
    """All maintenance concurrent with the stream, and the counts of its work."""

    store: Store
    compacted_files: int = 0
    vacuumed_files: int = 0
    refreshed: int = 0
    reads: int = 0
    _seen: dict[str, int] = field(default_factory=dict)

    def compact(self) -> None:
        for table in appended_tables(self.store):
            self.compacted_files += TableCompaction(
                self.store.location, table, COMPACTION, ("game_name",)
            )().files_before

    def vacuum(self) -> None:
        for table in table_paths(self.store):
            vacuum = TableVacuum(self.store, table, datetime.now(UTC) - RETENTION)
            self.vacuumed_files += vacuum.run().replaced_files

    def refresh_gold(self) -> None:
        results = [attempt(each) for each in GoldTables(self.store, load_gold(ROOT / "contracts/games.yaml")).now()]
        assert all(isinstance(each, Refreshed) for each in results), results
        self.refreshed += len(results)

    def read(self) -> None:
        """No reader sees fewer rows than another has seen before."""
        for table in appended_tables(self.store):
            handle = open_table(self.store.location, table)
            rows = dataset(self.store.location, table, schema_of(handle), live_files(handle)).count_rows()
            assert rows >= self._seen.get(table, 0)
            self._seen[table] = rows
            self.reads += 1


@contextmanager
def again_and_again(*works: Callable[[], None]) -> Iterator[None]:
    """Do each in a thread of its own until the block ends; what one of them raises is raised then."""
    stop = Event()

    def work_on(work: Callable[[], None]) -> None:
        while not stop.is_set():
            work()
            stop.wait(0.2)

    with ThreadPoolExecutor(len(works)) as pool:
        running: list[Future[None]] = [pool.submit(work_on, work) for work in works]
        try:
            yield
        finally:
            stop.set()
    for each in running:
        each.result()


@pytest.mark.slow
def test_a_stream_with_concurrent_maintenance_loses_no_commit_and_no_reader(
    lakehouse: Lakehouse, sender: Sender
) -> None:
    schema_id, sent = sender.register(contract_text(1)), 0

    def send() -> None:
        nonlocal sent
        for game in GAMES:
            ids = [f"{game}-{sent}-{number}" for number in range(40)]
            sender.send_values(ids, [framed(schema_id, an_event(contract_text(1), each, game)) for each in ids])
        sent += 1

    def has_met_all() -> bool:
        batches = len(Manifests(lakehouse.store, "ingest_events").batches())
        return (
            batches >= BATCHES
            and min(maintenance.compacted_files, maintenance.vacuumed_files, maintenance.refreshed) >= BATCHES
        )

    maintenance = Maintenance(lakehouse.store)
    send()
    with lakehouse.ingesting() as job:
        lakehouse.await_rows("silver/events", sender.ledger.event_ids)
        with again_and_again(send, maintenance.compact, maintenance.vacuum, maintenance.refresh_gold, maintenance.read):
            eventually(has_met_all, timeout=10 * BATCHES)
        eventually(lambda: len(lakehouse.rows("silver/events", "event_id")) == len(sender.ledger.event_ids), timeout=60)

    assert maintenance.reads > BATCHES
    assert lakehouse.reconciliation().problems == []
    assert problems(lakehouse.directory) == []
    assert lakehouse.event_ids() == dict.fromkeys(sender.ledger.event_ids, 1)
    assert "Traceback" not in job.log_text()
    of_games = sum(len(lakehouse.rows(f"silver/{game.lower()}_events", "event_id")) for game in GAMES)
    assert of_games == len(sender.ledger.event_ids)

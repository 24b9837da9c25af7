"""Two drivers of a stream commit batches while another program makes a table refuse them, in every order of steps."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from gamelake.delta import appends, commits, tables
from gamelake.delta.log.codec import Action, encode_entry, entry_path, entry_versions
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.errors import GamelakeError
from gamelake.objects.store import Store
from gamelake.streaming.driver import batch_commits
from gamelake.streaming.driver.batch_commits import BatchCommits
from gamelake.streaming.driver.runner import finish_last_batch
from gamelake.streaming.driver.stream import Stream
from tests.explorer.exploring import Case, effort, exhaustive, explore, sampled
from tests.explorer.simulation import simulate
from tests.explorer.tables import Lake, prepared, rows_in
from tests.explorer.world import Faults, ReplyLostError, World
from tests.support.manifests import a_manifest, offsets_of
from tests.support.player_tables import SILVER, an_entry

STREAM, BATCHES, RESTARTS = "ingest_events", 3, 6
PLAYERS = [letter * 32 for letter in "abc"]


@pytest.fixture(autouse=True)
def lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The lakehouse of each run; a table that is held back is tried again with each batch."""
    simulate(monkeypatch, appends, batch_commits, commits, tables)
    monkeypatch.setattr(batch_commits, "_RETRY_SECONDS", 0.0)
    # Entries of two drivers within one millisecond are equal, and so either may take the other's for its own.
    monkeypatch.setattr(appends, "now_milliseconds", partial(next, count()))
    return Lake(monkeypatch, tables)


def protocol(*features: str) -> Action:
    return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", *features]}}


def commit(store: Store, action: Action) -> None:
    """What another program commits to the table, as soon as no other writer is faster."""
    while not store.put_new(
        entry_path(SILVER.name, entry_versions(store, SILVER.name)[-1] + 1), encode_entry([action])
    ):
        pass


def decided(batch: int, entry: TableFiles) -> BatchManifest:
    return a_manifest(stream=STREAM, batch_id=batch, offsets=(offsets_of(batch, batch),), tables=(entry,))


def drive(store: Store, plain: Store, batches: list[BatchManifest]) -> None:
    """A driver: finishes the last batch, then decides and commits those that the checkpoint lacks, as FanOut does."""
    stream = Stream(store, STREAM, "events")
    with stream_tables(plain.location) as opened:
        finish_last_batch(stream, opened, has_concurrent_stream=False)
        body = BatchCommits(stream, opened)
        for manifest in batches:
            done = f"checkpoint/{manifest.batch_id}"
            if store.get(done) is not None:
                continue
            if stream.manifests.read(manifest.batch_id) is not None:
                body.refresh()
            body.commit(stream.manifests.settle(manifest))
            store.put(done, b"")


def refused_and_corrected(lake: Lake) -> Case:
    """Two drivers, and a program that has switched a feature of the table on, and drops it again."""
    batches: list[BatchManifest] = []

    def first_batch() -> None:
        batches.extend(decided(number, an_entry(lake.plain, SILVER, [player])) for number, player in enumerate(PLAYERS))
        drive(lake.store, lake.plain, batches[:1])
        commit(lake.plain, protocol("rowTracking"))

    template = prepared(lake, {}, first_batch)

    def case(world: World) -> Callable[[], None]:
        lake.begin(world, template)
        plain, store = lake.plain, lake.store
        for number in range(2):
            world.start(f"driver {number}", lambda: drive(store, plain, batches), RESTARTS)
        world.start("correction", lambda: commit(store, protocol()), RESTARTS)

        def check() -> None:
            at_the_end = prepared(lake, plain.content, lambda: drive(lake.store, lake.plain, batches))
            assert Counter(rows_in(lake.plain, SILVER.name, SILVER.column)) == Counter(PLAYERS)
            assert not [path for path in at_the_end if "/held/" in path]
            unexpected = [e for _, e in world.errors if e and not isinstance(e, GamelakeError | ReplyLostError)]
            assert not unexpected, unexpected

        return check

    return case


def test_no_row_is_lost_or_doubled_by_each_schedule_with_one_fault(lake: Lake) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), refused_and_corrected(lake)

    assert explore(exhaustive(case, faults, 1), case, faults) > 100


@pytest.mark.slow
def test_no_row_is_lost_or_doubled_by_random_schedules(lake: Lake) -> None:
    faults, case = Faults(kills=2, stalls=2, lost_replies=1), refused_and_corrected(lake)

    assert explore(sampled(case, faults, effort(100), 6), case, faults) > 100


def test_a_later_batch_that_overtakes_one_which_waits_is_found(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: BatchCommits) -> None:
        self._held, self._is_read = {}, True

    monkeypatch.setattr(BatchCommits, "refresh", forget)
    faults, case = Faults(kills=1), refused_and_corrected(lake)

    with pytest.raises(AssertionError, match="Counter"):
        explore(exhaustive(case, faults, 1), case, faults)

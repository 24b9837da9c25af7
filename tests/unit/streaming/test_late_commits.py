"""A player who is erased while a batch waits to be committed does not come back, and all other rows do."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.delta.log.codec import commit_info, encode_entry, entry_path
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import open_table
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.errors import LeaseHeldError
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter, PlayerTable
from gamelake.streaming.driver import batch_commits
from gamelake.streaming.driver.batch_commits import BatchCommits
from gamelake.streaming.driver.stream import Stream
from tests.support.manifests import a_manifest, files_of, offsets_of
from tests.unit.streaming.streams import TOPIC, location_of

TABLE = "silver/archery_events"
ERASED, OTHER = "e" * 32, "o" * 32


class Lake:
    """A table, and a stream whose batches have a row of each of two players."""

    def __init__(self, folder: Path) -> None:
        self.location = location_of(folder)
        self.store = Store(self.location)
        self.stream = Stream(self.store, "ingest_events", TOPIC)

    def decide(self, batch: int) -> BatchManifest:
        rows = pa.table({"gamer_id": [ERASED, OTHER], "number": [batch, batch]})
        manifest = a_manifest(
            batch_id=batch,
            written_at=datetime.now(UTC).isoformat(),
            offsets=(offsets_of(batch * 2, batch * 2 + 1),),
            tables=(files_of(self.store, TABLE, rows),),
        )
        return self.stream.manifests.settle(manifest)

    def start(self) -> BatchCommits:
        return BatchCommits(self.stream, stream_tables(self.location))

    def set_features(self, *features: str) -> None:
        """Change the table, as another program does."""
        version = open_table(self.location, TABLE).version() + 1
        protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 7 if features else 2}
        protocol |= {"writerFeatures": features} if features else {}
        self.store.put_new(
            entry_path(TABLE, version), encode_entry([commit_info(0, "UPGRADE", {}), {"protocol": protocol}])
        )

    def erase(self, reach: Reach = Reach.ROWS) -> None:
        """Erase a player, as `PlayerErasure` does in the lakehouse."""
        request = ErasureRequest.new("test", "", (ERASED,), reach)
        ErasureRecords(self.store).begin(request)
        players = PlayerFilter(frozenset(request.pseudonyms))
        RowEraser(self.store, PlayerTable(TABLE, "gamer_id"), players, request.run).erase()

    def rows(self) -> dict[str, list[int]]:
        found = open_table(self.location, TABLE).to_pyarrow_table().to_pylist()
        return {who: sorted(each["number"] for each in found if each["gamer_id"] == who) for who in (ERASED, OTHER)}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.start().commit(lake.decide(0))
    return lake


@pytest.fixture
def waiting(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> BatchCommits:
    """A stream whose table has refused batch 1; the player is erased since, and the table takes batches again."""
    monkeypatch.setattr(batch_commits, "_RETRY_SECONDS", 0)
    lake.set_features("rowTracking")
    commits = lake.start()
    commits.commit(lake.decide(1))
    assert list(commits.held) == [TABLE]
    lake.set_features()
    lake.erase()
    assert lake.rows() == {ERASED: [], OTHER: [0]}
    return commits


def test_a_player_who_is_erased_while_a_batch_waits_for_a_table_does_not_come_back(
    lake: Lake, waiting: BatchCommits
) -> None:
    waiting.commit(lake.decide(2))

    assert not waiting.held
    assert lake.rows()[OTHER] == [0, 1, 2]
    # Records that arrive after an erasure are new rows: the player has no other pseudonym for them.
    assert lake.rows()[ERASED] == [2]


def test_a_player_who_is_erased_before_a_killed_driver_starts_again_does_not_come_back(lake: Lake) -> None:
    decided = lake.decide(1)
    lake.erase()

    lake.start().commit(decided)

    assert lake.rows() == {ERASED: [], OTHER: [0, 1]}


def test_a_kill_between_the_late_commit_and_its_erasure_is_made_good_by_the_next_start(
    lake: Lake, waiting: BatchCommits, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = lake.decide(2)
    with monkeypatch.context() as patched:
        patched.setattr(batch_commits, "erase_again", killed)
        with pytest.raises(KeyboardInterrupt):
            waiting.commit(decided)
    assert lake.rows()[ERASED] == [1]

    lake.start().commit(decided)

    assert lake.rows()[OTHER] == [0, 1, 2]
    assert 1 not in lake.rows()[ERASED]


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_table_under_maintenance_waits_with_its_batch_until_the_rows_can_be_deleted(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_commits, "_RETRY_SECONDS", 0)
    decided = lake.decide(1)
    lake.erase()
    commits = lake.start()
    with maintenance_lease(lake.store, TABLE):
        commits.commit(decided)
        assert list(commits.held) == [TABLE]

    commits.commit(decided)

    assert not commits.held
    assert lake.rows() == {ERASED: [], OTHER: [0, 1]}


def test_an_erasure_of_the_vault_alone_deletes_no_row(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    decided = lake.decide(1)
    monkeypatch.setattr(RowEraser, "erase", never)
    ErasureRecords(lake.store).begin(ErasureRequest.new("test", "", (ERASED,), Reach.VAULT))

    lake.start().commit(decided)

    assert lake.rows() == {ERASED: [0, 1], OTHER: [0, 1]}


def never(*_: object) -> None:
    raise LeaseHeldError("rows are not to be erased")

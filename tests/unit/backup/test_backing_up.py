"""A backup is complete or not there, is restored into an empty platform only, and restores no outdated checkpoint."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gamelake.ledger.manifests import Manifests
from gamelake.ledger.reconciliation import reconcile
from gamelake.model.errors import BackupError
from gamelake.objects.store import Store
from gamelake.recovery.backup_records import BackupRecords
from gamelake.recovery.state_copy import StateCopy
from gamelake.streaming.driver.stream import Stream
from tests.support.player_tables import BRONZE, store_in
from tests.support.stream_history import STREAM, StreamHistory
from tools.backup.archive import check, complete_backups
from tools.backup.backup_restore import make, restore
from tools.backup.parts import RegistryPart
from tools.backup.platform import BackupPlatform

NOW = datetime(2026, 11, 22, tzinfo=UTC)


class FakePart:
    """A part whose content is one text."""

    name = "registry"
    file = "registry.zip"

    def __init__(self, text: str = "") -> None:
        self.text = text

    def save(self, folder: Path) -> None:
        if self.text == "away":
            raise BackupError("not available")
        (folder / self.file).write_text(self.text)

    def is_empty(self) -> bool:
        return not self.text

    def restore(self, folder: Path) -> str:
        self.text = (folder / self.file).read_text()
        return "a text"


@pytest.fixture
def history(tmp_path: Path) -> StreamHistory:
    """A lakehouse with three batches, and Spark's checkpoint of them."""
    history = StreamHistory(tmp_path / "lake")
    history.take(3)
    mark_done(history.store, 2)
    return history


def mark_done(store: Store, batch: int) -> None:
    folder = f"_gamelake/streams/{STREAM}/checkpoints/000000"
    store.put(f"{folder}/offsets/{batch}", f'v1\n{{}}\n{{"events":{{"0":{2 * batch + 2}}}}}'.encode())
    store.put(f"{folder}/commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')


def platform(store: Store, part: FakePart) -> BackupPlatform:
    return BackupPlatform(store.location, (part,))


def make_one(history: StreamHistory, parent: Path, hour: int = 0, keep: int = 3) -> Path:
    made_at = datetime(2026, 11, 22, hour, tzinfo=UTC)
    return make(platform(history.store, FakePart("schemas")), parent, keep, made_at, lambda _: None)


def restored(folder: Path, store: Store, part: FakePart, *into: str) -> object:
    return restore(platform(store, part), folder, into, lambda _: None)


def machine_with_tables_of(history: StreamHistory, folder: Path) -> Store:
    """An empty machine that has the tables alone."""
    store = store_in(folder)
    for path in history.store.paths(""):
        if not path.startswith("_gamelake/"):
            store.put(path, history.store.get(path) or b"")
    return store


def test_everything_is_restored_on_an_empty_machine_and_the_stream_continues(
    history: StreamHistory, tmp_path: Path
) -> None:
    folder = make_one(history, tmp_path / "backups")
    store, registry = machine_with_tables_of(history, tmp_path / "other"), FakePart()

    restored(folder, store, registry)

    assert registry.text == "schemas"
    assert reconcile(store).problems == []
    assert reconcile(store).batches == 3
    stream = Stream(store, STREAM, "events")
    assert stream.next_offsets("t") == {0: 6}
    assert stream.open("t").number == 0


def test_a_checkpoint_older_than_the_stream_is_not_restored(history: StreamHistory, tmp_path: Path) -> None:
    folder = make_one(history, tmp_path / "backups")
    history.take(1)
    store = machine_with_tables_of(history, tmp_path / "other")
    newer = StateCopy(history.store, tmp_path / "newer")
    newer.save()
    newest = f"_gamelake/streams/{STREAM}/manifests/{3:012d}.json.zst"
    store.put(newest, (tmp_path / "newer" / newest).read_bytes())

    restored(folder, store, FakePart(), "lakehouse")

    stream = Stream(store, STREAM, "events")
    assert store.paths(f"_gamelake/streams/{STREAM}/checkpoints") == []
    assert stream.open("t").first_batch == 4
    assert stream.next_offsets("t") == {0: 8}


def test_a_backup_of_a_running_stream_has_no_outdated_checkpoint(history: StreamHistory, tmp_path: Path) -> None:
    history.take(1)
    folder = make_one(history, tmp_path / "backups")
    store = machine_with_tables_of(history, tmp_path / "other")

    restored(folder, store, FakePart())

    assert store.paths(f"_gamelake/streams/{STREAM}/checkpoints") == []
    assert Manifests(store, STREAM).batches() == [0, 1, 2, 3]


@pytest.mark.parametrize("full", ["registry", "lakehouse"])
def test_a_part_that_is_not_empty_is_not_changed_unless_named(
    history: StreamHistory, tmp_path: Path, full: str
) -> None:
    folder = make_one(history, tmp_path / "backups")
    store, registry = (
        machine_with_tables_of(history, tmp_path / "other"),
        FakePart("mine" if full == "registry" else ""),
    )
    if full == "lakehouse":
        store.put(f"_gamelake/streams/{STREAM}/generations/000000.json", b"mine")
    before = store.paths("")

    with pytest.raises(BackupError, match=f"the {full} is not empty.*--into {full}"):
        restored(folder, store, registry)
    assert store.paths("") == before

    if full == "lakehouse":
        store.delete(f"_gamelake/streams/{STREAM}/generations/000000.json")
        store.put(f"_gamelake/streams/{STREAM}/mine", b"mine")
    restored(folder, store, registry, full)
    assert len(store.paths("_gamelake")) > 3


@pytest.mark.parametrize("harm", ["cut off", "gone", "another", "unlisted"])
def test_an_incomplete_backup_changes_nothing(history: StreamHistory, tmp_path: Path, harm: str) -> None:
    folder = make_one(history, tmp_path / "backups")
    victim = next(path for path in sorted(folder.rglob("*.zst")))
    if harm == "cut off":
        victim.write_bytes(victim.read_bytes()[:-1])
    elif harm == "gone":
        victim.unlink()
    elif harm == "another":
        victim.write_bytes(bytes(len(victim.read_bytes())))
    else:
        (folder / "backup.json").unlink()
    store = store_in(tmp_path / "other")

    with pytest.raises(BackupError):
        restored(folder, store, FakePart())

    assert store.paths("") == []


def test_a_failed_backup_is_deleted(history: StreamHistory, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="not available"):
        make(platform(history.store, FakePart("away")), tmp_path / "backups", 3, NOW, lambda _: None)

    assert list((tmp_path / "backups").iterdir()) == []
    assert BackupRecords(history.store).all() == []


def test_the_newest_backups_are_kept_and_listed_in_the_lakehouse(history: StreamHistory, tmp_path: Path) -> None:
    made = [make_one(history, tmp_path / "backups", hour, keep=2) for hour in range(4)]

    kept = complete_backups(tmp_path / "backups")

    assert kept == made[-2:]
    assert [each.name for each in BackupRecords(history.store).all()] == [path.name for path in kept]
    # A file that is only ever written once is on the disk once.
    manifest = f"lakehouse/_gamelake/streams/{STREAM}/manifests/{0:012d}.json.zst"
    assert (kept[0] / manifest).stat().st_ino == (kept[1] / manifest).stat().st_ino
    assert check(kept[1]).parts == ("registry", "lakehouse")
    assert oct(kept[1].stat().st_mode)[-3:] == "700"


def test_a_backup_never_replaces_one_of_another_platform_or_with_more_parts(
    history: StreamHistory, tmp_path: Path
) -> None:
    demo = StreamHistory(tmp_path / "demo")
    demo.take(1)
    whole = [make_one(history, tmp_path / "kept", hour) for hour in range(2)]
    others = [BackupPlatform(demo.store.location, ()), BackupPlatform(history.store.location, (), {"registry": "away"})]

    for hour in range(2, 12):
        made_at = datetime(2026, 11, 22, hour, tzinfo=UTC)
        make(others[hour % 2], tmp_path / "kept", 2, made_at, lambda _: None)

    kept = complete_backups(tmp_path / "kept")
    assert kept[:2] == whole
    assert len(kept) == 2 + 2 + 2


def test_leases_and_rows_are_in_no_backup(history: StreamHistory, tmp_path: Path) -> None:
    history.store.put("_gamelake/leases/silver/x/000000000001.claim", b"{}")

    folder = make_one(history, tmp_path / "backups")

    held = {file.path for file in check(folder).files}
    assert not any("leases" in path or path.startswith(f"lakehouse/{BRONZE.name}") for path in held)


def test_an_empty_lakehouse_is_not_backed_up(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="nothing to back up"):
        make(platform(store_in(tmp_path / "none"), FakePart("x")), tmp_path / "backups", 3, NOW, lambda _: None)


def test_a_registry_that_is_no_apicurio_is_named() -> None:
    with pytest.raises(BackupError, match="is not Apicurio"):
        RegistryPart("http://registry:8081")

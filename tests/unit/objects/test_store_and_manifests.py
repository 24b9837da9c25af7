"""Put if absent, and the decision about a batch that stands once it is written."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.year.listings import counted_listings
from gamelake.delta.data_files import DataFile
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.errors import SettingsError
from gamelake.model.naming import Horizon
from gamelake.objects.store import Location, Store
from tests.support.manifests import a_manifest, offsets_of
from tests.unit.delta.appends import a_location
from tests.unit.properties import examples


@pytest.fixture(params=[False, True], ids=["unsynced", "synced"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    return Store(replace(a_location(tmp_path / "lake house"), synced=request.param))


def test_an_object_is_created_once(store: Store) -> None:
    assert store.put_new("a/b.json", b"first")
    assert not store.put_new("a/b.json", b"second")
    assert store.get("a/b.json") == b"first"


def test_a_writer_recognizes_its_own_content(store: Store) -> None:
    store.put_new("a/b.json", b"mine")

    assert store.put_new("a/b.json", b"mine")


def test_of_many_writers_at_once_one_wins(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda writer: store.put_new("a.json", str(writer).encode()), range(8)))

    assert won.count(True) == 1
    assert store.get("a.json") == str(won.index(True)).encode()


def test_an_object_is_replaced(store: Store) -> None:
    store.put("a/b.json", b"first")
    store.put("a/b.json", b"second")
    store.copy("a/b.json", "c/d.json")

    assert store.get("a/b.json") == store.get("c/d.json") == b"second"
    assert store.paths("") == ["a/b.json", "c/d.json"]


def test_a_store_lists_what_is_in_a_folder(store: Store) -> None:
    for path in ("silver/b/1", "silver/a/2", "silver/a/1", "silverware/1"):
        store.put(path, b"")

    assert store.paths("silver") == ["silver/a/1", "silver/a/2", "silver/b/1"]
    assert store.folders("silver/") == ["silver/a", "silver/b"]
    assert store.paths("gold") == []
    assert store.get("gold/1") is None


def test_objects_are_deleted_whether_they_are_there_or_not_and_no_others(store: Store) -> None:
    paths = [f"old/{number:03d}" for number in range(300)]
    for path in [*paths[::2], "young/000"]:
        store.put(path, b"")

    store.delete_all(paths)

    assert store.paths("old") == []
    assert store.paths("young") == ["young/000"]


def test_after_an_object_that_can_not_be_deleted_no_later_portion_is(tmp_path: Path) -> None:
    class RefusingStore(Store):
        def delete(self, path: str) -> None:
            if path == "old/000":
                raise PermissionError(path)
            super().delete(path)

    store = RefusingStore(a_location(tmp_path))
    paths = [f"old/{number:03d}" for number in range(600)]
    for path in paths:
        store.put(path, b"")

    with pytest.raises(PermissionError, match="old/000"):
        store.delete_all(paths)

    assert store.paths("old")[-344:] == paths[-344:]


def test_a_location_without_a_store_is_refused() -> None:
    with pytest.raises(SettingsError, match="gs://bucket"):
        Store(Location(uri="gs://bucket"))


def test_a_location_can_be_printed_without_its_keys() -> None:
    location = Location(uri="s3://lake", options={"AWS_SECRET_ACCESS_KEY": "hidden"})

    assert "hidden" not in repr(location)


def _manifest(batch_id: int, records: int = 10, generation: int = 0) -> BatchManifest:
    file = DataFile(path="x.parquet", size=1, rows=records - 2, partition={"event_date": "2026-01-01"}, statistics="{}")
    return a_manifest(
        stream="ingest",
        generation=generation,
        batch_id=batch_id,
        offsets=(offsets_of(0, records - 1),),
        tables=(TableFiles(table="silver/events", partition_by=("event_date",), schema="{}", files=(file, file)),),
        dead_letters={"undecodable": 2},
    )


def test_the_first_manifest_of_a_batch_wins(store: Store) -> None:
    manifests = Manifests(store, "ingest")

    first = manifests.settle(_manifest(7, records=10))
    second = manifests.settle(_manifest(7, records=20))

    assert first == second == manifests.read(7) == _manifest(7, records=10)


def test_a_manifest_has_the_counts_of_its_batch(store: Store) -> None:
    manifest = Manifests(store, "ingest").settle(_manifest(7))

    assert (manifest.records, manifest.rows_in("silver/events"), manifest.rows_in("other")) == (10, 16, 0)
    assert manifest.app_id == "query-0"


def test_manifests_are_found_in_the_order_of_their_batches(store: Store) -> None:
    manifests = Manifests(store, "ingest")
    for batch_id in (100, 9, 10, 11):
        manifests.settle(_manifest(batch_id))

    assert manifests.batches() == [9, 10, 11, 100]
    assert [manifest.batch_id for manifest in manifests.last(2)][-1] == 100
    assert manifests.read(12) is None
    assert Manifests(store, "none").last(1) == []


@examples(60)
@given(batches=st.sets(st.integers(0, 3_000), max_size=40), compacted=st.integers(-1, 40))
def test_the_newest_manifest_is_found_though_others_are_missing(
    tmp_path_factory: pytest.TempPathFactory, batches: set[int], compacted: int
) -> None:
    store = Store(a_location(tmp_path_factory.mktemp("lakehouse")))
    manifests = Manifests(store, "ingest")
    for batch_id in batches:
        store.put(f"_gamelake/streams/ingest/manifests/{batch_id:012d}.json.zst", b"")
    if compacted >= 0 and max(batches, default=-1) > compacted:
        store.put(
            f"{Horizon.DAY}/streams/ingest/{sorted(batches)[min(compacted, len(batches) - 1)]:020d}.json.zst", b""
        )

    assert manifests.newest() == max(batches, default=None)
    store.put("_gamelake/streams/ingest/manifests/000000003500.json.zst", b"")
    assert manifests.newest() == 3_500
    assert manifests.after(2_999) == sorted({each for each in batches if each == 3_000} | {3_500})


def test_a_start_lists_a_page_of_new_manifests_of_however_many_there_are(store: Store) -> None:
    manifests = Manifests(store, "ingest")
    template = manifests.settle(_manifest(0))
    content = store.get("_gamelake/streams/ingest/manifests/000000000000.json.zst")
    assert content is not None
    for batch_id in range(1, 6_000):
        store.put(f"_gamelake/streams/ingest/manifests/{batch_id:012d}.json.zst", content)

    with counted_listings() as listings:
        assert manifests.last(1) == [template]
        assert len(manifests.last(20)) == 20

    assert listings.objects < 1_000

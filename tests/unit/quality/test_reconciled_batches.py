"""The coordinates of batches, from their manifests."""

from datetime import date
from pathlib import Path

from gamelake.ledger.coordinates import CoordinateRange
from gamelake.ledger.manifests import FilesTaken, Judged, Manifests
from gamelake.objects.store import Location, Store
from gamelake.observability.hop_accounts import batches_since
from gamelake.quality.suites.lost_records import BatchCoordinates
from tests.support.manifests import a_manifest, offsets_of

DAY = date(2026, 1, 8)


def _settle(store: Store, batch_id: int, written_at: str, files: FilesTaken | None = None) -> None:
    stream = "ingest_files" if files else "ingest_events"
    manifest = a_manifest(
        stream=stream,
        batch_id=batch_id,
        written_at=written_at,
        offsets=(offsets_of(10, 19, partition=1),),
        dead_letters={"bad_framing": 4},
        duplicates={"chess": 2},
        judged=Judged(dropped={"too_old": 1}),
        files=files,
    )
    Manifests(store, stream).settle(manifest)


def test_a_batch_reports_its_duplicates_and_dropped_rows(tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    _settle(store, 0, "2026-01-08T10:00:00+00:00")

    assert batches_since(store, DAY) == [BatchCoordinates((CoordinateRange("events", 1, 10, 19),), in_bronze_alone=3)]


def test_a_batch_of_files_took_the_coordinates_of_their_events(tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    _settle(store, 0, "2026-01-08T10:00:00+00:00", FilesTaken(objects={}, passed_over={}, records=0, bytes=0))

    ((batch,),) = ([each.ranges for each in batches_since(store, DAY)],)
    assert batch == (CoordinateRange("events", -2, 10 * 2**28, 20 * 2**28 - 1),)

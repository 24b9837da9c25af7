"""Where the records of a batch stand in the tables."""

from gamelake.ledger.coordinates import CoordinateRange, coordinates_of, joined
from gamelake.ledger.manifests import BatchManifest, FilesTaken
from tests.support.manifests import a_manifest, offsets_of


def manifest(files: FilesTaken | None = None) -> BatchManifest:
    return a_manifest(stream="ingest", offsets=(offsets_of(10, 19, partition=1),), files=files)


def test_records_of_kafka_stand_at_their_offsets() -> None:
    assert coordinates_of(manifest()) == (CoordinateRange("events", 1, 10, 19),)


def test_events_of_files_stand_at_coordinates_made_of_their_notifications() -> None:
    files = FilesTaken(objects={}, passed_over={}, records=0, bytes=0)

    assert coordinates_of(manifest(files)) == (CoordinateRange("events", -2, 10 * 2**28, 20 * 2**28 - 1),)


def test_adjacent_ranges_of_a_topic_and_partition_become_one() -> None:
    ranges = [CoordinateRange("a", 0, 5, 9), CoordinateRange("a", 0, 0, 4), CoordinateRange("b", 0, 10, 12)]

    assert joined(ranges) == (CoordinateRange("a", 0, 0, 9), CoordinateRange("b", 0, 10, 12))

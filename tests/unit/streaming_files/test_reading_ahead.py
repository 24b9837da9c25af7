"""Files are fetched ahead of their use, and no more bytes of them than a bound, however large a backlog's files are."""

from pathlib import Path

from gamelake.objects.store import Location
from gamelake.streaming.files.arrivals.landing import LandingBucket
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.coordinates import ObjectPosition
from gamelake.streaming.files.fetching import Fetcher
from gamelake.streaming.files.plan import MIB, FileLimits, NamedObject
from tests.support.eventually import eventually


class CountingBucket(LandingBucket):
    """A bucket that remembers which objects were read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Location(uri=folder.as_uri()))
        self.read_keys: list[str] = []

    def read(self, name: ObjectName, limit: int) -> memoryview:
        """The object's content, shorter than its notification says."""
        self.read_keys.append(name.key)
        return memoryview(b"{}")


def named(number: int, size: int) -> NamedObject:
    position = ObjectPosition(partition=0, offset=number, index=0, microseconds=0)
    name = ObjectName(bucket="landing", key=f"{number:03d}", version="", etag="")
    return NamedObject(position=position, name=name, size=size, value=b"")


def most_ahead(bucket: CountingBucket, size: int, files: int) -> int:
    """Return how many files were fetched, at most, before the one in use was done with."""
    objects = [named(number, size) for number in range(files)]
    most = 0
    for used, _ in enumerate(Fetcher(bucket, FileLimits(), readers=4).files(objects)):
        most = max(most, len(bucket.read_keys) - used)
    assert len(bucket.read_keys) == files
    return most


def test_large_files_are_not_fetched_beyond_a_number_of_bytes(tmp_path: Path) -> None:
    # 128 MiB, the one in use among them; a larger file is fetched alone.
    assert most_ahead(CountingBucket(tmp_path), size=40 * MIB, files=40) <= 3
    assert most_ahead(CountingBucket(tmp_path), size=200 * MIB, files=10) == 1


def test_small_files_are_fetched_many_at_a_time(tmp_path: Path) -> None:
    bucket = CountingBucket(tmp_path)
    files = Fetcher(bucket, FileLimits(), readers=4).files([named(number, 1_000) for number in range(100)])

    next(files)

    eventually(lambda: len(bucket.read_keys) == 32)
    assert len(list(files)) == 99

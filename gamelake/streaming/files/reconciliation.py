"""Reconciles a bucket with the table bronze/files: finds objects without a notification."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa
from deltalake.exceptions import TableNotFoundError

from gamelake.model.naming import BRONZE_FILES
from gamelake.storage.appends import schema_of
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import live_files
from gamelake.storage.store import Location
from gamelake.storage.tables import open_table
from gamelake.streaming.files.changes import ObjectChange
from gamelake.streaming.files.landing import LandingBucket, ListedObject, is_partial


class BucketReconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a reconciliation.

    Attributes:
        listed: objects in the bucket.
        known: those that bronze/files has with the same content.
        young: unknown ones that are so recent that their notifications may still arrive.
        named: the other unknown ones, for which notifications are sent.
        named_bytes: the total size of these.
        examples: some of their keys.
    """

    listed: int
    known: int
    young: int
    named: int
    named_bytes: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingNotifications:
    """Objects without a notification, and the counts of the reconciliation."""

    objects: tuple[ListedObject, ...]
    summary: BucketReconciliation

    def changes(self) -> Iterator[ObjectChange]:
        """The missing notifications."""
        for each in self.objects:
            moment = datetime.fromtimestamp(each.moment_microseconds / 1_000_000, UTC)
            yield ObjectChange(
                bucket=each.name.bucket, key=each.name.key, etag=each.name.etag, size=each.size, moment=moment
            )


def missing_notifications(
    lakehouse: Location, landing: LandingBucket, prefix: str, patience: timedelta, now: datetime
) -> MissingNotifications:
    """List the bucket once; an object younger than `patience` does not count as missing."""
    found = landing.objects(prefix)
    objects = [each for each in found if not each.name.key.endswith("/") and not is_partial(each.name.key)]
    known = _known(lakehouse)
    missing = [each for each in objects if (each.name.key, each.name.etag) not in known]
    latest = int((now - patience).timestamp() * 1_000_000)
    old = tuple(each for each in missing if each.moment_microseconds <= latest)
    summary = BucketReconciliation(
        listed=len(objects),
        known=len(objects) - len(missing),
        young=len(missing) - len(old),
        named=len(old),
        named_bytes=sum(each.size for each in old),
        examples=tuple(each.name.key for each in old[:5]),
    )
    return MissingNotifications(old, summary)


def _known(lakehouse: Location) -> set[tuple[str, str]]:
    """Keys and ETags of the objects in bronze/files."""
    try:
        handle = open_table(lakehouse, BRONZE_FILES)
    except TableNotFoundError:
        return set()
    rows: pa.Table = dataset(lakehouse, BRONZE_FILES, schema_of(handle), live_files(handle)).to_table(
        columns=["object", "etag"]
    )
    return set(zip(rows["object"].to_pylist(), (each or "" for each in rows["etag"].to_pylist()), strict=True))

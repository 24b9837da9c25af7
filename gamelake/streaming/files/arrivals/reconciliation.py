"""Reconciles a bucket with the table bronze/files: finds objects without a notification."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import pyarrow as pa
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.model.naming import BRONZE_FILES
from gamelake.objects.store import Location
from gamelake.scans.datasets import dataset
from gamelake.streaming.files.arrivals.any_names import ListedObject
from gamelake.streaming.files.arrivals.changes import ObjectChange, change_of
from gamelake.streaming.files.arrivals.landing import LandingBucket, is_partial
from gamelake.streaming.files.arrivals.notifications import can_be_notified

_EXAMPLES = 5


class BucketReconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a reconciliation.

    Attributes:
        listed: the number of objects under the prefix, without partial files.
        known: the number of objects that bronze/files has with the same content.
        young: the number of unknown objects that are so recent that their notifications may still arrive.
        named: the number of older unknown objects, which need a notification.
        named_bytes: the total size of these older objects.
        examples: some of their keys.
        unnameable: the number of objects that no notification can name: their keys are not text, or longer than S3
            allows.
        unnameable_examples: some of the keys of these objects, in ASCII.
    """

    listed: int
    known: int
    young: int
    named: int
    named_bytes: int
    examples: tuple[str, ...]
    unnameable: int
    unnameable_examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingNotifications:
    """The result of a reconciliation.

    Attributes:
        objects: the objects without a notification.
        summary: the counts.
    """

    objects: tuple[ListedObject, ...]
    summary: BucketReconciliation

    def changes(self) -> Iterator[ObjectChange]:
        """Yield the changes for the missing notifications, in the order of `objects`."""
        yield from map(change_of, self.objects)


def missing_notifications(
    lakehouse: Location, landing: LandingBucket, prefix: str, patience: timedelta, now: datetime
) -> MissingNotifications:
    """List the bucket once, and find the objects without a notification.

    Args:
        lakehouse: has the table bronze/files.
        landing: the bucket.
        prefix: of the objects' keys.
        patience: an object that is younger does not count as missing.
        now: the present, with a time zone.
    """
    found = landing.objects(prefix)
    objects = [each for each in found if not each.name.key.endswith("/") and not is_partial(each.name.key)]
    known = _known(lakehouse)
    unnameable = [each.name.key for each in objects if not can_be_notified(each.name.key)]
    nameable = [each for each in objects if can_be_notified(each.name.key)]
    missing = [each for each in nameable if (each.name.key, each.name.etag) not in known]
    latest = int((now - patience).timestamp() * 1_000_000)
    old = tuple(each for each in missing if each.moment_microseconds <= latest)
    summary = BucketReconciliation(
        listed=len(objects),
        known=len(nameable) - len(missing),
        young=len(missing) - len(old),
        named=len(old),
        named_bytes=sum(each.size for each in old),
        examples=tuple(each.name.key for each in old[:_EXAMPLES]),
        unnameable=len(unnameable),
        unnameable_examples=tuple(ascii(key) for key in unnameable[:_EXAMPLES]),
    )
    return MissingNotifications(old, summary)


def _known(lakehouse: Location) -> set[tuple[str, str]]:
    """Read the keys and ETags of the objects in bronze/files."""
    try:
        handle = open_table(lakehouse, BRONZE_FILES)
    except TableNotFoundError:
        return set()
    rows: pa.Table = dataset(lakehouse, BRONZE_FILES, schema_of(handle), live_files(handle)).to_table(
        columns=["object", "etag"]
    )
    return set(zip(rows["object"].to_pylist(), (each or "" for each in rows["etag"].to_pylist()), strict=True))

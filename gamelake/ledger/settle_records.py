"""Settle records: the order in which streams that write the same tables decide their batches.

A record holds a complete manifest, and is put if absent under the number after the newest one. So a stream can decide a
batch only if it knows every earlier decision: if two streams put the same number, the store accepts one of them, and
the other stream decides again. The record is the decision. The stream that put it writes the manifest next. If that
stream stalls or dies, the next process that reads the record writes it.
"""

from collections.abc import Iterable, Mapping

import msgspec
from obstore.exceptions import BaseError

from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.logs import event_logger
from gamelake.model.naming import SETTLE_RECORDS
from gamelake.objects.records import Encoding, Records
from gamelake.objects.store import Store

log = event_logger(__name__)

# The newest records stay. Older ones are deleted after every fourth record.
KEPT_RECORDS, CLEAN_UP_EVERY = 8, 4


class SettleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The decision of one batch.

    Attributes:
        newest: the id of the newest batch of each stream that the decision takes into account, this one included.
        manifest: of the batch.
    """

    newest: Mapping[str, int]
    manifest: BatchManifest


class SettleRecords:
    """The settle records of a lakehouse, as one process follows them; a lakehouse may have none yet.

    One thread of a process calls `follow`, decides a batch with the state of `newest`, then calls `add`. If `add`
    returns False, it begins again with `follow`. Any number of processes may do so at the same time.

    Attributes:
        newest: the id of the newest batch of each stream, at the last record that was read or put.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records = Records(store, SETTLE_RECORDS, SettleRecord, Encoding.ZSTD)
        self._number = 0
        self.newest: dict[str, int] = {}

    def follow(self) -> None:
        """Read the newest record, and write its manifest if it is missing."""
        while (number := max(self._numbers(), default=0)) != self._number:
            record = self._records.read(_name(number))
            if record is None or max(self._numbers()) != number:
                continue  # others have put newer ones since the listing, deleted it, and may have created it again
            self._complete(record.manifest)
            self._number, self.newest = number, dict(record.newest)

    def _complete(self, manifest: BatchManifest) -> None:
        manifests = Manifests(self._store, manifest.stream)
        # Before the first read a record may be so old that its manifest was written, then deleted by log cleanup.
        newest = None if self._number else manifests.newest()
        if self._number or newest is None or newest < manifest.batch_id:
            manifests.settle(manifest)

    def add(self, manifest: BatchManifest) -> bool:
        """Put the record that decides a batch.

        Returns:
            True if the batch is decided: by this record, or by an earlier manifest, which then stays valid. False if
            another process has decided a batch since `follow`.
        """
        manifests = Manifests(self._store, manifest.stream)
        if manifests.read(manifest.batch_id) is not None:
            return True
        number, newest = self._number + 1, self.newest | {manifest.stream: manifest.batch_id}
        if not self._records.add(_name(number), SettleRecord(newest=newest, manifest=manifest)):
            return False
        numbers = self._numbers()
        if max(numbers) > number:
            # Either other processes have continued from this record and written its manifest, or this number is an old
            # one that had been deleted and was created again.
            if manifests.read(manifest.batch_id) == manifest:
                return True
            self._records.delete(_name(number))
            return False
        self._number, self.newest = number, newest
        if number % CLEAN_UP_EVERY == 0:
            self._clean_up(each for each in numbers if each <= number - KEPT_RECORDS)
        return True

    def _clean_up(self, numbers: Iterable[int]) -> None:
        # Several at a time, once in a few batches: deleting one takes a batch as long as deleting all.
        try:
            self._store.delete_all(self._records.path(_name(number)) for number in sorted(numbers))
        except (BaseError, OSError) as error:
            log.warning("settle_records_not_deleted", error=error, action="a later batch tries again")

    def _numbers(self) -> list[int]:
        return [int(name) for name in self._records.names()]


def _name(number: int) -> str:
    return f"{number:012d}"

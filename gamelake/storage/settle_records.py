"""Settle records: the order in which streams that write the same tables decide their batches.

A record holds a whole manifest, and is put if absent under the number after the newest one. So a stream can decide a
batch only if it knows every decision before: of two streams with one number the store takes one, and the other decides
again. The record is the decision. Its manifest follows, by the stream that put the record or, if that has stalled or
died, by the next process that reads the record.
"""

from collections.abc import Iterable, Mapping

import msgspec
import pyarrow as pa
from obstore.exceptions import BaseError

from gamelake.model.logs import event_logger
from gamelake.model.naming import SETTLE_RECORDS
from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.store import Store

log = event_logger(__name__)

# The newest stay; older ones are deleted after each fourth record.
KEPT_RECORDS, CLEAN_UP_EVERY = 8, 4


class SettleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One decision; `newest` is the newest batch of each stream that the decision knows, with this one."""

    newest: Mapping[str, int]
    manifest: BatchManifest


class SettleRecords:
    """The settle records of a lakehouse, as one process follows them; a lakehouse may have none yet.

    Attributes:
        newest: the newest batch of each stream, at the last record that was read or put.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._number = 0
        self.newest: dict[str, int] = {}

    def follow(self) -> None:
        """Read the newest record, and write its manifest if it is missing."""
        while (number := max(self._numbers(), default=0)) != self._number:
            content = self._store.get(_path(number))
            if content is None or max(self._numbers()) != number:
                continue  # others have put newer ones since the listing, deleted it, and may have created it again
            record = _decode(content)
            self._complete(record.manifest)
            self._number, self.newest = number, dict(record.newest)

    def _complete(self, manifest: BatchManifest) -> None:
        manifests = Manifests(self._store, manifest.stream)
        # Before the first read a record may be so old that its manifest was written, then deleted by log cleanup.
        newest = None if self._number else manifests.newest()
        if self._number or newest is None or newest < manifest.batch_id:
            manifests.settle(manifest)

    def add(self, manifest: BatchManifest) -> bool:
        """Decide a batch by a record; gives False if another process has decided one since `follow`.

        True also if the batch has a manifest already, which then stands.
        """
        manifests = Manifests(self._store, manifest.stream)
        if manifests.read(manifest.batch_id) is not None:
            return True
        number, newest = self._number + 1, self.newest | {manifest.stream: manifest.batch_id}
        if not self._store.put_new(_path(number), _encode(SettleRecord(newest=newest, manifest=manifest))):
            return False
        numbers = self._numbers()
        if max(numbers) > number:
            # Either others have gone on from this record, with its manifest, or it is an old number created again.
            if manifests.read(manifest.batch_id) == manifest:
                return True
            self._store.delete(_path(number))
            return False
        self._number, self.newest = number, newest
        if number % CLEAN_UP_EVERY == 0:
            self._clean_up(each for each in numbers if each <= number - KEPT_RECORDS)
        return True

    def _clean_up(self, numbers: Iterable[int]) -> None:
        # Several at a time, once in a few batches: a batch waits as long for one as for all.
        try:
            self._store.delete_all(_path(number) for number in sorted(numbers))
        except (BaseError, OSError) as error:
            log.warning("settle_records_not_deleted", error=error, action="a later batch tries again")

    def _numbers(self) -> list[int]:
        return [int(path.rsplit("/", 1)[-1].split(".")[0]) for path in self._store.paths(SETTLE_RECORDS)]


def _path(number: int) -> str:
    return f"{SETTLE_RECORDS}/{number:012d}.json.zst"


def _encode(record: SettleRecord) -> bytes:
    return bytes(pa.compress(msgspec.json.encode(record), "zstd", asbytes=True))


def _decode(content: bytes) -> SettleRecord:
    return msgspec.json.decode(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read(), type=SettleRecord)

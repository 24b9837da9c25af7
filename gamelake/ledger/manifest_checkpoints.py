"""Checkpoints that replace a stream's oldest manifests once these are deleted.

A checkpoint is written before the manifests that it replaces are deleted; the newest one is valid. There are two, one
for each horizon; `gamelake.delta.log.history_checkpoints` explains them.
"""

import msgspec

from gamelake.ledger.manifests import OffsetRange
from gamelake.model.naming import Horizon
from gamelake.objects.records import Encoding, NewestRecord, Records
from gamelake.objects.store import Store


class TopicOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of one partition of a topic that batches read, without a gap.

    Attributes:
        topic: the Kafka topic.
        topic_id: Kafka's id of the topic.
        taken: the offsets.
    """

    topic: str
    topic_id: str
    taken: OffsetRange


class ManifestCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a stream's batches up to one batch; the tables' logs have all commits of these batches.

    Attributes:
        stream: the stream's name.
        through: the id of the last batch.
        batches: the number of batches.
        records: the number of records that they read.
        silver_rows: the number of rows that they added to the tables of all games.
        dead_letters: the number of dead letters by reason.
        duplicates: the number of duplicates by game.
        offsets: the offsets that they read, one range for each run without a gap.
        applications: the id of the last batch by application id.
        quarantined: the number of quarantined rows by rule.
        dropped: the number of dropped rows by rule.
    """

    stream: str
    through: int
    batches: int
    records: int
    silver_rows: int
    dead_letters: dict[str, int]
    duplicates: dict[str, int]
    offsets: tuple[TopicOffsets, ...]
    applications: dict[str, int]
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}

    def covers(self, transaction: str) -> bool:
        """Return True if a transaction, as `application/batch`, belongs to one of these batches."""
        application, _, batch = transaction.rpartition("/")
        return application in self.applications and int(batch) <= self.applications[application]


def read_manifest_checkpoint(
    store: Store, stream: str, horizon: Horizon = Horizon.RETENTION
) -> ManifestCheckpoint | None:
    """Read the checkpoint of a stream's manifests; return None if there is none."""
    return _checkpoints(store, horizon, stream).read()


def read_newest_manifest_checkpoint(store: Store, stream: str) -> ManifestCheckpoint | None:
    """Read the newer of the checkpoints of both horizons; return None if there is none."""
    found = (read_manifest_checkpoint(store, stream, horizon) for horizon in Horizon)
    return max((each for each in found if each is not None), key=lambda each: each.through, default=None)


def write_manifest_checkpoint(
    store: Store, checkpoint: ManifestCheckpoint, horizon: Horizon = Horizon.RETENTION
) -> None:
    """Write the checkpoint of a stream's manifests, then delete the former ones of its horizon."""
    _checkpoints(store, horizon, checkpoint.stream).replace(checkpoint.through, checkpoint)


def _checkpoints(store: Store, horizon: Horizon, stream: str) -> NewestRecord[ManifestCheckpoint]:
    return NewestRecord(Records(store, f"{horizon}/streams/{stream}", ManifestCheckpoint, Encoding.ZSTD))

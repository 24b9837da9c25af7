"""A named stream: its checkpoint generations, and its manifests.

A generation is one checkpoint folder and one application id for Delta transactions. A rebuilt checkpoint gets a new
application id, because Delta silently ignores a batch id that the same application has used before.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.held_tables import HeldTables
from gamelake.ledger.manifest_checkpoints import read_manifest_checkpoint
from gamelake.ledger.manifests import BatchManifest, Manifests, OffsetRange
from gamelake.ledger.settle_records import SettleRecords
from gamelake.model.errors import CheckpointError, TopicRecreatedError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.streaming.driver.checkpoint import CheckpointFolder

log = event_logger(__name__)


class Stream:
    """A named stream over one topic, with its generations in the lakehouse.

    Attributes:
        name: of the stream.
        manifests: of the stream's batches.
        held: the tables that the stream holds back.
        store: the lakehouse.
    """

    def __init__(self, store: Store, name: str, topic: str) -> None:
        self.store = store
        self.name = name
        self._topic = topic
        self._generations = Generations(store, name)
        self.manifests = Manifests(store, name)
        self.held = HeldTables(store, name)

    def current(self) -> Generation | None:
        """Return the newest generation; None before the first start."""
        generations = self._generations.all()
        return generations[-1] if generations else None

    def open(self, topic_id: str) -> Generation:
        """Return the generation to run: the current one, or a rebuilt one if its checkpoint is missing.

        Raises:
            CheckpointError: the checkpoint is damaged, or belongs to another stream.
            TopicRecreatedError: the topic was deleted and created again since the checkpoint was created.
        """
        current = self.current()
        if current is None:
            return self._first(topic_id)
        self._check_topic(current, topic_id)
        checkpoint = self.folder(current).read()
        if checkpoint is None:
            return self.rebuild(topic_id, reason="the checkpoint was missing")
        if checkpoint.query_id != current.query_id:
            raise CheckpointError(
                f"the checkpoint {current.checkpoint} belongs to query {checkpoint.query_id}, not to this stream. "
                "Rebuild it from the manifests with jobs/rebuild_checkpoint.py"
            )
        if current.first_batch and checkpoint.last_commit is None:
            # Without this check Spark would start at the beginning of the topic.
            raise CheckpointError(
                f"the checkpoint {current.checkpoint} has lost what was done before batch {current.first_batch}. "
                "Nothing was read or written. Rebuild it from the manifests with jobs/rebuild_checkpoint.py"
            )
        return current

    def rebuild(self, topic_id: str, reason: str, earliest: Mapping[int, int] | None = None) -> Generation:
        """Start a new generation where the manifests end.

        The caller must have committed the last manifest to all its tables.

        Args:
            topic_id: the current id of the topic.
            reason: kept in the generation's record.
            earliest: the first offset that Kafka still holds, by partition. If given, earlier offsets are skipped and
                recorded as lost.

        Raises:
            CheckpointError: the stream was never started.
            TopicRecreatedError: the manifests have offsets of a topic with another id.
        """
        current = self.current()
        if current is None:
            raise CheckpointError(f"the stream '{self.name}' was never started: there is nothing to rebuild")
        self._check_topic(current, topic_id)
        # A running driver may decide a batch meanwhile: offsets and first batch must come from one listing.
        batches = self.manifests.batches()
        expected = self._next_offsets(topic_id, batches)
        held = dict(earliest or {})
        reachable = {partition: max(offset, held.get(partition, 0)) for partition, offset in expected.items()}
        generation = self._after(current, topic_id, reason, held | reachable, lost(expected, reachable), batches)
        log.warning(
            "checkpoint_rebuilt",
            generation=generation.number,
            next_batch=generation.first_batch,
            reason=reason,
        )
        return generation

    def restart_on_new_topic(self, topic_id: str, earliest: Mapping[int, int]) -> Generation:
        """Start a new generation on a recreated topic.

        Args:
            topic_id: the id of the new topic.
            earliest: the first offset that Kafka holds, by partition; the stream starts there.

        Raises:
            CheckpointError: the stream was never started.
        """
        current = self.current()
        if current is None:
            raise CheckpointError(f"the stream '{self.name}' was never started: start it instead")
        return self._after(current, topic_id, "the topic was recreated", earliest, (), self.manifests.batches())

    def next_offsets(self, topic_id: str) -> dict[int, int]:
        """Compute the next offset to read by partition: after the last one that was ingested or skipped as lost.

        Args:
            topic_id: offsets of topics with other ids don't count.
        """
        return self._next_offsets(topic_id, self.manifests.batches())

    def _next_offsets(self, topic_id: str, batches: Sequence[int]) -> dict[int, int]:
        offsets: dict[int, int] = {}
        for done in (*self._taken(topic_id, batches), *self._given_up(topic_id)):
            offsets[done.partition] = max(offsets.get(done.partition, 0), done.last + 1)
        return offsets

    def positions(self, generation: Generation) -> dict[int, int]:
        """Compute the next offset after the last decided batch, by partition; partitions never read are left out."""
        folder = self.folder(generation)
        checkpoint = folder.read()
        done = checkpoint.last_commit if checkpoint else None
        offsets = {} if done is None else folder.offsets(done)
        last = self.last_manifest()
        # The last batch may be decided, with a manifest, and not yet be in the checkpoint.
        if last is not None and last.app_id == generation.app_id:
            offsets |= {taken.partition: taken.last + 1 for taken in last.offsets}
        return offsets

    def _taken(self, topic_id: str, batches: Sequence[int]) -> Iterator[OffsetRange]:
        statement = read_manifest_checkpoint(self.store, self.name)
        if statement is not None:
            yield from (each.taken for each in statement.offsets if each.topic_id == topic_id)
        for manifest in self.manifests.read_many(batches):
            if manifest.topic_id == topic_id:
                yield from manifest.offsets

    def _given_up(self, topic_id: str) -> Iterator[OffsetRange]:
        for generation in self._generations.all():
            if generation.topic_id == topic_id:
                yield from generation.lost

    def complete_decision(self) -> None:
        """Write the manifest of the newest settle record, if the process that recorded it was killed before that."""
        SettleRecords(self.store).follow()

    def last_manifest(self) -> BatchManifest | None:
        """Return the newest manifest; None if there is none.

        Only its commits may be unfinished, except those to tables that are held back.
        """
        last = self.manifests.last(1)
        return last[0] if last else None

    def folder(self, generation: Generation) -> CheckpointFolder:
        """Return the checkpoint folder of a generation."""
        return CheckpointFolder(self.store, generation.checkpoint, self._topic)

    def _check_topic(self, generation: Generation, topic_id: str) -> None:
        if generation.topic_id != topic_id:
            raise TopicRecreatedError(
                f"the topic '{self._topic}' was deleted and created again: the checkpoint has other offsets. "
                "Records that were not read from the old topic are lost. To read the new topic from its beginning, "
                "run jobs/rebuild_checkpoint.py --new-topic"
            )

    def _first(self, topic_id: str) -> Generation:
        generation = self._generation(0, topic_id, "first start", str(uuid.uuid4()), self.manifests.batches())
        self._generations.add(generation)
        self.folder(generation).create(generation.query_id)
        return generation

    def _after(
        self,
        current: Generation,
        topic_id: str,
        reason: str,
        offsets: Mapping[int, int],
        given_up: tuple[OffsetRange, ...],
        batches: Sequence[int],
    ) -> Generation:
        """Start the generation after the current one; its first batch follows the last batch that has a manifest."""
        generation = self._generation(current.number + 1, topic_id, reason, current.query_id, batches)
        generation = msgspec.structs.replace(generation, lost=given_up)
        # The checkpoint is completed first: from a partial one Spark would read the topic from its beginning.
        if generation.first_batch:
            self.folder(generation).resume_after(generation.query_id, generation.first_batch - 1, offsets)
        else:
            self.folder(generation).create(generation.query_id)
        self._generations.add(generation)
        return generation

    def _generation(self, number: int, topic_id: str, reason: str, query_id: str, batches: Sequence[int]) -> Generation:
        return Generation(
            stream=self.name,
            number=number,
            query_id=query_id,
            topic=self._topic,
            topic_id=topic_id,
            first_batch=batches[-1] + 1 if batches else 0,
            reason=reason,
            created_at=datetime.now(UTC).isoformat(),
        )


def lost(expected: Mapping[int, int], reachable: Mapping[int, int]) -> tuple[OffsetRange, ...]:
    """Compute the offsets that Kafka deleted before they were read, in the order of partitions.

    Args:
        expected: the next offset to read, by partition.
        reachable: the next offset to read that Kafka still holds, by partition; it has all partitions of `expected`.

    Returns:
        One range for each partition that has lost offsets.
    """
    return tuple(
        OffsetRange(
            partition=partition, first=offset, last=reachable[partition] - 1, records=reachable[partition] - offset
        )
        for partition, offset in sorted(expected.items())
        if reachable[partition] > offset
    )

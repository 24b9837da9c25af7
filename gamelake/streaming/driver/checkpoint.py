"""Checks the files of a Kafka stream's Spark checkpoint before a start, and creates them from the manifests.

Source: Spark, `org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqLog` and `CommitLog`: each log is one
file per batch, a version line and then one JSON document per line; for Kafka the offsets are the next ones to read.
`org.apache.spark.sql.kafka010.KafkaSourceInitialOffsetWriter`: `sources/0/0` has the first batch's start offsets, as a
zero byte, a version line and one JSON document.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from gamelake.model.errors import CheckpointError
from gamelake.objects.store import Store
from gamelake.streaming.kafka.source import PlannedOffsets

_VERSION = "v1"
_OFFSET_LINES = 3  # version, batch metadata, one source

PartitionOffsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The state of a checkpoint.

    Attributes:
        query_id: of the query that owns the checkpoint.
        last_offsets: the newest batch that Spark has planned; None if there is none.
        last_commit: the newest batch that Spark has completed; None if there is none.
    """

    query_id: str
    last_offsets: int | None
    last_commit: int | None


class CheckpointFolder:
    """One checkpoint folder in the lakehouse; only Spark writes to it once the query runs."""

    def __init__(self, store: Store, path: str, topic: str) -> None:
        self._store = store
        self._path = path
        self._topic = topic

    def create(self, query_id: str) -> None:
        """Create an empty checkpoint of a query."""
        self._store.put(f"{self._path}/metadata", json.dumps({"id": query_id}).encode())

    def resume_after(self, query_id: str, batch_id: int, offsets: PartitionOffsets) -> None:
        """Create a checkpoint whose next batch is `batch_id` + 1 and starts at `offsets` (next offset by partition)."""
        self.create(query_id)
        # Spark also reads the offsets of the batch before the last one.
        for batch in {max(batch_id - 1, 0), batch_id}:
            self._store.put(f"{self._path}/offsets/{batch}", self._offset_entry(offsets))
            self._store.put(f"{self._path}/commits/{batch}", f'{_VERSION}\n{{"nextBatchWatermarkMs":0}}'.encode())

    def _offset_entry(self, offsets: PartitionOffsets) -> bytes:
        batch_metadata = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}})
        source = json.dumps({self._topic: {str(partition): offset for partition, offset in sorted(offsets.items())}})
        return "\n".join([_VERSION, batch_metadata, source]).encode()

    def read(self) -> CheckpointState | None:
        """Check the files of the checkpoint, and return its state; None if the folder is empty.

        Raises:
            CheckpointError: a file is missing or damaged; the message has its path.
        """
        files = [path for path in self._store.paths(self._path) if not path.rsplit("/", 1)[-1].startswith(".")]
        if not files:
            return None
        query_id = self._query_id(f"{self._path}/metadata")
        offsets, commits = self._batches(files, "offsets"), self._batches(files, "commits")
        for batch in offsets[-2:]:
            self.offsets(batch)
        for batch in commits[-1:]:
            self._check_commit(batch)
        if commits and (not offsets or commits[-1] not in (offsets[-1], offsets[-1] - 1)):
            raise self._damaged(
                "offsets", f"its newest batch does not follow batch {commits[-1]}, the last completed one"
            )
        return CheckpointState(query_id, offsets[-1] if offsets else None, commits[-1] if commits else None)

    def offsets(self, batch_id: int) -> dict[int, int]:
        """Read the next offset by partition after a batch.

        Raises:
            CheckpointError: the file is missing, damaged or of another topic.
        """
        path = f"{self._path}/offsets/{batch_id}"
        return self._decoded(path, self._store.get(path) or b"")

    def _decoded(self, path: str, content: bytes) -> dict[int, int]:
        lines = content.decode(errors="replace").splitlines()
        if len(lines) != _OFFSET_LINES:
            raise self._damaged(path, f"it has {len(lines)} lines instead of {_OFFSET_LINES}")
        if lines[0] != _VERSION:
            raise self._damaged(path, f"its version is '{lines[0]}'; only {_VERSION} is supported")
        try:
            return {int(partition): int(offset) for partition, offset in json.loads(lines[2])[self._topic].items()}
        except KeyError as error:
            raise self._damaged(path, f"it is not of the topic '{self._topic}'") from error
        except (ValueError, AttributeError) as error:
            raise self._damaged(path, str(error)) from error

    def is_committed(self, batch_id: int) -> bool:
        """Return True if Spark has written the commit of a batch."""
        return self._store.get(f"{self._path}/commits/{batch_id}") is not None

    def begun(self) -> int | None:
        """Return the batch that Spark has planned and not completed; None if there is none."""
        files = self._store.paths(self._path)
        planned, completed = self._batches(files, "offsets"), self._batches(files, "commits")
        return planned[-1] if planned and planned[-1] not in completed else None

    def planned(self, batch_id: int) -> PlannedOffsets:
        """Read the offsets that a batch must read, from the log that Spark writes before the batch runs.

        Raises:
            CheckpointError: a file is missing, damaged or of another topic.
        """
        before, after = (f"{self._path}/offsets/{each}" for each in (batch_id - 1, batch_id))
        start, end = self._store.get_all((before, after)) if batch_id else (None, self._store.get(after))
        return PlannedOffsets(
            self._initial_offsets() if start is None else self._decoded(before, start), self._decoded(after, end or b"")
        )

    def _initial_offsets(self) -> dict[int, int]:
        """Read the first batch's start by partition: Kafka's first offsets when the query started the first time."""
        path = f"{self._path}/sources/0/0"
        content = self._store.get(path)
        if content is None:
            return {}
        try:
            offsets = json.loads(content.split(b"\n", 1)[1])[self._topic]
            return {int(partition): int(offset) for partition, offset in offsets.items()}
        except (IndexError, KeyError, ValueError, AttributeError) as error:
            raise self._damaged(path, str(error)) from error

    def _query_id(self, path: str) -> str:
        try:
            return str(json.loads(self._store.get(path) or b"")["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(path, "it has no query id") from error

    def _check_commit(self, batch_id: int) -> None:
        path = f"{self._path}/commits/{batch_id}"
        lines = (self._store.get(path) or b"").decode(errors="replace").splitlines()
        try:
            if not lines or not lines[0].startswith("v") or not isinstance(json.loads(lines[1]), dict):
                raise self._damaged(path, "it is empty or not a commit")
        except (IndexError, ValueError) as error:
            raise self._damaged(path, "it is truncated") from error

    def _batches(self, files: list[str], log: str) -> list[int]:
        names = [path.rsplit("/", 1)[-1] for path in files if path.startswith(f"{self._path}/{log}/")]
        return sorted(int(name) for name in names if name.isdigit())

    def _damaged(self, path: str, problem: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint is damaged: {path}: {problem}. Nothing was read or written. "
            "Rebuild it from the manifests with jobs/rebuild_checkpoint.py"
        )

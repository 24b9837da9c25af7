"""Finds records that no task can process by halving the batch, and writes them to the dead letters undecoded.

The checkpoint fixes the offsets of a batch, so a batch that fails because of its records would fail for ever.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa

from gamelake.ledger.generations import Generation
from gamelake.ledger.skipped_records import SkippedRecords, SkippedRecordsOfStream
from gamelake.model.errors import GamelakeError, PoisonError, RecordsError, StoreError, StoreUnavailableError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store, require_put_if_absent
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.roles import SkippingDecider
from gamelake.streaming.kafka.batch_records import BatchRecords, kind_and_place
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.kafka.source import PlannedOffsets
from gamelake.streaming.outages import OUTAGES

log = event_logger(__name__)

# After this many failures a batch is searched for the records that make it fail.
_FAILURES = 2
_MOST_POISONOUS = 1_000

Plan = TypeVar("Plan")


class BatchFailures(msgspec.Struct, frozen=True, kw_only=True):
    """The failures of a stream's newest batch; a decision that a process did not finish before it ended is one too.

    Attributes:
        ends: the next offset of each partition after the batch.
        failures: the number of failures; 0 after a decision, or if only outages have ended processes.
        problem: the type and the place of the last failure; "" if there was none.
        at: when this was recorded, in UTC, in ISO 8601.
    """

    ends: dict[int, int]
    failures: int
    problem: str
    at: str


@dataclass
class FailureRecord:
    """Keeps the failures of a stream's newest batch in the lakehouse, for the process after one that was killed.

    A killed process can't record its failure, so `begin` records it before the first batch of a process is tried. If
    the process is not killed, `restore` or `clear` takes that back.

    Attributes:
        store: the lakehouse.
        stream: the name of the stream.
    """

    store: Store
    stream: str
    _has_begun: bool = False
    _recorded: BatchFailures | None = None
    # What `begin` has replaced, until another failure is recorded.
    _before: BatchFailures | None = None

    def begin(self, ends: Mapping[int, int]) -> int:
        """Return the number of times that a batch has failed; 0 for every batch of a process after its first one.

        Args:
            ends: the next offset of each partition after the batch.
        """
        if self._has_begun:
            return 0
        self._has_begun = True
        before = self._known(ends)
        self.add(ends, before.failures + 1, "the process ended")
        self._before = before
        return before.failures

    def _known(self, ends: Mapping[int, int]) -> BatchFailures:
        content = self.store.get(self._path)
        known = msgspec.json.decode(content, type=BatchFailures) if content else None
        return known if known and known.ends == ends else _failures(ends, 0, "")

    def add(self, ends: Mapping[int, int], failures: int, problem: str) -> None:
        """Record a failure.

        Args:
            ends: the next offset of each partition after the batch.
            failures: the number of failures, with this one.
            problem: the type and the place of the failure.
        """
        self._put(_failures(ends, failures, problem))

    def restore(self) -> None:
        """Take back the failure that `begin` has recorded, because an outage ends the process."""
        if self._before is not None:
            self._put(self._before)

    def clear(self) -> None:
        """Record that the batch is decided; no request is made if it has not failed."""
        if self._recorded is not None and self._recorded.failures:
            self._put(_failures(self._recorded.ends, 0, ""))

    def _put(self, record: BatchFailures) -> None:
        self.store.put(self._path, msgspec.json.encode(record))
        self._recorded, self._before = record, None

    @property
    def _path(self) -> str:
        return f"_gamelake/streams/{self.stream}/failures.json"


def _failures(ends: Mapping[int, int], failures: int, problem: str) -> BatchFailures:
    return BatchFailures(ends=dict(ends), failures=failures, problem=problem, at=datetime.now(UTC).isoformat())


class PoisonAvoidingDecider(Generic[Plan]):
    """Decides batches with another decider, and finds the records that make a batch fail repeatedly.

    Args:
        decider: decides batches, and tries parts of them.
        store: the lakehouse.
        generation: of the stream; it has the id of the topic.
        require_kafka: raises if Kafka does not respond.
    """

    def __init__(
        self,
        decider: SkippingDecider[Plan],
        store: Store,
        generation: Generation,
        require_kafka: Callable[[], object],
    ) -> None:
        self._decider = decider
        self._store = store
        self._topic_id = generation.topic_id
        self._require_kafka = require_kafka
        self._failures = FailureRecord(store, generation.stream)
        self._skipped = SkippedRecordsOfStream(store, generation.stream)
        self._known: tuple[SkippedRecords, ...] = ()
        self._read_skipped()

    def _read_skipped(self) -> None:
        self._known = self._skipped.all(self._topic_id)
        self._decider.skip(self._known)

    def learn(self, columns: Mapping[str, pa.Schema]) -> bool:
        """Replace the known columns of tables that other writers have widened; see `BatchDecider`."""
        return self._decider.learn(columns)

    def decide(self, records: BatchRecords, planned: PlannedOffsets, plan: Plan | None) -> Decision:
        """Read all records of a batch and write their files; commit nothing.

        Raises:
            GamelakeError: the batch fails for a reason other than its content.
            Exception: the batch fails although each of its records can be processed alone.
        """
        if planned.records:
            decision = self._decide(records, planned, plan)
        else:
            # No record can be the cause of a failure.
            decision = self._decider.decide(records, planned, plan)
        self._failures.clear()
        return decision

    def _decide(self, records: BatchRecords, planned: PlannedOffsets, plan: Plan | None) -> Decision:
        failures, cause = self._failures.begin(planned.after), None
        while failures < _FAILURES:
            try:
                return self._decider.decide(records, planned, plan)
            except Exception as error:
                self._require_answers(error)
                failures, cause = failures + 1, error
                problem = kind_and_place(error)
                self._failures.add(planned.after, failures, problem)
                log.warning("batch_failed", error=problem, failures=failures, action="decides it again")
            self._read_skipped()
        self._find_poison(records, planned, plan, cause)
        return self._decider.decide_with_less_memory(records, planned, plan)

    def _require_answers(self, error: Exception) -> None:
        """Raise an error that the content of records can't have caused, or one that the store or Kafka reports now.

        Such an error does not count as a failure of the batch, unless the store is unreachable: then the record stays.
        """
        try:
            self._require_fault_of_records(error)
        except (StoreError, StoreUnavailableError):
            raise
        except Exception:
            with suppress(*OUTAGES):
                self._failures.restore()
            raise

    def _require_fault_of_records(self, error: Exception) -> None:
        if isinstance(error, GamelakeError) and not isinstance(error, RecordsError):
            raise error
        require_put_if_absent(self._store)
        self._require_kafka()

    def _find_poison(
        self, records: BatchRecords, planned: PlannedOffsets, plan: Plan | None, cause: Exception | None
    ) -> None:
        """Find the records that make a batch fail, and have them skipped.

        Raises:
            Exception: the cause, if tasks fail even without decoding any record.
            PoisonError: the limit of poisonous records per search is reached; the records found so far are stored.
        """
        known = list(self._known)
        log.warning("poison_searched", records=planned.records, skipped=len(known))

        def problem_of(tried: PartitionRange, *more: SkippedRecords) -> str:
            self._decider.skip((*known, *more))
            try:
                self._decider.try_part(records.part([tried]), plan)
            except Exception as error:
                self._require_answers(error)
                return str(error) if isinstance(error, RecordsError) else kind_and_place(error)
            return ""

        # If a task fails even with the first record undecoded, the records are not the cause.
        firsts = [PartitionRange(each.partition, each.start, each.start + 1) for each in planned.ranges[:1]]
        problems = [problem_of(each, self._as_skipped(each, "")) for each in firsts]
        if any(problems):
            raise cause or PoisonError(f"tasks fail without decoding any record: {', '.join(problems)}")
        found = 0
        for each, problem in poisonous(planned.ranges, problem_of):
            skipped = self._as_skipped(each, problem)
            if not problem_of(each, skipped):
                found += 1
                known.append(skipped)
                self._skipped.add(skipped)
                log.error("poison_found", partition=each.partition, offset=each.start, problem=problem)
            if found == _MOST_POISONOUS:
                raise PoisonError(
                    f"{found} records make tasks fail, and more may: the next attempt continues from here"
                )
        self._decider.skip(known)

    def _as_skipped(self, offset: PartitionRange, problem: str) -> SkippedRecords:
        return SkippedRecords(
            topic_id=self._topic_id,
            partition=offset.partition,
            first=offset.start,
            last=offset.end - 1,
            problem=problem,
        )


def poisonous(
    ranges: Sequence[PartitionRange], problem_of: Callable[[PartitionRange], str]
) -> Iterator[tuple[PartitionRange, str]]:
    """Find the single offsets that fail, by halving the ranges that fail; an offset must fail twice to count.

    If the first half of a failing range does not fail, the second half is not tried as a whole: it must fail.

    Args:
        ranges: of different partitions.
        problem_of: tries a range, and returns the reason why it fails, or "" if it does not fail.

    Yields:
        Each failing offset as a range of one offset, with the reason.
    """
    # Each range with True if it is known to fail.
    pending = [(each, False) for each in reversed(ranges)]
    while pending:
        tried, is_known = pending.pop()
        if tried.offsets > 1 and (is_known or problem_of(tried)):
            first, second = halves(tried)
            first_fails = bool(problem_of(first))
            pending.append((second, not first_fails))
            if first_fails:
                pending.append((first, True))
        elif tried.offsets == 1 and problem_of(tried) and (problem := problem_of(tried)):
            yield tried, problem


def halves(whole: PartitionRange) -> tuple[PartitionRange, PartitionRange]:
    """Divide a range of at least two offsets into its first and its second half."""
    middle = (whole.start + whole.end) // 2
    return PartitionRange(whole.partition, whole.start, middle), PartitionRange(whole.partition, middle, whole.end)

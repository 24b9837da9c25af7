"""An outage passes each boundary of content, as it is: neither a record nor a file is at fault."""

import errno
from collections.abc import Iterator

import pyarrow as pa
import pytest
from obstore.exceptions import GenericError

from gamelake.model.errors import RegistryUnavailableError, StoreError, StoreUnavailableError
from gamelake.streaming.files.refusals import refusal
from gamelake.streaming.kafka.batch_records import results_of
from gamelake.streaming.kafka.reader import FailureKind, TaskFailure

OUTAGES = (
    GenericError("the store gives up"),
    OSError(errno.ENOSPC, "no space"),
    OSError(errno.EIO, "a broken disk"),
    # As delta-rs says what its store has answered.
    OSError("Generic S3 error"),
    StoreError("refused keys"),
    StoreUnavailableError("away"),
    RegistryUnavailableError("away"),
)


class _FailingTask:
    def __init__(self, error: Exception) -> None:
        self._error = error
        self.failures: list[TaskFailure] = []

    def __call__(self, batches: Iterator[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """Fail before the first result."""
        yield from batches
        raise self._error

    def failed(self, failure: TaskFailure, /) -> pa.RecordBatch:
        self.failures.append(failure)
        return pa.record_batch({})


@pytest.mark.parametrize("error", OUTAGES, ids=lambda error: f"{type(error).__name__} {error}")
def test_an_outage_is_no_fault_of_a_record_or_a_file(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        list(results_of(_FailingTask(error), iter([])))
    assert raised.value is error
    with pytest.raises(type(error)) as raised:
        refusal(0, error)
    assert raised.value is error


@pytest.mark.parametrize("error", [ValueError("a value"), pa.ArrowInvalid("a value"), RecursionError(), KeyError("x")])
def test_whatever_else_is_raised_is_the_fault_of_what_was_read(error: Exception) -> None:
    task = _FailingTask(error)

    list(results_of(task, iter([])))
    refused = refusal(0, error)

    assert [each.kind for each in task.failures] == [FailureKind.CONTENT]
    assert refused.reason == "unreadable_file"
    assert "a value" not in refused.detail + task.failures[0].detail

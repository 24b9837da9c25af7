"""A store that answers with an empty body for a log entry has no batch committed twice, and no file lost.

Delta's readers take an empty entry for a commit without changes.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log import checkpoints as log_checkpoints
from gamelake.delta.log.codec import LOG_FOLDER, entry_path, live_files
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import CommitOutcome, checkpoint_log, open_table
from gamelake.ledger.held_tables import stream_tables
from gamelake.model.errors import TableRefusedError, TransientError
from gamelake.model.naming import AUDIT_SUPPORT_CALLS
from gamelake.objects.store import Location, Store
from services.audit.maintenance import TableMaintenance
from tests.embedded.memory_store import Answer, MemoryStore, Request, rightly
from tests.unit.audit.test_maintenance import append as append_days
from tests.unit.delta.appends import TABLE, an_append, some_rows

_APPLICATION, _OTHER = "query-0", "query-1"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def location(store: MemoryStore) -> Iterator[Location]:
    with store.served("lake") as location:
        yield location


@pytest.fixture
def batch(tmp_path: Path) -> Callable[[int], TableFiles]:
    """The files of a batch, which a repeated attempt does not write again."""
    return cache(lambda number: an_append(tmp_path, some_rows(3 * number)))


def append(location: Location, entry: TableFiles, number: int, app_id: str = _APPLICATION) -> CommitOutcome:
    """Append a batch as a driver that has just started."""
    with stream_tables(location) as tables:
        return tables.append(entry, BatchTransaction(app_id, number))


class EmptyAnswers:
    """Answers some of the requests for an entry with an empty body."""

    def __init__(self, version: int, requests: int, first: int = 0, table: str = TABLE) -> None:
        self._key = entry_path(table, version)
        self._left = requests
        self._right = first

    def __call__(self, request: Request, answer: Callable[[], Answer]) -> Answer:
        """Answer a request."""
        if request.method != "GET" or request.key != self._key:
            return answer()
        if self._right or not self._left:
            self._right -= bool(self._right)
            return answer()
        self._left -= 1
        return Answer(200, b"", answer().headers)


@pytest.mark.parametrize("committed_since", [0, 2])
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("requests", [1, 2, 99])
def test_a_start_does_not_commit_the_last_batch_again(
    store: MemoryStore,
    location: Location,
    batch: Callable[[int], TableFiles],
    requests: int,
    first: int,
    committed_since: int,
) -> None:
    for number in range(3):
        append(location, batch(number), number)
    for number in range(committed_since):
        append(location, batch(3 + number), number, _OTHER)
    newest = entry_path(TABLE, 2 + committed_since)
    assert newest in store.objects

    store.answering = EmptyAnswers(2, requests, first)
    with suppress(TableRefusedError):
        assert append(location, batch(2), 2) is CommitOutcome.ALREADY_COMMITTED
    store.answering = rightly

    assert append(location, batch(2), 2) is CommitOutcome.ALREADY_COMMITTED
    assert max(key for key in store.objects if f"{LOG_FOLDER}/0" in key) == newest


def test_a_writer_that_follows_the_log_does_not_pass_over_an_entry(
    store: MemoryStore, location: Location, batch: Callable[[int], TableFiles]
) -> None:
    append(location, batch(0), 0)
    with stream_tables(location) as tables:
        tables.append(batch(1), BatchTransaction(_APPLICATION, 1))
        append(location, batch(2), 2)
        store.answering = EmptyAnswers(2, 99)
        with pytest.raises(TableRefusedError, match="the entry has no action"):
            tables.append(batch(2), BatchTransaction(_APPLICATION, 2))
        store.answering = rightly
        assert tables.append(batch(2), BatchTransaction(_APPLICATION, 2)) is CommitOutcome.ALREADY_COMMITTED


@pytest.mark.parametrize("portion", [1, 2**24])
def test_a_log_checkpoint_has_the_files_of_each_entry(
    store: MemoryStore,
    location: Location,
    batch: Callable[[int], TableFiles],
    portion: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_checkpoints, "_MOST_BYTES", portion)
    for number in range(3):
        append(location, batch(number), number)

    store.answering = EmptyAnswers(1, 99)
    assert checkpoint_log(Store(location), TABLE, 2) is None
    store.answering = rightly

    assert checkpoint_log(Store(location), TABLE, 2) == 3
    assert len(open_table(location, TABLE).file_uris()) == 3


def test_the_maintenance_of_an_audit_table_deletes_no_file_of_an_entry(store: MemoryStore, location: Location) -> None:
    append_days(location, 2, 1, 0)
    maintenance = TableMaintenance(location=location, table=AUDIT_SUPPORT_CALLS, retention=timedelta(days=400))
    files = {f"{AUDIT_SUPPORT_CALLS}/{path}" for path in files_of(location)}
    assert len(files) == 3

    store.answering = EmptyAnswers(1, 99, table=AUDIT_SUPPORT_CALLS)
    with pytest.raises(TransientError, match="can't be read whole"):
        maintenance.run()
    store.answering = rightly
    maintenance.run()

    assert files <= store.objects.keys()
    assert {f"{AUDIT_SUPPORT_CALLS}/{path}" for path in files_of(location)} == files


def files_of(location: Location) -> list[str]:
    """The live files of the audit table."""
    return [file.path for file in live_files(open_table(location, AUDIT_SUPPORT_CALLS))]

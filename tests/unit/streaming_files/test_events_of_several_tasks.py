"""An event that several tasks of a batch have found is kept by the first task."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.layers.known_events import Events
from gamelake.ledger.manifests import EventsFile
from gamelake.model.errors import StoreError
from gamelake.objects.store import Location, Store
from gamelake.streaming.files.claims import events_of_earlier_tasks
from gamelake.streaming.files.task import FilesReport
from gamelake.streaming.plan import TaskReport
from tests.unit.properties import examples


def events(names: list[int]) -> Events:
    """Events whose identities differ in either half."""
    numbers = np.array(names, np.int64)
    return Events.of(
        (numbers // 3).astype(np.uint64), (numbers % 3).astype(np.uint64), np.zeros(len(numbers), np.int64)
    )


def names_of(found: Events) -> list[int]:
    return sorted((found.high.astype(np.int64) * 3 + found.rest.astype(np.int64)).tolist())


def report(store: Store, task_number: int, number: int, names: set[int]) -> FilesReport:
    path = f"{task_number}-{number}"
    store.put(path, events(sorted(names)).encode())
    taken = TaskReport(
        task=str(task_number), files=(), offsets=(), dead_letters={}, events=EventsFile(path=path, sections=())
    )
    return FilesReport(task=task_number, report=taken, results=())


@examples(60)
@given(st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 12), unique=True, max_size=8)))
def test_each_event_is_kept_by_the_first_task_that_has_it(
    tmp_path_factory: pytest.TempPathFactory, tasks: dict[int, list[int]]
) -> None:
    store = Store(Location(uri=f"file://{tmp_path_factory.getbasetemp()}/claims"))
    # Each task reports its events in two chunks without common events.
    reports = [
        report(store, task_number, number, set(names[number::2]))
        for task_number, names in sorted(tasks.items())
        for number in range(2)
        if names[number::2]
    ]

    claims = events_of_earlier_tasks(store, reports)

    before: set[int] = set()
    for task_number, names in sorted(tasks.items()):
        claimed = names_of(claims[task_number]) if task_number in claims else []
        assert claimed == sorted(before & set(names))
        before |= set(names)


def test_a_batch_is_not_decided_without_the_identities_of_one_of_its_tasks(tmp_path: Path) -> None:
    store = Store(Location(uri=f"file://{tmp_path}"))
    reports = [report(store, task_number, 0, {1, 2}) for task_number in range(2)]
    store.delete("0-0")

    with pytest.raises(StoreError, match="0-0 is missing, though a task has just written it"):
        events_of_earlier_tasks(store, reports)

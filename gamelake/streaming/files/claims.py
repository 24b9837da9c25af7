"""Finds events that several tasks of a batch of files have ingested: the task with the lowest number keeps each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gamelake.layers.known_events import Events
from gamelake.model.errors import TwiceTakenError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.streaming.files.task import FilesReport

log = event_logger(__name__)


@dataclass
class Claims:
    """The events that each task of a batch must leave to other tasks; they grow with each run of the tasks.

    Attributes:
        store: the lakehouse.
        by_task: the events, by the number of the task that must leave them to others.
    """

    store: Store
    by_task: dict[int, Events] = field(default_factory=dict)

    def grow(self, reports: Sequence[FilesReport]) -> bool:
        """Add the events that several tasks of a run have ingested.

        Args:
            reports: of all tasks of the run.

        Returns:
            False if there are none, so that the files of the run can be committed.

        Raises:
            StoreError: the identities of a task are missing.
            TwiceTakenError: a task has ingested only events that it knew to be another task's.
        """
        repeated = events_of_earlier_tasks(self.store, reports)
        if not repeated:
            return False
        log.info("batch_decided_again", reason="tasks have events that other tasks have too", tasks=len(repeated))
        are_new = [self._add(number, events) for number, events in repeated.items()]
        if not any(are_new):
            raise TwiceTakenError(
                "a task of a batch has ingested events that another task of the batch has too. Nothing was "
                "committed; the next start decides the batch again"
            )
        return True

    def _add(self, task: int, events: Events) -> bool:
        """Add events of a task; return True if any of them is new."""
        known = self.by_task.get(task, events.take(np.zeros(0, np.int64)))
        self.by_task[task] = Events.joined([known, events])
        return _distinct(self.by_task[task]) > _distinct(known)


def _distinct(events: Events) -> int:
    return int(np.unique(np.stack([events.high, events.low]), axis=1).shape[1])


def events_of_earlier_tasks(store: Store, reports: Sequence[FilesReport]) -> dict[int, Events]:
    """Find the events of each task that a task with a lower number has too; times are not compared.

    Args:
        store: the lakehouse, which has the identity files of the reports.
        reports: of all tasks of a batch.

    Returns:
        The repeated events by task number, without tasks that have none.

    Raises:
        StoreError: the identities of a task are missing.
    """
    taken: dict[int, list[Events]] = {}
    for each in reports:
        if each.report.events is not None:
            content = store.require(each.report.events.path, "a task has just written it; start the job again")
            taken.setdefault(each.task, []).append(Events.decode(content))
    if len(taken) < 2:  # noqa: PLR2004 # one task alone has no duplicates in others
        return {}
    numbers = np.concatenate([np.full(sum(map(len, parts)), task) for task, parts in taken.items()])
    events = Events.joined([part for parts in taken.values() for part in parts])
    order = np.lexsort((numbers, events.low, events.high))
    high, low, by = events.high[order], events.low[order], numbers[order]
    again = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1])) + 1
    return {int(number): events.take(order[again[by[again] == number]]) for number in np.unique(by[again])}

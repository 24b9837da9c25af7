"""A batch whose table another writer has given other columns is decided again only by a decider that can use them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gamelake.model.naming import game_table
from gamelake.objects.store import Store
from gamelake.serving.live_ops.decider import LiveOpsDecider
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.stream import Stream
from tests.support.manifests import files_of, offsets_of
from tests.unit.streaming.streams import a_stream, run_batch

TABLE = game_table("archery")


class ScoreDecider:
    """Decides batches of one row with a score, which is a number until the decider learns that it is a text.

    Attributes:
        can_learn: False if it keeps its columns.
        decisions: the number of decisions.
    """

    def __init__(self, store: Store, *, can_learn: bool) -> None:
        self._store = store
        self._rows = pa.table({"event_id": ["new"], "score": [1]})
        self.can_learn = can_learn
        self.decisions = 0

    def decide(self, records: object, planned: object, plan: object) -> Decision:
        del records, planned, plan
        self.decisions += 1
        return Decision((offsets_of(0, 0),), (files_of(self._store, TABLE, self._rows),), {}, {}, ())

    def learn(self, columns: Mapping[str, pa.Schema]) -> bool:
        """Take the type of the table."""
        if self.can_learn:
            self._rows = self._rows.cast(columns[TABLE])
        return self.can_learn


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Another writer has made the table; its scores are texts."""
    write_deltalake(tmp_path / TABLE, pa.table({"event_id": ["old"], "score": ["high"]}))
    return a_stream(tmp_path)


def test_a_decider_that_learns_the_columns_decides_again(tmp_path: Path, stream: Stream) -> None:
    decider = ScoreDecider(stream.store, can_learn=True)

    run_batch(tmp_path, decider)

    assert decider.decisions == 2
    assert stream.held.all() == {}


def test_a_decider_that_keeps_its_columns_decides_once_and_its_table_is_held_back(
    tmp_path: Path, stream: Stream
) -> None:
    decider = ScoreDecider(stream.store, can_learn=False)

    run_batch(tmp_path, decider)

    assert decider.decisions == 1
    assert list(stream.held.all()) == [TABLE]


def test_live_operations_keep_their_columns_because_a_second_decision_would_count_minutes_twice() -> None:
    assert LiveOpsDecider.learn(cast("Any", None), {}) is False

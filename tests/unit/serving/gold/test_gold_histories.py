"""Whatever happens to silver, in whatever order, gold is what a full recompute gives."""

import tempfile
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from deltalake.exceptions import TableNotFoundError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from gamelake.contract.aggregates import AggregateSpec
from gamelake.objects.store import Location
from gamelake.serving.gold import runs
from gamelake.serving.gold.table import GoldWriter
from tests.unit.properties import examples
from tests.unit.serving.gold.histories import (
    HOURLY,
    PLAYERS,
    SILVER,
    SPECS,
    Event,
    append,
    erase,
    gold,
    gold_handle,
    recomputed,
    refresh,
    silver,
)

_PLAYERS = st.sampled_from(["ann", "bob", "cid", "dora", None])
_AMOUNTS = st.none() | st.integers(0, 500).map(lambda cents: cents / 100)
_EVENTS = st.lists(st.tuples(_PLAYERS, st.integers(0, 150), _AMOUNTS), min_size=1, max_size=6)


class EndedError(Exception):
    """The job ended here."""


class Histories(RuleBasedStateMachine):
    """A silver table and gold tables of it."""

    @initialize(events=_EVENTS)
    def begin(self, events: list[Event]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.lake = Location(uri=f"file://{Path(self.folder.name)}")
        append(self.lake, events)
        self.oldest = 0

    @rule(events=_EVENTS, day=st.integers(0, 2))
    def events_come(self, events: list[Event], day: int) -> None:
        append(self.lake, events, day)

    @rule(player=_PLAYERS)
    def a_player_is_deleted(self, player: str | None) -> None:
        silver(self.lake).delete("gamer_id IS NULL" if player is None else f"gamer_id = '{player}'")

    @rule(minute=st.integers(0, 59))
    def some_events_are_deleted(self, minute: int) -> None:
        silver(self.lake).delete(f"extract(minute FROM event_time) >= {minute}")

    @rule(player=st.sampled_from(["ann", "bob", "cid"]), meanwhile=st.booleans(), purged=st.booleans())
    def a_player_is_erased(self, player: str, *, meanwhile: bool, purged: bool) -> None:
        erase(self.lake, SILVER, player)
        if purged:
            silver(self.lake).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
            self.oldest = silver(self.lake).version()
        if meanwhile:
            for spec in SPECS:
                refresh(self.lake, spec)
        erase(self.lake, PLAYERS.table("archery_duel"), player)

    @precondition(lambda self: silver(self.lake).version() > self.oldest)
    @rule(data=st.data())
    def silver_is_restored(self, data: st.DataObject) -> None:
        table = silver(self.lake)
        table.restore(data.draw(st.integers(self.oldest, table.version() - 1)))

    @rule()
    def silver_is_compacted(self) -> None:
        silver(self.lake).optimize.compact()

    @rule(spec=st.sampled_from(SPECS))
    def a_refresh_ends_before_its_commit(self, spec: AggregateSpec) -> None:
        with patch.object(GoldWriter, "commit", side_effect=EndedError), suppress(EndedError):
            refresh(self.lake, spec)

    @rule(spec=st.sampled_from([PLAYERS, HOURLY]))
    def a_gold_table_is_compacted_by_another_process(self, spec: AggregateSpec) -> None:
        with suppress(TableNotFoundError):
            gold_handle(self.lake, spec).optimize.compact()

    @rule()
    def gold_is_refreshed(self) -> None:
        for spec in SPECS:
            refresh(self.lake, spec)
            assert gold(self.lake, spec) == recomputed(self.lake, spec)

    def teardown(self) -> None:
        self.gold_is_refreshed()
        self.folder.cleanup()


@pytest.mark.parametrize("rows_per_run", [2, runs.ROWS_PER_RUN])
def test_gold_equals_a_recompute_after_any_history(rows_per_run: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROWS_PER_RUN", rows_per_run)
    run_state_machine_as_test(Histories, settings=settings(examples(15), stateful_step_count=8))

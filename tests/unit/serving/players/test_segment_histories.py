"""Whatever happens to silver, gold and the platform, in whatever order, segments are what silver says."""

import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from deltalake import DeltaTable
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.gold import runs
from tests.support.silver_events import BEGINNING, Event, Silver
from tests.unit.properties import examples
from tests.unit.serving.players.player_lake import SEGMENTS, PlayerLake

_EVENTS = st.lists(
    st.builds(
        Event,
        at=st.builds(
            lambda day, minute: BEGINNING + timedelta(days=day, minutes=minute),
            st.sampled_from([0, 1, 2, 7, 8, 29, 30, 31]),
            st.integers(0, 1_439) | st.sampled_from([239, 240, 1_109, 1_110]),
        ),
        game=st.sampled_from(["Archery", "Bingo's"]),
        gamer=st.sampled_from(["ann", "bob", "cid", "dora", None]),
        session=st.sampled_from(["1", "2", "", None]),
        name=st.sampled_from(["level_completed", "purchase", "session_start", "smoke_test", None]),
        amount=st.sampled_from([None, 0.5, 5.0]),
        platform=st.sampled_from(["ios", "android", None]),
        version=st.sampled_from(["1.0", "1.1"]),
        country=st.sampled_from(["FR", "DE", None]),
    ),
    min_size=1,
    max_size=6,
)
_ZONES = st.dictionaries(
    st.sampled_from(["Archery", "Bingo's"]), st.sampled_from(["Asia/Kolkata", "America/New_York", "UTC"])
)
_PLAYERS = st.sampled_from(["ann", "bob", "cid", "dora"])


class EndedError(Exception):
    """The job ended here."""


class Histories(RuleBasedStateMachine):
    """A lakehouse whose segments are refreshed again and again."""

    @initialize(events=_EVENTS, zones=_ZONES)
    def begin(self, events: list[Event], zones: dict[str, str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        today = (BEGINNING + timedelta(days=1)).date()
        self.lake = PlayerLake(Silver(Path(self.folder.name)), today=today, zones=zones)
        self.lake.silver.append(events)

    @property
    def silver(self) -> DeltaTable:
        return DeltaTable(self.lake.silver.folder / SILVER_EVENTS)

    @rule(events=_EVENTS)
    def events_come(self, events: list[Event]) -> None:
        self.lake.silver.append(events)

    @rule(player=_PLAYERS, meanwhile=st.booleans())
    def a_player_is_erased(self, player: str, *, meanwhile: bool) -> None:
        self.lake.erase(player, [SILVER_EVENTS])
        if meanwhile:
            self.lake.run_segments()
        self.lake.erase(player)

    @rule(minute=st.integers(0, 59))
    def some_events_are_deleted(self, minute: int) -> None:
        self.silver.delete(f"extract(minute FROM event_time) >= {minute}")

    @precondition(lambda self: self.silver.version() > 0)
    @rule(data=st.data())
    def silver_is_restored(self, data: st.DataObject) -> None:
        self.silver.restore(data.draw(st.integers(0, self.silver.version() - 1)))

    @rule(table=st.sampled_from(["all_player_days", "kpi_players", "segments"]))
    def a_table_is_compacted_by_another_process(self, table: str) -> None:
        if DeltaTable.is_deltatable(str(self.lake.silver.folder / "gold" / table)):
            DeltaTable(self.lake.silver.folder / "gold" / table).optimize.compact()

    @rule(table=st.sampled_from(["all_player_days", "kpi_players", "segments"]))
    def a_table_is_changed_by_another_process(self, table: str) -> None:
        if DeltaTable.is_deltatable(str(self.lake.silver.folder / "gold" / table)):
            DeltaTable(self.lake.silver.folder / "gold" / table).delete("game_name = 'Archery'")

    @rule(hour=st.sampled_from([3, 4, 18, 19]))
    def days_begin_in_a_zone(self, hour: int) -> None:
        if hour < self.lake.hour:
            self.lake.today += timedelta(days=1)
        self.lake.hour = hour

    @rule(days=st.integers(1, 29))
    def days_begin(self, days: int) -> None:
        self.lake.today += timedelta(days=days)

    @rule()
    def the_job_begins_again(self) -> None:
        self.lake.begin_again()

    @rule(names=st.sets(st.sampled_from([each.name for each in SEGMENTS])))
    def the_contract_has_other_segments(self, names: set[str]) -> None:
        self.lake.segments = tuple(each for each in SEGMENTS if each.name in names)
        self.lake.job.use(self.lake.segments, ())

    @rule()
    def a_refresh_ends_before_its_commit(self) -> None:
        self.lake.run()
        with patch.object(Failpoints, "reach", side_effect=EndedError), suppress(EndedError):
            self.lake.job()

    @rule()
    def segments_are_refreshed(self) -> None:
        assert self.lake.run_segments().failed == {}
        self.lake.check()

    def teardown(self) -> None:
        self.segments_are_refreshed()
        self.folder.cleanup()


@pytest.mark.parametrize("rows_per_run", [2, runs.ROWS_PER_RUN])
def test_segments_and_their_topic_equal_silver_after_any_history(
    rows_per_run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ROWS_PER_RUN", rows_per_run)
    run_state_machine_as_test(Histories, settings=settings(examples(10), stateful_step_count=8))

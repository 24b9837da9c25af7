"""Batches under rules, and replays of quarantined rows."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.contract.games import GamesContract, UnlistedGames
from gamelake.delta.tables import DeltaTables
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.errors import BrokenRuleError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, RELEASED, REPLAYED, SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.quality.checking import CheckedRules, check_rules
from gamelake.quality.rules import load_rules
from gamelake.recovery.replay.execution import LocalReader, Selection, SparkReader
from gamelake.recovery.replay.replayer import Replayed, Replayer, ReplayRequest
from gamelake.scans.player_rows import PlayerFilter, player_tables
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.plan import TaskPlan
from tests.spark.records import CONTRACT, KnownSchemas, PlannedRecord, as_frame, commit, planned
from tests.unit.quality.rules_and_rows import a_rule, written

ARCHERY, BINGO = "silver/archery_events", "silver/bingo_events"
STRICT = GamesContract(games=CONTRACT.games[:1], unlisted_games=UnlistedGames.DEAD_LETTERS)
NOT_BAD = a_rule("not_bad", "NOT starts_with(event_id, 'bad')")
_TABLES = (ARCHERY, BINGO, SILVER_EVENTS, QUARANTINE, BRONZE_EVENTS)


@dataclass
class _Fixed:
    """Rules that a test changes."""

    rules: CheckedRules
    refused: str = ""

    def now(self) -> CheckedRules:
        return self.rules


class RuledLakehouse:
    """A lakehouse whose batches are judged."""

    def __init__(self, spark: SparkSession, folder: Path, reader: type[LocalReader | SparkReader]) -> None:
        self.spark = spark
        self.reader = reader
        self.schemas = KnownSchemas(folder / "lake")
        self.folder = folder
        self.records = 0
        self.batches = 0
        self.plain = self.schemas.add()

    def rules(self, *rules: dict[str, object]) -> CheckedRules:
        return check_rules(load_rules(written(self.folder / "rules", *rules)), COMMON_SCHEMA, ())

    def take(
        self, ids: list[str], rules: CheckedRules, game: str = "Archery", contract: GamesContract = CONTRACT
    ) -> Decision:
        values = [self.schemas.value(self.plain, each, game, gamer_id=f"player of {each}") for each in ids]
        records = [PlannedRecord(self.records + n, value) for n, value in enumerate(values)]
        with DeltaTables(self.schemas.location) as tables:
            decider = self.schemas.decider(tables, _TABLES, contract=contract, rules=_Fixed(rules))
            decision = decider.decide(as_frame(self.spark, records), planned(records))
            commit(tables, decision, self.batches)
        self.records += len(ids)
        self.batches += 1
        return decision

    def replay(self, source: str, rules: CheckedRules, *names: str) -> Replayed:
        with DeltaTables(self.schemas.location) as tables:
            return self._replayer(tables, rules).replay(ReplayRequest(Selection(source=source, rules=names)))

    def dry_run(self, source: str, rules: CheckedRules) -> Replayed:
        with DeltaTables(self.schemas.location) as tables:
            return self._replayer(tables, rules).dry_run(ReplayRequest(Selection(source=source)))

    def _replayer(self, tables: DeltaTables, rules: CheckedRules) -> Replayer:
        location = self.schemas.location
        plan = TaskPlan(lakehouse=location, registry_url="http://127.0.0.1:9", topic="", contract=CONTRACT)
        reader = LocalReader(location) if self.reader is LocalReader else SparkReader(self.spark, location)
        return Replayer(reader, tables, replace(plan, rules=rules), Failpoints())

    def rows(self, table: str) -> pa.Table:
        return DeltaTable(self.schemas.folder / table).to_pyarrow_table()

    def ids(self, table: str) -> Counter[str]:
        return Counter(self.rows(table)["event_id"].to_pylist())


@pytest.fixture(params=[LocalReader, SparkReader])
def lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> RuledLakehouse:
    return RuledLakehouse(spark, tmp_path, request.param)


@pytest.fixture
def here(spark: SparkSession, tmp_path: Path) -> RuledLakehouse:
    return RuledLakehouse(spark, tmp_path, LocalReader)


def test_a_batch_is_judged_in_all_its_tasks_together(here: RuledLakehouse) -> None:
    rules = here.rules(
        NOT_BAD,
        a_rule("dropped", "NOT starts_with(event_id, 'drop')", severity="drop"),
        a_rule("warned", "NOT starts_with(event_id, 'warn')", severity="warn"),
    )

    decision = here.take(["good-1", "bad-1", "warn-1", "drop-1", "bad-2", "good-2", "warn-2", "drop-2"], rules)

    assert decision.judged.quarantined == {"not_bad": 2}
    assert decision.judged.dropped == {"dropped": 2}
    assert {each.rule: each.broken for each in decision.judged.counts} == {"not_bad": 2, "dropped": 2, "warned": 2}
    assert decision.judged.rows == {"archery": 8}
    assert here.ids(QUARANTINE) == Counter(["bad-1", "bad-2"])
    assert here.ids(ARCHERY) == here.ids(SILVER_EVENTS) == Counter(["good-1", "good-2", "warn-1", "warn-2"])
    assert here.rows(BRONZE_EVENTS).num_rows == 8


def test_an_erased_player_is_erased_in_the_quarantine_too(here: RuledLakehouse) -> None:
    here.take(["bad-1", "bad-2"], here.rules(NOT_BAD))
    store = Store(here.schemas.location)
    table = next(each for each in player_tables(store) if each.name == QUARANTINE)
    everybody = PlayerFilter(frozenset(here.rows(QUARANTINE)["gamer_id"].to_pylist()))

    RowEraser(store, table, everybody, "run").erase()

    assert here.rows(QUARANTINE).num_rows == 0


def test_quarantined_rows_land_once_after_their_rule_is_repaired_and_the_rest_stays(lake: RuledLakehouse) -> None:
    lake.take(["good", "bad-1", "bad-2", "other-1"], lake.rules(NOT_BAD, a_rule("other", "event_id <> 'other-1'")))
    today = lake.rules(a_rule("not_bad", "event_id <> 'bad-2'"), a_rule("other", "event_id <> 'other-1'"))

    planned = lake.dry_run(QUARANTINE, today)
    first, second = lake.replay(QUARANTINE, today), lake.replay(QUARANTINE, today)

    assert first.rows == {ARCHERY: 1, SILVER_EVENTS: 1, RELEASED: 1} == planned.rows
    assert (first.records, first.quarantined) == (3, {"not_bad": 1, "other": 1})
    assert (second.records, second.rows, second.run) == (2, {}, None)
    assert lake.ids(ARCHERY) == lake.ids(SILVER_EVENTS) == Counter(["good", "bad-1"])
    (mark,) = lake.rows(RELEASED).to_pylist()
    assert (mark["rule"], mark["offset"], mark["run"]) == ("not_bad", 1, first.run)
    assert lake.ids(QUARANTINE) == Counter(["bad-1", "bad-2", "other-1"])


def test_only_rows_quarantined_by_the_named_rules_are_replayed(here: RuledLakehouse) -> None:
    here.take(["bad-1", "other-1"], here.rules(NOT_BAD, a_rule("other", "event_id <> 'other-1'")))

    replayed = here.replay(QUARANTINE, here.rules(a_rule()), "other")

    assert (replayed.records, replayed.rows[ARCHERY]) == (1, 1)
    assert here.ids(ARCHERY) == Counter(["other-1"])


def test_a_dead_letter_that_becomes_readable_and_breaks_a_rule_is_quarantined_and_settled(here: RuledLakehouse) -> None:
    rules = here.rules(NOT_BAD)
    here.take(["good", "bad"], rules, "Bingo", STRICT)

    first, second = here.replay(DEAD_LETTERS, rules), here.replay(DEAD_LETTERS, rules)

    assert first.rows == {BINGO: 1, SILVER_EVENTS: 1, QUARANTINE: 1, REPLAYED: 2}
    assert (second.records, second.run) == (0, None)
    (row,) = here.rows(QUARANTINE).to_pylist()
    assert (row["event_id"], row["game"], row["rule"], row["kafka_offset"]) == ("bad", "bingo", "not_bad", 1)


def test_rows_backfilled_from_bronze_are_evaluated_and_none_is_quarantined_twice(here: RuledLakehouse) -> None:
    rules = here.rules(NOT_BAD)
    here.take(["one", "bad-1"], rules)
    here.take(["two", "bad-2"], here.rules(a_rule()))
    for table in (ARCHERY, SILVER_EVENTS):
        DeltaTable(here.schemas.folder / table).restore(0)

    first, second = here.replay(BRONZE_EVENTS, rules), here.replay(BRONZE_EVENTS, rules)

    assert first.rows == {ARCHERY: 1, SILVER_EVENTS: 1, QUARANTINE: 1}
    assert second.run is None
    assert here.ids(ARCHERY) == Counter(["one", "two"])
    assert here.ids(QUARANTINE) == Counter(["bad-1", "bad-2"])


def test_what_nothing_may_break_stops_a_replay_before_it_changes_anything(here: RuledLakehouse) -> None:
    here.take(["bad-1"], here.rules(NOT_BAD))

    with pytest.raises(BrokenRuleError, match="1 rows of archery break 'not_bad'"):
        here.replay(QUARANTINE, here.rules(NOT_BAD | {"severity": "fail"}))

    assert not DeltaTable.is_deltatable(str(here.schemas.folder / RELEASED))

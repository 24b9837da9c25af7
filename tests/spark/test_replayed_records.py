"""Records decoded once more: dead letters, what bronze has and silver lacks, and rows with a column that came later."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from gamelake.contract.games import GamesContract, UnlistedGames
from gamelake.contract.messages import MappedColumn, MessageSpec
from gamelake.delta.tables import DeltaTables
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, REPLAYED, SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from gamelake.recovery.backfill import RewriteError, Rewriter, RewrittenTable
from gamelake.recovery.replay.execution import LocalReader, Selection, SparkReader
from gamelake.recovery.replay.replayer import Replayed, Replayer, ReplayRequest
from gamelake.recovery.replay.task import DayRange
from gamelake.streaming.plan import TaskPlan
from tests.spark.records import CONTRACT, KnownSchemas, PlannedRecord, as_frame, commit, planned

ARCHERY = "silver/archery_events"
STRICT = GamesContract(games=CONTRACT.games[:1], unlisted_games=UnlistedGames.DEAD_LETTERS)
LETTERS, BRONZE = Selection(source=DEAD_LETTERS), Selection(source=BRONZE_EVENTS)


class ReplayedLakehouse:
    """A lakehouse that takes batches, and replays."""

    def __init__(self, spark: SparkSession, folder: Path, reader: type[LocalReader | SparkReader]) -> None:
        self.spark = spark
        self.reader = reader
        self.schemas = KnownSchemas(folder)
        self.batches = 0
        self.records = 0

    def take(self, values: list[bytes], contract: GamesContract = CONTRACT) -> None:
        """A batch as the stream takes it."""
        records = [PlannedRecord(self.records + n, value) for n, value in enumerate(values)]
        with DeltaTables(self.schemas.location) as tables:
            decider = self.schemas.decider(tables, [ARCHERY, SILVER_EVENTS], contract=contract)
            commit(tables, decider.decide(as_frame(self.spark, records), planned(records)), self.batches)
        self.batches += 1
        self.records += len(values)

    def replayer(self, tables: DeltaTables, contract: GamesContract) -> Replayer:
        decoding = TaskPlan(
            lakehouse=self.schemas.location, registry_url="http://127.0.0.1:9", topic="", contract=contract
        )
        location = self.schemas.location
        reader = LocalReader(location) if self.reader is LocalReader else SparkReader(self.spark, location)
        return Replayer(reader, tables, decoding, Failpoints())

    def replay(self, asked: ReplayRequest, contract: GamesContract = CONTRACT) -> Replayed:
        with DeltaTables(self.schemas.location) as tables:
            return self.replayer(tables, contract).replay(asked)

    def dry_run(self, asked: ReplayRequest, contract: GamesContract = CONTRACT) -> Replayed:
        with DeltaTables(self.schemas.location) as tables:
            return self.replayer(tables, contract).dry_run(asked)

    def rewrite(self, table: str) -> RewrittenTable:
        with DeltaTables(self.schemas.location) as tables:
            return Rewriter(self.replayer(tables, CONTRACT), self.spark).rewrite(table, DayRange())

    def rewrite_dry_run(self, table: str) -> RewrittenTable:
        with DeltaTables(self.schemas.location) as tables:
            return Rewriter(self.replayer(tables, CONTRACT), self.spark).dry_run(table, DayRange())

    def rows(self, table: str) -> pa.Table:
        return DeltaTable(self.schemas.folder / table).to_pyarrow_table()

    def ids(self, table: str) -> Counter[str]:
        return Counter(self.rows(table)["event_id"].to_pylist())

    def events(self, ids: list[str], game: str, schema: int) -> list[bytes]:
        return [self.schemas.value(schema, each, game) for each in ids]


@pytest.fixture(params=[LocalReader, SparkReader])
def lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> ReplayedLakehouse:
    return ReplayedLakehouse(spark, tmp_path, request.param)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{n}" for n in range(count)]


def test_dead_letters_of_a_game_that_was_unknown_land_once_and_are_marked(lake: ReplayedLakehouse) -> None:
    plain = lake.schemas.add()
    lake.take(lake.events(names("a", 5), "Archery", plain), STRICT)
    lake.take([*lake.events(names("b", 7), "Bingo", plain), b"poison"], STRICT)

    planned = lake.dry_run(ReplayRequest(LETTERS))
    first, second = lake.replay(ReplayRequest(LETTERS)), lake.replay(ReplayRequest(LETTERS))

    assert first.rows == {"silver/bingo_events": 7, SILVER_EVENTS: 7, REPLAYED: 7} == planned.rows
    assert (first.records, first.still_dead) == (8, {"bad_framing": 1})
    assert (second.records, second.rows, second.run) == (1, {}, None)
    assert lake.ids("silver/bingo_events") == Counter(names("b", 7))
    assert lake.ids(SILVER_EVENTS) == Counter(names("a", 5) + names("b", 7))
    marks = lake.rows(REPLAYED)
    assert sorted(marks["offset"].to_pylist()) == list(range(5, 12))
    assert set(marks["reason"].to_pylist()) == {"unroutable"}


def mapped_by(sql: str) -> GamesContract:
    """The contract, with a mapping of the game event."""
    mapping = MessageSpec(message="gamelake.events.GameEvent", columns={MappedColumn.GAMER_ID: sql})
    return msgspec.structs.replace(CONTRACT, messages=(mapping,))


def test_dead_letters_whose_mapping_did_not_fit_their_schema_land_once_it_does(lake: ReplayedLakehouse) -> None:
    plain = lake.schemas.add()
    lake.take(lake.events(names("a", 5), "Archery", plain), mapped_by("pilot.name"))

    replayed = lake.replay(ReplayRequest(LETTERS), mapped_by("concat('p-', event_id)"))

    assert replayed.rows == {ARCHERY: 5, SILVER_EVENTS: 5, REPLAYED: 5}
    assert set(lake.rows(REPLAYED)["reason"].to_pylist()) == {"incompatible_schema"}
    assert sorted(lake.rows(ARCHERY)["gamer_id"].to_pylist()) == [f"p-a-{n}" for n in range(5)]


def test_a_dead_letter_whose_event_was_sent_again_is_settled_and_no_second_row(lake: ReplayedLakehouse) -> None:
    plain = lake.schemas.add()
    lake.take(lake.events(["again", "other"], "Bingo", plain), STRICT)
    lake.take(lake.events(["again"], "Bingo", plain))

    replayed = lake.replay(ReplayRequest(LETTERS))

    assert replayed.rows == {"silver/bingo_events": 1, SILVER_EVENTS: 1, REPLAYED: 2}
    assert lake.ids("silver/bingo_events") == Counter(["again", "other"])


def test_only_letters_of_the_reasons_that_are_asked_for_are_replayed(lake: ReplayedLakehouse) -> None:
    plain = lake.schemas.add()
    lake.take([*lake.events(names("b", 3), "Bingo", plain), b"", b"poison"], STRICT)

    replayed = lake.replay(ReplayRequest(Selection(source=DEAD_LETTERS, reasons=("bad_framing",))))

    assert (replayed.records, replayed.still_dead, replayed.run) == (2, {"bad_framing": 2}, None)


def test_rows_that_a_table_lost_come_back_from_bronze_and_no_others(lake: ReplayedLakehouse) -> None:
    plain = lake.schemas.add()
    for batch in range(3):
        lake.take(lake.events(names(f"batch{batch}", 4), "Archery", plain))
    DeltaTable(lake.schemas.folder / ARCHERY).restore(0)

    replayed = lake.replay(ReplayRequest(BRONZE, frozenset([ARCHERY])))

    assert replayed.rows == {ARCHERY: 8}
    assert lake.ids(ARCHERY) == lake.ids(SILVER_EVENTS)
    assert lake.replay(ReplayRequest(BRONZE)).rows == {}


def record_erasure(lake: ReplayedLakehouse, player: str) -> None:
    ErasureRecords(Store(lake.schemas.location)).begin(ErasureRequest.new("operator", "archery", (player,), Reach.ROWS))


def test_a_replay_writes_no_row_of_a_player_whose_erasure_is_recorded(lake: ReplayedLakehouse) -> None:
    schema = lake.schemas.add()
    players = [lake.schemas.value(schema, each, "Archery", gamer_id=each[:4]) for each in ("anna-0", "anna-1", "ben-0")]
    lake.take(players, mapped_by("pilot.name"))
    lake.take(players)
    for table in (ARCHERY, SILVER_EVENTS):
        DeltaTable(lake.schemas.folder / table).delete()
    record_erasure(lake, "anna")

    letters, records = lake.replay(ReplayRequest(LETTERS)), lake.replay(ReplayRequest(BRONZE))

    assert letters.erased == {ARCHERY: 2, SILVER_EVENTS: 2}
    assert records.erased == {ARCHERY: 2, SILVER_EVENTS: 2}
    assert set(lake.rows(ARCHERY)["gamer_id"].to_pylist()) == {"ben-"}
    assert set(lake.rows(SILVER_EVENTS)["gamer_id"].to_pylist()) == {"ben-"}


class DiesAfterItsManifest(Failpoints):
    """The process ends once the manifest is written."""

    def reach(self, point: Failpoint) -> None:
        if point is Failpoint.AFTER_MANIFEST:
            raise InterruptedError


def test_a_replay_that_died_brings_back_no_player_who_was_erased_meanwhile(lake: ReplayedLakehouse) -> None:
    schema = lake.schemas.add()
    lake.take([lake.schemas.value(schema, each, "Archery", gamer_id=each[:4]) for each in ("anna-0", "ben-0")])
    for table in (ARCHERY, SILVER_EVENTS):
        DeltaTable(lake.schemas.folder / table).delete()
    with DeltaTables(lake.schemas.location) as tables:
        dying = replace(lake.replayer(tables, CONTRACT), failpoints=DiesAfterItsManifest())
        with pytest.raises(InterruptedError):
            dying.replay(ReplayRequest(BRONZE))
    record_erasure(lake, "anna")

    lake.replay(ReplayRequest(BRONZE))

    assert lake.rows(ARCHERY)["gamer_id"].to_pylist() == ["ben-"]
    assert lake.rows(SILVER_EVENTS)["gamer_id"].to_pylist() == ["ben-"]


def test_a_rewrite_waits_for_an_erasure_that_is_recorded(lake: ReplayedLakehouse) -> None:
    schema = lake.schemas.add()
    lake.take([lake.schemas.value(schema, each, "Archery", gamer_id=each[:4]) for each in ("anna-0", "ben-0")])
    before = DeltaTable(lake.schemas.folder / ARCHERY).version()
    record_erasure(lake, "anna")

    with pytest.raises(RewriteError, match="1 rows of silver/archery_events are of players whose erasure is recorded"):
        lake.rewrite(ARCHERY)

    assert DeltaTable(lake.schemas.folder / ARCHERY).version() == before


def test_of_an_event_that_bronze_has_twice_one_row_comes_back(lake: ReplayedLakehouse) -> None:
    plain = lake.schemas.add()
    lake.take(lake.events(["one"], "Archery", plain))
    lake.take(lake.events(["two", "two", "one"], "Archery", plain), STRICT)
    for table in (ARCHERY, SILVER_EVENTS):
        DeltaTable(lake.schemas.folder / table).restore(0)

    assert lake.replay(ReplayRequest(BRONZE)).rows == {ARCHERY: 1, SILVER_EVENTS: 1}


def test_rows_get_a_column_that_older_code_did_not_write(lake: ReplayedLakehouse) -> None:
    boosted = lake.schemas.add("bool boosted = 60;")
    lake.take(
        [lake.schemas.value(boosted, each, "Archery", event_params={"boosted": True}) for each in names("old", 6)]
    )
    of_older_code = lake.rows(ARCHERY).drop_columns(["boosted"])
    write_deltalake(lake.schemas.folder / ARCHERY, of_older_code, mode="overwrite", schema_mode="overwrite")

    planned, rewritten = lake.rewrite_dry_run(ARCHERY), lake.rewrite(ARCHERY)
    lake.take(lake.events(names("new", 2), "Archery", boosted))

    assert (planned.rows, planned.version) == (6, None)
    assert (rewritten.rows, rewritten.new_columns) == (6, ("boosted",))
    rows = lake.rows(ARCHERY).select(["event_id", "boosted"]).to_pylist()
    assert {row["event_id"] for row in rows if row["boosted"]} == set(names("old", 6))
    assert lake.ids(ARCHERY) == Counter(names("old", 6) + names("new", 2))


def test_a_rewrite_that_would_lose_rows_is_refused(lake: ReplayedLakehouse) -> None:
    plain = lake.schemas.add()
    lake.take(lake.events(names("a", 6), "Archery", plain))
    before = DeltaTable(lake.schemas.folder / ARCHERY).version()
    DeltaTable(lake.schemas.folder / BRONZE_EVENTS).delete("`offset` < 2")

    with pytest.raises(RewriteError, match="of 6 rows of silver/archery_events, bronze still has 4"):
        lake.rewrite(ARCHERY)

    assert DeltaTable(lake.schemas.folder / ARCHERY).version() == before

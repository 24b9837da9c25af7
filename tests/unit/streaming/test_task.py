"""A fan-out task: every record ends in exactly one place, and the counts of every batch match."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.exceptions import BaseError

from gamelake.contract.games import (
    AmountLimits,
    EventTimeLimits,
    GamesContract,
    GameSpec,
    PartitionColumn,
    UnlistedGames,
)
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS
from gamelake.streaming.plan import ChunkLimits
from tests.unit.properties import examples
from tests.unit.streaming.tasks import (
    KART,
    KART_TABLE,
    NOON,
    YETI_TABLE,
    KafkaTaskRecord,
    TaskLakehouse,
    TaskOutcome,
    a_record,
    a_spoiled_record,
    numbered,
)

_KINDS = {
    "kart": a_record(1),
    "kart of version 2": a_record(2, purchase={"productId": "gem"}),
    "yeti": a_record(3, gameName="Yeti Ski", attributes={"a": "b"}),
    "yesterday": a_record(1, eventTime="2025-12-31T23:00:00Z"),
    "spoiled": a_spoiled_record(),
    "no frame": KafkaTaskRecord(value=b"hello"),
    "no value": KafkaTaskRecord(value=None),
    "no time": a_record(1, eventTime=None),
    "unlisted": a_record(1, gameName="Unknown"),
    "late": replace(a_record(1), timestamp=NOON + timedelta(days=1)),
}


def _assert_counts_match(outcome: TaskOutcome, records: int) -> None:
    dead = sum(outcome.dead_letters.values())
    assert outcome.records == outcome.count(BRONZE_EVENTS) == records
    assert outcome.count(SILVER_EVENTS) == sum(outcome.count(table) for table in outcome.game_tables)
    assert outcome.count(SILVER_EVENTS) + dead == records
    assert outcome.count(DEAD_LETTERS) == dead


@examples(25)
@given(kinds=st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=30), batch_records=st.integers(1, 30))
def test_every_record_ends_in_exactly_one_place(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], batch_records: int
) -> None:
    records = numbered(_KINDS[kind] for kind in kinds)

    outcome = TaskLakehouse(tmp_path_factory.mktemp("lakehouse")).run(records, batch_records=batch_records)

    _assert_counts_match(outcome, len(records))
    places = [row["kafka_offset"] for table in outcome.game_tables for row in outcome.rows(table)]
    places += [row["offset"] for row in outcome.rows(DEAD_LETTERS)]
    assert sorted(places) == [row["offset"] for row in outcome.rows(BRONZE_EVENTS)] == list(range(len(records)))


@pytest.mark.parametrize("chunk_records", [1, 7, 64, 1_000])
def test_rows_do_not_depend_on_the_size_of_a_chunk(
    chunk_records: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = numbered(list(_KINDS.values()) * 8)

    whole = TaskLakehouse(tmp_path).run(records, batch_records=5)
    chunked = TaskLakehouse(tmp_path_factory.mktemp("chunked")).run(
        records, batch_records=5, chunk=ChunkLimits(records=chunk_records)
    )

    for table in (BRONZE_EVENTS, SILVER_EVENTS, DEAD_LETTERS, YETI_TABLE):
        assert chunked.rows(table) == whole.rows(table)
    assert _known(chunked, KART_TABLE) == _known(whole, KART_TABLE)
    assert chunked.dead_letters == whole.dead_letters
    assert len(whole.reports) == 1
    assert len(chunked.reports) == -(-len(records) // max(5, -(-chunk_records // 5) * 5))


def _known(outcome: TaskOutcome, table: str) -> list[dict[str, object]]:
    """Rows without nulls: a file has no column that none of its rows needs."""
    return [{name: value for name, value in row.items() if value is not None} for row in outcome.rows(table)]


def test_a_chunk_is_also_full_when_its_values_are_large(lakehouse: TaskLakehouse) -> None:
    records = numbered([a_record(1, gamerId="x" * 2_000)] * 10)

    outcome = lakehouse.run(records, batch_records=1, chunk=ChunkLimits(value_bytes=4_000))

    assert len(outcome.reports) > 2
    _assert_counts_match(outcome, 10)


def test_a_task_without_records_reports_nothing(lakehouse: TaskLakehouse) -> None:
    assert lakehouse.run([]).reports == []


def test_offsets_are_reported_by_partition(lakehouse: TaskLakehouse) -> None:
    records = [
        replace(a_record(1), partition=partition, offset=offset)
        for partition, offset in ((1, 8), (0, 3), (1, 5), (0, 4))
    ]

    (report,) = lakehouse.run(records, batch_records=3).reports

    taken = [(each.partition, each.first, each.last, each.records) for each in report.offsets]
    assert taken == [(0, 3, 4, 2), (1, 5, 8, 2)]


def test_silver_is_partitioned_by_event_day_and_bronze_by_ingest_day(lakehouse: TaskLakehouse) -> None:
    records = numbered(
        [
            a_record(1, eventTime="2025-12-31T23:59:59.999999Z"),
            a_record(1, eventTime="2026-01-01T00:00:00Z"),
            a_record(1, eventTime="2026-01-03T11:59:59Z"),
            a_record(1, eventTime="2024-11-27T12:00:01Z"),
            replace(a_record(1, eventTime="2026-01-01T23:00:00Z"), timestamp=NOON + timedelta(days=1)),
        ]
    )

    outcome = lakehouse.run(records)

    days = [row["event_date"] for row in outcome.rows(KART_TABLE)]
    assert days == ["2025-12-31", "2026-01-01", "2026-01-03", "2024-11-27", "2026-01-01"]
    assert [row["event_date"] for row in outcome.rows(SILVER_EVENTS)] == days
    assert [row["ingest_date"] for row in outcome.rows(BRONZE_EVENTS)] == ["2026-01-01"] * 4 + ["2026-01-02"]
    assert all(file.file.path.startswith(("event_date=", "ingest_date=")) for file in outcome.files)


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        (None, "no_event_time"),
        ("2024-11-27T11:59:59Z", "implausible_event_time"),
        ("2026-01-03T12:00:00.000001Z", "implausible_event_time"),
        ("0001-01-01T00:00:00Z", "implausible_event_time"),
        ("9999-12-31T23:59:59Z", "implausible_event_time"),
    ],
)
def test_an_implausible_event_time_is_a_reason(time: str | None, reason: str, lakehouse: TaskLakehouse) -> None:
    outcome = lakehouse.run([a_record(1, eventTime=time)])

    assert dict(outcome.dead_letters) == {reason: 1}


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity", 1e308, -1e308, 1e13, -1e13, 1_000_000.01])
def test_an_implausible_amount_is_a_reason(amount: object, lakehouse: TaskLakehouse) -> None:
    outcome = lakehouse.run(numbered([a_record(1), a_record(1, eventParams={"amount": amount})]))

    assert dict(outcome.dead_letters) == {"implausible_amount": 1}
    assert [row["kafka_offset"] for row in outcome.rows(KART_TABLE)] == [0]


@pytest.mark.parametrize("amount", [None, 0.0, -0.0, 5e-324, 0.99, 1_000_000, -1_000_000])
def test_any_other_amount_is_a_row(amount: float | None, lakehouse: TaskLakehouse) -> None:
    outcome = lakehouse.run([a_record(1, eventParams={} if amount is None else {"amount": amount})])

    assert [row["amount"] for row in outcome.rows(KART_TABLE)] == [amount]


def test_an_event_that_is_refused_for_several_reasons_is_one_dead_letter(lakehouse: TaskLakehouse) -> None:
    amount = {"amount": "NaN"}
    records = [
        a_record(1, eventParams=amount, eventTime=None),
        a_record(1, eventParams=amount, eventTime="2036-01-01T00:00:00Z"),
        a_record(1, eventParams=amount, gameName="Unknown"),
    ]

    outcome = lakehouse.run(numbered(records))

    assert outcome.dead_letters == {"no_event_time": 1, "implausible_event_time": 1, "unroutable": 1}


def test_the_contract_sets_the_limit_of_amounts(tmp_path: Path) -> None:
    lakehouse = TaskLakehouse(tmp_path, GamesContract(games=(KART,), amount=AmountLimits(max=10)))

    outcome = lakehouse.run(numbered(a_record(1, eventParams={"amount": amount}) for amount in (10, 10.01, -11, -10)))

    assert [row["kafka_offset"] for row in outcome.rows(KART_TABLE)] == [0, 3]


def test_the_contract_sets_the_limits_of_event_times(tmp_path: Path) -> None:
    limits = EventTimeLimits(max_age_days=1, max_ahead_hours=1)
    lakehouse = TaskLakehouse(tmp_path, GamesContract(games=(KART,), event_time=limits))
    times = ("2025-12-31T12:00:00Z", "2025-12-31T11:59:59Z", "2026-01-01T13:00:00Z", "2026-01-01T13:00:01Z")

    outcome = lakehouse.run(numbered(a_record(1, eventTime=time) for time in times))

    assert [row["kafka_offset"] for row in outcome.rows(KART_TABLE)] == [0, 2]


def test_an_unlisted_game_gets_its_own_table_if_the_contract_says_so_up_to_a_limit(tmp_path: Path) -> None:
    contract = GamesContract(games=(KART,), unlisted_games=UnlistedGames.OWN_TABLE, max_unlisted_tables=2)
    names = ("New Game", "Old Game", "One Too Many", "New Game", "Kart Rumble")

    outcome = TaskLakehouse(tmp_path, contract).run(
        numbered(a_record(1, gameName=name) for name in names), unlisted_tables=frozenset({"silver/old_game_events"})
    )

    assert {table: outcome.count(table) for table in outcome.game_tables} == {
        "silver/new_game_events": 2,
        "silver/old_game_events": 1,
        KART_TABLE: 1,
    }
    assert [row["offset"] for row in outcome.rows(DEAD_LETTERS)] == [2]


def test_a_table_may_be_partitioned_further(tmp_path: Path) -> None:
    by = (PartitionColumn.EVENT_DATE, PartitionColumn.EVENT_NAME, PartitionColumn.PLATFORM)
    contract = GamesContract(games=(GameSpec(name=KART.name, match=KART.match, partition_by=by),))
    records = [
        a_record(1, eventName=name, eventParams={"platform": platform} if platform else None)
        for name, platform in (("a", "ios"), ("b", "ios"), ("a", None), ("a", "ios"))
    ]

    outcome = TaskLakehouse(tmp_path, contract).run(numbered(records))

    files = [file for file in outcome.files if file.table == KART_TABLE]
    values = Counter((file.file.partition["event_name"], file.file.partition["platform"]) for file in files)
    assert values == {("a", "ios"): 1, ("b", "ios"): 1, ("a", None): 1}
    assert {file.partition_by for file in files} == {("event_date", "event_name", "platform")}
    assert outcome.rows(KART_TABLE)[3]["event_name"] == "a"
    assert {"event_name", "platform", "event_date"} <= outcome.columns(KART_TABLE)


def test_rows_of_three_schema_versions_share_one_table(lakehouse: TaskLakehouse) -> None:
    records = numbered(
        [
            a_record(1),
            a_record(2, eventParams={"level": 5}, experimentIds=["a"]),
            a_record(3, connectionType="CONNECTION_TYPE_WIFI", attributes={"k": "v"}),
        ]
    )

    outcome = lakehouse.run(records)

    rows = outcome.rows(KART_TABLE)
    assert [row["level"] for row in rows] == [None, 5, None]
    assert [row["connection_type"] for row in rows] == [None, None, "CONNECTION_TYPE_WIFI"]
    assert rows[2]["attributes"] == [("k", "v")]
    assert len([file for file in outcome.files if file.table == KART_TABLE]) == 1
    assert {file.schema_ids for file in outcome.files if file.table == KART_TABLE} == {(41, 42, 43)}


def test_many_tables_and_days_make_one_file_each(lakehouse: TaskLakehouse) -> None:
    days = ("2025-12-30", "2025-12-31", "2026-01-01")
    records = numbered(
        a_record(1, gameName=game, eventTime=f"{day}T10:00:00Z")
        for _ in range(4)
        for game in ("Kart Rumble", "Yeti Ski")
        for day in days
    )

    outcome = lakehouse.run(records)

    by_table = {table: len(list(files)) for table, files in groupby(sorted(file.table for file in outcome.files))}
    assert by_table == {BRONZE_EVENTS: 1, SILVER_EVENTS: 3, KART_TABLE: 3, YETI_TABLE: 3}


def test_headers_keys_and_bytes_survive(lakehouse: TaskLakehouse) -> None:
    headers = [("trace", b"\x00\xff\x80"), ("none", None), ("", b"")]
    good = replace(a_record(1), headers=headers, key=b"\x00\xff")
    bad = replace(a_spoiled_record(offset=1), headers=headers, key=None)

    outcome = lakehouse.run([good, bad])

    expected = [{"key": "trace", "value": b"\x00\xff\x80"}, {"key": "none", "value": None}, {"key": "", "value": b""}]
    bronze, letters = outcome.rows(BRONZE_EVENTS), outcome.rows(DEAD_LETTERS)
    assert [row["headers"] for row in (*bronze, *letters)] == [expected] * 3
    assert [row["key"] for row in bronze] == [b"\x00\xff", None]
    assert [row["value"] for row in bronze] == [good.value, bad.value]
    assert (letters[0]["value"], letters[0]["offset"], letters[0]["topic"]) == (bad.value, 1, "events")


def test_bronze_has_the_schema_id_of_framed_records(lakehouse: TaskLakehouse) -> None:
    outcome = lakehouse.run(numbered([a_record(2), a_spoiled_record(), KafkaTaskRecord(value=b"no frame")]))

    assert [row["schema_id"] for row in outcome.rows(BRONZE_EVENTS)] == [42, 41, None]


def test_a_file_that_can_not_be_written_fails_the_task(lakehouse: TaskLakehouse) -> None:
    lakehouse.store.put(KART_TABLE, b"an object in the place of the table's folder")

    with pytest.raises(BaseError, match=KART_TABLE):
        lakehouse.run(numbered([_KINDS["kart"], _KINDS["yeti"]]))

"""Aggregates as the contract declares them: what can be kept up by merging, and what is refused with its remedy."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.model.errors import ContractError
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.definition import define


def spec(sql: str, refresh: Refresh = Refresh.MERGE, by: str = "gamer_id") -> AggregateSpec:
    return AggregateSpec(name="player_agg", group_by=(by,), refresh=refresh, columns={"figure": sql})


@pytest.mark.parametrize(
    ("sql", "way"),
    [
        ("count(*)", "sum"),
        ("count(*) FILTER (WHERE event_name = 'purchase')", "sum"),
        ("sum(CAST(amount AS DECIMAL(18, 6)))", "sum"),
        ("min(event_time)", "min"),
        ("max(length(app_version))", "max"),
    ],
)
def test_counts_sums_and_extremes_can_be_merged(sql: str, way: str) -> None:
    assert define(spec(sql)).merged_by == {"figure": way}


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (("1.9", "1.10", "1.2"), "1.10"),
        (("1.10-beta.2", "1.9", None), "1.10-beta.2"),
        (("1.10", "1.10-beta.2"), "1.10"),
        (("1.10", "1.10.1", "1.9.12"), "1.10.1"),
        (("2.0", "20231102"), "20231102"),
        ((None,), None),
    ],
)
def test_the_newest_version_is_that_of_the_greatest_numbers_also_after_merges(
    versions: tuple[str | None, ...], newest: str | None
) -> None:
    definition = define(spec("max_version(app_version)"))
    assert definition.reads == {"gamer_id", "app_version"}
    with engine(threads=1) as sql:
        for order in (versions, versions[::-1]):
            parts = [pa.table({"gamer_id": ["anna"], "app_version": pa.array([each], pa.string())}) for each in order]
            sql.give("events", pa.concat_tables(parts))
            for number, part in enumerate(parts):
                sql.give(f"part_{number}", part)
            merged = " UNION ALL ".join(f"({definition.over(f'part_{number}')})" for number in range(len(parts)))

            assert sql.table(definition.over("events"))["figure"].to_pylist() == [newest]
            assert sql.table(definition.merging(f"({merged})"))["figure"].to_pylist() == [newest]


@pytest.mark.parametrize(
    "sql", ["median(amount)", "count(DISTINCT session_id)", "sum(amount) / count(*)", "max(level) + 1"]
)
def test_what_does_not_follow_from_parts_is_refused_to_be_merged(sql: str) -> None:
    with pytest.raises(ContractError, match="by partition"):
        define(spec(sql))


@pytest.mark.parametrize("sql", ["amount", "count(", "(SELECT count(*) FROM other)", "1; DROP TABLE silver"])
def test_what_is_no_aggregate_is_refused(sql: str) -> None:
    with pytest.raises(ContractError, match="'figure' of the aggregate 'player_agg'"):
        define(spec(sql))


def test_a_table_refreshed_by_partition_must_be_grouped_by_day() -> None:
    with pytest.raises(ContractError, match="event_date"):
        define(spec("median(amount)", Refresh.PARTITION))

    assert define(spec("median(amount)", Refresh.PARTITION, "event_date")).merged_by == {}


def test_a_definition_reads_only_the_columns_that_its_sql_names() -> None:
    definition = define(spec("count(*) FILTER (WHERE event_name = 'purchase' AND amount > 1)"))

    assert definition.reads == {"gamer_id", "event_name", "amount"}


def test_a_key_can_be_an_expression_over_an_event() -> None:
    definition = define(
        AggregateSpec(
            name="hours",
            group_by=("gamer_id", "hour"),
            keys={"hour": "date_trunc('hour', event_time)"},
            refresh=Refresh.MERGE,
            columns={"events": "count(*)"},
        )
    )
    # A game's own table may have a column of the key's name, which the key is not.
    times = pa.array([datetime(2026, 11, 20, 12, minute, tzinfo=UTC) for minute in (5, 55)], pa.timestamp("us", "UTC"))
    rows = pa.table({"gamer_id": ["ann", "ann"], "event_time": times, "hour": ["early", "late"]})

    with engine(threads=1) as sql:
        sql.give("events", rows)
        sql.give("hours", sql.table(definition.over("events")))

        assert sql.table(definition.merging("hours")).to_pylist() == [
            {"gamer_id": "ann", "hour": datetime(2026, 11, 20, 12, tzinfo=UTC), "events": 2}
        ]
        assert sql.table(definition.rows_of("hours", "events")).num_rows == 2
    assert definition.reads == {"gamer_id", "event_time"}


def test_a_table_whose_key_is_made_otherwise_is_another_one() -> None:
    by_hour, by_day = (
        AggregateSpec(
            name="times",
            group_by=("begins",),
            keys={"begins": f"date_trunc('{unit}', event_time)"},
            refresh=Refresh.MERGE,
            columns={"events": "count(*)"},
        )
        for unit in ("hour", "day")
    )

    assert define(by_hour).fingerprint != define(by_day).fingerprint

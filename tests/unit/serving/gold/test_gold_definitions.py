"""Aggregates as the contract declares them: what can be kept up by merging, and what is refused with its remedy."""

import pytest

from gamelake.model.aggregates import AggregateSpec, Refresh
from gamelake.model.errors import ContractError
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

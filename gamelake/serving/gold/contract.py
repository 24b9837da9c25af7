"""The gold tables of the games contract, with the SQL of the metrics that their columns name."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa

from gamelake.contract.aggregates import AggregateSpec, MetricColumn, Over, Refresh
from gamelake.contract.games import GamesContract, load_games
from gamelake.contract.located_yaml import Problem, declaration, load_located, raise_first
from gamelake.contract.metrics import METRICS_FILE, MetricsContract, call, load_metrics
from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE
from gamelake.model.errors import ContractError
from gamelake.scans.sql_engine import without_zones
from gamelake.serving.gold.definition import PARTITION, REPORTING_DATE, define

_OF_ALL_GAMES = frozenset({*COMMON_SCHEMA.names, EVENT_DATE})


@declaration
def load_gold(games_file: Path) -> GamesContract:
    """Read the games contract with the SQL of each metric that a gold table's column names.

    The metrics are in `metrics.yaml` of the same folder. Only programs that compute gold read them, so an error there
    stops only those programs.

    Raises:
        ContractError: one of the files is wrong, a metric or a column is unknown, SQL can't be computed, a key is not
            in `group_by` or not an expression over one event, or a column can't be merged in a table that is refreshed
            by merging; names file and line.
    """
    contract = load_games(games_file)
    if any(isinstance(column, MetricColumn) for each in contract.aggregates for column in each.columns.values()):
        metrics_file = games_file.with_name(METRICS_FILE)
        metrics = load_metrics(metrics_file)
        _require_none(_impossible_sql(metrics), metrics_file)
        _require_none(_unknown_metrics(contract.aggregates, metrics), games_file)
        aggregates = tuple(_with_metrics(aggregate, metrics) for aggregate in contract.aggregates)
        contract = msgspec.structs.replace(contract, aggregates=aggregates)
    checks = (_impossible_conditions, _impossible_keys, _impossible_columns)
    _require_none(chain.from_iterable(check(contract.aggregates) for check in checks), games_file)
    return contract


def _require_none(problems: Iterator[Problem], file: Path) -> None:
    # The file is parsed again for its lines, but only if there is a problem.
    if found := list(problems):
        raise_first(found, load_located(file))


def _impossible_sql(metrics: MetricsContract) -> Iterator[Problem]:
    """Yield the SQL that DuckDB can't compute from the columns of silver/events, and conditions that aren't boolean."""
    model, place = metrics.events, "$.semantic_models[0]"
    conditions = {metrics.counted_by, *(each.filtered_by for each in metrics.metrics)}
    texts = [(f"{place}.entities[{index}].expr", each.expr, False) for index, each in enumerate(model.entities)]
    for index, dimension in enumerate(model.dimensions):
        key = "expr" if dimension.expr else "name"
        texts.append((f"{place}.dimensions[{index}].{key}", dimension.sql, dimension.name in conditions))
    texts += [(f"{place}.measures[{index}].expr", call(each), False) for index, each in enumerate(model.measures)]
    with duckdb.connect(":memory:") as connection:
        columns = without_zones(COMMON_SCHEMA).append(pa.field(EVENT_DATE, pa.date32()))
        connection.register("events", columns.empty_table())
        for location, sql, is_condition in texts:
            if problem := _problem(connection, sql, is_condition):
                yield location, problem


def _problem(connection: duckdb.DuckDBPyConnection, sql: str, is_condition: bool) -> str:
    try:
        [(_, kind, *_)] = connection.execute(f"DESCRIBE SELECT {sql} FROM events").fetchall()  # noqa: S608 # the contract
    except duckdb.Error as error:
        return f"{sql} can't be computed from silver/events: {str(error).splitlines()[0]}"
    if is_condition and kind != "BOOLEAN":
        return f"{sql} is a {kind}; a metric can only be filtered by a boolean"
    return ""


def _unknown_metrics(aggregates: Sequence[AggregateSpec], metrics: MetricsContract) -> Iterator[Problem]:
    known = [each.name for each in metrics.metrics]
    for place, aggregate in enumerate(aggregates):
        for name, column in aggregate.columns.items():
            if isinstance(column, MetricColumn) and column.metric not in known:
                yield (
                    f"$.aggregates[{place}].columns.{name}.metric",
                    f"'{column.metric}' is not a metric of metrics.yaml; name one of: {', '.join(known)}",
                )


def _with_metrics(aggregate: AggregateSpec, metrics: MetricsContract) -> AggregateSpec:
    columns, descriptions = dict(aggregate.columns), dict(aggregate.descriptions)
    for name, column in aggregate.columns.items():
        if isinstance(column, MetricColumn):
            metric = metrics.metric(column.metric)
            columns[name] = metrics.sql(metric)
            descriptions.setdefault(name, metric.description)
    return msgspec.structs.replace(aggregate, columns=columns, descriptions=descriptions)


def _impossible_conditions(aggregates: Sequence[AggregateSpec]) -> Iterator[Problem]:
    for place, aggregate in enumerate(aggregates):
        only = msgspec.structs.replace(aggregate, columns={}, keys={}, group_by=(), refresh=Refresh.MERGE)
        if problem := _impossible(only, "'where'"):
            yield f"$.aggregates[{place}].where", problem


def _impossible_keys(aggregates: Sequence[AggregateSpec]) -> Iterator[Problem]:
    any_column = {"rows": "count(*)"}
    for place, aggregate in enumerate(aggregates):
        for name, sql in aggregate.keys.items():
            grouped_by = tuple(key for key in aggregate.group_by if key == name)
            only = msgspec.structs.replace(
                aggregate, group_by=grouped_by, keys={name: sql}, columns=any_column, refresh=Refresh.MERGE, where=""
            )
            if name in _OF_ALL_GAMES and (name, sql) != (PARTITION, REPORTING_DATE):
                problem = (
                    f"silver has a column '{name}' already; give the key another name, or write {PARTITION}: "
                    f"{REPORTING_DATE} for the day in the game's time zone"
                )
            else:
                problem = _impossible(only, f"the key '{name}'")
            if problem:
                yield f"$.aggregates[{place}].keys.{name}", problem
        for number, name in enumerate(aggregate.group_by):
            if aggregate.over is Over.ALL_GAMES and name not in {*aggregate.keys, *_OF_ALL_GAMES}:
                problem = f"silver/events has no column '{name}'; add the SQL that computes it under `keys`"
                yield f"$.aggregates[{place}].group_by[{number}]", problem


def _impossible_columns(aggregates: Sequence[AggregateSpec]) -> Iterator[Problem]:
    for place, aggregate in enumerate(aggregates):
        for name, column in aggregate.columns.items():
            only = msgspec.structs.replace(aggregate, columns={name: column}, where="")
            if problem := _impossible(only, f"the column '{name}'"):
                yield f"$.aggregates[{place}].columns.{name}", problem


def _impossible(aggregate: AggregateSpec, part: str) -> str:
    """Describe the fault of an aggregate that has only this part; return "" if it has none."""
    try:
        reads = define(aggregate).reads
    except ContractError as error:
        return str(error)
    # The other columns of a game's own table depend on its messages, so they can't be checked here.
    unknown = sorted(reads - _OF_ALL_GAMES) if aggregate.over is Over.ALL_GAMES else []
    if not unknown:
        return ""
    return f"{part} reads '{unknown[0]}', which silver/events lacks; its columns are {', '.join(sorted(_OF_ALL_GAMES))}"

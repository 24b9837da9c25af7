"""The tables and views that the dashboards read, with the names and units of the metrics contract."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from gamelake.contract.aggregates import AggregateSpec, MetricColumn
from gamelake.contract.games import load_games
from gamelake.contract.metrics import METRICS_FILE, MetricsContract, MetricType, load_metrics
from gamelake.model.errors import ContractError
from gamelake.model.naming import GOLD
from gamelake.serving.experiments.tables import RESULTS, exposure_table
from gamelake.serving.kpis.tables import ALL as KPI_TABLES
from gamelake.serving.live_ops.signals.watch_tables import MINUTES, MINUTES_SCHEMA, SIGNALS, SIGNALS_SCHEMA
from gamelake.serving.players.tables import SEGMENTS
from gamelake.serving.sql.views import load_views

DATE, TIME, TEXT, NUMBER, BYTES = "DATE", "TIMESTAMP(3) WITH TIME ZONE", "VARCHAR", "DOUBLE", "VARBINARY"
# How Superset prints a figure, by its unit in the metrics contract.
FORMATS = {"US dollars": "$,.2f", "currency": ",.2f", "share": ".1%", "time": "smart_date"}
COUNT_FORMAT = ",d"
_DAYS = frozenset({"event_date", "cohort_date"})
_TIMES = frozenset({"minute", "next_minute", "hour", "begins", "ends", "provisional_until"})
_TEXTS = frozenset(
    {
        "game_name",
        "platform",
        "app_version",
        "version_order",
        "event_name",
        "market",
        "paid_in",
        "item",
        "reason",
        "step",
        "step_name",
        "source",
    }
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of a dataset: an aggregate in Trino's SQL."""

    name: str
    label: str
    sql: str
    format: str = COUNT_FORMAT
    description: str = ""


@dataclass(frozen=True, slots=True)
class SupersetDataset:
    """A table or view of Trino's catalog.

    Attributes:
        table: `schema.name`.
        columns: the type and the meaning of each column.
        figures: its metrics, by their names.
        day: the column that a range of days applies to.
    """

    table: str
    columns: Mapping[str, tuple[str, str]]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    day: str = "event_date"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The figures of a dataset: `of_metrics` maps columns to metrics of the contract."""

    of_metrics: Mapping[str, str] = field(default_factory=dict)
    more: tuple[Figure, ...] = ()
    day: str = "event_date"


@dataclass(frozen=True, slots=True)
class Declared:
    """The metrics contract, and gold's tables and views with the type and the meaning of each column."""

    tables: Mapping[str, Mapping[str, tuple[str, str]]]
    metrics: MetricsContract

    def dataset(self, table: str, wanted: Wanted) -> SupersetDataset:
        """Return a dataset with its figures, and each ratio of the contract whose two metrics it has.

        Raises:
            ContractError: the table, a column or a metric is unknown.
        """
        if table not in self.tables:
            raise ContractError(f"there is no table or view '{table}' for a dashboard")
        columns = self.tables[table]
        if unknown := [name for name in wanted.of_metrics if name not in columns]:
            raise ContractError(f"{table} has no column {', '.join(unknown)}")
        figures = [*self._sums(wanted.of_metrics), *self._ratios(wanted.of_metrics), *wanted.more]
        return SupersetDataset(table, columns, {each.name: each for each in figures}, wanted.day)

    def _sums(self, of_metrics: Mapping[str, str]) -> Iterator[Figure]:
        for column, name in of_metrics.items():
            yield self._figure(name, f"sum({column})")

    def _ratios(self, of_metrics: Mapping[str, str]) -> Iterator[Figure]:
        columns = {metric: column for column, metric in of_metrics.items()}
        for metric in self.metrics.metrics:
            parts = (metric.type_params.numerator, metric.type_params.denominator)
            if metric.type is MetricType.RATIO and columns.keys() >= set(parts):
                above, below = (columns[part] for part in parts)
                yield self._figure(metric.name, f"CAST(sum({above}) AS double) / nullif(sum({below}), 0)")

    def _figure(self, name: str, sql: str) -> Figure:
        try:
            metric = self.metrics.metric(name)
        except StopIteration:
            raise ContractError(f"{METRICS_FILE} has no metric '{name}', which a dashboard names") from None
        unit = metric.config.meta.unit
        return Figure(name, metric.label, sql, FORMATS.get(unit, COUNT_FORMAT), metric.description)


def declared(contracts: Path, views: Path) -> Declared:
    """Return the tables and views of gold, as the contracts and views declare them.

    Raises:
        ContractError: a contract is wrong; names file and line.
    """
    games = contracts / "games.yaml"
    metrics = load_metrics(contracts / METRICS_FILE)
    tables: dict[str, Mapping[str, tuple[str, str]]] = {
        f"{GOLD}.{each.name}": {name: (_sql_type(kind), meaning) for name, (kind, meaning) in each.columns.items()}
        for each in (*KPI_TABLES, SEGMENTS, RESULTS, exposure_table({}))
    }
    for path, schema in ((MINUTES, MINUTES_SCHEMA), (SIGNALS, SIGNALS_SCHEMA)):
        tables[path.replace("/", ".", 1)] = {each.name: (_sql_type(each.type), "") for each in schema}
    for aggregate in load_games(games).aggregates:
        tables[f"{GOLD}.{aggregate.name}"] = dict(_columns_of(aggregate, metrics))
    for view in load_views(views, games):
        tables[view.name] = {name: (_type_by_name(name), meaning) for name, meaning in view.columns}
    return Declared(tables, metrics)


def _columns_of(aggregate: AggregateSpec, metrics: MetricsContract) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in (*aggregate.group_by, *aggregate.columns):
        column = aggregate.columns.get(name)
        meaning = aggregate.descriptions.get(name, "")
        if isinstance(column, MetricColumn) and not meaning:
            meaning = metrics.metric(column.metric).description
        yield name, (_type_by_name(name), meaning)


def _type_by_name(name: str) -> str:
    if name in _DAYS:
        return DATE
    if name in _TIMES:
        return TIME
    return TEXT if name in _TEXTS else NUMBER


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_date(kind):
        return DATE
    if pa.types.is_timestamp(kind):
        return TIME
    if pa.types.is_binary(kind):
        return BYTES
    return TEXT if pa.types.is_string(kind) else NUMBER

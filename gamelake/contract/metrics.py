"""The metrics contract (`contracts/metrics.yaml`): what each figure counts, in the format of MetricFlow.

Source: https://docs.getdbt.com/docs/build/semantic-models and https://docs.getdbt.com/docs/build/metrics-overview.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from gamelake.contract.located_yaml import Problem, declaration, load_declaration, raise_first

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
_Sql = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
_DIMENSION = re.compile(r"\{\{ Dimension\('event__([a-z0-9_]+)'\) \}\}")
_Filter = Annotated[str, msgspec.Meta(pattern=f"^({_DIMENSION.pattern})?$")]
# The metrics contract lies next to the games contract.
METRICS_FILE = "metrics.yaml"


class Aggregation(StrEnum):
    """The way in which a measure makes one value of many."""

    COUNT = "count"
    COUNT_DISTINCT = "count_distinct"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"


class EntityType(StrEnum):
    """The relation of an event to the entity: it is the entity, or belongs to it."""

    PRIMARY = "primary"
    FOREIGN = "foreign"


class DimensionType(StrEnum):
    """Kinds of dimensions."""

    TIME = "time"
    CATEGORICAL = "categorical"


class MetricType(StrEnum):
    """Kinds of metrics: of a measure, or one metric for each of another."""

    SIMPLE = "simple"
    RATIO = "ratio"


class Entity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The thing that an event belongs to; `expr` is its key."""

    name: _Name
    type: EntityType
    expr: _Sql
    label: str


class TimeParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The granularity of a dimension of time."""

    time_granularity: str


class Dimension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column that figures are grouped or filtered by; without `expr` the column of its name."""

    name: _Name
    type: DimensionType
    description: str
    expr: str = ""
    type_params: TimeParameters | None = None

    @property
    def sql(self) -> str:
        """The expression, or the column of the dimension's name."""
        return f"({self.expr})" if self.expr else self.name


class Measure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An aggregate of an expression over events."""

    name: _Name
    agg: Aggregation
    expr: _Sql
    description: str


class ModelMeta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our own keys of a model: the dimension that must be true of an event that counts at all."""

    where: Annotated[str, msgspec.Meta(pattern=f"^{_DIMENSION.pattern}$")]


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The place where MetricFlow lets users add keys to a model."""

    meta: ModelMeta


class ModelDefaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The dimension that says on which day an event counts."""

    agg_time_dimension: _Name


class SemanticModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The events, with their dimensions and measures."""

    name: _Name
    description: str
    model: str
    config: ModelConfig
    defaults: ModelDefaults
    entities: tuple[Entity, ...]
    dimensions: tuple[Dimension, ...]
    measures: tuple[Measure, ...]


class MetricParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The measure of a simple metric, or the two metrics of a ratio."""

    measure: str = ""
    numerator: str = ""
    denominator: str = ""


class MetricMeta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our own key of a metric: the unit of a figure."""

    unit: str


class MetricConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The place where MetricFlow lets users add keys to a metric."""

    meta: MetricMeta


class MetricSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure, by the name that people ask for."""

    name: _Name
    label: str
    description: str
    type: MetricType
    type_params: MetricParameters
    config: MetricConfig
    filter: _Filter = ""

    @property
    def filtered_by(self) -> str:
        """The dimension that must be true of an event; empty if each event counts."""
        return _dimension_in(self.filter)


class MetricTerm(NamedTuple):
    """A metric or a dimension, for a reader and for an engine."""

    meaning: str
    sql: str


class MetricsContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/metrics.yaml`."""

    semantic_models: Annotated[tuple[SemanticModel, ...], msgspec.Meta(min_length=1, max_length=1)]
    metrics: tuple[MetricSpec, ...]

    @property
    def events(self) -> SemanticModel:
        """The one semantic model."""
        return self.semantic_models[0]

    @property
    def counted_by(self) -> str:
        """The dimension that must be true of an event that counts at all."""
        return _dimension_in(self.events.config.meta.where)

    @property
    def terms(self) -> Mapping[str, MetricTerm]:
        """All metrics and dimensions, by the names that MetricFlow gives them, such as `Metric('players')`."""
        dimensions = {
            f"Dimension('event__{each.name}')": MetricTerm(each.description, each.sql)
            for each in self.events.dimensions
        }
        return dimensions | {
            f"Metric('{each.name}')": MetricTerm(each.description, self.sql(each)) for each in self.metrics
        }

    def metric(self, name: str) -> MetricSpec:
        """Find the metric of a name; there must be one."""
        return next(each for each in self.metrics if each.name == name)

    def sql(self, metric: MetricSpec) -> str:
        """Return a metric as an SQL expression over silver's events.

        Args:
            metric: one of `metrics`.

        Returns:
            An aggregate; of a ratio two of them, and null where the second one is 0.
        """
        parameters = metric.type_params
        if metric.type is MetricType.RATIO:
            numerator, denominator = (
                self.sql(self.metric(name)) for name in (parameters.numerator, parameters.denominator)
            )
            return f"CAST({numerator} AS DOUBLE) / nullif({denominator}, 0)"
        [measure] = (each for each in self.events.measures if each.name == parameters.measure)
        dimensions = {each.name: each.sql for each in self.events.dimensions}
        conditions = [dimensions[name] for name in (self.counted_by, metric.filtered_by) if name]
        return f"{call(measure)} FILTER (WHERE {' AND '.join(conditions)})"


def _dimension_in(condition: str) -> str:
    found = _DIMENSION.fullmatch(condition)
    return found[1] if found else ""


def call(measure: Measure) -> str:
    """Return a measure as an SQL aggregate."""
    if measure.agg is Aggregation.COUNT_DISTINCT:
        return f"count(DISTINCT {measure.expr})"
    return f"{measure.agg.value}({measure.expr})"


@declaration
def load_metrics(path: Path) -> MetricsContract:
    """Read and check the metrics contract.

    Raises:
        ContractError: a key is unknown, a value is impossible, or a name is there twice or nowhere; names file and
            line.
    """
    contract, document = load_declaration(path, MetricsContract)
    raise_first([*_named_twice(contract), *_named_nowhere(contract)], document)
    return contract


def _named_twice(contract: MetricsContract) -> Iterator[Problem]:
    model = contract.events
    lists: Mapping[str, Sequence[Entity | Dimension | Measure | MetricSpec]] = {
        "$.semantic_models[0].entities": model.entities,
        "$.semantic_models[0].dimensions": model.dimensions,
        "$.semantic_models[0].measures": model.measures,
        "$.metrics": contract.metrics,
    }
    for place, parts in lists.items():
        names = [part.name for part in parts]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield f"{place}[{index}].name", f"the name '{name}' is there twice; rename one"


def _named_nowhere(contract: MetricsContract) -> Iterator[Problem]:
    """Names of measures, metrics and dimensions that there are none of."""
    model = contract.events
    dimensions, measures = ({each.name for each in part} for part in (model.dimensions, model.measures))
    simple = {each.name for each in contract.metrics if each.type is MetricType.SIMPLE}
    if model.defaults.agg_time_dimension not in dimensions:
        place = "$.semantic_models[0].defaults.agg_time_dimension"
        yield place, f"'{model.defaults.agg_time_dimension}' is not a dimension; name one"
    if contract.counted_by not in dimensions:
        yield "$.semantic_models[0].config.meta.where", f"'{contract.counted_by}' is not a dimension; name one"
    for index, metric in enumerate(contract.metrics):
        place, parameters = f"$.metrics[{index}]", metric.type_params
        if metric.filtered_by and metric.filtered_by not in dimensions:
            yield f"{place}.filter", f"'{metric.filtered_by}' is not a dimension; name one"
        if metric.type is MetricType.SIMPLE and parameters.measure not in measures:
            yield f"{place}.type_params", f"'{metric.name}' has no measure '{parameters.measure}'; name one"
        if metric.type is MetricType.RATIO and not {parameters.numerator, parameters.denominator} <= simple:
            yield f"{place}.type_params", f"'{metric.name}' must be a ratio of two simple metrics; name them"

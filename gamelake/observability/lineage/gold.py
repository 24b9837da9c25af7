"""The lineage of gold tables: each is a job of its own, and its SQL gives the lineage of columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from gamelake.observability.lineage.emitter import Emitter
from gamelake.observability.lineage.flow import (
    ColumnOrigin,
    DerivedColumn,
    Flow,
    FlowEnd,
    Influence,
    RunKind,
    TableDataset,
    tables,
)
from gamelake.observability.metrics.best_effort import harmless
from gamelake.serving.gold.definition import AggregateDefinition
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome

_DIALECT = "duckdb"
_NOTHING_NEW = frozenset({RefreshOutcome.NO_SOURCE, RefreshOutcome.HELD})


@dataclass(slots=True)
class GoldLineage:
    """Observes runs (`gamelake.serving.gold.runner.GoldObserver`); each flow is made once."""

    emitter: Emitter
    kind: RunKind
    _flows: dict[tuple[str, str], Flow] = field(default_factory=dict)
    _there: dict[str, Flow] = field(default_factory=dict)

    @harmless
    def table_refreshed(self, refresh: GoldRefresh, result: object) -> None:
        """The lineage of a table that is up to date is emitted at the end of the run."""
        if isinstance(result, Refreshed) and result.outcome not in _NOTHING_NEW:
            key = (refresh.table, refresh.definition.fingerprint)
            if key not in self._flows:
                self._flows[key] = flow_of(refresh, self.kind)
            self._there[refresh.table] = self._flows[key]

    def run_finished(self, seconds: float) -> None:
        """Emit the lineage of all tables that exist."""
        self.emitter.emit(*self._there.values())

    def mark_alive(self) -> None:
        """Do nothing."""


def flow_of(refresh: GoldRefresh, kind: RunKind) -> Flow:
    """The lineage of one gold table."""
    definition, source = refresh.definition, refresh.source
    spec = definition.spec
    return Flow(
        job=refresh.table.replace("/", "."),
        description=f"Keeps {refresh.table} equal to the aggregate '{spec.name}' of {source}, every {spec.every}.",
        kind=kind,
        sql=sqlglot.parse_one(definition.over(source.replace("/", ".")), dialect=_DIALECT).sql(_DIALECT, pretty=True),
        inputs=tables(source),
        outputs=(
            FlowEnd(
                what=TableDataset(refresh.table),
                columns=tuple(derived_columns(definition, source)),
                row_origins=tuple(ColumnOrigin(source, key, Influence.GROUP_BY) for key in definition.keys),
            ),
        ),
    )


def derived_columns(definition: AggregateDefinition, source: str) -> Iterator[DerivedColumn]:
    """Each column of an aggregate, with the columns of its source that bear on it."""
    for key in definition.keys:
        yield DerivedColumn(key, key, (ColumnOrigin(source, key, Influence.IDENTITY),))
    for name, sql in definition.columns.items():
        tree = sqlglot.parse_one(sql, dialect=_DIALECT)
        conditions = [
            condition for filtered in tree.find_all(exp.Filter) for condition in _columns(filtered.expression)
        ]
        inside = [column for filtered in tree.find_all(exp.Filter) for column in _columns(filtered.this)]
        values = inside if tree.find(exp.Filter) else _columns(tree)
        yield DerivedColumn(
            name,
            sql,
            (
                *(ColumnOrigin(source, column, Influence.AGGREGATION) for column in dict.fromkeys(values)),
                *(ColumnOrigin(source, column, Influence.FILTER) for column in dict.fromkeys(conditions)),
            ),
        )


def _columns(tree: exp.Expr) -> Sequence[str]:
    return [column.name for column in tree.find_all(exp.Column)]

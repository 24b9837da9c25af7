"""The lineage of gold tables: each is a job of its own, and its SQL gives the lineage of columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from gamelake.model.observers import harmless
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
        """Keep the lineage of a table that is up to date until the end of the run."""
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
    """Return the lineage of one gold table."""
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
                row_origins=tuple(
                    ColumnOrigin(source, column, Influence.GROUP_BY)
                    for sql in definition.key_columns.values()
                    for column in _read_by(sql)
                ),
            ),
        ),
    )


def derived_columns(definition: AggregateDefinition, source: str) -> Iterator[DerivedColumn]:
    """Yield each column of an aggregate, with the columns of its source that bear on it."""
    for key in definition.keys:
        made_by = definition.spec.keys.get(key)
        influence = Influence.IDENTITY if made_by is None else Influence.TRANSFORMATION
        origins = (ColumnOrigin(source, column, influence) for column in _read_by(definition.key_columns[key]))
        yield DerivedColumn(key, made_by or key, tuple(origins))
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


def _read_by(sql: str) -> Sequence[str]:
    return _columns(sqlglot.parse_one(sql, dialect=_DIALECT))

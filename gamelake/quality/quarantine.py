"""The rows of the quarantine: a row that broke a rule, the broken rules, and the record of the row.

All games share one table. The columns that all games have are its columns; the whole row is also a JSON text. So new
columns of a game, or a column with different types in two games, can't make a row that the table does not accept.
"""

import pyarrow as pa

from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.quality.engine import ROWS, engine, rows_without_zones
from gamelake.quality.judging import QuarantinedRows, deciding_rule

# Long values last: Delta keeps statistics of the first columns.
_VERDICT = ("rule", "fingerprint", "severity", "broken", "game")
_RECORD = ("topic", "kafka_timestamp", "schema_id")
_NAMES = pa.list_(pa.field("element", pa.string()))
LONG_COLUMNS = frozenset({"row", "value"})


def as_quarantine(offenders: QuarantinedRows, common: pa.RecordBatch, records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of the quarantine table, in the order of `offenders`.

    Args:
        offenders: the rows to quarantine.
        common: their columns that all games have.
        records: their bronze rows.
    """
    columns = dict(zip(_VERDICT, _verdicts(offenders), strict=True))
    columns |= dict(zip(common.schema.names, common.columns, strict=True))
    columns |= {name: records.column(name) for name in _RECORD}
    columns["kafka_timestamp"] = columns["kafka_timestamp"].cast(MICROSECONDS_UTC)
    columns |= {"row": _as_json(offenders.rows), "value": records.column("value")}
    return pa.RecordBatch.from_pydict(columns)


def _verdicts(offenders: QuarantinedRows) -> list[pa.Array]:
    """The columns _VERDICT: the deciding rule, its fingerprint and severity, all broken rules, the game."""
    which = pa.array(offenders.which)
    rules = [deciding_rule(each) for each in offenders.sets]
    kinds = [[rule.name for rule in rules], [rule.fingerprint for rule in rules], [rule.severity for rule in rules]]
    broken = pa.array([[rule.name for rule in each] for each in offenders.sets], _NAMES)
    return [*(pa.array(kind, pa.string()).take(which) for kind in kinds), broken.take(which), offenders.games]


def _as_json(rows: pa.RecordBatch) -> pa.Array:
    """Each row as one JSON object of all its columns (string); timestamps in UTC."""
    connection = engine()
    connection.register(ROWS, rows_without_zones(rows))
    result = connection.sql(f"SELECT to_json({ROWS}) AS json FROM {ROWS}").to_arrow_table()  # noqa: S608 # a constant
    return result["json"].combine_chunks().cast(pa.string())

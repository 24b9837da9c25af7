"""The approach without Spark that lets delta-rs write: consumed and decoded batches, appended to one table."""

from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake

from benchmarks.one_table import EventRows, consume_into_one_table
from benchmarks.workload import ApproachResult, Workload
from gamelake.layers.silver import EVENT_DATE, UNIQUE_COLUMNS

# The compression of the fan-out's files, and no dictionaries of columns whose values hardly repeat.
_PROPERTIES = WriterProperties(
    compression="ZSTD",
    compression_level=1,
    column_properties={name: ColumnProperties(dictionary_enabled=False) for name in UNIQUE_COLUMNS},
)


def consume_with_delta_rs(workload: Workload) -> ApproachResult:
    """Consume the whole topic into one table that delta-rs writes."""
    return consume_into_one_table(workload, append_rows)


def append_rows(table: DeltaTable, rows: EventRows) -> None:
    """Append rows as files of delta-rs."""
    write_deltalake(
        table,
        rows.rows,
        mode="append",
        partition_by=[EVENT_DATE],
        writer_properties=_PROPERTIES,
        commit_properties=rows.commit_properties,
    )

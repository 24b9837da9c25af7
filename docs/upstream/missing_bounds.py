"""delta-rs' data set drops a file whose statistics have no bounds of the column that a filter names.

Exits with 0 if the defect is there, 1 if it is not. Needs deltalake and pyarrow.
"""

import json
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable


def rows_found(bounded: dict[str, int]) -> int:
    """Write a table of one row, with bounds of some columns only; count the rows that a filter on `score` finds."""
    table = Path(tempfile.mkdtemp())
    data = table / "data.parquet"
    pq.write_table(pa.table({"level": [7], "score": [7]}), data)
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("level", "score")]
    metadata = {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    stats = {"numRecords": 1, "minValues": bounded, "maxValues": bounded, "nullCount": {"level": 0, "score": 0}}
    add = {
        "path": data.name,
        "partitionValues": {},
        "size": data.stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, {"add": add}]
    entry = table / "_delta_log" / f"{0:020d}.json"
    entry.parent.mkdir()
    entry.write_text("\n".join(json.dumps(each) for each in actions), encoding="utf-8")
    return int(DeltaTable(table).to_pyarrow_dataset().to_table(filter=pc.field("score") == 7).num_rows)


def main() -> int:
    """Print the rows that are found with bounds of both columns, and of one of them."""
    both, one = rows_found({"level": 7, "score": 7}), rows_found({"level": 7})
    print(f"bounds of level and score: {both} row; bounds of level only: {one} rows")
    return 0 if (both, one) == (1, 0) else 1


if __name__ == "__main__":
    sys.exit(main())

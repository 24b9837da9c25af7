"""delta-rs decodes a JSON escape of U+20BB7 in a log entry to U+10BB7: prints what it should read and what it reads.

Exits with 0 if the defect is there, 1 if it is not. Needs deltalake and pyarrow.
"""

import json
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

TEXT = "\U00020bb7"


def read_back(escaped: bool) -> dict[str, str]:
    """Write a table of one file, whose log entry has the text as escapes or as it is; read bound and partition."""
    table = Path(tempfile.mkdtemp())
    data = table / "data.parquet"
    pq.write_table(pa.table({"name": [TEXT]}), data)
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("name", "region")]
    metadata = {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["region"],
        "configuration": {},
    }
    bounds = {"numRecords": 1, "minValues": {"name": TEXT}, "maxValues": {"name": TEXT}, "nullCount": {"name": 0}}
    add = {
        "path": data.name,
        "partitionValues": {"region": TEXT},
        "size": data.stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps(bounds, ensure_ascii=False),
    }
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, {"add": add}]
    entry = table / "_delta_log" / f"{0:020d}.json"
    entry.parent.mkdir()
    entry.write_text("\n".join(json.dumps(each, ensure_ascii=escaped) for each in actions), encoding="utf-8")
    [read] = pa.table(DeltaTable(table).get_add_actions(flatten=True)).to_pylist()
    return {"upper bound": read["max.name"], "partition value": read["partition.region"]}


def main() -> int:
    """Print both readings."""
    wrong = False
    for escaped in (False, True):
        for what, text in read_back(escaped).items():
            wrong |= text != TEXT
            written = "escaped" if escaped else "as UTF-8"
            print(f"{what}, {written}: wrote U+{ord(TEXT):X}, read {' '.join(f'U+{ord(each):X}' for each in text)}")
    return 0 if wrong else 1


if __name__ == "__main__":
    sys.exit(main())

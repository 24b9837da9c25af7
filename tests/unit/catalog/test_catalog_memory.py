"""The catalog follows the tables of a large lakehouse in less memory than its container has."""

import json
import subprocess
import sys
from pathlib import Path

from gamelake.delta.log.codec import encode_entry, entry_path

# The limit of the container (CATALOG_MEMORY in compose/.env).
LIMIT_MIB, TABLES, FILES = 128, 60, 2_000
_SCHEMA = {"type": "struct", "fields": [{"name": "number", "type": "long", "nullable": True, "metadata": {}}]}
_STATISTICS = json.dumps({"numRecords": 10, "minValues": {"number": 1}, "maxValues": {"number": 9}})
# What the process has that the kernel can't take back: without the pages of its libraries.
_MEASURE = """
import re
import sys
from pathlib import Path

from gamelake.model.naming import Layer
from gamelake.objects.store import Location
from services.catalog.__main__ import leave_pandas_out

leave_pandas_out()
from services.catalog.table_statistics import LogReader, StatisticsTracker
from services.catalog.tables import CatalogTable
from services.catalog.views import ViewFiles

tables = frozenset(CatalogTable(Layer.SILVER, f"t{number}_events") for number in range(int(sys.argv[2])))
tracker = StatisticsTracker(LogReader(Location(uri=sys.argv[1])), on_replaced=print)
errors = tracker.measure(tables)
views = ViewFiles(Path("sql/views"), Path("contracts/games.yaml")).wanted(frozenset({"silver.events"}))
assert not errors and views
status = Path("/proc/self/status").read_text()
print(sum(each.files for each in tracker.figures.values()), re.search(r"RssAnon:\\s+(\\d+)", status)[1])
"""


def _table(number: int) -> bytes:
    format_ = {"provider": "parquet", "options": {}}
    metadata = {"id": f"{number}", "format": format_, "schemaString": json.dumps(_SCHEMA), "partitionColumns": []}
    files = [
        {
            "path": f"part-{number:06d}-{file:06d}-0123456789abcdef0123456789abcdef.parquet",
            "partitionValues": {},
            "size": 100_000 + file,
            "modificationTime": 1,
            "dataChange": True,
            "stats": _STATISTICS,
        }
        for file in range(FILES)
    ]
    return encode_entry(
        [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": {**metadata, "configuration": {}, "createdTime": 0}},
            *({"add": file} for file in files),
        ]
    )


def test_a_hundred_thousand_live_files_take_less_memory_than_the_container_has(tmp_path: Path) -> None:
    for number in range(TABLES):
        path = tmp_path / entry_path(f"silver/t{number}_events", 0)
        path.parent.mkdir(parents=True)
        path.write_bytes(_table(number))

    command = (sys.executable, "-c", _MEASURE, tmp_path.as_uri(), str(TABLES))
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    files, kib = map(int, done.stdout.split())
    assert files == TABLES * FILES
    assert kib / 1024 < LIMIT_MIB

"""What another program may leave in a table's log."""

from collections.abc import Mapping

# Entries that no reader understands, by their fault.
DAMAGED_ENTRIES: Mapping[str, bytes] = {
    "empty": b"",
    "no JSON": b"\x00\xff",
    "JSON of another kind": b"[1]",
    "an action of another kind": b'{"add": 7}',
    "an invalid schema": b'{"metaData": {"id": "1", "schemaString": "x", "partitionColumns": [], "format": {}}}',
}
MISSING = "missing"

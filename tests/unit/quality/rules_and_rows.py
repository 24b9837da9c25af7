"""Rules and rows for the tests of quality."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import yaml

from gamelake.quality.checking import CheckedRules, check_rules
from gamelake.quality.rules import RuleSet, load_rules

COLUMNS = pa.schema(
    [
        pa.field("event_time", pa.timestamp("us", "UTC")),
        pa.field("event_name", pa.string()),
        pa.field("amount", pa.float64()),
        pa.field("level", pa.int64()),
        pa.field("purchase", pa.struct([pa.field("currency", pa.string()), pa.field("quantity", pa.int64())])),
    ]
)
GAMES = ("chess", "pool")
TABLES = tuple(f"silver/{game}_events" for game in GAMES)


def a_rule(name: str = "paid", expect: str = "amount >= 0", **changes: object) -> dict[str, object]:
    """A good rule as it is written, with changes; what is set to None is left out."""
    rule = {
        "name": name,
        "expect": expect,
        "severity": "quarantine",
        "owner": "sales",
        "why": "it is a price",
    } | changes
    return {key: value for key, value in rule.items() if value is not None}


def written(folder: Path, *rules: Mapping[str, object], file: str = "rules.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(yaml.safe_dump({"rules": list(rules)}, sort_keys=False))
    return folder


def loaded(folder: Path, *rules: Mapping[str, object]) -> RuleSet:
    """Rules, written and read."""
    return load_rules(written(folder, *rules))


def checked(folder: Path, *rules: Mapping[str, object], columns: pa.Schema = COLUMNS) -> CheckedRules:
    """Rules, written, read and checked."""
    return check_rules(loaded(folder, *rules), columns, GAMES)


def some_rows(rows: Sequence[Mapping[str, object]], schema: pa.Schema = COLUMNS) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=schema)

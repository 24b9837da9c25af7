"""Measures the validation of a closed day: `python -m benchmarks.validation`.

Each game has a clean day, in three files of a table. The rules of the platform and the table checks are evaluated by
Great Expectations on a local Spark with all cores. Prints one JSON document.
"""

import argparse
import json
import os
import sys
import time
from datetime import date
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.model.errors import GamelakeError
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.quality.checking import check_rules
from gamelake.quality.rules import load_rules
from gamelake.quality.suites.day import LakehouseDay
from gamelake.quality.suites.results import build_docs
from gamelake.quality.suites.validations import ValidationRun
from gamelake.session import own_session
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.data_files import write_rows
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, delta_schema_json
from tools.embedded.java import spark_environment

_DAY = date(2026, 1, 8)
_MIDNIGHT = int(np.datetime64(_DAY, "us").astype(np.int64))
_FILES = 3
_PURCHASE = pa.struct([("product_id", pa.string()), ("currency", pa.string()), ("quantity", pa.int64())])
_MOMENT = pa.timestamp("us", "UTC")
_RULES = Path("quality/rules")
_JARS = Path("build/jars/spark")


def _rows(game: str, count: int, number: int) -> pa.Table:
    """A part of a game's day: three event names, every tenth event a purchase."""
    random = np.random.default_rng(number)
    times = np.sort(random.integers(0, 86_400_000_000, count)) + _MIDNIGHT
    pays = np.arange(count) % 10 == 0
    names = np.where(pays, "purchase", np.where(np.arange(count) % 2, "level_completed", "session_start"))
    bought = pa.StructArray.from_arrays(
        [pa.repeat("gems", count), pa.repeat("USD", count), pa.array(np.ones(count, np.int64))],
        fields=list(_PURCHASE),
        mask=pa.array(~pays),
    )
    return pa.table(
        {
            "event_time": pa.array(times).cast(_MOMENT),
            "event_name": pa.array(names.tolist(), pa.string()),
            "game_name": pa.repeat(game, count),
            "gamer_id": _texts(random.integers(0, count // 5 + 1, count), "p"),
            "session_id": _texts(random.integers(0, count // 2 + 1, count), "s"),
            "platform": pa.array(["ios", "android", "web"]).take(pa.array(random.integers(0, 3, count))),
            "app_version": pa.array(["1.2.3", "1.3.0"]).take(pa.array(random.integers(0, 2, count))),
            "amount": pa.array(np.full(count, 4.99), mask=~pays),
            "ingest_time": pa.array(times + 2_000_000).cast(_MOMENT),
            "country": pa.repeat("FI", count),
            "level": pa.array(random.integers(1, 100, count)),
            "score_adjustment": pa.array(random.integers(0, 100, count)),
            "purchase": bought,
            "kafka_partition": pa.array(random.integers(0, 8, count)),
            "kafka_offset": pa.array(np.arange(count) + number * count),
            "event_id": _uuids(random, count),
        }
    )


def _uuids(random: np.random.Generator, count: int) -> pa.Array:
    """Random UUIDs as text."""
    digits = np.frombuffer(random.bytes(16 * count).hex().encode(), np.uint8).reshape(count, 32)
    dash = np.full((count, 1), ord("-"), np.uint8)
    ends = (0, 8, 12, 16, 20, 32)
    parts = [part for low, high in pairwise(ends) for part in (dash, digits[:, low:high])][1:]
    texts = np.ascontiguousarray(np.hstack(parts))
    offsets = pa.py_buffer(np.arange(0, 36 * count + 1, 36, dtype=np.int32))
    return pa.StringArray.from_buffers(count, offsets, pa.py_buffer(texts))


def _texts(numbers: npt.NDArray[np.int64], prefix: str) -> pa.Array:
    return pa.array([f"{prefix}{number}" for number in numbers.tolist()])


def _make(store: Store, games: list[str], rows: int) -> pa.Schema:
    """Write the day of each game, and all of them into silver/events."""
    schema = pa.schema([])
    with DeltaTables(store.location) as tables:
        for at, game in enumerate(games):
            parts = [_rows(game, rows // _FILES, at * _FILES + part) for part in range(_FILES)]
            schema = pa.schema([*parts[0].schema, pa.field("event_date", pa.date32())])
            for table in (game_table(game), SILVER_EVENTS):
                files = tuple(write_rows(store, table, part, {"event_date": _DAY.isoformat()}) for part in parts)
                entry = TableFiles(
                    table=table, partition_by=("event_date",), schema=delta_schema_json(schema), files=files
                )
                tables.append(entry, BatchTransaction("benchmark", at))
    return schema


def measure(games: int, rows: int) -> dict[str, object]:
    """Create a lakehouse, and validate its day.

    Raises:
        GamelakeError: the rules or the tables don't fit the suites.
    """
    os.environ |= spark_environment()
    names = [f"game_{number:02}" for number in range(games)]
    with TemporaryDirectory(prefix="gamelake-validation-") as folder:
        store = Store(Location(uri=Path(folder, "lakehouse").as_uri()))
        rules = check_rules(load_rules(_RULES), _make(store, names, rows), ())
        started = time.perf_counter()
        with own_session("validation", store.location, _JARS) as spark:
            ready = time.perf_counter()
            validations = ValidationRun(_DAY)
            judged = dict(LakehouseDay(store, _DAY, rules).validate(spark, names, validations))
            build_docs(validations, Path(folder, "docs"))
            ended = time.perf_counter()
    outcomes = [outcome for of_game in judged.values() for outcome in of_game]
    return {
        "games": games,
        "rows": games * rows,
        "rules": len(rules.rules.of(names[0])),
        "seconds": round(ended - started, 1),
        "seconds_of_spark_to_start": round(ready - started, 1),
        "expectations": len(outcomes),
        "failed": sum(each.is_failure for each in outcomes),
    }


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validation", description=__doc__)
    parser.add_argument("--games", type=int, default=30)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each game; default: %(default)s")
    arguments = parser.parse_args()
    try:
        print(json.dumps(measure(arguments.games, arguments.rows), indent=2))
    except GamelakeError as error:
        print(f"benchmarks.validation: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measures the validation of a closed day: `python -m benchmarks.validation`.

Each game has a clean day, in three files of a table. The rules of the platform and the table checks are evaluated by
Great Expectations on a local Spark with all cores.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.commits import append
from benchmarks.goals import Goal, figure_of
from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.machine import SPARK_JARS
from benchmarks.results import Measurement
from gamelake.layers.silver import EVENT_DATE
from gamelake.model.arrays import Ints
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.objects.store import Location, Store
from gamelake.quality.checking import check_rules
from gamelake.quality.rules import load_rules
from gamelake.quality.suites.day import LakehouseDay
from gamelake.quality.suites.results import build_docs
from gamelake.quality.suites.validations import ValidationRun
from gamelake.session import own_session
from tools.simulator.text import uuid_text

_DAY = date(2026, 1, 8)
_MIDNIGHT = int(np.datetime64(_DAY, "us").astype(np.int64))
_FILES = 3
_PURCHASE = pa.struct([("product_id", pa.string()), ("currency", pa.string()), ("quantity", pa.int64())])
_MOMENT = pa.timestamp("us", "UTC")
_RULES = Path("quality/rules")
_PART, _SUBJECT = "validation", "a day of all games"


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
            "event_id": uuid_text(np.frombuffer(random.bytes(16 * count), np.uint8).reshape(count, 16)),
        }
    )


def _texts(numbers: Ints, prefix: str) -> pa.Array:
    return pa.array([f"{prefix}{number}" for number in numbers.tolist()])


def _make(store: Store, games: list[str], rows: int) -> pa.Schema:
    """Write the day of each game, and all of them into silver/events."""
    parts = list[pa.Table]()
    for at, game in enumerate(games):
        parts = [_rows(game, rows // _FILES, at * _FILES + part) for part in range(_FILES)]
        for table in (game_table(game), SILVER_EVENTS):
            append(store, table, [(part, str(_DAY)) for part in parts])
    return pa.schema([*parts[0].schema, pa.field(EVENT_DATE, pa.date32())])


@dataclass(frozen=True, slots=True)
class DayOfRows:
    """Options of the benchmark."""

    games: int = option(30, "games")
    rows: int = option(1_000_000, "rows of each game")


def measure(run: Run[DayOfRows]) -> Iterator[Measurement]:
    """Create a lakehouse, and validate its day.

    Raises:
        GamelakeError: the rules or the tables don't fit the suites.
    """
    names = [f"game_{number:02}" for number in range(run.settings.games)]
    store = Store(Location(uri=(run.folder / "lakehouse").as_uri()))
    rules = check_rules(load_rules(_RULES), _make(store, names, run.settings.rows), ())
    started = time.perf_counter()
    with own_session("validation", store.location, SPARK_JARS) as spark:
        ready = time.perf_counter()
        validations = ValidationRun(_DAY)
        judged = dict(LakehouseDay(store, _DAY, rules).validate(spark, names, validations))
        build_docs(validations, run.folder / "docs")
        ended = time.perf_counter()
    outcomes = [outcome for of_game in judged.values() for outcome in of_game]
    values = {
        "s": ended - started,
        "s of Spark's start": ready - started,
        "rules of a game": len(rules.rules.of(names[0])),
        "expectations": len(outcomes),
        "failed": sum(each.is_failure for each in outcomes),
    }
    yield Measurement(part=_PART, subject=_SUBJECT, values=values)


BENCHMARK = Benchmark(
    name="validation",
    measures="Measure the validation of a closed day.",
    settings=DayOfRows(),
    quick=DayOfRows(games=2, rows=3_000),
    measure=measure,
    goals=(Goal("validation of a day", (300,), figure_of(_PART, _SUBJECT, "s"), " s", at_most=True),),
    runs_spark=True,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))

"""Measures the worked questions before and after compaction: `python -m benchmarks.questions.compaction`.

DuckDB runs the questions, as `make sql ENGINE=duckdb`, before and after the scheduled compaction; the results must be
equal. For a query of one game on one day, it also counts the files that a reader can skip by the log.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.questions.events import SimulatedPlayers, days_until
from benchmarks.questions.tables import ONE_TITLE, LakehouseWriter
from gamelake.maintenance.compaction_run import CompactionRun, CompactionScope
from gamelake.model.games import GamesContract, load_games
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.questions import Question, as_of, load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from gamelake.storage.listing import appended_tables, table_names
from gamelake.storage.store import Location, Store
from tools.embedded.service import REPOSITORY

_SQL = REPOSITORY / "sql"
_BOUNDS = {"p95_times": 5.0, "pruned_percent": 95.0}


def main() -> int:
    """Measure, and print the results as JSON; 1 if a figure misses its bound or a result differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions.compaction", description=__doc__)
    parser.add_argument("--files", type=int, default=10_000, help="of silver/events; default: %(default)s")
    parser.add_argument("--rows-per-file", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--days", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=2, help="number of runs of each question; default: %(default)s")
    arguments = parser.parse_args()
    contract = load_games(REPOSITORY / "contracts" / "games.yaml")
    with tempfile.TemporaryDirectory(prefix="gamelake-compacted-") as folder:
        place = Location(uri=Path(folder).as_uri())
        days = days_until(datetime.now(UTC).date(), arguments.days)
        _write(place, contract, days, arguments)
        before, seconds_before = _measure_questions(place, contract, arguments.rounds)
        files_before = len(_files(place))
        for table in appended_tables(Store(place)):
            CompactionRun(Store(place), contract, CompactionScope.DAILY, date.max).of(table)()
        after, seconds_after = _measure_questions(place, contract, arguments.rounds)
        found = {
            "files": [files_before, len(_files(place))],
            "p95_seconds": [round(_p95(seconds_before), 3), round(_p95(seconds_after), 3)],
            "p95_times": round(_p95(seconds_before) / _p95(seconds_after), 1),
            "pruned_percent": round(_pruned(place, days[-2]), 1),
            "same_answers": before == after,
        }
    print(json.dumps(found))
    return int(not found["same_answers"] or any(float(found[name]) < bound for name, bound in _BOUNDS.items()))  # type: ignore[arg-type] # numbers


def _write(place: Location, contract: GamesContract, days: Sequence[date], arguments: argparse.Namespace) -> None:
    rows = arguments.files * arguments.rows_per_file // len(days)
    players = SimulatedPlayers([game.game_name for game in contract.games], players=rows // 10, seed=7)
    writer = LakehouseWriter(place, contract, 1, arguments.rows_per_file)
    for number, day in enumerate(days):
        writer.add(players.day(day, rows, number / len(days)))
    writer.finish(lambda _: None)


def _measure_questions(
    place: Location, contract: GamesContract, rounds: int
) -> tuple[dict[str, list[str]], list[float]]:
    """The results, as sorted rows, and the seconds of each run."""
    relations = Relations(table_names(Store(place)), load_views(_SQL / "views"), contract.games)
    results, seconds = {}, []
    for question in _questions():
        sql = as_of(question.sql, datetime.now(UTC).date())
        for _ in range(rounds):
            started = time.perf_counter()
            found = answer(sql, relations.read_by(sql), place)
            seconds.append(time.perf_counter() - started)
        results[question.name] = sorted(map(_rounded, found.to_pylist()))
    return results, seconds


def _questions() -> list[Question]:
    """Portable questions about events in silver."""
    questions = load_questions(_SQL / "questions").values()
    return [each for each in questions if each.is_portable and "silver." in each.sql]


def _rounded(row: dict[str, object]) -> str:
    """A row as text, with rounded fractions: sums depend on the order in which rows are read."""
    return repr([round(each, 6) if isinstance(each, float) else each for each in row.values()])


def _pruned(place: Location, day: date) -> float:
    """Per cent of the files that the log excludes for one game on one day."""
    wanted = (pc.field("game_name") == ONE_TITLE) & (pc.field("event_date") == pa.scalar(day))
    read = list(DeltaTable(place.child(SILVER_EVENTS)).to_pyarrow_dataset().get_fragments(filter=wanted))
    return 100 * (1 - len(read) / len(_files(place)))


def _files(place: Location) -> list[str]:
    return DeltaTable(place.child(SILVER_EVENTS)).file_uris()


def _p95(seconds: Sequence[float]) -> float:
    return float(np.percentile(seconds, 95))


if __name__ == "__main__":
    sys.exit(main())

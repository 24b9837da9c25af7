"""Measures the worked questions before and after compaction: `python -m benchmarks.questions.compaction`.

DuckDB runs the questions, as `make sql ENGINE=duckdb`, before and after the scheduled compaction; the results must be
equal. For a query of one game on one day, it also counts the files that a reader can skip by the log.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.goals import Goal, figure_of, ratio
from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.questions.events import SimulatedPlayers, days_until
from benchmarks.questions.tables import ONE_TITLE, LakehouseWriter
from benchmarks.results import BenchmarkError, Measurement, Values
from benchmarks.stopwatch import seconds_of
from gamelake.contract.games import GamesContract
from gamelake.delta.listing import appended_tables, table_names
from gamelake.maintenance.compaction_run import CompactionRun, CompactionScope
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.questions import Question, as_of, load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from tools.embedded.service import REPOSITORY

_SQL, _GAMES_FILE = REPOSITORY / "sql", REPOSITORY / "contracts" / "games.yaml"
_PART, _BEFORE, _AFTER, _SKIPPED = "queries", "before compaction", "after compaction", "files that the log excludes"


@dataclass(frozen=True, slots=True)
class CompactedSettings:
    """Options of the benchmark."""

    files: int = option(10_000, "files of silver/events")
    rows_per_file: int = option(100, "rows of each file")
    days: int = option(30, "days of the rows")
    rounds: int = option(2, "number of runs of each question")


def measure(run: Run[CompactedSettings]) -> Iterator[Measurement]:
    """Ask all questions before and after compaction.

    Raises:
        BenchmarkError: a result differs.
    """
    contract, place = load_gold(_GAMES_FILE), Location(uri=run.folder.as_uri())
    days = days_until(datetime.now(UTC).date(), run.settings.days)
    _write(place, contract, days, run.settings)
    before, values = _measure_questions(place, contract, run.settings.rounds)
    yield Measurement(part=_PART, subject=_BEFORE, values=values)
    for table in appended_tables(Store(place)):
        CompactionRun(Store(place), contract, CompactionScope.DAILY, date.max).of(table)()
    after, values = _measure_questions(place, contract, run.settings.rounds)
    yield Measurement(part=_PART, subject=_AFTER, values=values)
    yield Measurement(part=_SKIPPED, subject="one game, one day", values={"%": _pruned(place, days[-2])})
    if before != after:
        raise BenchmarkError("the results of a question differ after compaction")


def _write(place: Location, contract: GamesContract, days: Sequence[date], settings: CompactedSettings) -> None:
    rows = settings.files * settings.rows_per_file // len(days)
    players = SimulatedPlayers([game.game_name for game in contract.games], players=rows // 10, seed=7)
    writer = LakehouseWriter(place, contract, 1, settings.rows_per_file)
    for number, day in enumerate(days):
        writer.add(players.day(day, rows, number / len(days)))
    writer.finish(lambda _: None)


def _measure_questions(place: Location, contract: GamesContract, rounds: int) -> tuple[dict[str, list[str]], Values]:
    """Return the results as sorted rows, and the figures of all runs."""
    relations = Relations(table_names(Store(place)), load_views(_SQL / "views", _GAMES_FILE), contract.games)
    results, seconds = {}, []
    for question in _questions():
        sql = as_of(question.sql, datetime.now(UTC).date())
        run = partial(answer, sql, relations.read_by(sql), place)
        seconds += [seconds_of(run) for _ in range(rounds)]
        results[question.name] = sorted(map(_rounded, run().to_pylist()))
    return results, {"p95 s": float(np.percentile(seconds, 95)), "files": len(_files(place))}


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


BENCHMARK = Benchmark(
    name="questions-compaction",
    measures="Measure the worked questions in DuckDB before and after compaction.",
    settings=CompactedSettings(),
    quick=CompactedSettings(files=60, days=3, rounds=1),
    measure=measure,
    goals=(
        Goal("p95 before, relative to that after compaction", (5,), ratio(_PART, "p95 s", _BEFORE, _AFTER)),
        Goal("files that the log excludes", (95,), figure_of(_SKIPPED, "one game, one day", "%"), " %"),
    ),
    needs_goals=True,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))

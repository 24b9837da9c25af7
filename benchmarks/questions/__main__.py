"""Measures the worked questions in Trino on the running stack: `python -m benchmarks.questions`, after `make up`."""

import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from trino.exceptions import Error

from benchmarks.charts import bar_chart
from benchmarks.documents import Report, circumstances, goals_table
from benchmarks.goals import Goal
from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.questions.events import SimulatedPlayers, days_until
from benchmarks.questions.tables import LakehouseWriter
from benchmarks.questions.trino import QuestionClient
from benchmarks.results import BenchmarkError, Measurement, Results
from gamelake.contract.games import GamesContract
from gamelake.delta.listing import table_names
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location, Store
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.sql.questions import load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from tools.embedded.service import REPOSITORY
from tools.stack import url

QUERIES = "queries"
_SQL, _GAMES_FILE = REPOSITORY / "sql", REPOSITORY / "contracts" / "games.yaml"
_WHOLE = 50_000_000


@dataclass(frozen=True, slots=True)
class QuestionSettings:
    """Options of the benchmark."""

    rows: int = option(_WHOLE, "events")
    days: int = option(30, "days of the rows, up to today")
    rows_per_file: int = option(1_000_000, "rows of each file of silver")
    players: int = option(400_000, "players of all games")
    rounds: int = option(3, "times that each question is asked after the first")
    lakehouse: str = option("s3://lakehouse", "where a folder is made for the tables")
    seen_by_trino: str = option("", "the same place by Trino's name for it, where that is another one")
    trino_url: str = option("", "Trino's address, if not the stack's")
    keep: bool = option(default=False, text="leave the tables where they are")
    reuse: str = option("", "the address of tables that an earlier run has left; nothing is written")


def measure(run: Run[QuestionSettings]) -> Iterator[Measurement]:
    """Write tables, run the questions, remove the tables.

    Raises:
        BenchmarkError: Trino refused a query.
    """
    settings, contract = run.settings, load_gold(_GAMES_FILE)
    trino = QuestionClient(settings.trino_url)
    base = _location(settings.lakehouse)
    location = Location(uri=settings.reuse or base.child(f"bench-{uuid.uuid4().hex[:8]}"), options=base.options)
    run.emit(f"tables are in {location.uri}")
    try:
        trino.ask("SELECT 1", "analyst")
        if not settings.reuse:
            _write(location, contract, run)
        seen = location.uri.replace(base.uri, settings.seen_by_trino or base.uri, 1)
        with trino.naming(seen, table_names(Store(location))) as names:
            yield from _ask(trino, names, contract, run)
    except Error as error:
        raise BenchmarkError(f"Trino refused a query: {error}") from error
    finally:
        if not (settings.keep or settings.reuse):
            _remove(location)


def _write(location: Location, contract: GamesContract, run: Run[QuestionSettings]) -> None:
    settings = run.settings
    players = SimulatedPlayers([game.game_name for game in contract.games], settings.players, seed=7)
    writer = LakehouseWriter(location, contract, os.cpu_count() or 1, settings.rows_per_file)
    days = days_until(datetime.now(UTC).date(), settings.days)
    written = 0
    for number, day in enumerate(days):
        written += writer.add(players.day(day, settings.rows // len(days), number / len(days)))
        run.emit(f"{day}: {written:,} events")
    writer.finish(run.emit)


def _ask(
    trino: QuestionClient, names: Mapping[str, str], contract: GamesContract, run: Run[QuestionSettings]
) -> Iterator[Measurement]:
    relations = Relations(frozenset(names), load_views(_SQL / "views", _GAMES_FILE), contract.games)
    for question in load_questions(_SQL / "questions").values():
        # The others query the tables' history, not events.
        if question.is_portable:
            sql = relations.written_out(question.sql, names)
            first = {"first time s": round(trino.seconds(sql, question.asked_by), 3)}
            for number in range(1, run.settings.rounds + 1):
                values = {"s": round(trino.seconds(sql, question.asked_by), 3)}
                run.emit(f"{question.name}: {values['s']:.2f} s")
                yield Measurement(part=QUERIES, subject=question.name, round=number, values=values | first)


def _location(lakehouse: str) -> Location:
    variables = {
        "GAMELAKE_LAKEHOUSE": lakehouse,
        "GAMELAKE_S3_ENDPOINT": url("OBJECT_STORE_PORT"),
        "GAMELAKE_S3_REGION": "us-east-1",
        # The only key that may write another folder into the lakehouse's bucket.
        "AWS_SHARED_CREDENTIALS_FILE": str(REPOSITORY / "compose/secrets/object-store-root"),
    }
    return LakehouseSettings.from_env({**variables, **os.environ, "GAMELAKE_LAKEHOUSE": lakehouse}).location


def _remove(location: Location) -> None:
    store = Store(location)
    for path in store.paths(""):
        store.delete(path)


def _medians(results: Results) -> list[float]:
    return [median(results.values(QUERIES, name, "s")) for name in results.subjects(QUERIES)]


def _draw(results: Results, file: Path) -> None:
    seconds = {name: results.values(QUERIES, name, "s") for name in results.subjects(QUERIES)}
    slowest_first = dict(sorted(seconds.items(), key=lambda item: -median(item[1])))
    bar_chart(file, "Questions in Trino", "seconds", slowest_first)


GOALS = (
    Goal("slowest query", (5,), lambda results: [max(_medians(results))], " s", at_most=True),
    Goal("median query", (1.5,), lambda results: [median(_medians(results))], " s", at_most=True),
)

BENCHMARK = Benchmark(
    name="questions",
    measures="Measure the worked questions in Trino on the running stack.",
    settings=QuestionSettings(),
    measure=measure,
    goals=GOALS,
    is_partial=lambda settings: settings.rows < _WHOLE,
    report=Report(
        page=(circumstances("the whole stack shared them; one query after the other"), goals_table(GOALS)),
        charts={"questions.svg": _draw},
    ),
)

if __name__ == "__main__":
    sys.exit(main(BENCHMARK))

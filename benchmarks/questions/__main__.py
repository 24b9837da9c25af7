"""Measures the worked questions in Trino on the running stack: `python -m benchmarks.questions`, after `make up`."""

import argparse
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from requests.exceptions import RequestException
from trino.exceptions import Error, TrinoQueryError

from benchmarks.machine import cpu_model, short_commit
from benchmarks.questions import report
from benchmarks.questions.events import SimulatedPlayers, days_until
from benchmarks.questions.results import QuestionResults, QuestionTimes, save
from benchmarks.questions.tables import LakehouseWriter
from benchmarks.questions.trino import QuestionClient
from gamelake.model.errors import GamelakeError
from gamelake.model.games import GamesContract, load_games
from gamelake.serving.sql.questions import load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from gamelake.storage.listing import table_names
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Location, Store
from tools.embedded.service import REPOSITORY
from tools.stack import url

_RESULTS = REPOSITORY / "benchmarks" / "results"
_SQL = REPOSITORY / "sql"
Emit = Callable[[str], None]


def main() -> int:
    """Write tables, run the questions, remove the tables; 1 if the stack is not running."""
    arguments = _parser().parse_args()
    started = time.monotonic()

    def emit(line: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {line}", flush=True)

    try:
        results = _measured(arguments, emit)
    except (GamelakeError, OSError, RequestException, Error) as error:
        print(f"benchmarks.questions: {error}", file=sys.stderr)
        return 1
    print(f"results are in {save(results, arguments.out)}")
    print(report.summary(results))
    if arguments.out == _RESULTS:
        report.write_report(results, REPOSITORY / "docs")
    return 0


def _measured(arguments: argparse.Namespace, emit: Emit) -> QuestionResults:
    contract = load_games(REPOSITORY / "contracts" / "games.yaml")
    trino = QuestionClient(arguments.trino_url or "")
    trino.ask("SELECT 1", "analyst")
    base = _location(arguments.lakehouse)
    location = Location(uri=arguments.reuse or base.child(f"bench-{uuid.uuid4().hex[:8]}"), options=base.options)
    emit(f"tables are in {location.uri}")
    try:
        if not arguments.reuse:
            _write(location, contract, arguments, emit)
        seen = location.uri.replace(base.uri, arguments.seen_by_trino or base.uri, 1)
        tables = table_names(Store(location))
        with trino.naming(seen, tables) as names:
            asked = tuple(_measure_questions(trino, names, contract, arguments.rounds, emit))
            [[rows]] = trino.ask(f"SELECT count(*) FROM {names['silver.events']}", "analyst")  # noqa: S608 # our own name
    finally:
        if not (arguments.keep or arguments.reuse):
            _remove(location)
    return QuestionResults(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        cores=os.cpu_count() or 0,
        cpu_model=cpu_model(),
        rows=rows,
        days=arguments.days,
        players=arguments.players,
        asked=asked,
    )


def _write(location: Location, contract: GamesContract, arguments: argparse.Namespace, emit: Emit) -> None:
    titles = [game.game_name for game in contract.games]
    players, writer = (
        SimulatedPlayers(titles, arguments.players, seed=7),
        LakehouseWriter(location, contract, os.cpu_count() or 1, arguments.rows_per_file),
    )
    days = days_until(datetime.now(UTC).date(), arguments.days)
    written = 0
    for number, day in enumerate(days):
        written += writer.add(players.day(day, arguments.rows // len(days), number / len(days)))
        emit(f"{day}: {written:,} events")
    writer.finish(emit)


def _measure_questions(
    trino: QuestionClient, names: Mapping[str, str], contract: GamesContract, rounds: int, emit: Emit
) -> Iterator[QuestionTimes]:
    relations = Relations(frozenset(names), load_views(_SQL / "views"), contract.games)
    for question in load_questions(_SQL / "questions").values():
        if not question.is_portable:
            # It queries the tables' history, not events.
            continue
        sql = relations.written_out(question.sql, names)
        try:
            first, *others = [trino.seconds(sql, question.asked_by) for _ in range(rounds + 1)]
        except TrinoQueryError as error:
            emit(f"{question.name}: {error.message}")
            yield QuestionTimes(question=question.name, first=0, seconds=(), refusal=error.error_name or "refused")
            continue
        asked = QuestionTimes(
            question=question.name, first=round(first, 3), seconds=tuple(round(each, 3) for each in others)
        )
        emit(f"{question.name}: {asked.median:.2f} s, the first time {first:.2f} s")
        yield asked


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    add = parser.add_argument
    add("--rows", type=int, default=50_000_000, help="events; default: %(default)s")
    add("--days", type=int, default=30, help="days that they are of, the last of which is today; default: %(default)s")
    add("--rows-per-file", type=int, default=1_000_000, help="rows of each file of silver; default: %(default)s")
    add("--players", type=int, default=400_000, help="players of all games; default: %(default)s")
    add("--rounds", type=int, default=3, help="times that each question is asked after the first; default: %(default)s")
    add("--lakehouse", default="s3://lakehouse", help="where a folder is made for the tables; default: %(default)s")
    add("--seen-by-trino", help="the same place by Trino's name for it, where that is another one")
    add("--trino-url", help="default: the stack's")
    add("--keep", action="store_true", help="leave the tables where they are")
    add("--reuse", metavar="URI", help="tables that an earlier run has left; nothing is written")
    add("--out", type=Path, default=_RESULTS, help="folder for the results; default: %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main())

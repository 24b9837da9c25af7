"""Runs the questions of `sql/questions`, and nothing else: with a limit of rows and of time, one at a time."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec
import requests.exceptions
from trino.exceptions import Error as TrinoClientError
from trino.exceptions import TrinoQueryError

from gamelake.model.errors import GamelakeError
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import Question, load_questions
from gamelake.trino import TrinoAccess
from services.portal.settings import PortalSettings, QueryLimits

_ASKED_BY = "analyst"
_LONGEST_ERROR = 64 * 1024


class QuestionFailedError(GamelakeError):
    """A question has no result.

    Attributes:
        remedy: a command that may help; empty if none is known.
    """

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy


class PortalBusyError(GamelakeError):
    """Another question runs."""


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The first rows of a result; `is_cut` if there are more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    is_cut: bool


class QuestionEngine(Protocol):
    """The engine that runs a question."""

    engine: QueryEngine

    def run(self, question: Question, limits: QueryLimits) -> QuestionResult:
        """Run a question and return its result.

        Raises:
            QuestionFailedError: there is none.
        """


class Questions:
    """The analyst's questions that the engine can run."""

    def __init__(self, settings: PortalSettings) -> None:
        self._limits = settings.limits
        self._engine = _engine(settings)
        self._folder = settings.sql / "questions"
        self._one_at_a_time = threading.Lock()

    def all(self) -> Mapping[str, Question]:
        """Return the questions by name; files that have changed are read again."""
        return {
            name: each
            for name, each in load_questions(self._folder).items()
            if each.asked_by == _ASKED_BY and self._engine.engine in each.engines
        }

    def run_with(self, question: Question, limits: QueryLimits) -> QuestionResult:
        """Run a question of the portal's own, next to one that a person runs.

        Raises:
            QuestionFailedError: it has no result.
        """
        return self._engine.run(question, limits)

    def run(self, question: Question) -> QuestionResult:
        """Run one.

        Raises:
            QuestionFailedError: it has no result.
            PortalBusyError: another one runs.
        """
        if not self._one_at_a_time.acquire(blocking=False):
            raise PortalBusyError("another question runs: try again when it has ended")
        try:
            return self._engine.run(question, self._limits)
        finally:
            self._one_at_a_time.release()


class TrinoQuestions:
    """Questions to Trino, as the user of the settings."""

    engine = QueryEngine.TRINO

    def __init__(self, access: TrinoAccess, remedy: str) -> None:
        self._access = access
        self._remedy = remedy

    def run(self, question: Question, limits: QueryLimits) -> QuestionResult:
        """See `QuestionEngine`; a query that takes too long is cancelled in Trino."""
        seconds = limits.time.total_seconds()
        connection = self._access.connect("gamelake-portal", seconds=seconds, attempts=1)
        cursor = connection.cursor()
        is_late = threading.Event()

        def give_up() -> None:
            is_late.set()
            with suppress(TrinoClientError, requests.exceptions.RequestException):
                cursor.cancel()

        timer = threading.Timer(seconds, give_up)
        timer.start()
        try:
            cursor.execute(question.sql)
            rows = cursor.fetchmany(limits.rows + 1)
            columns = [str(column[0]) for column in cursor.description or ()]
            if len(rows) > limits.rows:
                cursor.cancel()
        except (TrinoClientError, requests.exceptions.RequestException) as error:
            if is_late.is_set():
                raise QuestionFailedError(_too_long(limits)) from error
            raise _failure_of_trino(error, self._remedy) from error
        finally:
            timer.cancel()
            connection.close()  # type: ignore[no-untyped-call] # untyped
        return _result(columns, rows, limits)


class DuckDbQuestions:
    """Questions to DuckDB in a process of its own, `python -m jobs.ask`, which is killed when it takes too long."""

    engine = QueryEngine.DUCKDB

    def __init__(self, sql: Path) -> None:
        self._sql = sql

    def run(self, question: Question, limits: QueryLimits) -> QuestionResult:
        """See `QuestionEngine`."""
        asked = ("--format", "jsonl", "--sql", str(self._sql), "-")
        with (
            tempfile.TemporaryFile() as statement,
            subprocess.Popen(
                (sys.executable, "-m", "jobs.ask", *asked),
                stdin=_written(statement, question.sql),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "GAMELAKE_LOG_FORMAT": "json"},
            ) as asking,
            ThreadPoolExecutor(1) as pool,
        ):
            timer = threading.Timer(limits.time.total_seconds(), asking.kill)
            timer.start()
            assert asking.stdout is not None  # noqa: S101 - Popen was asked for pipes
            assert asking.stderr is not None  # noqa: S101 - see above
            # Read at the same time: a full pipe would stop the process.
            errors = pool.submit(asking.stderr.read, _LONGEST_ERROR)
            lines = [line for line, _ in zip(asking.stdout, range(limits.rows + 1), strict=False)]
            if len(lines) > limits.rows:
                asking.kill()
            code = asking.wait()
            is_late = timer.finished.is_set() and code < 0 and len(lines) <= limits.rows
            timer.cancel()
            said = errors.result()
        if is_late:
            raise QuestionFailedError(_too_long(limits))
        if code > 0:
            raise QuestionFailedError(_said_by_job(said))
        if code < 0 and len(lines) <= limits.rows:
            raise QuestionFailedError(f"the query was ended by {_signal(-code)}; it may need more memory than there is")
        try:
            records = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
        except msgspec.MsgspecError as error:
            raise QuestionFailedError("the query's result is truncated") from error
        columns = list(records[0]) if records else []
        return _result(columns, [[record.get(name) for name in columns] for record in records], limits)


def _written(file: IO[bytes], text: str) -> IO[bytes]:
    file.write(text.encode())
    file.seek(0)
    return file


def _engine(settings: PortalSettings) -> QuestionEngine:
    if settings.trino is None:
        return DuckDbQuestions(settings.sql)
    return TrinoQuestions(settings.trino, settings.restarts.of_job("trino"))


def _result(columns: list[str], rows: list[Any], limits: QueryLimits) -> QuestionResult:
    shown = tuple(map(tuple, rows[: limits.rows]))
    return QuestionResult(tuple(columns), shown, len(rows) > limits.rows)


def _too_long(limits: QueryLimits) -> str:
    return f"the query was stopped after {limits.time.total_seconds():.0f} s"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _failure_of_trino(error: Exception, remedy: str) -> QuestionFailedError:
    if isinstance(error, TrinoQueryError):
        return QuestionFailedError(f"Trino can't run this: {error.message}")
    problem = f"Trino does not respond ({type(error).__name__}); it may still be starting"
    return QuestionFailedError(problem, remedy)


class _LogLine(msgspec.Struct):
    error: str = ""


def _said_by_job(log: bytes) -> str:
    """The error in the last line of the job's log."""
    for line in reversed(log.splitlines()):
        with suppress(msgspec.MsgspecError):
            if found := msgspec.json.decode(line, type=_LogLine).error:
                return found
    return "the query failed; the portal's log has no reason"

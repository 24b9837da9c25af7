"""The worked questions of `sql/questions`: one file each, with the question in its first lines."""

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path

from gamelake.model.errors import QuestionError
from gamelake.serving.sql.query_engine import QueryEngine

_GRAIN, _ASKED_BY, _FOR, _RUNS_ON = "-- Grain: ", "-- Asked by: ", "-- For: ", "-- Runs on: "
_TODAY = re.compile(r"\bcurrent_date\b", re.IGNORECASE)


class QuestionReader(StrEnum):
    """The role that a question is written for; the portal groups the questions in this order."""

    PRODUCT_MANAGER = "product manager"
    LIVE_OPS_MANAGER = "live-ops manager"
    ANALYST = "analyst"
    GAME_PROGRAMMER = "game programmer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its SQL.

    Attributes:
        name: the file's name without `.sql`.
        title: the question in English.
        grain: the meaning of one row of the answer.
        asked_by: the user that may ask.
        reader: the role that the answer is for.
        engines: the engines that can answer.
        sql: the whole file, comments included, in Trino's SQL.
    """

    name: str
    title: str
    grain: str
    asked_by: str
    reader: QuestionReader
    engines: frozenset[QueryEngine]
    sql: str

    @property
    def is_portable(self) -> bool:
        """True if every engine can answer."""
        return len(self.engines) == len(QueryEngine)


def load_questions(folder: Path) -> dict[str, Question]:
    """Load the questions of a folder, by name.

    Raises:
        QuestionError: the first lines of a file are malformed; names the file.
    """
    return {path.stem: load_question(path) for path in sorted(folder.glob("*.sql"))}


def load_question(path: Path) -> Question:
    """Read one question.

    Raises:
        QuestionError: its first lines are malformed.
    """
    text = path.read_text(encoding="utf-8")
    title, grain, asked_by, reader, engines, *_ = [*text.splitlines(), "", "", "", "", ""]
    if not (title.startswith("-- ") and title.endswith("?")):
        raise QuestionError(f"{path}: the first line must be the question, '-- ...?'")
    if not grain.startswith(_GRAIN) or not asked_by.startswith(_ASKED_BY):
        raise QuestionError(f"{path}: '{_GRAIN}' and '{_ASKED_BY}' must be the second line and the third")
    return Question(
        name=path.stem,
        title=title.removeprefix("-- "),
        grain=grain.removeprefix(_GRAIN),
        asked_by=re.split(r"[.;,]", asked_by.removeprefix(_ASKED_BY))[0],
        reader=_reader(path, reader),
        engines=_engines(path, engines),
        sql=text,
    )


def _reader(path: Path, line: str) -> QuestionReader:
    try:
        return QuestionReader(line.removeprefix(_FOR).rstrip(".") if line.startswith(_FOR) else "")
    except ValueError:
        known = ", ".join(QuestionReader)
        raise QuestionError(f"{path}: the fourth line must be '{_FOR}<reader>.', with one of: {known}") from None


def _engines(path: Path, line: str) -> frozenset[QueryEngine]:
    if not line.startswith(_RUNS_ON):
        return frozenset(QueryEngine)
    try:
        return frozenset(
            QueryEngine(name.strip().lower()) for name in line.removeprefix(_RUNS_ON).rstrip(".").split(",")
        )
    except ValueError as error:
        raise QuestionError(f"{path}: {error}; it must be one of {', '.join(QueryEngine)}") from None


def as_of(sql: str, today: date) -> str:
    """Return the statement as if asked on another day: `current_date` becomes that day."""
    return _TODAY.sub(f"DATE '{today.isoformat()}'", sql)

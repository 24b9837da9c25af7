"""Runs statements in Trino as the asking user, within the limits of the settings, one at a time."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import requests.exceptions
from trino.exceptions import Error as TrinoClientError
from trino.exceptions import HttpError, TrinoQueryError

from gamelake.model.errors import GamelakeError
from gamelake.trino import TrinoAccess
from services.agents.settings import AnswerLimits

SOURCE = "gamelake-agents"
# Longer than any answer of a Trino that works: it responds each second.
_REQUEST_SECONDS = 30.0
# Trino writes these before it reads a row, or without a value. Others can show a value of a row.
_SHOWN_ERRORS = frozenset(
    {
        "AMBIGUOUS_NAME", "CATALOG_NOT_FOUND", "COLUMN_ALIAS_NOT_FOUND", "COLUMN_NOT_FOUND", "DUPLICATE_COLUMN_NAME",
        "EXCEEDED_CPU_LIMIT", "EXCEEDED_GLOBAL_MEMORY_LIMIT", "EXCEEDED_LOCAL_MEMORY_LIMIT", "EXCEEDED_SCAN_LIMIT",
        "EXCEEDED_TIME_LIMIT", "EXPRESSION_NOT_AGGREGATE", "EXPRESSION_NOT_IN_DISTINCT", "EXPRESSION_NOT_SCALAR",
        "FUNCTION_NOT_FOUND", "INVALID_COLUMN_REFERENCE", "MISMATCHED_COLUMN_ALIASES", "MISSING_COLUMN_NAME",
        "MISSING_GROUP_BY", "MISSING_SCHEMA_NAME", "NESTED_AGGREGATION", "NESTED_WINDOW", "NOT_SUPPORTED",
        "PERMISSION_DENIED", "QUERY_TEXT_TOO_LARGE", "SCHEMA_NOT_FOUND", "SUBQUERY_MULTIPLE_ROWS", "SYNTAX_ERROR",
        "TABLE_NOT_FOUND", "TOO_MANY_GROUPING_SETS", "TYPE_MISMATCH", "TYPE_NOT_FOUND",
    }
)  # fmt: skip
_LONGEST_MESSAGE = 1_000
_UNAUTHORIZED = "error 401"


class QueryFailedError(GamelakeError):
    """Trino has no answer.

    Attributes:
        name: Trino's name of the error, or the client's.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The first rows of an answer, as values of JSON; `is_cut` if there are more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    is_cut: bool
    query_id: str


class LimitedTrino:
    """Trino, as one user and within limits."""

    def __init__(self, access: TrinoAccess, limits: AnswerLimits) -> None:
        self._access = access
        self._limits = limits
        # An agent that repeats itself has one query in Trino, not many.
        self._one_at_a_time = threading.Lock()

    @property
    def user(self) -> str:
        """The name of the asking user."""
        return self._access.user

    def run(self, sql: str, tool: str) -> QueryAnswer:
        """Run a statement and return the beginning of its answer.

        Args:
            sql: the statement.
            tool: the tool that asks; Trino's audit has it in `source`.

        Raises:
            QueryFailedError: Trino refuses the statement, ended it, or is not available.
        """
        with self._one_at_a_time:
            connection = self._access.connect(
                f"{SOURCE}/{tool}", seconds=_REQUEST_SECONDS, attempts=3, session=self._limits.session
            )
            try:
                cursor = connection.cursor()
                cursor.execute(sql)
                rows, is_cut = self._beginning(iter(cursor.fetchone, None))
                columns = tuple(str(column[0]) for column in cursor.description or ())
                if is_cut:
                    cursor.cancel()
            except (TrinoClientError, HttpError, requests.exceptions.RequestException) as error:
                raise _failure(error) from error
            finally:
                connection.close()  # type: ignore[no-untyped-call] # untyped
        return QueryAnswer(columns, rows, is_cut, str(cursor.query_id))

    def _beginning(self, rows: Iterable[Any]) -> tuple[tuple[tuple[object, ...], ...], bool]:
        kept: list[tuple[object, ...]] = []
        remaining = self._limits.answer_bytes
        for row in rows:
            encoded = msgspec.json.encode(row, enc_hook=str)
            remaining -= len(encoded)
            if len(kept) == self._limits.rows or remaining < 0:
                return tuple(kept), True
            kept.append(tuple(msgspec.json.decode(encoded)))
        return tuple(kept), False


def _failure(error: Exception) -> QueryFailedError:
    if isinstance(error, TrinoQueryError):
        name = str(error.error_name)
        if name in _SHOWN_ERRORS:
            return QueryFailedError(name, f"Trino can't run this ({name}): {str(error.message)[:_LONGEST_MESSAGE]}")
        return QueryFailedError(
            name, f"Trino can't run this ({name}); its message is withheld, because it can show a value of a row"
        )
    if _UNAUTHORIZED in str(error):
        return QueryFailedError("UNAUTHORIZED", "Trino refuses the user's name or password")
    name = type(error).__name__
    return QueryFailedError(name, f"Trino does not respond ({name}); on this machine, make up starts it")

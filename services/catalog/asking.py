"""Asks Trino one statement at a time, and tells a Trino that is not well from one that says no."""

from requests.exceptions import RequestException
from trino.dbapi import connect
from trino.exceptions import Error, HttpError, TrinoQueryError

from services.catalog.errors import TrinoSilentError
from services.catalog.settings import TrinoSettings

_ANSWER_SECONDS = 30.0


def asked(settings: TrinoSettings, sql: str) -> tuple[list[list[str]], str]:
    """Rows and the query's id; what Trino says against the query itself is the caller's to judge.

    Raises:
        TrinoQueryError: Trino says no.
        TrinoSilentError: Trino gave no answer, or is not well.
    """
    connection = connect(  # type: ignore[no-untyped-call] # it takes whatever Connection takes
        host=settings.host,
        port=settings.port,
        http_scheme=settings.scheme,
        user=settings.user,
        catalog=settings.catalog,
        source="gamelake-catalog",
        request_timeout=_ANSWER_SECONDS,
        # The rounds are the retries.
        max_attempts=1,
    )
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall(), str(cursor.query_id)
    except TrinoQueryError as error:
        if error.error_type in {"INTERNAL_ERROR", "INSUFFICIENT_RESOURCES"}:
            raise TrinoSilentError(f"Trino is not well: {error.message}") from error
        raise
    except (Error, HttpError, RequestException) as error:
        raise TrinoSilentError(f"Trino does not answer: {error}") from error
    finally:
        connection.close()


def quoted(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"

"""Asks Trino for the event, as an analyst would."""

from typing import Any

from requests.exceptions import RequestException
from trino.dbapi import Connection, connect
from trino.exceptions import Error as TrinoError
from trino.exceptions import TrinoQueryError, TrinoUserError

from tools.smoke.commits import Span
from tools.smoke.event import SmokeEvent, betrayals
from tools.smoke.journey import NEXT_COMMANDS, NotYetError, Step, StepFailedError
from tools.smoke.settings import TrinoAddress

CATALOG = "delta"
USER = "analyst"
ANSWER_SECONDS = 30.0
_NOT_THERE = frozenset({"TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND"})


class Analyst:
    """Someone with a SQL prompt."""

    def __init__(self, address: TrinoAddress) -> None:
        self._connection: Connection = connect(  # type: ignore[no-untyped-call] # it takes anything
            host=address.host,
            port=address.port,
            http_scheme=address.scheme,
            user=USER,
            source="gamelake-smoke",
            catalog=CATALOG,
            max_attempts=1,
            request_timeout=ANSWER_SECONDS,
        )

    def find_table(self, table: str) -> None:
        """Do nothing when Trino knows the table.

        Raises:
            NotYetError: it does not, or does not answer.
            StepFailedError: it refuses to say.
        """
        self._ask(f"DESCRIBE {sql_name(table)}", Step.REGISTERED)

    def find_event(self, table: str, event: SmokeEvent, spans: tuple[Span, ...]) -> str:
        """The player's name in the table, once Trino returns the event.

        Raises:
            NotYetError: it does not, or does not answer.
            StepFailedError: it refuses to say, returns it twice, or the row says who the player is.
        """
        rows = self._ask(event_statement(table, event, spans), Step.VISIBLE)
        if not rows:
            raise NotYetError(f"{sql_name(table)} does not return the event")
        if len(rows) > 1:
            problem = f"{sql_name(table)} returns the event {len(rows)} times"
            raise StepFailedError(Step.VISIBLE, problem, "make verify")
        (row,) = rows
        if found := betrayals([str(cell) for cell in row]):
            problem = f"{sql_name(table)} says who the player is ({len(found)} values)"
            raise StepFailedError(Step.VISIBLE, problem, "make logs S=ingest")
        return str(row[0])

    def _ask(self, statement: str, step: Step) -> list[Any]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement)
            return list(cursor.fetchall())
        except TrinoUserError as error:
            if error.error_name in _NOT_THERE:
                raise NotYetError(f"Trino says '{error.message}'") from error
            raise StepFailedError(step, f"Trino says '{error.message}'", NEXT_COMMANDS[step]) from error
        except TrinoQueryError as error:
            raise NotYetError(f"Trino says '{error.message}'") from error
        except (TrinoError, RequestException) as error:
            raise NotYetError(f"Trino does not answer ({type(error).__name__})") from error


def sql_name(table: str) -> str:
    """A table of the lakehouse as Trino names it."""
    return table.replace("/", ".")


def event_statement(table: str, event: SmokeEvent, spans: tuple[Span, ...]) -> str:
    """What returns the event and reads next to nothing: the coordinates are in the files' statistics."""
    # None of the parts is anyone's input: a table of the contract, numbers of Kafka's, a UUID of our own.
    where = " OR ".join(
        f"kafka_partition = {span.partition} AND kafka_offset BETWEEN {span.first} AND {span.last}" for span in spans
    )
    return f"SELECT gamer_id, * FROM {sql_name(table)} WHERE ({where}) AND event_id = '{event.event_id}'"  # noqa: S608 - see above

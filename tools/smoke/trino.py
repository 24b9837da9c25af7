"""Queries Trino for the event, as an analyst does."""

from typing import Any

from requests.exceptions import RequestException
from trino.exceptions import Error as TrinoError
from trino.exceptions import TrinoQueryError, TrinoUserError

from gamelake.trino import TrinoAccess
from tools.smoke.commits import TopicRange
from tools.smoke.event import SmokeEvent, leaked_values
from tools.smoke.event_trace import NEXT_COMMANDS, NotYetError, Step, StepFailedError

ANSWER_SECONDS = 30.0
_NOT_THERE = frozenset({"TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND"})


class TrinoClient:
    """A connection to Trino as an analyst."""

    def __init__(self, access: TrinoAccess) -> None:
        self._connection = access.connect("gamelake-smoke", seconds=ANSWER_SECONDS, attempts=1)

    def find_table(self, table: str) -> None:
        """Check that the table is registered in Trino.

        Raises:
            NotYetError: it is not, or Trino is not available.
            StepFailedError: Trino refuses the query.
        """
        self._query(f"DESCRIBE {sql_name(table)}", Step.REGISTERED)

    def find_event(self, table: str, event: SmokeEvent, ranges: tuple[TopicRange, ...]) -> str:
        """Return the player's pseudonym as an analyst reads it, masked, once Trino returns the event.

        Raises:
            NotYetError: Trino does not return it, or is not available.
            StepFailedError: Trino refuses the query, returns the event twice, or the row has personal data.
        """
        rows = self._query(event_statement(table, event, ranges), Step.VISIBLE)
        if not rows:
            raise NotYetError(f"{sql_name(table)} does not return the event")
        if len(rows) > 1:
            problem = f"{sql_name(table)} returns the event {len(rows)} times"
            raise StepFailedError(Step.VISIBLE, problem, "make verify")
        (row,) = rows
        if found := leaked_values([str(cell) for cell in row]):
            problem = f"{sql_name(table)} has personal data of the player ({len(found)} values)"
            raise StepFailedError(Step.VISIBLE, problem, "make logs S=ingest")
        return str(row[0])

    def _query(self, statement: str, step: Step) -> list[Any]:
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
            raise NotYetError(f"Trino is not available ({type(error).__name__})") from error


def sql_name(table: str) -> str:
    """Return the name of a table in Trino."""
    return table.replace("/", ".")


def event_statement(table: str, event: SmokeEvent, ranges: tuple[TopicRange, ...]) -> str:
    """Return the query for the event; file statistics of partition and offset let it skip almost all files."""
    # No user input: a table of the contract, numbers from Kafka, a new UUID.
    where = " OR ".join(
        f"kafka_partition = {offsets.partition} AND kafka_offset BETWEEN {offsets.first} AND {offsets.last}"
        for offsets in ranges
    )
    return f"SELECT gamer_id, * FROM {sql_name(table)} WHERE ({where}) AND event_id = '{event.event_id}'"  # noqa: S608 - see above

"""Explains an answer by its table: how new the rows are, which of them may still change, and what validation found."""

import re
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime

from gamelake.model.errors import QuestionError
from services.agents.trino_queries import QueryAnswer, QueryFailedError

_TABLE = re.compile(r"([a-z0-9_]{1,128})\.([a-z0-9_]{1,128})")
_DAYS = 7
# A view has no files.
_WITHOUT_FILES = "COLUMN_NOT_FOUND"
_INVISIBLE = frozenset({"PERMISSION_DENIED", "SCHEMA_NOT_FOUND", "TABLE_NOT_FOUND"})
_DAY_COLUMNS = ("event_date", "day", "ingest_date")
_VALIDATIONS = """
SELECT day, status, severity, count(*) AS expectations
FROM (
    SELECT day, status, severity, validated_at, max(validated_at) OVER (PARTITION BY day) AS latest
    FROM gold.validations
    WHERE day >= current_date - INTERVAL '{days}' DAY AND "table" = '{table}'
)
WHERE validated_at = latest
GROUP BY day, status, severity
ORDER BY day DESC, status, severity
"""

Run = Callable[[str], QueryAnswer]


def explain_freshness(table: str, run: Run) -> dict[str, object]:
    """Explain the freshness and the quality of a table or view.

    Args:
        table: `schema.table`.
        run: runs a statement as the user.

    Raises:
        QuestionError: the name is malformed.
        QueryFailedError: the user can't read the table.
    """
    named = _TABLE.fullmatch(table)
    if named is None:
        raise QuestionError(f"'{table[:100]}' is not the name of a table, such as silver.events")
    # Not DESCRIBE: its rows count against the limits of an answer.
    columns = run(f"SELECT * FROM {table} LIMIT 0").columns  # noqa: S608 # a checked name
    figures, has_files = _figures(table, columns, run)
    return {
        "table": table,
        "asked_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "days": _DAYS,
        "figures": figures,
        "notes": list(_notes(columns, has_files=has_files)),
        "validations": _validations(named[1], named[2], run),
    }


def _figures(table: str, columns: Collection[str], run: Run) -> tuple[dict[str, object], bool]:
    for has_files in (True, False):
        expressions = list(_expressions(columns, has_files=has_files))
        day = next((column for column in _DAY_COLUMNS if column in columns), None)
        recent = f" WHERE {day} >= current_date - INTERVAL '{_DAYS}' DAY" if day else ""
        try:
            answer = run(f"SELECT {', '.join(expressions)} FROM {table}{recent}")  # noqa: S608 # a checked name
        except QueryFailedError as error:
            if has_files and error.name == _WITHOUT_FILES:
                continue
            raise
        return dict(zip(answer.columns, answer.rows[0], strict=True)), has_files
    return {}, False


def _expressions(columns: Collection[str], *, has_files: bool) -> Iterator[str]:
    yield "count(*) AS row_count"
    if has_files:
        yield 'max("$file_modified_time") AS last_written_at'
        yield "date_diff('second', max(\"$file_modified_time\"), current_timestamp) AS last_written_seconds_ago"
    if "event_time" in columns:
        yield "max(event_time) AS newest_event"
        yield "date_diff('second', max(event_time), current_timestamp) AS newest_event_seconds_ago"
    if "ingest_time" in columns:
        yield "max(ingest_time) AS last_received_at"
    if "provisional_until" in columns:
        yield "count_if(provisional_until > current_timestamp) AS provisional_rows"
        yield "max(provisional_until) AS provisional_until"


def _notes(columns: Collection[str], *, has_files: bool) -> Iterator[str]:
    yield "Days are in UTC and follow the event's own time; today is not over."
    if has_files:
        yield "last_written_at can be the time of a compaction, which rewrites a file: it is too late, never too early."
    else:
        yield "This is a view; its tables have the times of their files."
    if "provisional_until" in columns:
        yield "Rows change until provisional_until, when late events are no longer expected."
    elif "event_time" in columns:
        yield "Events may still arrive for earlier days; gold.kpi_late counts those that were late."


def _validations(schema: str, name: str, run: Run) -> object:
    try:
        answer = run(_VALIDATIONS.format(days=_DAYS, table=f"{schema}/{name}").strip())
    except QueryFailedError as error:
        if error.name in _INVISIBLE:
            return f"not visible to this user, or no day was validated yet ({error.name})"
        raise
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]

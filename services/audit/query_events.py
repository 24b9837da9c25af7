"""Trino's events of queries as rows: who asked what when, what came of it, and which tables and columns were read.

Source: Trino, `io.trino.spi.eventlistener`, classes `QueryCreatedEvent` and `QueryCompletedEvent` and those in them, as
the Kafka event listener writes them.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import msgspec
import pyarrow as pa

# Characters; a text may have a million, and the first hundred thousand say what it is.
_LONGEST_TEXT = 100_000
# Texts that a client sends about itself.
_LONGEST_NOTE = 200
_TIME, _TEXTS = pa.timestamp("us", "UTC"), pa.list_(pa.field("element", pa.string()))

COLUMNS = pa.schema(
    [
        ("event", pa.string()),
        ("query_id", pa.string()),
        ("user_name", pa.string()),
        ("original_user", pa.string()),
        ("principal", pa.string()),
        ("source", pa.string()),
        ("client_address", pa.string()),
        ("user_agent", pa.string()),
        ("query_type", pa.string()),
        ("update_type", pa.string()),
        ("state", pa.string()),
        ("error", pa.string()),
        ("error_type", pa.string()),
        ("created_at", _TIME),
        ("ended_at", _TIME),
        ("catalog_name", pa.string()),
        ("schema_name", pa.string()),
        ("tables_read", _TEXTS),
        ("columns_read", _TEXTS),
        ("rows_read", pa.int64()),
        ("bytes_read", pa.int64()),
        ("rows_returned", pa.int64()),
        ("bytes_returned", pa.int64()),
        ("query_text", pa.string()),
        ("prepared_text", pa.string()),
    ]
)


class _Fields(msgspec.Struct, frozen=True, rename="camel"):
    """Fields of an event, by Trino's names; an event has more."""


class _Table(_Fields, frozen=True, rename="camel"):
    schema: str = ""
    table: str = ""


class _Column(_Fields, frozen=True, rename="camel"):
    name: str = msgspec.field(name="name", default="")


class _Input(_Table, frozen=True, rename="camel"):
    columns: list[_Column | str] = []


class _InputsAndOutput(_Fields, frozen=True, rename="camel"):
    inputs: list[_Input] = []


class _Metadata(_Fields, frozen=True, rename="camel"):
    query_id: str
    query: str
    query_state: str
    prepared_query: str | None = None
    update_type: str | None = None
    tables: list[_Table] | None = None


class _Context(_Fields, frozen=True, rename="camel"):
    user: str
    original_user: str | None = None
    principal: str | None = None
    source: str | None = None
    remote_client_address: str | None = None
    user_agent: str | None = None
    query_type: str | None = None
    catalog: str | None = None
    schema: str | None = None


# As the table has them: a greater number would fail the whole commit.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Statistics(_Fields, frozen=True, rename="camel"):
    physical_input_rows: _Count | None = None
    physical_input_bytes: _Count | None = None
    output_rows: _Count | None = None
    output_bytes: _Count | None = None


class _ErrorCode(_Fields, frozen=True, rename="camel"):
    name: str
    type: str


class _Failure(_Fields, frozen=True, rename="camel"):
    error_code: _ErrorCode


class _Event(_Fields, frozen=True, rename="camel"):
    """An event of either kind: only that of an ended query has statistics."""

    create_time: datetime
    context: _Context
    metadata: _Metadata
    end_time: datetime | None = None
    statistics: _Statistics | None = None
    io_metadata: _InputsAndOutput = _InputsAndOutput()
    failure_info: _Failure | None = None


class _Record(_Fields, frozen=True, rename="camel"):
    event_payload: _Event


_RECORDS = msgspec.json.Decoder(_Record)


def query_row(value: bytes, mask: Callable[[str], str]) -> dict[str, object]:
    """Convert a record of the topic to a row of `COLUMNS`.

    Args:
        value: the record's value.
        mask: applied to all texts that a person or a client may have written.

    Raises:
        msgspec.MsgspecError: the record is not an event of a query.
    """
    event = _RECORDS.decode(value).event_payload
    context, metadata = event.context, event.metadata
    statistics, error = event.statistics or _Statistics(), event.failure_info and event.failure_info.error_code
    return {
        "event": "completed" if event.statistics is not None else "created",
        "query_id": metadata.query_id,
        "user_name": context.user,
        "original_user": context.original_user,
        "principal": context.principal,
        "source": _text(context.source, mask),
        "client_address": context.remote_client_address,
        "user_agent": _text(context.user_agent, mask),
        "query_type": context.query_type,
        "update_type": metadata.update_type,
        "state": metadata.query_state,
        "error": error.name if error else None,
        "error_type": error.type if error else None,
        "created_at": event.create_time,
        "ended_at": event.end_time,
        "catalog_name": _text(context.catalog, mask),
        "schema_name": _text(context.schema, mask),
        "tables_read": _tables(event),
        "columns_read": _columns(event),
        "rows_read": statistics.physical_input_rows,
        "bytes_read": statistics.physical_input_bytes,
        "rows_returned": statistics.output_rows,
        "bytes_returned": statistics.output_bytes,
        "query_text": _text(metadata.query, mask, _LONGEST_TEXT),
        "prepared_text": _text(metadata.prepared_query, mask, _LONGEST_TEXT),
    }


def _text(text: str | None, mask: Callable[[str], str], longest: int = _LONGEST_NOTE) -> str | None:
    # Cut before it is masked, which takes copies; a literal that loses its end is masked all the same.
    return None if text is None else mask(text[:longest])[:longest]


def _tables(event: _Event) -> list[str]:
    """The tables and views that the query names, also through views."""
    named = [*(event.metadata.tables or ()), *event.io_metadata.inputs]
    return sorted({f"{each.schema}.{each.table}" for each in named})


def _columns(event: _Event) -> list[str]:
    columns = {
        f"{each.schema}.{each.table}.{column if isinstance(column, str) else column.name}"
        for each in event.io_metadata.inputs
        for column in each.columns
    }
    return sorted(columns)

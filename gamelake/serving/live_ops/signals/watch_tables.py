"""The tables of judgements: the minutes of each version, and each signal, once at its beginning and once at its end."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.columns import MICROSECONDS_UTC, delta_field, delta_schema_json
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.objects.store import Store
from gamelake.serving.live_ops.signals.counts import COUNTS_SCHEMA, Hour, as_counts
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.signals import Signal, SignalKind

MINUTES, SIGNALS = "gold/live_ops_minutes", "gold/live_ops_signals"
BEGUN, ENDED = "begun", "ended"
_DAY = "event_date"
_MINUTE = 60_000_000
_REMEMBERED = timedelta(days=28)
# At a start, this many minutes are learnt one by one; before them, only the hours' means.
_LEARNT = 26 * 60
_ORDER = ("minute", "game", "app_version")

MINUTES_SCHEMA = pa.schema([pa.field("minute", MICROSECONDS_UTC), *list(COUNTS_SCHEMA)[1:]])
SIGNALS_SCHEMA = pa.schema(
    [
        pa.field("signal_id", pa.string()),
        pa.field("phase", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("game", pa.string()),
        pa.field("app_version", pa.string()),
        pa.field("begun_at", MICROSECONDS_UTC),
        pa.field("noticed_at", MICROSECONDS_UTC),
        pa.field("ended_at", MICROSECONDS_UTC),
        pa.field("observed", pa.float64()),
        pa.field("expected", pa.float64()),
    ]
)


def minute_rows(closed: pa.Table) -> pa.Table:
    """Convert counts (columns of `COUNTS_SCHEMA`) to rows of their table: `minute` as a timestamp, the same order."""
    minutes = pc.multiply(closed["minute"], _MINUTE).cast(pa.timestamp("us")).cast(MICROSECONDS_UTC)
    return closed.set_column(0, MINUTES_SCHEMA.field(0), minutes)


def signal_rows(changes: Sequence[Signal]) -> pa.Table:
    """Convert signals to rows of their table: columns of `SIGNALS_SCHEMA`, in the same order."""
    rows: list[dict[str, Any]] = [
        {
            "signal_id": each.signal_id,
            "phase": BEGUN if each.ended is None else ENDED,
            "kind": each.kind.value,
            "game": each.game,
            "app_version": each.app_version,
            "begun_at": each.begun * _MINUTE,
            "noticed_at": each.noticed * _MINUTE,
            "ended_at": None if each.ended is None else each.ended * _MINUTE,
            "observed": each.observed,
            "expected": each.expected,
        }
        for each in changes
    ]
    return pa.Table.from_pylist(rows, schema=SIGNALS_SCHEMA)


def additions(store: Store, closed: pa.Table, changes: Sequence[Signal]) -> tuple[TableFiles, ...]:
    """Write the files that a batch adds to the two tables, without committing them.

    Args:
        store: the lakehouse.
        closed: columns of `COUNTS_SCHEMA`, one row for each closed minute, game and version.
        changes: signals that began or ended.
    """
    parts = [(MINUTES, minute_rows(closed), "minute"), (SIGNALS, signal_rows(changes), "noticed_at")]
    return tuple(_addition(store, table, rows, time) for table, rows, time in parts if len(rows))


def _addition(store: Store, table: str, rows: pa.Table, time: str) -> TableFiles:
    days = rows[time].cast(pa.date32())
    fields = [*(delta_field(field) for field in rows.schema), pa.field(_DAY, pa.date32())]
    files = [_written(store, table, rows.filter(pc.equal(days, day)), day.as_py()) for day in pc.unique(days)]
    return TableFiles(
        table=table, partition_by=(_DAY,), schema=delta_schema_json(pa.schema(fields)), files=tuple(files)
    )


def _written(store: Store, table: str, rows: pa.Table, day: date) -> DataFile:
    return write_rows(store, table, rows, {_DAY: day.isoformat()})


def recall(store: Store, detector: Detector) -> None:
    """Restore a new detector from the tables: it learns the minutes, hours and signals of the last 28 days."""
    rows = _read(store, MINUTES)
    if rows is None or not len(rows):
        return
    newest = pc.max(rows["minute"]).as_py()
    rows = rows.filter(pc.greater(rows["minute"], newest - timedelta(minutes=_LEARNT)))
    minutes = pc.divide(rows["minute"].cast(pa.int64()), _MINUTE)
    counts = as_counts(rows.set_column(0, "minute", minutes).sort_by([(name, "ascending") for name in _ORDER]))
    changes = list(_changes(store))
    by_minute: dict[int, list[Signal]] = {}
    for change in changes:
        by_minute.setdefault(change.noticed if change.ended is None else change.ended, []).append(change)
    first = counts[0].minute
    earlier = [change for minute in sorted(by_minute) if minute < first for change in by_minute[minute]]
    detector.recall_hours(_hours(store, newest))
    detector.recall(first - 1, [], earlier)
    start = 0
    for stop in range(1, len(counts) + 1):
        if stop == len(counts) or counts[stop].minute != counts[start].minute:
            minute = counts[start].minute
            detector.recall(minute, counts[start:stop], by_minute.get(minute, []))
            start = stop


def _read(store: Store, table: str) -> pa.Table | None:
    try:
        handle = open_table(store.location, table)
    except TableNotFoundError:
        return None
    since = (datetime.now(UTC) - _REMEMBERED).date()
    return handle.to_pyarrow_dataset().to_table(filter=pc.field(_DAY) >= pa.scalar(since))


def _changes(store: Store) -> Iterator[Signal]:
    rows = _read(store, SIGNALS)
    for row in [] if rows is None else rows.sort_by("noticed_at").to_pylist():
        yield Signal(
            kind=SignalKind(row["kind"]),
            game=row["game"],
            app_version=row["app_version"],
            begun=_minute(row["begun_at"]),
            noticed=_minute(row["noticed_at"]),
            ended=None if row["ended_at"] is None else _minute(row["ended_at"]),
            observed=row["observed"],
            expected=row["expected"],
        )


def _minute(moment: datetime) -> int:
    return int(moment.timestamp()) // 60


def _hours(store: Store, newest: datetime) -> list[Hour]:
    """Read the hours before the minutes that are learnt one by one."""
    rows = _read(store, MINUTES)
    assert rows is not None  # noqa: S101 # the caller has just read the table
    rows = rows.filter(pc.less_equal(rows["minute"], newest - timedelta(minutes=_LEARNT)))
    hours = pc.divide(rows["minute"].cast(pa.int64()), 60 * _MINUTE)
    sums = (
        rows.append_column("hour", hours)
        .group_by(["hour", "game"], use_threads=False)
        .aggregate([(name, "sum") for name in ("events", "purchases", "bookings_micros")])
    )
    names = ("hour", "game", "events_sum", "purchases_sum", "bookings_micros_sum")
    return [Hour(*values) for values in zip(*(sums[name].to_pylist() for name in names), strict=True)]

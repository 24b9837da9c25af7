"""Days of the audit over their retention are deleted, others are compacted and kept."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.delta.comments import Comments
from gamelake.model.failpoints import Failpoints
from gamelake.objects.store import Location
from services.audit import support_calls
from services.audit.maintenance import TableMaintenance, days_to_compact, expired_days
from services.audit.tables import AuditAppender, AuditTable

TABLE = "audit/support_calls"
TODAY = date(2026, 11, 25)


def day(before: int) -> date:
    return TODAY - timedelta(days=before)


@pytest.mark.parametrize(
    ("days", "today", "expired"),
    [
        ([], 0, []),
        ([0, 399, 400], 0, []),
        ([0, 400, 401, 800], 0, [800, 401]),
        # The clock of this machine is wrong: years ahead, or behind.
        ([0, 1, 400], -4_000, []),
        ([0, 401], 200, []),
    ],
)
def test_days_before_the_retention_expire_by_the_earlier_of_two_clocks(
    days: Sequence[int], today: int, expired: Sequence[int]
) -> None:
    found = expired_days([day(each) for each in days], day(today), timedelta(days=400))

    assert found == [day(each) for each in expired]


def test_closed_days_have_one_file_and_the_newest_has_few() -> None:
    assert days_to_compact(Counter({day(2): 2, day(1): 1, day(0): 32})) == [day(2)]
    assert days_to_compact(Counter({day(0): 33})) == [day(0)]
    assert days_to_compact(Counter()) == []


@pytest.fixture
def place(tmp_path: Path) -> Location:
    return Location(uri=f"file://{tmp_path}")


def append(place: Location, *days: int) -> None:
    """Append a row of each day, each in a commit of its own."""
    table = AuditTable(
        path=TABLE,
        topic="calls",
        columns=support_calls.COLUMNS,
        comments=Comments("calls"),
        row=support_calls.call_row,
        mask=str,
    )
    appender = AuditAppender(place, table, "a-topic", Failpoints())
    for before in days:
        offset = appender.position or 0
        moment = datetime.combine(day(before), datetime.min.time(), UTC)
        appender.append([table.row_of(offset, moment, b"text")], offset + 1)


def rows_by_day(place: Location) -> Counter[date]:
    """The number of the table's rows, by day."""
    found = DeltaTable(place.child(TABLE)).to_pyarrow_table(columns=["audit_date"])
    return Counter(found["audit_date"].to_pylist())


def test_old_days_are_deleted_closed_days_are_compacted_and_appends_go_on(place: Location) -> None:
    append(place, 500, 401, 400, 400, 1, 1, 1, 0)
    maintenance = TableMaintenance(
        location=place,
        table=TABLE,
        retention=timedelta(days=400),
        now=lambda: datetime(TODAY.year, TODAY.month, TODAY.day, 12, tzinfo=UTC),
    )

    done = maintenance.run()

    assert done.deleted == (day(500), day(401))
    assert done.compacted == (day(400), day(1))
    assert rows_by_day(place) == Counter({day(400): 2, day(1): 3, day(0): 1})
    assert len(DeltaTable(place.child(TABLE)).file_uris()) == 3
    append(place, 0)
    assert rows_by_day(place)[day(0)] == 2
    assert maintenance.run().deleted == ()

"""Checks over tables: a clean day passes, and each kind of damage fails the check that is meant for it."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.delta.log.checkpoints import CHECKPOINT_EVERY
from gamelake.delta.log.codec import LOG_FOLDER
from gamelake.model.naming import SILVER_EVENTS, TABLE_CHECKS, game_table
from gamelake.objects.store import Store
from gamelake.quality.check_findings import CheckStatus, TableFinding, write_findings
from gamelake.quality.table_checks import GameChecks, stability

DAY = date(2026, 1, 8)


def _events(day: date, count: int, **changes: object) -> list[dict[str, object]]:
    return [
        {
            "event_id": f"{day}-{number}",
            "event_name": ("purchase", "level_completed")[number % 2],
            "event_time": datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=10 * (number % 140)),
            "game_name": "Chess",
            "platform": ("ios", "android", "web")[number % 3],
            "event_date": day,
            "level": 1,
            "gamer_id": f"p-{number % 7}",
            "amount": 1.0,
        }
        | changes
        for number in range(count)
    ]


def _week(today: Sequence[dict[str, object]] | None = None) -> list[dict[str, object]]:
    before = [event for back in range(1, 8) for event in _events(DAY - timedelta(days=back), 300)]
    return before + list(_events(DAY, 300) if today is None else today)


def _checked(
    store: Store, rows: list[dict[str, object]], shared: list[dict[str, object]] | None = None
) -> list[TableFinding]:
    for table, of in ((game_table("chess"), rows), (SILVER_EVENTS, rows if shared is None else shared)):
        write_deltalake(store.location.child(table), pa.Table.from_pylist(of), partition_by=["event_date"])
    return list(GameChecks(store, "chess", DAY).findings())


def _failed(found: list[TableFinding]) -> set[str]:
    return {each.check for each in found if each.status is CheckStatus.FAILED}


def test_a_day_like_the_others_passes_and_checks_without_history_are_skipped(store: Store) -> None:
    found = _checked(store, _week())

    assert _failed(found) == set()
    assert {each.check for each in found if each.status is CheckStatus.SKIPPED} == {"gold_counts_silver"}


@pytest.mark.parametrize(
    ("today", "checks"),
    [
        (_events(DAY, 300) + _events(DAY, 1), {"event_ids_are_unique"}),
        (_events(DAY, 140), {"volume"}),
        (_events(DAY, 1000), {"volume"}),
        (_events(DAY, 300, event_time=datetime(2026, 1, 8, 1, tzinfo=UTC)), {"freshness", "hours_are_there"}),
        ([event for event in _events(DAY, 300) if event["event_time"].hour != 9], {"hours_are_there"}),  # type: ignore[attr-defined] # a moment
        (_events(DAY, 300, platform="ios"), {"platform_is_distributed_as_before"}),
        (_events(DAY, 300, event_name="tick"), {"event_name_is_distributed_as_before"}),
        (_events(DAY, 300, level=None), {"columns_are_the_same"}),
        (_events(DAY, 300, country="FI"), {"columns_are_the_same"}),
    ],
)
def test_each_kind_of_damage_fails_its_checks_and_no_others(
    store: Store, today: list[dict[str, object]], checks: set[str]
) -> None:
    rows = [{"country": None} | event for event in _week(today)]
    rows[0]["country"] = None

    assert _failed(_checked(store, rows)) == checks


def test_a_row_that_silver_events_lacks_is_found(store: Store) -> None:
    assert _failed(_checked(store, _week(), _week()[:-1])) == {"rows_are_in_silver_events"}


def test_a_table_that_can_not_be_read_fails_with_its_error(store: Store, tmp_path: Path) -> None:
    _checked(store, _week())
    for file in (tmp_path / game_table("chess")).rglob("*.parquet"):
        file.unlink()

    found = list(GameChecks(store, "chess", DAY).findings())

    assert _failed(found) == {"checks_ran"}
    assert "parquet" in found[-1].detail


def test_checks_of_a_new_table_are_skipped(store: Store) -> None:
    found = _checked(store, _events(DAY, 10))

    assert {each.status for each in found if each.check in ("volume", "freshness")} == {CheckStatus.SKIPPED}
    assert _failed(found) == set()


def test_a_day_that_is_checked_again_has_its_newest_findings(store: Store) -> None:
    finding = TableFinding(
        table="silver/chess_events", check="volume", status=CheckStatus.FAILED, observed=1.0, expected=2.0
    )
    for day in (DAY, DAY - timedelta(days=1)):
        write_findings(store, day, [finding])
    write_findings(store, DAY, [TableFinding(table="silver/chess_events", check="volume", status=CheckStatus.PASSED)])

    rows = DeltaTable(store.location.child(TABLE_CHECKS)).to_pyarrow_table().to_pylist()
    assert {row["day"]: row["status"] for row in rows} == {DAY: "passed", DAY - timedelta(days=1): "failed"}


def test_readers_replay_at_most_fifty_days_of_findings(store: Store) -> None:
    finding = TableFinding(table="silver/chess_events", check="volume", status=CheckStatus.PASSED)
    for back in range(2 * CHECKPOINT_EVERY):
        write_findings(store, DAY - timedelta(days=back), [finding])

    names = [Path(each.path).name for each in store.objects(f"{TABLE_CHECKS}/{LOG_FOLDER}")]
    checkpoints = sorted(int(name.split(".")[0]) for name in names if ".checkpoint." in name)
    assert len(checkpoints) == 2
    assert checkpoints[1] - checkpoints[0] == CHECKPOINT_EVERY


def test_shares_that_are_the_same_are_no_shift() -> None:
    assert stability([100, 200, 700], [1000, 2000, 7000]) == pytest.approx(0, abs=1e-4)
    assert stability([100, 200, 700], [700, 200, 100]) > 1

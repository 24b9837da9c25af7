"""Manifests as a batch would leave them."""

import json
from datetime import UTC, datetime
from functools import partial

import msgspec

from gamelake.delta.data_files import DataFile
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest, Judged, RuleCount
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS, game_table
from tests.support.manifests import a_manifest, offsets_of


def moment(seconds: float) -> str:
    """A moment as statistics have it."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def files(table: str, rows: int, **greatest: str) -> TableFiles:
    """One file of 100 bytes per row, with the greatest values of some columns."""
    statistics = json.dumps({"numRecords": rows, "maxValues": greatest, "nullCount": {}})
    file = DataFile(path="part.parquet", size=100 * rows, rows=rows, partition={}, statistics=statistics)
    return TableFiles(table=table, partition_by=(), schema="{}", files=(file,))


def judged(**changes: object) -> Judged:
    """What rules came to: one row of archery broke one, one was dropped by another, one not judged by a third."""
    of_archery = partial(RuleCount, game="archery", fingerprint="f")
    counts = (
        of_archery(rule="paid", severity="quarantine", broken=1),
        of_archery(rule="gone", severity="drop", broken=1),
        of_archery(rule="odd", severity="warn", broken=0, unjudged=1),
    )
    found = Judged(rules="set", rows={"archery": 10}, counts=counts, quarantined={"paid": 1}, dropped={"gone": 1})
    return msgspec.structs.replace(found, **changes)


def batch(number: int, at: float, games: dict[str, tuple[int, float]], dead_letters: int = 0) -> BatchManifest:
    """Return a batch that Kafka received at a moment, with each game's rows and the time of its newest event."""
    silver = sum(rows for rows, _ in games.values())
    records = silver + dead_letters
    tables = [files(BRONZE_EVENTS, records, kafka_timestamp=moment(at)), files(SILVER_EVENTS, silver)]
    tables += [files(game_table(game), rows, event_time=moment(newest)) for game, (rows, newest) in games.items()]
    if dead_letters:
        tables.append(files(DEAD_LETTERS, dead_letters))
    return a_manifest(
        batch_id=number,
        written_at=moment(at),
        offsets=(offsets_of(number * 100, number * 100 + records - 1),),
        tables=tuple(tables),
        dead_letters={"bad_framing": dead_letters} if dead_letters else {},
    )

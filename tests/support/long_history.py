"""A table with a long history: run as a program, it prints by how many KiB one step of maintenance grew the process.

Each commit adds a file, and each hundredth one replaces a hundred files by one, as compaction does. Data files are
empty: maintenance lists and deletes them, and reads none.
"""

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from gamelake.delta.appends import BatchTransaction, table_actions
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import (
    Action,
    FileEntry,
    add_action,
    commit_info,
    encode_entry,
    entry_path,
    remove_action,
    transaction_action,
)
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.ledger.manifests import Manifests
from gamelake.maintenance.log_cleanup import LogCleanup
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.objects.store import Location, Store
from tests.support.manifests import a_manifest
from tests.support.process_table import peak_mib

TABLE = "silver/archery_events"
BEGINNING = 1_700_000_000_000  # milliseconds since 1970
_COMPACTED = 100
# No rows: the batches need no records then.
_STATISTICS = json.dumps({"numRecords": 0, "minValues": {"id": "a" * 32}, "maxValues": {"id": "b" * 32}})


def write_history(store: Store, commits: int) -> None:
    """Write the table: a commit each second from `BEGINNING` on, and a checkpoint of its log at the end."""
    folder = Path(store.location.uri.removeprefix("file://"))
    (folder / TABLE / "_delta_log").mkdir(parents=True)
    for version, actions in enumerate(_commits(commits)):
        (folder / entry_path(TABLE, version)).write_bytes(encode_entry(actions))
        for action in actions:
            if "add" in action:
                (folder / TABLE / action["add"]["path"]).touch()
    open_table(store.location, TABLE).create_checkpoint()


def write_manifests(store: Store, commits: int, first: int = 0) -> None:
    """Write the manifests of the table's batches, from a version on."""
    for version, actions in enumerate(_commits(commits)):
        if version < first or not any("txn" in action for action in actions):
            continue
        files = tuple(
            DataFile(path=action["add"]["path"], size=0, rows=0, partition={}, statistics=_STATISTICS)
            for action in actions
            if "add" in action
        )
        entry = TableFiles(table=TABLE, partition_by=(), schema="", files=files)
        manifest = a_manifest(batch_id=version, written_at=moment(version).isoformat(), tables=(entry,))
        Manifests(store, "ingest_events").settle(manifest)


def moment(version: int) -> datetime:
    return datetime.fromtimestamp(BEGINNING / 1_000 + version, UTC)


def _commits(count: int) -> Iterator[list[Action]]:
    schema = delta_schema_json(pa.schema([pa.field("id", pa.string())]))
    entry = TableFiles(table=TABLE, partition_by=(), schema=schema, files=())
    young: list[DataFile] = []
    for version in range(count):
        now = BEGINNING + 1_000 * version
        info = commit_info(now, "WRITE", {"mode": "Append"})
        head = [info, *(table_actions(entry, {}, now) if version == 0 else [])]
        file = DataFile(path=f"part-{version:08d}.parquet", size=0, rows=0, partition={}, statistics=_STATISTICS)
        if len(young) == _COMPACTED:
            gone = [remove_action(FileEntry(each.path, 0, {}), now) for each in young]
            young = []
            yield [*head, *({"remove": each["remove"] | {"dataChange": False}} for each in gone),
                   {"add": add_action(file, now)["add"] | {"dataChange": False}}]  # fmt: skip
        else:
            young.append(file)
            transaction = BatchTransaction("query-0", version)
            yield [*head, transaction_action(transaction.app_id, transaction.version, now), add_action(file, now)]


def peak_kib() -> int:
    """The most memory that this process has had at a time."""
    return round(peak_mib({os.getpid()}) * 1024)


def main() -> None:
    """Run one step over a lakehouse, and print by how much the process grew, and what it did."""
    folder, step = sys.argv[1:]
    store, later = Store(Location(uri=Path(folder).as_uri())), datetime.now(UTC) + timedelta(hours=1)
    open_table(store.location, TABLE)
    before = peak_kib()
    if step == "vacuum":
        done = TableVacuum(store, TABLE, later).run().files
    else:
        done = sum(plan.carry_out(store).deleted_files for plan in LogCleanup(store=store, since=later).plans([TABLE]))
    sys.stdout.write(f"{peak_kib() - before} {done}\n")


if __name__ == "__main__":
    main()

"""Reads the records of a small replay in this process, where starting Spark would take longer than the whole of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.lake.appends import schema_of
from gamelake.lake.datasets import dataset
from gamelake.lake.file_entries import FileEntry, live_files
from gamelake.lake.store import Location
from gamelake.lake.tables import open_table
from gamelake.replay.marks import COORDINATES, MARKED_IN, WHY
from gamelake.replay.selection import Selection, place_of
from gamelake.replay.task import ReplayPlan, ReplayReport, ReplayTask, unpacked

_RECORDS_A_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Here:
    """Runs one task, here."""

    location: Location

    def bytes(self, selection: Selection, version: int) -> int:
        """How large the files are that a selection has to read."""
        return sum(file.size for file in self._files(selection, version))

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Read a selection, do what the plan says."""
        found = self._read(selection, plan.versions[selection.source])
        marks = MARKED_IN.get(selection.source, "")
        if marks in plan.versions:
            settled = self._table(marks, plan.versions[marks], list(COORDINATES))
            found = found.join(settled, list(COORDINATES), join_type="left anti")
        batches = _in_order(found).to_batches(max_chunksize=_RECORDS_A_BATCH)
        return tuple(_unpacked(ReplayTask(plan)(iter(batches))))

    def _read(self, selection: Selection, version: int) -> pa.Table:
        schema = schema_of(open_table(self.location, selection.source, version))
        why = [WHY[selection.source]] if selection.source in WHY else []
        rows = dataset(self.location, selection.source, schema, self._files(selection, version))
        columns = {name: pc.field(place_of(selection, name)) for name in (*COORDINATES, "value", *why)}
        return rows.to_table(columns=columns, filter=_condition(selection))

    def _table(self, name: str, version: int, columns: list[str]) -> pa.Table:
        handle = open_table(self.location, name, version)
        return dataset(self.location, name, schema_of(handle), live_files(handle)).to_table(columns=columns)

    def _files(self, selection: Selection, version: int) -> list[FileEntry]:
        """The files that may have such records, by their days and by the least and greatest offset in them."""
        handle = open_table(self.location, selection.source, version)
        offsets = {row["path"]: row for row in pa.table(handle.get_add_actions(flatten=True)).to_pylist()}
        return [file for file in live_files(handle) if _may_have(selection, file, offsets[file.path])]


def _unpacked(reports: Iterator[pa.RecordBatch]) -> Iterator[ReplayReport]:
    return (unpacked(packed) for batch in reports for packed in batch.column(0).to_pylist())


def _in_order(found: pa.Table) -> pa.Table:
    """The records as tasks get them; of duplicates the first is the one that counts."""
    found = found.set_column(
        found.schema.get_field_index("partition"), "partition", found["partition"].cast(pa.int32())
    ).rename_columns({"kafka_timestamp": "timestamp"})
    return found.sort_by([(name, "ascending") for name in ("partition", "timestamp", "offset")]).combine_chunks()


def _condition(selection: Selection) -> pc.Expression | None:
    partition, offset = pc.field(place_of(selection, "partition")), pc.field(place_of(selection, "offset"))
    taken_in = pc.field("kafka_timestamp")
    conditions = [pc.field("reason").isin(list(selection.reasons))] if selection.reasons else []
    conditions += [pc.field("rule").isin(list(selection.rules))] if selection.rules else []
    if selection.since is not None:
        conditions.append(taken_in >= pa.scalar(selection.since, pa.timestamp("us", "UTC")))
    if selection.until is not None:
        conditions.append(taken_in < pa.scalar(selection.until, pa.timestamp("us", "UTC")))
    if selection.offsets:
        ranges = [
            (partition == each.partition) & (offset >= each.first) & (offset <= each.last) for each in selection.offsets
        ]
        conditions.append(reduce(or_, ranges))
    return reduce(and_, conditions) if conditions else None


def _may_have(selection: Selection, file: FileEntry, known: Mapping[str, Any]) -> bool:
    day = file.partition.get("ingest_date")
    if day is None:
        return True
    if selection.since is not None and day < selection.since.date().isoformat():
        return False
    if selection.until is not None and day > selection.until.date().isoformat():
        return False
    least, most = known.get("min.offset"), known.get("max.offset")
    if not selection.offsets or least is None or most is None:
        return True
    return any(least <= each.last and most >= each.first for each in selection.offsets)

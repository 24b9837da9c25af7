"""The first half of a batch: records to what matters of them, handed on to the tasks that have the players' states."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from gamelake.fanout.report import joined_offsets
from gamelake.fanout.sorting import Placement, Sorter
from gamelake.fanout.task import kafka_microseconds, offset_ranges, worker_decoder
from gamelake.lake.manifest import OffsetRange
from gamelake.lake.store import Store
from gamelake.live_ops.counts import COUNTS_SCHEMA, limited, summed
from gamelake.live_ops.happenings import Taken, happenings, minute_counts
from gamelake.live_ops.packing import pack_table
from gamelake.live_ops.plan import LiveOpsPlan
from gamelake.live_ops.players import HAPPENINGS_SCHEMA, share_of
from gamelake.silver.identity import Identities
from gamelake.silver.routing import Router

# What goes from the first half of a batch to the second: one row for each task of the second, whatever is in it.
PARCEL_TYPES = "share int, parcel binary"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a task has read: offsets, the newest moment of each Kafka partition, and the counts of minutes."""

    offsets: tuple[OffsetRange, ...]
    newest: dict[int, int]
    counts: bytes


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """What one task hands to another one: the newest moment that it met, what players did, and to one its reading."""

    newest: int
    happenings: bytes
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The function that Spark maps over the partitions of a micro-batch (`mapInArrow`)."""

    plan: LiveOpsPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode and check the records of a partition; yield a parcel for each share of the players."""
        reader = _Reader(self.plan)
        for batch in batches:
            reader.take(batch)
        if reader.offsets:
            yield reader.parcels()


class _Reader:
    """Takes records as the fan-out does, and keeps of them what matters."""

    def __init__(self, plan: LiveOpsPlan) -> None:
        self._plan = plan.state
        self._decoder = worker_decoder(plan.reading, Store(plan.reading.lakehouse))
        router = Router(plan.reading.contract, plan.reading.unlisted_tables)
        self._sorter = Sorter(router, plan.reading.contract.event_time, dict(plan.reading.schemas))
        self._identities = Identities(plan.state.seed)
        self._happenings: list[pa.Table] = [HAPPENINGS_SCHEMA.empty_table()]
        self._counts: list[pa.Table] = [COUNTS_SCHEMA.empty_table()]
        self._newest: dict[int, int] = {}
        self.offsets: list[OffsetRange] = []

    def take(self, batch: pa.RecordBatch) -> None:
        """Decode and check one batch of records; what would be a dead letter is left to the fan-out."""
        self.offsets.extend(offset_ranges(batch))
        decoded = self._decoder.decode(batch.column("value"))
        partitions = batch.column("partition").cast(pa.int64())
        placement = Placement(partitions, batch.column("offset"), kafka_microseconds(batch))
        for group in decoded.groups:
            checked = self._sorter.check(group, placement, decoded.rejects)
            if checked is not None:
                rows = group.rows
                self._keep(
                    Taken.of(
                        checked,
                        self._sorter.router.tables,
                        partitions.to_numpy()[rows],
                        placement.kafka_microseconds[rows],
                        self._plan.clock,
                    )
                )

    def _keep(self, taken: Taken) -> None:
        if not len(taken.at):
            return
        self._happenings.append(happenings(taken, self._identities))
        self._counts.append(minute_counts(taken))
        for partition in np.unique(taken.partitions):
            newest = int(taken.at[taken.partitions == partition].max())
            self._newest[int(partition)] = max(newest, self._newest.get(int(partition), 0))

    def parcels(self) -> pa.RecordBatch:
        """One row for each share, the reading with the first."""
        happened = pa.concat_tables(self._happenings).combine_chunks()
        shares = share_of(happened["key"].to_numpy(), self._plan.shares)
        newest = max(self._newest.values(), default=0)
        counts = pack_table(limited(summed(self._counts)))
        reading = Reading(offsets=joined_offsets(self.offsets), newest=self._newest, counts=counts)
        parcels = [
            Parcel(
                newest=newest,
                happenings=pack_table(happened.filter(pa.array(shares == share))),
                reading=None if share else reading,
            )
            for share in range(self._plan.shares)
        ]
        packed = [msgspec.msgpack.encode(parcel) for parcel in parcels]
        return pa.RecordBatch.from_arrays(
            [pa.array(range(len(parcels)), pa.int32()), pa.array(packed, pa.binary())], names=["share", "parcel"]
        )

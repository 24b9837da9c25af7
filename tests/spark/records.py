"""A lakehouse whose schemas are known already, and Kafka records for it as a DataFrame."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import SparkSession

from benchmarks.spark import FrameRecords
from gamelake.contract.games import GamesContract, GameSpec, UnlistedGames
from gamelake.delta.appends import BatchTransaction
from gamelake.delta.tables import DeltaTables
from gamelake.objects.store import Location, Store
from gamelake.quality.rules_in_force import RulesInForce
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at
from gamelake.schemas.schema_cache import schema_path
from gamelake.streaming.driver.decision import Decider, Decision, Parallelism
from gamelake.streaming.kafka.source import PlannedOffsets
from gamelake.streaming.plan import TaskPlan

PROTO = Path(__file__).parents[2] / "contracts" / "proto" / "v1" / "game_event.proto"
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
RECORD_TYPES = (
    "key binary, value binary, partition int, offset long, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
CONTRACT = GamesContract(
    games=(GameSpec(name="archery", match=("Archery",)), GameSpec(name="bingo", match=("Bingo",))),
    unlisted_games=UnlistedGames.OWN_TABLE,
)


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """One record of partition 0."""

    offset: int
    value: bytes


@dataclass(slots=True)
class KnownSchemas:
    """A lakehouse that holds compiled schemas, so that no registry is asked."""

    folder: Path
    count: int = 0

    @property
    def location(self) -> Location:
        return Location(uri=f"file://{self.folder}")

    def add(self, extra_field: str = "") -> int:
        """Make known a game event with one more field. Return the schema's id."""
        source = PROTO.read_text().replace("string device_id = 6;", f"string device_id = 6;\n  {extra_field}")
        self.count += 1
        descriptors = compile_sources({ROOT_FILE: source})
        Store(self.location).put(schema_path(self.count), descriptors.SerializeToString())
        return self.count

    def value(self, schema_id: int, event_id: str, game_name: str, at: datetime = NOW, **fields: object) -> bytes:
        """An event at some time as a Kafka value."""
        kept = Store(self.location).get(schema_path(schema_id))
        assert kept is not None
        event = GetMessageClass(message_at(FileDescriptorSet.FromString(kept), (0,)))(
            event_id=event_id, event_name="level_completed", game_name=game_name, **fields
        )
        event.event_time.FromDatetime(at)  # type: ignore[attr-defined]
        return b"\x00" + schema_id.to_bytes(4, "big") + b"\x00" + bytes(event.SerializeToString())

    def decider(
        self,
        tables: DeltaTables,
        names: Sequence[str] = (),
        tasks: int = 2,
        contract: GamesContract = CONTRACT,
        rules: RulesInForce | None = None,
        shuffle: str = "",
    ) -> Decider:
        """Decides batches for this lakehouse; `names` are the tables that exist."""
        plan = TaskPlan(
            lakehouse=self.location,
            registry_url="http://127.0.0.1:9",
            topic="events",
            contract=contract,
            shuffle=shuffle,
        )
        schemas = tables.schemas(names)
        return Decider(plan, schemas, Parallelism(cores=tasks, records_per_task=1), rules)


def as_frame(spark: SparkSession, records: Sequence[PlannedRecord], partitions: int = 2) -> FrameRecords:
    """Return the records as tasks get them, spread over a number of Spark partitions in order."""
    rows = [(b"k", record.value, 0, record.offset, NOW, None) for record in records]
    return FrameRecords(spark.createDataFrame(rows, RECORD_TYPES).repartitionByRange(partitions, "offset"))


def planned(records: Sequence[PlannedRecord]) -> PlannedOffsets:
    """What a batch of exactly these records plans to read."""
    return PlannedOffsets({0: min(r.offset for r in records)}, {0: max(r.offset for r in records) + 1})


def commit(tables: DeltaTables, decision: Decision, batch_id: int) -> None:
    for entry in decision.tables:
        tables.append(entry, BatchTransaction("test", batch_id))

"""Runs a task of the file source on a local folder, without Spark, Kafka or a registry."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.model.naming import DEAD_LETTERS, SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.schemas.compiler import compile_sources
from gamelake.schemas.schema_cache import schema_path
from gamelake.streaming.files.chooser import Chooser, OverwritePolicy
from gamelake.streaming.files.ledger import ObjectResult, file_rows
from gamelake.streaming.files.plan import FileLimits, FilesPlan, encode_task_input, task_inputs
from gamelake.streaming.files.task import FilesTask, unpack
from gamelake.streaming.plan import DedupPlan, TaskPlan, clock_now
from tests.unit.streaming_files.contract import SCHEMA_ID

DEDUP = DedupPlan(folder="events", batch_id=0, seed="seed", window_seconds=86_400)
_CONTRACT = GamesContract(games=(GameSpec(name="archery", match=("Archery",)),))
_PROTO = Path(__file__).parents[3] / "contracts/proto/v3/game_event.proto"


@dataclass(frozen=True)
class Run:
    """The results of a batch's objects, and the rows that its tasks wrote."""

    store: Store
    results: Sequence[ObjectResult]
    files: Sequence[tuple[str, str]]
    dead_letters: dict[str, int]

    def outcomes(self) -> dict[str, str]:
        """The outcome of each object by its key."""
        return {result.name.key: result.outcome.value for result in self.results}

    def rows(self, table: str) -> list[dict[str, object]]:
        contents = (self.store.get(f"{name}/{path}") for name, path in self.files if name == table)
        return [row for content in contents for row in pq.read_table(pa.BufferReader(content)).to_pylist()]

    def event_ids(self) -> list[object]:
        return [row["event_id"] for row in self.rows(SILVER_EVENTS)]

    def letters(self) -> list[tuple[object, object]]:
        """The reason and the value of each dead letter."""
        return [(row["reason"], row["value"]) for row in self.rows(DEAD_LETTERS)]


@dataclass
class FileRuns:
    """A lakehouse and a landing folder inside a folder."""

    folder: Path
    limits: FileLimits = field(default_factory=FileLimits)
    bucket: str = "landing"

    def __post_init__(self) -> None:
        """Create both, and register the contract's schema."""
        self.landing = self.folder / "landing"
        self.landing.mkdir(parents=True, exist_ok=True)
        self.lakehouse = Location(uri=(self.folder / "lakehouse").as_uri())
        self.store = Store(self.lakehouse)
        schema = compile_sources({"schema.proto": _PROTO.read_text(encoding="utf-8")})
        self.store.put(schema_path(SCHEMA_ID), schema.SerializeToString())

    def write(self, key: str, content: bytes) -> bytes:
        path = self.landing / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return notification(key, len(content))

    @property
    def chooser(self) -> Chooser:
        """Chooses all objects of the folder."""
        return Chooser(self.bucket, "", OverwritePolicy.READ, self.store)

    def plan(self, landing: Location | None = None) -> FilesPlan:
        """The plan of a batch; `landing` replaces the folder."""
        return FilesPlan(
            reading=TaskPlan(
                lakehouse=self.lakehouse,
                registry_url="http://127.0.0.1:1",
                topic="files",
                contract=_CONTRACT,
                clock=clock_now(),
            ),
            landing=landing or Location(uri=self.landing.as_uri()),
            schema_id=SCHEMA_ID,
            limits=self.limits,
        )

    def run(self, *notifications: bytes | None, landing: Location | None = None) -> Run:
        count = len(notifications)
        table = pa.table(
            {
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(count), pa.int64()),
                "timestamp": pa.array([time.time_ns() // 1000] * count, pa.int64()).cast(pa.timestamp("us", "UTC")),
                "value": pa.array(notifications, pa.binary()),
            }
        )
        chosen = self.chooser.choose(table, DEDUP)
        plan = self.plan(landing)
        inputs = [encode_task_input(each) for each in task_inputs(chosen.objects, chosen.rejected, 2, {})]
        reports = unpack(list(FilesTask(plan)(inputs)))
        results = [result for report in reports for result in report.results]
        file_rows(results)
        letters: dict[str, int] = {}
        for report in reports:
            for reason, number in report.report.dead_letters.items():
                letters[reason] = letters.get(reason, 0) + number
        files = [(file.table, file.file.path) for report in reports for file in report.report.files]
        return Run(self.store, results, files, letters)


def notification(key: str, size: int, bucket: str = "landing") -> bytes:
    """The notification of a new object in S3's format, with the key as it is in the store."""
    found = {"key": key.replace("%", "%25").replace("+", "%2B"), "size": size, "eTag": ""}
    entry = {"eventName": "s3:ObjectCreated:Put", "s3": {"bucket": {"name": bucket}, "object": found}}
    return json.dumps({"Records": [entry]}).encode()

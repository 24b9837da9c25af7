"""Counts in Spark tasks how many rows of a day break which rule, with the evaluator of the stream.

So a rule has the same meaning in the stream and in a validation.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType

from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.model.naming import game_table
from gamelake.objects.store import Location
from gamelake.quality.checking import EVENT_DATE, CheckedRules
from gamelake.quality.evaluation import BrokenRule, Evaluator
from gamelake.scans.datasets import dataset

# How many rows of each rule a result names, by their records' coordinates.
_NAMED = 3
_ROWS_AT_ONCE = 131_072
_COORDINATES = ("kafka_partition", "kafka_offset")
_NOTED = pa.map_(pa.string(), pa.string())
_TASKS = pa.schema([pa.field("game", pa.string()), pa.field("path", pa.string())])
# Column names that no rule can have.
GAME, ROWS, SAMPLES, UNJUDGED, UNREAD = "_game", "_rows", "_samples", "_unjudged", "_unread"

_MOST_TASKS = 2_000


@dataclass(frozen=True, slots=True)
class GameDayFiles:
    """A game's table at one version: its columns, and the files of the day."""

    game: str
    columns: pa.Schema
    files: tuple[FileEntry, ...]

    @classmethod
    def of(cls, game: str, handle: DeltaTable, day: str) -> "GameDayFiles":
        """Open the newest version of the table, with its files of a day (`YYYY-MM-DD`)."""
        files = tuple(
            each for each in live_files(handle, with_deleted_rows=True) if each.partition.get(EVENT_DATE) == day
        )
        return cls(game, schema_of(handle), files)


@dataclass(frozen=True)
class CountBrokenRows:
    """The function of a task: reads files and returns one row of counts for each; pickled into the job.

    A row also has coordinates of some rows that break a rule (SAMPLES, by rule name), and the number of rows that a
    rule can't be evaluated on, because of their columns' types (UNJUDGED, by rule name). For a file that can't be read
    it has no counts, and the error (UNREAD).
    """

    location: Location
    checked: CheckedRules
    tables: Mapping[str, GameDayFiles]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the counts: one for each rule, null if it does not apply to the game."""
        rules = [pa.field(rule.name, pa.int64()) for rule in self.checked.rules.rules]
        details = [pa.field(SAMPLES, _NOTED), pa.field(UNJUDGED, _NOTED), pa.field(UNREAD, pa.string())]
        return pa.schema([pa.field(GAME, pa.string()), pa.field(ROWS, pa.int64()), *rules, *details])

    def tasks(self) -> pa.Table:
        """Return one row for each file, with the columns game and path (string)."""
        rows = [{"game": game, "path": file.path} for game, table in self.tables.items() for file in table.files]
        return pa.Table.from_pylist(rows, schema=_TASKS)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the rows of each file of a task (columns game and path); the result has the columns of `schema`."""
        evaluator = Evaluator(self.checked)
        for batch in batches:
            for row in batch.to_pylist():
                table = self.tables[row["game"]]
                file = next(each for each in table.files if each.path == row["path"])
                try:
                    counts = self._counted(evaluator, table, file)
                except Exception as error:  # a file that can't be read is its game's failure
                    counts = {
                        GAME: table.game,
                        ROWS: 0,
                        SAMPLES: [],
                        UNJUDGED: [],
                        UNREAD: f"{type(error).__name__}: {error}",
                    }
                yield pa.RecordBatch.from_pylist([counts], schema=self.schema)

    def _counted(self, evaluator: Evaluator, table: GameDayFiles, file: FileEntry) -> dict[str, object]:
        counts: Counter[str] = Counter()
        unjudged: Counter[str] = Counter()
        samples: dict[str, list[str]] = {}
        rules = self.checked.rules.of(table.game)
        for rows in self._read(table, file):
            counts[ROWS] += len(rows)
            for each in evaluator.broken(rows, (table.game,), np.zeros(len(rows), np.int64)):
                counts[each.rule.name] += int(each.rows.sum())
                named = samples.setdefault(each.rule.name, [])
                named += _coordinates(rows, each, _NAMED - len(named))
            unjudged.update({rule.name: len(rows) for rule in evaluator.not_evaluated(rows) if rule in rules})
        judged = {name: counts[name] for name in (ROWS, *(rule.name for rule in rules))}
        said = {name: ", ".join(named) for name, named in samples.items()}
        noted = {name: str(rows) for name, rows in unjudged.items()}
        return {GAME: table.game, **judged, SAMPLES: list(said.items()), UNJUDGED: list(noted.items())}

    def _read(self, table: GameDayFiles, file: FileEntry) -> Iterator[pa.RecordBatch]:
        """The rows of a file, with the columns of rules and coordinates."""
        wanted = {name for rule in self.checked.rules.rules for name in rule.columns} | set(_COORDINATES)
        # The day of a row is computed from its time, as in the stream.
        names = [name for name in table.columns.names if name.lower() in wanted | {"event_time"} and name != EVENT_DATE]
        source = dataset(self.location, game_table(table.game), table.columns, [file])
        yield from (batch for batch in source.to_batches(columns=names, batch_size=_ROWS_AT_ONCE) if len(batch))


def _coordinates(rows: pa.RecordBatch, broken: BrokenRule, count: int) -> Sequence[str]:
    """The coordinates of some broken rows, as `partition:offset`."""
    if count <= 0 or any(rows.schema.get_field_index(name) < 0 for name in _COORDINATES):
        return []
    places = pa.array(np.flatnonzero(broken.rows)[:count])
    partitions, offsets = (rows.column(name).take(places).to_pylist() for name in _COORDINATES)
    return [f"{partition}:{offset}" for partition, offset in zip(partitions, offsets, strict=True)]


def counts_of(spark: SparkSession, count: CountBrokenRows) -> list[Row]:
    """Count all files in Spark tasks; return one row for each."""
    tasks = count.tasks()
    if not len(tasks):
        return []
    spread = spark.createDataFrame(tasks).repartition(min(len(tasks), _MOST_TASKS))
    return spread.mapInArrow(count, _ddl(count)).collect()


def figures(spark: SparkSession, observed: Mapping[str, float]) -> DataFrame:
    """Return values by name as one row of doubles."""
    columns = StructType([StructField(name, DoubleType()) for name in observed])
    return spark.createDataFrame([tuple(float(value) for value in observed.values())], columns)


def _ddl(count: CountBrokenRows) -> str:
    rules = [f"`{rule.name}` bigint" for rule in count.checked.rules.rules]
    details = [f"`{name}` map<string, string>" for name in (SAMPLES, UNJUDGED)]
    return ", ".join([f"`{GAME}` string", f"`{ROWS}` bigint", *rules, *details, f"`{UNREAD}` string"])

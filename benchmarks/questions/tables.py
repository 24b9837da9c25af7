"""Writes the tables that the questions read, as the platform does: one commit per day in silver, gold sorted by key."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.questions.events import DayOfEvents
from gamelake.layers.bronze import BRONZE_SCHEMA
from gamelake.layers.dead_letters import dead_letter_schema
from gamelake.layers.silver import EVENT_DATE, UNIQUE_COLUMNS
from gamelake.model.aggregates import AggregateSpec, Over, Refresh
from gamelake.model.games import GamesContract
from gamelake.model.naming import DEAD_LETTERS, SILVER_EVENTS, game_table
from gamelake.serving.gold.definition import PARTITION, define
from gamelake.serving.gold.runs import split
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.columns import as_delta
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.manifests import TableFiles
from gamelake.storage.sql_engine import engine
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, delta_schema_json

# The game whose own table has questions.
ONE_GAME, ONE_TITLE = "kart_rumble", "Kart Rumble"
_GAME = "game_name"


@dataclass(slots=True)
class LakehouseWriter:
    """Writes a lakehouse of known size; gold is written at the end, from the aggregates of each day."""

    location: Location
    contract: GamesContract
    threads: int
    rows_per_file: int = 1_000_000
    _store: Store = field(init=False)
    _tables: DeltaTables = field(init=False)
    _parts: dict[str, list[pa.Table]] = field(init=False)

    def __post_init__(self) -> None:
        """Open the store; nothing is written yet."""
        self._store, self._tables = Store(self.location), DeltaTables(self.location)
        self._parts = {spec.name: [] for spec in self.contract.aggregates}

    def add(self, day: DayOfEvents) -> int:
        """Commit a day's events to silver, and aggregate them for gold; returns their number."""
        self._commit(SILVER_EVENTS, day.events, str(day.day))
        mine = pc.equal(day.events.column(_GAME), ONE_TITLE)
        own = day.events.filter(mine)
        for name in day.details.column_names:
            own = own.append_column(name, day.details.column(name).filter(mine))
        self._commit(game_table(ONE_GAME), own, str(day.day))
        rows = day.events.append_column(EVENT_DATE, pa.repeat(pa.scalar(day.day), len(day.events)))
        with engine(self.threads) as sql:
            sql.give("day", rows)
            for spec in self.contract.aggregates:
                self._parts[spec.name].append(sql.table(define(_of_all_games(spec)).over("day")))
        return len(rows)

    def finish(self, emit: Callable[[str], None]) -> None:
        """Write gold, and a table of dead letters with one row."""
        letters = pa.table({"reason": ["unroutable"], "detail": ["no table takes this game_name"]})
        schema = dead_letter_schema(BRONZE_SCHEMA)
        rest = [pa.nulls(1, schema.field(name).type) for name in schema.names[2:]]
        columns = [*letters.columns, *rest]
        self._commit(DEAD_LETTERS, pa.Table.from_arrays(columns, schema=schema), "2026-01-01", "ingest_date")
        for spec in self.contract.aggregates:
            rows = pa.concat_tables(self._parts.pop(spec.name))
            if spec.refresh is Refresh.MERGE:
                with engine(self.threads) as sql:
                    sql.give("parts", rows)
                    rows = sql.table(define(_of_all_games(spec)).merging("parts"))
            emit(f"gold: {len(rows):,} rows of {spec.name}")
            if spec.over is Over.ALL_GAMES:
                self._gold(spec, "", rows)
                continue
            for game in self.contract.games:
                self._gold(spec, game.name, rows.filter(pc.equal(rows.column(_GAME), game.game_name)).drop([_GAME]))

    def _gold(self, spec: AggregateSpec, game: str, rows: pa.Table) -> None:
        if not len(rows):
            return
        rows = rows.sort_by([(key, "ascending") for key in spec.group_by]).combine_chunks()
        files: list[DataFile] = []
        if spec.refresh is Refresh.MERGE:
            files = [self._file(spec.table(game), run, {}) for run in split(rows, spec.group_by[0])]
        else:
            for day in rows.column(PARTITION).unique().to_pylist():
                part = rows.filter(pc.equal(rows.column(PARTITION), pa.scalar(day))).drop([PARTITION])
                files.append(self._file(spec.table(game), part, {PARTITION: str(day)}))
        self._append(spec.table(game), rows.schema, tuple(files))

    def _commit(self, table: str, rows: pa.Table, day: str, partition: str = EVENT_DATE) -> None:
        kept = pa.Table.from_batches([as_delta(batch) for batch in rows.combine_chunks().to_batches()])
        files = tuple(self._file(table, part, {partition: day}) for part in _parts(kept, self.rows_per_file))
        self._append(table, kept.schema.append(pa.field(partition, pa.date32())), files)

    def _file(self, table: str, rows: pa.Table, partition: dict[str, str | None]) -> DataFile:
        content, statistics = encode_parquet(rows, UNIQUE_COLUMNS)
        path = new_file_name("/".join(f"{name}={value}" for name, value in partition.items()))
        self._store.put(f"{table}/{path}", content.to_pybytes())
        return DataFile(path=path, size=content.size, rows=rows.num_rows, partition=partition, statistics=statistics)

    def _append(self, table: str, schema: pa.Schema, files: tuple[DataFile, ...]) -> None:
        partition = tuple(files[0].partition)
        entry = TableFiles(table=table, partition_by=partition, schema=delta_schema_json(schema), files=files)
        self._tables.append(entry, BatchTransaction(f"benchmark-{files[0].path}", 0))


def _of_all_games(spec: AggregateSpec) -> AggregateSpec:
    if spec.over is Over.ALL_GAMES:
        return spec
    return msgspec.structs.replace(spec, group_by=(_GAME, *spec.group_by))


def _parts(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    for start in range(0, len(rows), size):
        yield rows.slice(start, size).combine_chunks()

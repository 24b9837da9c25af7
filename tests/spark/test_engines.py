"""One table, several engines: each sees the same rows, schema and history, and finds each value by any column."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.objects.store import Location, Store
from tests.spark.records import KnownSchemas, PlannedRecord, as_frame, commit, planned
from tests.support.engines import (
    COMPARISONS,
    InDataFusion,
    InDuckDB,
    InOtherEngine,
    InPolars,
    InSpark,
    OpenTable,
    OtherEngine,
    Place,
)
from tests.support.engines_of_users import ENGINES

TABLES = ("bronze/events", "silver/events", "silver/archery_events", "silver/bingo_events", "dead_letters/events")
Rows = list[tuple[object, ...]]


def with_spark(spark: SparkSession, path: Path, sql: str) -> Rows:
    spark.read.format("delta").load(str(path)).createOrReplaceTempView("lake_table")
    return sorted((tuple(row) for row in spark.sql(sql).collect()), key=repr)


def with_duckdb(_: SparkSession, path: Path, sql: str) -> Rows:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("lake_table", DeltaTable(path).to_pyarrow_dataset())
    return sorted(connection.execute(sql).fetchall(), key=repr)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    """Three batches, the last of which brings a new column."""
    schemas = KnownSchemas(tmp_path)
    plain, richer = schemas.add(), schemas.add("repeated string badges = 60;")
    with DeltaTables(schemas.location) as tables:
        for batch, schema_id in enumerate((plain, plain, richer)):
            start = batch * 100
            values = [
                schemas.value(schema_id, f"e{n:04d}", ("Archery", "Bingo")[n % 2]) for n in range(start, start + 99)
            ]
            records = [PlannedRecord(start + n, value) for n, value in enumerate([*values, b"poison"])]
            decision = schemas.decider(tables, TABLES).decide(as_frame(spark, records), planned(records))
            commit(tables, decision, batch)
    return tmp_path


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("engine", [with_spark, with_duckdb])
def test_every_engine_counts_the_same_rows(
    spark: SparkSession, lake: Path, table: str, engine: Callable[[SparkSession, Path, str], Rows]
) -> None:
    expected = DeltaTable(lake / table).to_pyarrow_table().num_rows

    assert engine(spark, lake / table, "SELECT count(*) FROM lake_table") == [(expected,)]


@pytest.mark.parametrize("engine", [with_spark, with_duckdb])
def test_every_engine_reads_the_same_values(
    spark: SparkSession, lake: Path, engine: Callable[[SparkSession, Path, str], Rows]
) -> None:
    columns = ("event_id", "event_name", "game_name", "kafka_offset", "badges")
    rows = DeltaTable(lake / "silver/archery_events").to_pyarrow_table(columns=list(columns)).to_pylist()
    expected = sorted((tuple(row[column] for column in columns) for row in rows), key=repr)

    assert engine(spark, lake / "silver/archery_events", f"SELECT {', '.join(columns)} FROM lake_table") == expected  # noqa: S608


@pytest.mark.parametrize("table", TABLES)
def test_spark_and_deltalake_see_the_same_schema_and_history(spark: SparkSession, lake: Path, table: str) -> None:
    path = lake / table
    by_spark = spark.read.format("delta").load(str(path)).schema
    by_deltalake = pa.schema(DeltaTable(path).schema())

    assert [field.name for field in by_spark] == by_deltalake.names
    versions = [row.version for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()]
    assert versions == [entry["version"] for entry in DeltaTable(path).history()]


def test_a_filter_reads_only_the_files_that_can_match(spark: SparkSession, lake: Path) -> None:
    path = lake / "silver/archery_events"
    files = len(DeltaTable(path).file_uris())

    by_spark = spark.read.format("delta").load(str(path)).where("event_id >= 'e0200'").inputFiles()
    # DuckDB hands its filter to the same data set, which skips fragments by the statistics in the log.
    by_arrow = list(DeltaTable(path).to_pyarrow_dataset().get_fragments(filter=pc.field("event_id") >= "e0200"))

    assert 0 < len(by_spark) < files
    assert 0 < len(by_arrow) < files


@pytest.mark.slow
def test_a_table_that_spark_has_compacted_still_takes_batches(spark: SparkSession, lake: Path) -> None:
    path = lake / "silver/bingo_events"
    before = with_duckdb(spark, path, "SELECT event_id FROM lake_table")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    schemas = KnownSchemas(lake, count=2)
    records = [PlannedRecord(1000 + n, schemas.value(1, f"later{n}", "Bingo")) for n in range(10)]

    with DeltaTables(schemas.location) as tables:
        commit(tables, schemas.decider(tables, TABLES).decide(as_frame(spark, records), planned(records)), 3)

    later: Rows = [(f"later{n}",) for n in range(10)]
    assert with_duckdb(spark, path, "SELECT event_id FROM lake_table") == sorted(before + later)
    assert with_spark(spark, path, "SELECT event_id FROM lake_table") == sorted(before + later)


@pytest.mark.parametrize("engine", [with_spark, with_duckdb])
def test_every_engine_finds_any_text_by_bounds_and_by_partition(
    spark: SparkSession, tmp_path: Path, engine: Callable[[SparkSession, Path, str], Rows]
) -> None:
    texts = ["ios", "a b", "a/b", "50%25", "a%2Fb", "x=y", "日本", "𠮷", "?#", "a:b", "{}[]^*", "+&", "m" * 40]
    columns = pa.schema({"gamer_id": pa.string(), "event_date": pa.date32(), "platform": pa.string()})
    store, partition_by = Store(Location(uri=tmp_path.as_uri())), ("event_date", "platform")
    partitions: list[dict[str, str | None]] = [{"event_date": "2026-01-01", "platform": text} for text in texts]
    partitions.append({"event_date": "2026-01-01", "platform": None})
    files = tuple(
        write_rows(store, "silver/texts", pa.table({"gamer_id": [each["platform"] or "none"]}), each)
        for each in partitions
    )
    schema = delta_schema_json(columns)
    with DeltaTables(store.location) as tables:
        entry = TableFiles(table="silver/texts", partition_by=partition_by, schema=schema, files=files)
        tables.append(entry, BatchTransaction("query-0", 0))

    table = tmp_path / "silver/texts"
    listed = ", ".join(f"'{text}'" for text in texts)
    same = "SELECT count(*) FROM lake_table WHERE gamer_id = platform"
    assert engine(spark, table, same) == [(len(texts),)]
    assert engine(spark, table, f"SELECT count(*) FROM lake_table WHERE platform IN ({listed})") == [(len(texts),)]  # noqa: S608
    assert engine(spark, table, f"SELECT count(*) FROM lake_table WHERE gamer_id IN ({listed})") == [(len(texts),)]  # noqa: S608
    assert engine(spark, table, "SELECT gamer_id FROM lake_table WHERE platform IS NULL") == [("none",)]


# One row by file and partition, so that a wrong bound hides it.
TEXTS = ("z", "é", "野", "\uffff", "😀", "𠮷", "𰻝", "\U000e0101", "\U000f0000", "\U00100000", "\U0010ffff",
         "a b", "a/b", "50%25", "a%2Fb", "x=y", "?#", "{}[]^*", "m" * 40, "m" * 31 + "𠮷" * 4,
         "\U0010ffff" * 33)  # fmt: skip
LONG_TEXT, BADGE = "n" * 5_000, pa.list_(pa.string())
COLUMNS = pa.schema(
    {
        "event_id": pa.string(),
        "level": pa.int64(),
        "score": pa.float64(),
        "won": pa.bool_(),
        "at": pa.timestamp("us", "UTC"),
        "born": pa.date32(),
        "balance": pa.decimal128(20, 0),
        "note": pa.string(),
        "purchase": pa.struct({"price": pa.float64(), "product": pa.struct({"name": pa.string()})}),
        "badges": BADGE,
    }
)
# Without bounds delta-rs' Arrow data set finds nothing, with which DuckDB reads: docs/upstream/missing-bounds.md.
PLACES: tuple[Place, ...] = (
    ("event_id",), ("level",), ("score",), ("won",), ("at",), ("born",), ("purchase", "price"),
    ("purchase", "product", "name"), ("event_date",), ("platform",),
)  # fmt: skip
# The column that the third batch adds. A filter of Daft 0.7 on it counts rows of older files as matches, or fails.
YOUNGER: Place = ("won",)
UNBOUNDED: tuple[Place, ...] = (("balance",), ("note",))


def a_row(number: int, text: str) -> Mapping[str, object]:
    """A row with values that are far from those of others; each third one has few."""
    row = {
        "event_id": text,
        "level": (-1) ** number * 2**62 + number,
        "score": number / 8,
        "at": datetime(1969 + 7 * number, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        "purchase": {"price": -number / 4, "product": None},
        "platform": text,
        "event_date": date(2026, 1, 1 + number),
    }
    more = {
        "won": number % 2 == 0,
        "born": date(1900 + number, 2, 28),
        "balance": Decimal(2**64 - 1 - number),
        "note": LONG_TEXT + text,
        "purchase": {"price": float(number), "product": {"name": text}},
        "badges": [text, None],
    }
    return row if number % 3 == 0 else row | more


ROWS = [a_row(number, text) for number, text in enumerate(TEXTS)]
FIRST = len(ROWS) // 3


@pytest.fixture(scope="module")
def all_values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a file for each of `ROWS`, committed in three batches; the last one adds a column."""
    folder = tmp_path_factory.mktemp("values")
    store, partition_by = Store(Location(uri=folder.as_uri())), ("event_date", "platform")
    parts = pa.schema({"event_date": pa.date32(), "platform": pa.string()})
    with DeltaTables(store.location) as tables:
        for batch in range(3):
            columns = COLUMNS if batch == 2 else pa.schema([field for field in COLUMNS if field.name != "won"])
            files = tuple(
                write_rows(
                    store,
                    "silver/values",
                    pa.Table.from_pylist([row], schema=columns),
                    {each: str(row[each]) for each in partition_by},
                )
                for row in ROWS[batch * FIRST : (batch + 1) * FIRST]
            )
            schema = delta_schema_json(pa.schema([*columns, *parts]))
            entry = TableFiles(table="silver/values", partition_by=partition_by, schema=schema, files=files)
            tables.append(entry, BatchTransaction("query-0", batch))
    return folder / "silver/values"


# The environment of the others has 1.6 GB.
@pytest.fixture(
    params=[
        # Its plans for each column take a minute to compile.
        pytest.param("Spark", marks=pytest.mark.slow),
        "Polars",
        "DataFusion",
        "DuckDB",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ENGINES),
    ],
    scope="module",
)
def engine(
    request: pytest.FixtureRequest, all_values: Path, missing_service: Callable[[str], NoReturn]
) -> Iterator[Callable[[Path, int], OpenTable]]:
    others: Mapping[str, Callable[[Path, int], OpenTable]]
    others = {"Polars": InPolars, "DataFusion": InDataFusion, "DuckDB": InDuckDB}
    if request.param == "Spark":
        yield partial(InSpark, request.getfixturevalue("spark"))
    elif request.param in others:
        yield others[request.param]
    else:
        if not OtherEngine.is_installed():
            missing_service("the engines that users bring are not installed: run make engines")
        other = OtherEngine(request.param, all_values)
        yield partial(InOtherEngine, other)
        other.close()


def value_at(row: Mapping[str, object], place: Place) -> object:
    found: object = row
    for step in place:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def known(rows: list[Mapping[str, object]], place: Place) -> list[Any]:
    """The values of rows that are not null; before the third batch the table has no column `won`."""
    rows = rows[2 * FIRST :] if place == YOUNGER else rows
    return [value for row in rows if (value := value_at(row, place)) is not None]


def newest(path: Path) -> int:
    return DeltaTable(path).version()


def test_each_engine_finds_every_value_by_every_column(
    engine: Callable[[Path, int], OpenTable], all_values: Path
) -> None:
    table, wrong = engine(all_values, newest(all_values)), []
    places = PLACES if isinstance(table, InDuckDB) else PLACES + UNBOUNDED
    if isinstance(table, InOtherEngine) and table.engine.name == "Daft":
        places = tuple(place for place in places if place != YOUNGER)
    for place in places:
        values = known(ROWS, place)
        assert values
        chosen = [values[len(values) // 2], values[0], max(values)]
        # A query takes Spark and ClickHouse long.
        for value in chosen[:1] if isinstance(table, InSpark | InOtherEngine) else chosen:
            for comparison, compare in COMPARISONS.items():
                if table.matching(place, comparison, value) != sum(compare(each, value) for each in values):
                    wrong.append((place, comparison, value))
        # Nor does that data set find the rows of files that are older than the column.
        is_lost = isinstance(table, InDuckDB) and place == YOUNGER
        if not is_lost and table.missing(place) != len(ROWS) - len(values):
            wrong.append((place, "is null", None))

    assert wrong == []


def test_each_engine_reads_texts_of_all_planes_from_columns_and_partitions(
    engine: Callable[[Path, int], OpenTable], all_values: Path
) -> None:
    table = engine(all_values, newest(all_values))

    for place in (("event_id",), ("platform",)):
        assert Counter(table.values(place)) == Counter(TEXTS)
        texts = TEXTS[5::6] if isinstance(table, InSpark) else TEXTS
        assert [text for text in texts if table.matching(place, "=", text) != 1] == []


def test_each_engine_has_the_same_counts_and_sums_at_each_version(
    engine: Callable[[Path, int], OpenTable], all_values: Path
) -> None:
    # The third version adds the column.
    for version, rows in {0: FIRST, 1: 2 * FIRST, 2: 2 * FIRST, 3: 3 * FIRST}.items():
        table = engine(all_values, version)

        assert table.count() == rows
        assert table.total(("score",)) == sum(known(ROWS[:rows], ("score",)))
        assert table.total(("purchase", "price")) == sum(known(ROWS[:rows], ("purchase", "price")))

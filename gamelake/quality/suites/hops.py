"""Reconciles the hops of records between tables: Kafka to bronze, and bronze to silver or another outcome.

Totals come from manifests and Delta logs; single missing records are found by joins on coordinates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from gamelake.delta.listing import has_log
from gamelake.model.naming import BRONZE_EVENTS, BRONZE_FILES, DEAD_LETTERS, QUARANTINE, SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.quality.check_findings import Bounds
from gamelake.quality.suites.counting import figures
from gamelake.quality.suites.expectations import Expectation, SuiteName, ValidationSuite, Weight
from gamelake.quality.suites.lost_records import (
    BATCH,
    COUNTED_DDL,
    OFFSET,
    PARTITION,
    RECORDS,
    BatchCoordinates,
    CountByBatch,
    RecordsOfBatch,
    find_unexplained,
)
from gamelake.quality.suites.validations import ExpectationResult, ValidationRun

_EQUAL = Bounds(0, 0)
_NAMED = 3
_COORDINATES = ("partition", "offset")
_SETTLED_IN = {
    SILVER_EVENTS: ("kafka_partition", "kafka_offset"),
    QUARANTINE: ("kafka_partition", "kafka_offset"),
    DEAD_LETTERS: _COORDINATES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LakehouseTotals:
    """The totals of a lakehouse, from manifests and Delta logs; row counts include erased rows.

    Attributes:
        records: by offsets that were read, and in files.
        settled: rows of silver + dead letters + duplicates + quarantined + dropped.
        games_rows: rows of all games' silver tables.
        shared_rows: rows of silver/events.
        problems: the differences, one line each.
    """

    records: int
    settled: int
    bronze_rows: int
    games_rows: int
    shared_rows: int
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class Hop:
    """The difference between the two ends of a hop; 0 if they agree."""

    name: str
    expect: str
    apart: int
    detail: str = ""


def validate_hops(validations: ValidationRun, spark: SparkSession, hops: Sequence[Hop]) -> Iterator[ExpectationResult]:
    """Validate all hops as one suite."""
    expected = [
        Expectation(name=each.name, bounds=_EQUAL, weight=Weight.CRITICAL, expect=each.expect, owner="platform")
        for each in hops
    ]
    suite = ValidationSuite(name=SuiteName.HOPS, game="", table=BRONZE_EVENTS, expected=tuple(expected))
    details = {each.name: each.detail for each in hops}
    for outcome in validations.validate(suite, figures(spark, {each.name: each.apart for each in hops})):
        yield outcome.with_detail(details[outcome.expected.name])


def hops_of_totals(accounts: LakehouseTotals) -> Iterator[Hop]:
    """Yield the hops between totals of manifests and logs."""
    yield Hop(
        "records_reconcile",
        "each offset was taken once, and each file stands once in its table",
        len(accounts.problems),
        "; ".join(accounts.problems[:_NAMED]),
    )
    yield _difference("records_are_in_bronze", accounts.records, accounts.bronze_rows)
    yield _difference("records_are_settled", accounts.records, accounts.settled)
    yield _difference("games_rows_are_in_silver_events", accounts.games_rows, accounts.shared_rows)


def _difference(name: str, here: int, there: int) -> Hop:
    return Hop(name, name.replace("_", " "), here - there, f"{here:,} and {there:,}" if here != there else "")


@dataclass(frozen=True, slots=True)
class TableHops:
    """The hops of one day's records, by table contents; the day is that of the Kafka timestamps."""

    store: Store
    spark: SparkSession
    day: date

    def hops(self, batches: Sequence[BatchCoordinates]) -> Iterator[Hop]:
        """Compare the hops; `batches` are those of the day that still have manifests."""
        if has_log(self.store, BRONZE_EVENTS):
            yield self._lost(batches)
        if has_log(self.store, BRONZE_FILES):
            yield self._files()

    def _lost(self, batches: Sequence[BatchCoordinates]) -> Hop:
        """Records in bronze without an outcome."""
        unexplained = find_unexplained(self._by_batch(batches), batches)
        named = ", ".join(f"{partition}:{offset}" for partition, offset in unexplained.examples)
        return Hop(
            "bronze_records_came_to_something",
            "a record of bronze is in silver, quarantine or dead letters, or was a duplicate or dropped",
            unexplained.count,
            f"among them {named} (partition:offset)" if named else "",
        )

    def _by_batch(self, batches: Sequence[BatchCoordinates]) -> Mapping[int, RecordsOfBatch]:
        """The day's records in bronze that no other table has, by the index of their batch."""
        counted = self._unsettled().mapInArrow(CountByBatch.of(batches), COUNTED_DDL).groupBy(BATCH)
        rows = counted.agg(sf.sum(RECORDS), sf.min(sf.struct(PARTITION, OFFSET))).collect()
        return {int(row[0]): RecordsOfBatch(int(row[1]), (int(row[2][0]), int(row[2][1]))) for row in rows}

    def _unsettled(self) -> DataFrame:
        """The day's coordinates (topic, partition, offset) in bronze that no other table has."""
        bronze = self._table(BRONZE_EVENTS).where(sf.col("ingest_date") == sf.lit(self.day))
        bronze = bronze.select("topic", *_COORDINATES)
        ((least, most),) = bronze.agg(sf.min("offset"), sf.max("offset")).collect()
        for table, names in _SETTLED_IN.items():
            if has_log(self.store, table):
                partition, offset = (sf.col(name) for name in names)
                there = self._table(table).where(offset.between(sf.lit(least), sf.lit(most)))
                there = there.select(partition.alias("partition"), offset.alias("offset"))
                bronze = bronze.join(there, list(_COORDINATES), "left_anti")
        return bronze

    def _files(self) -> Hop:
        """Events of files in bronze, against the record counts in bronze/files."""
        on_day = sf.col("ingest_date") == sf.lit(self.day)
        ((said,),) = self._table(BRONZE_FILES).where(on_day).agg(sf.coalesce(sf.sum("records"), sf.lit(0))).collect()
        there = self._table(BRONZE_EVENTS).where(on_day & (sf.col("partition") < 0)).count()
        return _difference("files_are_their_records", int(said), there)

    def _table(self, table: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.store.location.child(table))

"""The lineage of the ingest job and the gold tables: only what is new, and columns as the SQL has them."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.errors import RegistryUnavailableError
from gamelake.observability.lineage import job_flows
from gamelake.observability.lineage.flow import (
    ColumnOrigin,
    FilesDataset,
    Flow,
    FlowEnd,
    Influence,
    RunKind,
    SchemaVersion,
    TableDataset,
    TopicDataset,
)
from gamelake.observability.lineage.gold import GoldLineage, derived_columns, flow_of
from gamelake.observability.lineage.ingest import IngestLineage, RegisteredVersions, from_files, from_kafka
from gamelake.privacy.erasure_records import ErasedTable, ErasureDone
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import FailedRefresh
from tests.support.manifests import a_manifest
from tests.unit.observability.lineage.tables import lake

SPEC = AggregateSpec(
    name="player_agg",
    group_by=("gamer_id",),
    refresh=Refresh.MERGE,
    columns={
        "events": "count(*)",
        "sessions": "count(*) FILTER (WHERE event_name = 'session_start')",
        "bookings": "sum(CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE event_name = 'purchase')",
    },
)
SOURCE = "silver/archery_events"


class Heard:
    """Keeps the flows that it gets."""

    def __init__(self) -> None:
        self.flows: list[Flow] = []

    def emit(self, *flows: Flow) -> None:
        self.flows.extend(flows)


def path_of(place: FlowEnd) -> str:
    assert isinstance(place.what, TableDataset)
    return place.what.path


def refresh(folder: Path) -> GoldRefresh:
    return GoldRefresh(lake(folder), SOURCE, SPEC.table("archery"), define(SPEC))


def batch(number: int, *entries: tuple[str, str, tuple[int, ...]]) -> BatchManifest:
    tables = tuple(
        TableFiles(table=table, partition_by=(), schema=schema, files=(), schema_ids=ids)
        for table, schema, ids in entries
    )
    return a_manifest(stream="s", batch_id=number, tables=tables)


def test_only_a_batch_with_a_new_table_or_schema_emits_lineage() -> None:
    heard = Heard()
    lineage = IngestLineage(heard, from_kafka(TopicDataset("kafka:9092", "events")), "q", RunKind.STREAMING)
    archery, bingo = ("silver/archery_events", "{}", (1,)), ("silver/bingo_events", "{}", (1,))

    lineage.begin([batch(0, archery)])
    for number, entries in enumerate([(archery,), (archery, bingo), (bingo,), (("silver/bingo_events", "{}", (2,)),)]):
        lineage.batch_committed(batch(number, *entries), 0.1, 0.1)

    outputs = [[(path_of(place), sorted(place.schema_ids)) for place in flow.outputs] for flow in heard.flows]
    assert outputs == [
        [("silver/archery_events", [1])],
        [("silver/archery_events", [1]), ("silver/bingo_events", [1])],
        [("silver/archery_events", [1]), ("silver/bingo_events", [1, 2])],
    ]
    assert [sorted(flow.inputs[0].schema_ids) for flow in heard.flows] == [[1], [1], [1, 2]]


def test_bronze_has_the_schemas_of_all_tables() -> None:
    heard = Heard()
    lineage = IngestLineage(heard, from_kafka(TopicDataset("kafka:9092", "events")), "q", RunKind.STREAMING)

    lineage.begin([batch(0, ("bronze/events", "{}", ()), ("silver/a_events", "{}", (1,)), ("silver/b", "{}", (3,)))])

    assert heard.flows[0].outputs[0].schema_ids == {1, 3}


def test_the_job_that_reads_files_comes_from_its_notifications_and_from_where_files_land() -> None:
    heard = Heard()
    job = from_files(TopicDataset("kafka:9092", "files.notifications"), FilesDataset("s3://landing"))

    IngestLineage(heard, job, "q", RunKind.STREAMING).begin([batch(0, ("silver/archery_events", "{}", (1,)))])

    (flow,) = heard.flows
    assert flow.job == "ingest_files"
    assert [place.what for place in flow.inputs] == [
        TopicDataset("kafka:9092", "files.notifications"),
        FilesDataset("s3://landing"),
    ]
    assert [place.schema_ids for place in flow.inputs] == [{1}, {1}]


def test_a_gold_column_comes_from_the_columns_that_its_sql_names() -> None:
    columns = {each.name: each for each in derived_columns(define(SPEC), SOURCE)}

    origins = {
        name: [(origin.column, origin.influence) for origin in column.origins] for name, column in columns.items()
    }
    assert origins == {
        "gamer_id": [("gamer_id", Influence.IDENTITY)],
        "events": [],
        "sessions": [("event_name", Influence.FILTER)],
        "bookings": [("amount", Influence.AGGREGATION), ("event_name", Influence.FILTER)],
    }


def test_a_key_that_is_an_expression_comes_from_the_columns_that_it_reads(tmp_path: Path) -> None:
    spec = msgspec.structs.replace(SPEC, group_by=("gamer_id", "hour"), keys={"hour": "date_trunc('hour', event_time)"})
    flow = flow_of(GoldRefresh(lake(tmp_path), SOURCE, spec.table("archery"), define(spec)), RunKind.STREAMING)

    [made] = flow.outputs
    by_name = {each.name: each for each in made.columns}
    assert by_name["hour"].origins == (ColumnOrigin(SOURCE, "event_time", Influence.TRANSFORMATION),)
    assert [each.column for each in made.row_origins] == ["gamer_id", "event_time"]


def test_a_gold_table_is_a_job_of_its_own_with_its_sql(tmp_path: Path) -> None:
    flow = flow_of(refresh(tmp_path), RunKind.STREAMING)

    assert flow.job == "gold.archery_player_agg"
    assert "FROM silver.archery_events" in flow.sql
    assert flow.sql.count("COUNT(*)") == 2


def test_gold_emits_the_lineage_of_the_tables_of_a_run_and_of_no_others(tmp_path: Path) -> None:
    heard = Heard()
    lineage = GoldLineage(heard, RunKind.STREAMING)
    archery = refresh(tmp_path)

    lineage.table_refreshed(archery, FailedRefresh(table=archery.table, reason="no such column"))
    lineage.table_refreshed(archery, Refreshed(table=archery.table, outcome=RefreshOutcome.NO_SOURCE))
    lineage.run_finished(0.1)
    assert heard.flows == []

    lineage.table_refreshed(archery, Refreshed(table=archery.table, outcome=RefreshOutcome.UNCHANGED))
    lineage.run_finished(0.1)
    lineage.mark_alive()
    assert [flow.job for flow in heard.flows] == ["gold.archery_player_agg"]


class FakeRegistry:
    """Responds like a registry, unless it is away."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.is_away = False

    def versions(self, schema_id: int) -> list[tuple[str, int]]:
        self.asked.append(schema_id)
        if self.is_away:
            raise RegistryUnavailableError("away")
        return [("another-value", 9), ("events-value", schema_id + 10)]


def test_a_schemas_version_is_asked_for_once_and_by_the_topics_name() -> None:
    registry = FakeRegistry()
    versions = RegisteredVersions(registry, "events")

    registry.is_away = True
    assert versions({1}) == {}
    registry.is_away = False
    assert versions({1, 2}) == {1: SchemaVersion("events-value", 11), 2: SchemaVersion("events-value", 12)}
    assert versions({2, 1}).keys() == {1, 2}
    assert registry.asked == [1, 1, 2]


def test_an_erasure_emits_the_tables_that_it_removed_rows_from() -> None:
    def erased(*rows: int) -> ErasureDone:
        tables = tuple(
            ErasedTable(table=f"silver/{place}_events", rows=each, versions=(), files=0)
            for place, each in enumerate(rows)
        )
        return ErasureDone(run="r", finished_at=datetime.now(UTC), forgotten=(1,), tables=tables)

    emitter = job_flows.flow_of(erased(3, 0))

    assert emitter is not None
    assert [path_of(place) for place in (*emitter.inputs, *emitter.outputs)] == ["silver/0_events"] * 2
    assert job_flows.flow_of(erased(0)) is None

"""Features that other programs switch on: batches continue where an append satisfies the protocol."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gamelake.delta.appends import BatchTransaction, schema_of
from gamelake.delta.log.codec import Action, decode_entry, encode_entry, entry_path, entry_versions, live_files
from gamelake.delta.log.table_features import TableDemands, TableUse
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.ledger.reconciliation import upgrades, vector_problems
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.errors import StoreError, TableRefusedError
from gamelake.objects.store import Store
from gamelake.observability.health import HealthVerdict, examine_tables
from gamelake.scans.datasets import dataset
from tests.support.player_tables import SILVER, an_entry, append, append_rows, store_in

NAME = SILVER.name
READERS = frozenset({"deletionVectors", "v2Checkpoint", "vacuumProtocolCheck", "columnMapping", "timestampNtz"})
APPENDED_TO = (
    "appendOnly", "changeDataFeed", "deletionVectors", "domainMetadata", "v2Checkpoint", "vacuumProtocolCheck",
    "checkpointProtection", "invariants", "checkConstraints", "generatedColumns", "columnMapping", "identityColumns",
    "allowColumnDefaults", "inCommitTimestamp",
)  # fmt: skip
REFUSED = ("rowTracking", "icebergCompatV1", "icebergCompatV2", "clustering", "typeWidening", "someFutureFeature")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A table with one row, that its stream made."""
    store = store_in(tmp_path)
    with DeltaTables(store.location) as tables:
        append(tables, store, SILVER, 0, ["a" * 32])
    return store


def commit(store: Store, *actions: Action) -> None:
    store.put(entry_path(NAME, entry_versions(store, NAME)[-1] + 1), encode_entry(actions))


def players_in(store: Store) -> Counter[str]:
    """Return how many rows each player has; read from the files, since no reader has all features."""
    handle = open_table(store.location, NAME)
    rows = dataset(store.location, NAME, schema_of(handle), live_files(handle)).to_table(columns=["gamer_id"])
    return Counter(rows["gamer_id"].to_pylist())


def protocol(*features: str) -> Action:
    readers = sorted(READERS & set(features))
    versions: dict[str, Any] = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    return {
        "protocol": {**versions, "writerFeatures": list(features), **({"readerFeatures": readers} if readers else {})}
    }


def metadata(store: Store, properties: Mapping[str, str], of_a_column: Mapping[str, str] | None = None) -> Action:
    """The table's metadata with other properties, and with metadata of its first column."""
    [found] = [each["metaData"] for each in decode_entry(store.get(entry_path(NAME, 0)) or b"") if "metaData" in each]
    schema = json.loads(found["schemaString"])
    schema["fields"][0]["metadata"] = dict(of_a_column or {})
    return {"metaData": {**found, "configuration": dict(properties), "schemaString": json.dumps(schema)}}


@pytest.mark.parametrize("feature", APPENDED_TO)
def test_a_batch_is_appended_to_a_table_with_a_feature_that_asks_nothing_of_an_append(
    store: Store, feature: str
) -> None:
    with DeltaTables(store.location) as following:
        append(following, store, SILVER, 1, ["b" * 32])
        commit(store, protocol(feature))
        append(following, store, SILVER, 2, ["c" * 32])
        with DeltaTables(store.location) as opening:
            append(opening, store, SILVER, 3, ["d" * 32])

    assert players_in(store) == dict.fromkeys([letter * 32 for letter in "abcd"], 1)
    assert open_table(store.location, NAME).protocol().writer_features == [feature]


@pytest.mark.parametrize("feature", ["deletionVectors", "v2Checkpoint", "domainMetadata", "changeDataFeed"])
def test_such_a_table_gets_new_columns_and_log_checkpoints(store: Store, feature: str) -> None:
    commit(store, protocol(feature))
    with DeltaTables(store.location) as tables:
        append_rows(tables, store, 1, pa.table({"event_time": pa.array([1], pa.timestamp("us", "UTC")), "level": [7]}))
    open_table(store.location, NAME).create_checkpoint()

    assert schema_of(open_table(store.location, NAME)).names == ["event_time", "gamer_id", "event_date", "level"]
    assert len(live_files(open_table(store.location, NAME))) == 2
    assert open_table(store.location, NAME).protocol().writer_features == [feature]


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_a_batch_is_appended_to_a_table_of_an_older_protocol_whose_features_are_not_used(
    store: Store, version: int
) -> None:
    commit(store, {"protocol": {"minReaderVersion": 1, "minWriterVersion": version}})

    with DeltaTables(store.location) as tables:
        append(tables, store, SILVER, 1, ["b" * 32])

    assert players_in(store) == {"a" * 32: 1, "b" * 32: 1}


@pytest.mark.parametrize("feature", REFUSED)
def test_other_features_are_refused_with_their_name(store: Store, feature: str) -> None:
    with DeltaTables(store.location) as tables:
        append(tables, store, SILVER, 1, ["b" * 32])
        commit(store, protocol("appendOnly", feature))
        with pytest.raises(StoreError, match=f"{NAME} has {feature} .*Drop the table feature"):
            append(tables, store, SILVER, 2, ["c" * 32])


def test_a_table_that_forgets_which_batches_it_has_is_refused(store: Store) -> None:
    forgets = {"delta.setTransactionRetentionDuration": "interval 7 days"}
    with DeltaTables(store.location) as following:
        append(following, store, SILVER, 1, ["b" * 32])
        commit(store, metadata(store, forgets))
        for tables in (following, DeltaTables(store.location)):
            with pytest.raises(TableRefusedError, match=r"setTransactionRetentionDuration .*unset the property"):
                append(tables, store, SILVER, 2, ["c" * 32])
        commit(store, metadata(store, {}))
        append(following, store, SILVER, 2, ["c" * 32])
    assert len(players_in(store)) == 3


def test_a_batch_of_another_generation_is_refused_as_those_of_this_one(store: Store) -> None:
    other = BatchTransaction("query-1", 0)
    with DeltaTables(store.location) as tables:
        append(tables, store, SILVER, 1, ["b" * 32])
        commit(store, protocol("rowTracking"))
        with pytest.raises(TableRefusedError, match="has rowTracking"):
            tables.append(an_entry(store, SILVER, ["c" * 32]), other)


@pytest.mark.parametrize(
    ("feature", "properties", "of_a_column"),
    [
        ("invariants", {}, {"delta.invariants": '{"expression": {"expression": "x > 3"}}'}),
        ("generatedColumns", {}, {"delta.generationExpression": "1"}),
        ("identityColumns", {}, {"delta.identity.start": "1"}),
        ("allowColumnDefaults", {}, {"CURRENT_DEFAULT": "1"}),
        ("checkConstraints", {"delta.constraints.positive": "level > 0"}, {}),
        ("columnMapping", {"delta.columnMapping.mode": "name"}, {}),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}, {}),
    ],
)
def test_a_feature_is_refused_once_a_column_or_a_property_uses_it(
    store: Store, feature: str, properties: Mapping[str, str], of_a_column: Mapping[str, str]
) -> None:
    with DeltaTables(store.location) as tables:
        append(tables, store, SILVER, 1, ["b" * 32])
        commit(store, protocol(feature))
        append(tables, store, SILVER, 2, ["c" * 32])
        commit(store, metadata(store, properties, of_a_column))
        with pytest.raises(StoreError, match=f"has {feature}"):
            append(tables, store, SILVER, 3, ["d" * 32])


def delete_by_vector(store: Store, rows: int) -> None:
    """Delete rows of the table's first file, as Spark does with deletion vectors."""
    [add] = [each["add"] for each in decode_entry(store.get(entry_path(NAME, 0)) or b"") if "add" in each]
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": rows}
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    commit(store, protocol("deletionVectors"))
    commit(store, {"remove": remove}, {"add": {**add, "deletionVector": vector}})


def test_the_reconciliation_counts_rows_that_deletion_vectors_delete(store: Store) -> None:
    assert list(vector_problems(TableLog.read(store, NAME))) == []

    delete_by_vector(store, 461)

    [problem] = vector_problems(TableLog.read(store, NAME))
    assert problem.startswith("461 rows are deleted by deletion vectors")


def test_the_reconciliation_names_a_protocol_that_another_program_has_upgraded(store: Store) -> None:
    assert list(upgrades(TableLog.read(store, NAME))) == []

    commit(store, protocol("changeDataFeed", "rowTracking"))

    [upgrade] = upgrades(TableLog.read(store, NAME))
    assert upgrade == "version 1 set reader version 1 and writer version 7 with changeDataFeed, rowTracking"


def test_the_doctor_names_upgrades_and_fails_those_that_stop_batches(store: Store) -> None:
    delete_by_vector(store, 461)
    well, upgraded = examine_tables(store, [NAME])
    assert (well.verdict, upgraded.verdict) == (HealthVerdict.PASS, HealthVerdict.WARN)
    assert "deletionVectors; deletion vectors delete 461 rows" in upgraded.found

    commit(store, protocol("rowTracking"))
    _, stopped = examine_tables(store, [NAME])
    assert stopped.verdict is HealthVerdict.FAIL
    assert "no batch can be appended because of rowTracking" in stopped.found


def test_a_table_with_deletion_vectors_is_not_compacted_since_deleted_rows_would_come_back(store: Store) -> None:
    demands = TableDemands.of(open_table(store.location, NAME))
    assert [demands.obstacles(use) for use in TableUse] == [[], [], []]

    commit(store, protocol("changeDataFeed", "deletionVectors"))

    demands = TableDemands.of(open_table(store.location, NAME))
    assert demands.obstacles(TableUse.APPEND) == []
    assert demands.obstacles(TableUse.COMPACT) == ["deletionVectors"]
    assert demands.obstacles(TableUse.REWRITE) == ["changeDataFeed", "deletionVectors"]


def test_vacuum_leaves_deletion_vectors_and_change_files_to_the_programs_that_wrote_them(store: Store) -> None:
    for name in ("deletion_vector_0f1e.bin", "_change_data/event_date=2026-01-01/cdc-1.parquet", "part-orphan.parquet"):
        store.put(f"{NAME}/{name}", b"x")

    [found] = TableVacuum(store, NAME, datetime.now(UTC) + timedelta(days=1)).unreferenced()

    assert [each.file.path for each in found] == [f"{NAME}/part-orphan.parquet"]

"""A put that the store has done, and whose reply is lost: nothing is lost with it, and nothing is done twice."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.tables import CommitOutcome, DeltaTables
from gamelake.ledger.manifests import Manifests
from gamelake.objects.store import Location, Store
from tests.embedded.sending import Sender
from tests.stack.fault_proxy import Exchange, Fault, FaultProxy
from tests.stack.object_store import ObjectStore
from tests.stack.rows import commits, entry_of, write_row
from tests.stack.s3_lakehouse import S3Lakehouse, Services
from tests.support.manifests import a_manifest

pytestmark = pytest.mark.object_store

REFUSED = 412


@pytest.fixture
def through_proxy(object_store: ObjectStore, bucket: str, proxy: FaultProxy) -> Location:
    """A lakehouse in the test's bucket, reached through the proxy."""
    return object_store.at(proxy.url).location(f"s3://{bucket}")


def refused(proxy: FaultProxy, path_part: str) -> list[Exchange]:
    """Retries of puts that the store refused because they had been done."""
    return [each for each in proxy.exchanges if each.status == REFUSED and path_part in each.path]


@pytest.mark.slow
def test_sparks_commit_is_made_once(
    spark_through_proxy: SparkSession, through_proxy: Location, bucket: str, proxy: FaultProxy
) -> None:
    table = through_proxy.child("t")
    for number in range(4):
        proxy.lose(Fault.REPLY_LOST, "PUT", f"{bucket}/t/_delta_log/{number:020d}.json")
        spark_through_proxy.range(number, number + 1, 1, 1).write.format("delta").mode("append").save(table)

    rows = spark_through_proxy.read.format("delta").load(table).collect()
    assert sorted(row.id for row in rows) == [0, 1, 2, 3]
    assert commits(Store(through_proxy), "t") == [0, 1, 2, 3]
    assert len(refused(proxy, f"{bucket}/t/_delta_log")) == 4


def test_our_own_append_is_made_once_and_known_as_made(through_proxy: Location, bucket: str, proxy: FaultProxy) -> None:
    with DeltaTables(through_proxy) as tables:
        for number in range(4):
            entry = entry_of("t", write_row(Store(through_proxy), "t", "own", number))
            proxy.lose(Fault.REPLY_LOST, "PUT", f"{bucket}/t/_delta_log/{number:020d}.json")

            assert tables.append(entry, BatchTransaction("own", number)) is CommitOutcome.COMMITTED

    rows = DeltaTable(through_proxy.child("t"), storage_options=dict(through_proxy.options)).to_pyarrow_table()
    assert sorted(rows["number"].to_pylist()) == [0, 1, 2, 3]
    assert commits(Store(through_proxy), "t") == [0, 1, 2, 3]
    assert len(refused(proxy, f"{bucket}/t/_delta_log")) == 4


def test_columns_are_added_once(through_proxy: Location, bucket: str, proxy: FaultProxy) -> None:
    store = Store(through_proxy)
    with DeltaTables(through_proxy) as tables:
        tables.append(entry_of("t", write_row(store, "t", "own", 0)), BatchTransaction("own", 0))
        wider = {"colour": pa.array(["red"])}
        proxy.lose(Fault.REPLY_LOST, "PUT", f"{bucket}/t/_delta_log/{1:020d}.json")

        tables.append(entry_of("t", write_row(store, "t", "own", 1, wider), wider), BatchTransaction("own", 1))

    rows = DeltaTable(through_proxy.child("t"), storage_options=dict(through_proxy.options)).to_pyarrow_table()
    assert sorted(zip(rows["number"].to_pylist(), rows["colour"].to_pylist(), strict=True)) == [(0, None), (1, "red")]
    assert commits(store, "t") == [0, 1, 2]


def test_a_manifest_stands_as_the_one_that_was_put(through_proxy: Location, bucket: str, proxy: FaultProxy) -> None:
    manifests = Manifests(Store(through_proxy), "stream")
    first, second = (a_manifest(stream="stream", batch_id=7, query_id=query) for query in ("first", "second"))
    proxy.lose(Fault.REPLY_LOST, "PUT", f"{bucket}/_gamelake/streams/stream/manifests")

    assert manifests.settle(first) == first
    assert manifests.settle(second) == first
    assert len(proxy.faults) == 1


@pytest.fixture
def lakehouse(
    object_store: ObjectStore, bucket: str, proxy: FaultProxy, own_services: Services, tmp_path: Path
) -> S3Lakehouse:
    """A lakehouse whose job reaches its store through the proxy."""
    lakehouse = S3Lakehouse.on(object_store, f"s3://{bucket}/lake", tmp_path, own_services)
    lakehouse.jobs_go_through(proxy.url)
    lakehouse.settings["GAMELAKE_MAX_OFFSETS_PER_TRIGGER"] = "60"
    return lakehouse


# A store that has done what it did not answer is the harder case.
@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, pytest.param(Fault.REQUEST_LOST, marks=pytest.mark.slow)])
def test_the_job_reconciles_when_puts_fail(
    lakehouse: S3Lakehouse, own_sender: Sender, proxy: FaultProxy, fault: Fault
) -> None:
    own_sender.send_events(100, "Archery")
    own_sender.send_events(80, "Bingo")
    for path_part in ("_delta_log", "manifests", "generations", "offsets/", "commits/", "parquet", "schemas"):
        proxy.lose(fault, "PUT", path_part, times=3)

    lakehouse.ingest()

    assert len(proxy.faults) >= 3 * 5
    assert lakehouse.event_ids() == Counter(own_sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []

"""Rows 6 to 9 of the fault matrix on an object store: a driver dies by SIGKILL while it writes down how far it is.

What it had sent arrives after all, when the next driver is long at work: the worst that a network can do.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gamelake.objects.store import Store
from tests.embedded.sending import Sender
from tests.stack.fault_proxy import FaultProxy, Hold
from tests.stack.object_store import ObjectStore
from tests.stack.s3_lakehouse import S3Lakehouse, Services
from tests.support.eventually import eventually
from tests.support.process_table import descendants_of, still_running

pytestmark = pytest.mark.object_store

# What a batch writes between its files and its end, except the tables' own logs.
STEPS = ("/offsets/0", f"/manifests/{0:012d}", "/commits/0")
PUT, REFUSED = 200, 412
JOB_SECONDS = 180
SECONDS_TO_MEET = 60


@pytest.fixture
def lakehouse(
    object_store: ObjectStore, bucket: str, proxy: FaultProxy, own_services: Services, tmp_path: Path
) -> S3Lakehouse:
    """A lakehouse whose jobs reach its store through the proxy."""
    lakehouse = S3Lakehouse.on(object_store, f"s3://{bucket}/lake", tmp_path, own_services)
    lakehouse.jobs_go_through(proxy.url)
    return lakehouse


def ingest_killed_while_putting(lakehouse: S3Lakehouse, proxy: FaultProxy, path_part: str) -> Hold:
    """Kill the job, its JVM and its workers, and keep its last put on the way."""
    hold = proxy.hold("PUT", path_part)
    job = lakehouse.start()
    try:
        eventually(lambda: hold.arrived.is_set() or job.process.poll() is not None, JOB_SECONDS)
        assert hold.arrived.is_set(), job.log_text()[-3000:]
        family = descendants_of(job.process.pid)
        for pid in family:
            os.kill(pid, signal.SIGKILL)
    finally:
        job.process.kill()
    assert job.wait() != 0
    eventually(lambda: not still_running(family))
    return hold


OURS = "dev.gamelake.storage.ConditionalPutCheckpointFileManager"
SPARKS_DEFAULT = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint's folder as a driver sees it that has one of Spark's managers of such files."""

    spark: SparkSession
    manager: str
    uri: str

    def writing(self, name: str, content: bytes) -> Callable[[], None]:
        """Write a file, except its end: what is given puts it there."""
        jvm: Any = self.spark.sparkContext._jvm  # noqa: SLF001 # no other way
        configuration = self.spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        folder = jvm.org.apache.hadoop.fs.Path(self.uri)
        manager = reduce(getattr, self.manager.split("."), jvm)(folder, configuration)
        manager.mkdirs(folder)
        file = manager.createAtomic(jvm.org.apache.hadoop.fs.Path(folder, name), False)
        file.write(bytearray(content))
        close: Callable[[], None] = file.close
        return close


def plan_the_same_batch(checkpoint: Checkpoint, proxy: FaultProxy) -> None:
    """The slower driver has found batch 7 unplanned, and the faster one plans it before its put."""
    slower = checkpoint.writing("7", b"slower")
    put = proxy.hold("PUT", "/offsets/7")
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(slower)
        try:
            assert put.arrived.wait(SECONDS_TO_MEET)
            checkpoint.writing("7", b"faster")()
        finally:
            put.released.set()
        closing.result(SECONDS_TO_MEET)


@pytest.mark.slow
def test_with_sparks_own_manager_a_driver_overwrites_what_another_has_planned(
    spark_through_proxy: SparkSession, object_store: ObjectStore, bucket: str, proxy: FaultProxy
) -> None:
    plan_the_same_batch(Checkpoint(spark_through_proxy, SPARKS_DEFAULT, f"s3://{bucket}/offsets"), proxy)

    assert Store(object_store.location(f"s3://{bucket}")).get("offsets/7") == b"slower"


def test_with_ours_the_driver_that_comes_too_late_gets_an_error(
    spark_through_proxy: SparkSession, object_store: ObjectStore, bucket: str, proxy: FaultProxy
) -> None:
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        plan_the_same_batch(Checkpoint(spark_through_proxy, OURS, f"s3://{bucket}/offsets"), proxy)

    assert Store(object_store.location(f"s3://{bucket}")).get("offsets/7") == b"faster"


def statuses(proxy: FaultProxy, path_part: str) -> list[int]:
    """Return how the store has answered puts, in the order in which they reached it."""
    return [each.status for each in list(proxy.exchanges) if each.method == "PUT" and path_part in each.path]


def test_a_driver_killed_while_it_writes_its_checkpoint_loses_nothing_and_doubles_nothing(
    lakehouse: S3Lakehouse, own_sender: Sender, proxy: FaultProxy
) -> None:
    own_sender.send_events(60, "Archery")
    own_sender.send_events(40, "Bingo")
    late = {step: ingest_killed_while_putting(lakehouse, proxy, step) for step in STEPS}

    with lakehouse.ingesting():
        eventually(lambda: [statuses(proxy, step) for step in STEPS] == [[PUT]] * 3, JOB_SECONDS)
        for put in late.values():
            put.released.set()
        eventually(lambda: [statuses(proxy, step) for step in STEPS] == [[PUT, REFUSED]] * 3)
        lakehouse.await_rows("silver/events", own_sender.send_events(30, "Archery"))

    assert lakehouse.event_ids() == Counter(own_sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []

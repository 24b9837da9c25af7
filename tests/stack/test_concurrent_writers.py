"""One table on an object store, written by several processes and several engines at the same time."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.ledger.held_tables import stream_tables
from gamelake.objects.store import Location, Store
from tests.stack.fault_proxy import FaultProxy
from tests.stack.object_store import ObjectStore
from tests.stack.race import Writer, race
from tests.stack.rows import commits
from tests.stack.writers import TABLE, Way, append_as_the_fan_out, append_by_spark

pytestmark = pytest.mark.object_store

# Eight loops: two drivers of Spark with two each, two processes of delta-rs and two of the fan-out's commits.
WRITERS = (
    *(Writer(f"spark{number}", Way.SPARK, commits=5, loops=2) for number in range(2)),
    *(Writer(f"delta_rs{number}", Way.DELTA_RS, commits=60, longest_pause=0.5) for number in range(2)),
    *(Writer(f"fan_out{number}", Way.FAN_OUT, commits=55, longest_pause=0.5) for number in range(2)),
)
FIRST = ("first", 0)
SECONDS_TO_MEET = 180

# A duel: the faster driver becomes warm by version 1, then both want version 2.
CONTESTED = 2
WARM, FASTER, SLOWER = ("faster-0", 0), ("faster-0", 1), ("slower", 0)


@pytest.fixture
def uri(bucket: str) -> str:
    """A lakehouse in the test's bucket."""
    return f"s3://{bucket}/lake"


@pytest.fixture
def lakehouse(object_store: ObjectStore, uri: str) -> Location:
    """A lakehouse whose table has one row, and exists before the race."""
    location = object_store.location(uri)
    with stream_tables(location) as tables:
        append_as_the_fan_out(tables, location, *FIRST)
    return location


def rows(lakehouse: Location) -> Counter[tuple[str, int]]:
    """The table's rows, and how often each is there."""
    table = DeltaTable(lakehouse.child(TABLE), storage_options=dict(lakehouse.options)).to_pyarrow_table()
    return Counter(zip(table["writer"].to_pylist(), table["number"].to_pylist(), strict=True))


def engines(lakehouse: Location) -> list[str]:
    """The writer of each version, in order."""
    store = Store(lakehouse)
    entries = [store.get(f"{TABLE}/_delta_log/{version:020d}.json") or b"" for version in commits(store, TABLE)]
    actions = [json.loads(line) for entry in entries for line in entry.splitlines()]
    return [action["commitInfo"]["engineInfo"].split("/")[0] for action in actions if "commitInfo" in action]


@pytest.mark.slow
def test_eight_writers_of_three_engines_make_every_version_once_and_lose_no_row(
    object_store: ObjectStore, uri: str, lakehouse: Location, tmp_path: Path
) -> None:
    race(WRITERS, object_store.variables(uri), tmp_path)

    assert rows(lakehouse) == Counter([FIRST, *(row for writer in WRITERS for row in writer.rows)])
    assert commits(Store(lakehouse), TABLE) == list(range(251))
    made_by = engines(lakehouse)
    assert len(set(made_by)) == 3
    # They have met: engines that had their turns one after the other would change twice, and the eight loops' first
    # commits, before all of them are warm, change 16 times at most. On a busy machine each has longer turns.
    assert sum(one != other for one, other in pairwise(made_by)) > 20


@dataclass(frozen=True, slots=True)
class Duel:
    """Two drivers of Spark and one free version; the slower one's put is held back while the faster one commits."""

    slower: SparkSession
    object_store: ObjectStore
    proxy: FaultProxy
    lakehouse: Location
    logs: Path

    def fight(self, way: Way) -> None:
        """Returns when both commits have returned."""
        put = self.proxy.hold("PUT", f"{TABLE}/_delta_log/{CONTESTED:020d}.json")
        through_proxy = self.object_store.at(self.proxy.url).location(self.lakehouse.uri)
        with ThreadPoolExecutor(1) as pool:
            commits = []

            def start_slower() -> None:
                commits.append(pool.submit(append_by_spark, self.slower, way, through_proxy, *SLOWER))
                assert put.arrived.wait(SECONDS_TO_MEET)

            variables = self.object_store.variables(self.lakehouse.uri)
            try:
                race([Writer("faster", way, commits=2)], variables, self.logs, before=start_slower)
            finally:
                put.released.set()
            commits[0].result(SECONDS_TO_MEET)


@pytest.fixture
def duel(
    spark_through_proxy: SparkSession, object_store: ObjectStore, proxy: FaultProxy, lakehouse: Location, tmp_path: Path
) -> Duel:
    """A duel over the version that the faster driver makes when it is warm."""
    return Duel(spark_through_proxy, object_store, proxy, lakehouse, tmp_path)


@pytest.mark.slow
def test_with_deltas_default_log_store_a_driver_overwrites_the_commit_of_another(duel: Duel) -> None:
    duel.fight(Way.SPARK_DEFAULT)

    assert commits(Store(duel.lakehouse), TABLE) == [0, 1, CONTESTED]
    assert rows(duel.lakehouse) == Counter([FIRST, WARM, SLOWER])


@pytest.mark.slow
def test_with_ours_the_driver_that_comes_too_late_takes_the_next_version(duel: Duel) -> None:
    duel.fight(Way.SPARK)

    assert commits(Store(duel.lakehouse), TABLE) == [0, 1, CONTESTED, CONTESTED + 1]
    assert rows(duel.lakehouse) == Counter([FIRST, WARM, FASTER, SLOWER])

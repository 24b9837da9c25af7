"""A store that is far away: what does not depend on each other is asked of it at once."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from gamelake.contract.games import load_games
from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.ledger.held_tables import stream_tables
from gamelake.objects.store import Location, Store
from gamelake.scans.datasets import dataset
from gamelake.streaming.driver.batch_commits import BatchCommits
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.plan import WrittenFile
from gamelake.streaming.tasks.chunk import ChunkWriter, TableDay
from tests.stack.latency_proxy import FarStore, Latency, far_store
from tests.stack.object_store import ROOT, ObjectStore
from tests.support.manifests import a_manifest

pytestmark = pytest.mark.object_store

TABLES = [f"silver/game_{number:02d}_events" for number in range(60)]


@pytest.fixture
def far(object_store: ObjectStore) -> Iterator[FarStore]:
    # So long that all requests which do not wait for each other are on their way, however busy the machine is.
    with far_store(object_store.endpoint, Latency(seconds=2.0, slow_seconds=2.0)) as far:
        yield far


@pytest.fixture
def lakehouse(object_store: ObjectStore, bucket: str, far: FarStore) -> Location:
    return object_store.at(far.url).location(f"s3://{bucket}/lake")


@pytest.fixture
def near(object_store: ObjectStore, bucket: str) -> Location:
    """The same lakehouse without the proxy: what is only checked need not be far."""
    return object_store.location(f"s3://{bucket}/lake")


def written(lakehouse: Location) -> tuple[WrittenFile, ...]:
    """Write a file for each table, as a task does."""
    writer = ChunkWriter(Store(lakehouse), load_games(ROOT / "contracts/games.yaml"), threads=2)
    rows = pa.RecordBatch.from_arrays([pa.nulls(5, each.type) for each in COMMON_SCHEMA], schema=COMMON_SCHEMA)
    for table in TABLES:
        writer.add(TableDay(table, 20_000), rows, 1)
    return writer.write()


def test_the_files_and_the_commits_of_a_batch_do_not_wait_for_each_other(
    lakehouse: Location, near: Location, far: FarStore
) -> None:
    files = written(lakehouse)

    assert far.most_at_once > len(TABLES) // 2
    entries = TableColumns({}).agree(files)
    first, second = (a_manifest(stream="stream", batch_id=batch, tables=entries) for batch in (0, 1))
    with stream_tables(lakehouse) as tables:
        commits = BatchCommits(Stream(Store(lakehouse), first.stream, "events"), tables)
        commits.commit(first)
        far.count_anew()
        commits.commit(second)

        assert far.most_at_once > len(TABLES) // 2
    with stream_tables(near) as tables:
        assert {tables.transaction_version(table, first.app_id) for table in TABLES} == {1}


def test_a_small_data_file_takes_one_request(lakehouse: Location, near: Location, far: FarStore) -> None:
    entries = TableColumns({}).agree(written(near))
    manifest = a_manifest(stream="stream", tables=entries)
    with stream_tables(near) as tables:
        BatchCommits(Stream(Store(near), manifest.stream, "events"), tables).commit(manifest)
    handle = open_table(near, TABLES[0])
    (file,) = live_files(handle)

    rows = dataset(lakehouse, TABLES[0], schema_of(handle), [file]).to_table()

    assert rows.num_rows == 5
    assert far.requests == 1

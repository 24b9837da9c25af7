"""A task that is run on demand in the stack compacts files on its object store with its key alone."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.objects.store import Store
from tests.stack.platform import Stack
from tests.stack.prometheus import Prometheus
from tests.support.eventually import eventually

TASK = "compact_daily"
FILES = 40
# Two polls of the tasks by the job, and two scrapes.
SHOWN_SECONDS = 60


@pytest.fixture
def crumbs(stack: Stack) -> Iterator[str]:
    """A table, which gold does not follow, with small files of a day that is over; it is gone after the test."""
    store, day = Store(stack.lakehouse), (datetime.now(UTC) - timedelta(days=3)).date().isoformat()
    table = f"bronze/compacted_{uuid.uuid4().hex[:8]}"
    schema = delta_schema_json(COMMON_SCHEMA.append(pa.field("event_date", pa.date32())))
    entry = TableFiles(
        table=table,
        partition_by=("event_date",),
        schema=schema,
        files=tuple(a_file(store, table, day, number) for number in range(FILES)),
    )
    with DeltaTables(store.location) as tables:
        tables.append(entry, BatchTransaction("test", 0))
    yield table
    for path in [*store.paths(table), *store.paths(f"_gamelake/leases/{table}")]:
        store.delete(path)


def a_file(store: Store, table: str, day: str, number: int) -> DataFile:
    columns = {"event_id": [f"{number}"], "event_name": ["level_completed"]}
    arrays = [pa.array(columns.get(field.name, [None]), field.type) for field in COMMON_SCHEMA]
    return write_rows(store, table, pa.Table.from_arrays(arrays, schema=COMMON_SCHEMA), {"event_date": day})


def ids_in(stack: Stack, table: str) -> list[str]:
    handle = open_table(stack.lakehouse, table)
    return sorted(handle.to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist())


def test_a_task_that_is_run_on_demand_compacts_on_the_object_store_and_prometheus_sees_it(
    stack: Stack, crumbs: str
) -> None:
    stack.await_health("maintenance-scheduler")
    asked_at = datetime.now(UTC).timestamp()
    before = ids_in(stack, crumbs)

    printed = stack.compose(
        "exec", "--no-TTY", "maintenance-scheduler", "python", "-m", "jobs.maintenance", "--once", TASK
    )

    [reported] = json.loads(printed)
    assert (reported["task"], reported["outcome"]) == (TASK, "ok")
    assert reported["compacted_files"] >= FILES
    assert len(open_table(stack.lakehouse, crumbs).file_uris()) == 1
    assert ids_in(stack, crumbs) == before
    prometheus = Prometheus()
    success = f'gamelake_maintenance_task_last_success_timestamp_seconds{{task="{TASK}"}}'
    compacted = f'gamelake_maintenance_compacted_files_total{{task="{TASK}"}}'
    eventually(lambda: any(value > asked_at for value in prometheus.values(success)), timeout=SHOWN_SECONDS)
    eventually(lambda: any(value >= FILES for value in prometheus.values(compacted)), timeout=SHOWN_SECONDS)


def test_the_job_knows_what_kafka_keeps_and_that_it_fits(stack: Stack) -> None:
    stack.await_health("maintenance-scheduler")
    prometheus = Prometheus()

    eventually(
        lambda: prometheus.values('gamelake_maintenance_retention_seconds{span="kafka"}') == [168 * 3_600.0],
        timeout=SHOWN_SECONDS,
    )
    assert set(prometheus.values("gamelake_maintenance_retention_sufficient")) == {1.0}

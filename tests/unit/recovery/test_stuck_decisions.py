"""A decided batch or replay with a column of another type than its table's is committed without that column."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.reconciliation import reconcile
from gamelake.ledger.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.model.errors import IncompatibleSchemaError
from gamelake.model.failpoints import Failpoints
from gamelake.objects.store import Store
from gamelake.recovery.replay.runs import replay_run
from gamelake.recovery.stuck_decisions import StuckDecisions
from gamelake.streaming.driver.runner import finish_last_batch
from gamelake.streaming.driver.stream import Stream
from tests.support.manifests import files_of
from tests.unit.streaming.streams import TOPIC, TOPIC_ID
from tests.unit.streaming.streams import decide as settle

TABLE, OTHER = "silver/chess_events", "silver/events"


def entry(store: Store, table: str, *events: str, **score: pa.DataType) -> TableFiles:
    """A file of a table with these events, and perhaps a column `score`."""
    columns = {"event_id": pa.array(events, pa.string())}
    columns |= {name: pa.array(list(range(len(events)))).cast(kind) for name, kind in score.items()}
    return files_of(store, table, pa.table(columns))


@pytest.fixture
def tables(store: Store) -> DeltaTables:
    """The table has a column `score` of text, by another writer."""
    tables = stream_tables(store.location)
    tables.append(entry(store, TABLE, "other", score=pa.string()), BatchTransaction("other", 0))
    return tables


def decide(store: Store) -> Stream:
    """Decide a batch with a column `score` of numbers."""
    stream = Stream(store, "ingest_events", TOPIC)
    generation = stream.open(TOPIC_ID)
    settle(stream, generation, 0, 9)
    manifest = stream.last_manifest()
    assert manifest is not None
    entries = (entry(store, TABLE, "a", "b", score=pa.int64()), entry(store, OTHER, "a", "b"))
    stream.manifests.replace(msgspec.structs.replace(manifest, tables=entries))
    return stream


def rows(store: Store) -> dict[str, str | None]:
    """The scores of the table's events."""
    found = pa.table(open_table(store.location, TABLE).to_pyarrow_table())
    return dict(zip(found["event_id"].to_pylist(), found["score"].to_pylist(), strict=True))


def test_a_stream_with_a_batch_that_can_not_be_committed_goes_on(store: Store, tables: DeltaTables) -> None:
    stream = decide(store)
    finish_last_batch(stream, tables)
    assert "score" in stream.held.all()[TABLE].reason
    assert open_table(store.location, OTHER).count() == 2
    stuck = StuckDecisions(tables)

    (found,) = stuck.dry_run()
    assert (found.table, found.columns, found.rows) == (TABLE, ("score",), 2)
    assert stuck.release() == [found]

    finish_last_batch(stream, tables)
    assert rows(store) == {"other": "0", "a": None, "b": None}
    assert open_table(store.location, OTHER).count() == 2
    assert (stuck.dry_run(), stream.held.all()) == ([], {})
    assert not [each for each in reconcile(store).problems if "ingest_events-0" in each]


def test_an_unfinished_replay_blocks_no_later_one(store: Store, tables: DeltaTables) -> None:
    entries = (entry(store, TABLE, "a", "b", score=pa.int64()),)
    ReplayManifests(store).settle(ReplayManifest(number=1, source="dead_letters/events", records=2, tables=entries))
    with pytest.raises(IncompatibleSchemaError, match="score"), replay_run(tables, Failpoints()):
        pass

    StuckDecisions(tables).release()

    with replay_run(tables, Failpoints()):
        pass
    assert rows(store) == {"other": "0", "a": None, "b": None}
    assert ReplayManifests(store).unfinished() == []


def test_decisions_that_are_committed_or_can_be_are_left_alone(store: Store, tables: DeltaTables) -> None:
    stream = decide(store)
    before = store.paths("_gamelake/streams")
    with stream_tables(store.location) as others:
        StuckDecisions(others).release()
    manifest = stream.last_manifest()

    assert StuckDecisions(tables).release() == []
    assert stream.last_manifest() == manifest
    assert store.paths("_gamelake/streams") == before


def test_the_job_prints_what_it_commits(store: Store, tables: DeltaTables, tmp_path: Path) -> None:
    decide(store)

    def commit_stuck(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"GAMELAKE_LAKEHOUSE": store.location.uri, "PYTHONPATH": str(Path(__file__).parents[3])}
        command = [sys.executable, "-m", "jobs.commit_stuck", *arguments]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    planned = json.loads(commit_stuck("--dry-run").stdout)
    assert [each["table"] for each in planned] == [TABLE]
    assert json.loads(commit_stuck("--yes").stdout) == planned
    assert json.loads(commit_stuck("--dry-run").stdout) == []
    assert commit_stuck().returncode == 2

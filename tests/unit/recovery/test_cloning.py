"""A clone equals its source, copies no data, lives until it is dropped, and keeps no erased player."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import QueryBuilder
from deltalake.exceptions import DeltaError

from gamelake.delta.appends import schema_of
from gamelake.delta.listing import appended_tables, own_tables, table_names
from gamelake.delta.log.codec import entry_path, live_files
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.ledger.clones import Clone, CloneError, CloneKind, Clones
from gamelake.ledger.reconciliation import reconcile
from gamelake.maintenance.vacuum import TableVacuum, Vacuumed
from gamelake.objects.store import Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.cloning import Cloning, tables_of
from gamelake.scans.datasets import dataset
from gamelake.scans.player_rows import PlayerFilter, player_tables
from tests.support.job_processes import run_job
from tests.support.player_tables import SILVER, append, compact, players_in, store_in
from tests.unit.privacy.privacy_jobs import GAME, PrivacyJobs

ANNA, BEN, CARL = "a" * 32, "b" * 32, "c" * 32
NAME, CLONE = SILVER.name, "clones/before_kart_rumble_events"
KINDS = pytest.mark.parametrize("kind", list(CloneKind))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_in(tmp_path / "a lake")


@pytest.fixture
def tables(store: Store) -> Iterator[DeltaTables]:
    with DeltaTables(store.location) as opened:
        for batch, player in enumerate((ANNA, BEN, CARL)):
            append(opened, store, SILVER, batch, [player])
        yield opened


def clone(store: Store, kind: CloneKind, version: int, name: str = "before") -> Clone:
    cloning = Cloning(store=store, name=name, sources=[NAME], moment=lambda h: h.at_version(version), kind=kind)
    return cloning.make()


def players_of_clone(store: Store, name: str = CLONE) -> list[str]:
    """As `make sql ENGINE=duckdb` reads it, and delta-rs itself."""
    handle = open_table(store.location, name)
    ours = dataset(store.location, name, schema_of(handle), live_files(handle)).to_table()["gamer_id"].to_pylist()
    found = QueryBuilder().register("t", handle).execute("SELECT gamer_id FROM t").read_all()
    assert sorted(pa.table(found)["gamer_id"].to_pylist()) == sorted(ours)
    return sorted(ours)


def vacuum(store: Store) -> Vacuumed:
    """One whose retention is over for all that was replaced until now."""
    found = TableVacuum(store, NAME, datetime.now(UTC) + timedelta(minutes=1))
    return found.run()


@KINDS
def test_a_clone_is_what_its_source_was_and_stays_so(store: Store, tables: DeltaTables, kind: CloneKind) -> None:
    made = clone(store, kind, 1)
    append(tables, store, SILVER, 3, [BEN])

    assert [(each.table, each.version, each.files, each.rows) for each in made.tables] == [(CLONE, 1, 2, 2)]
    assert players_of_clone(store) == [ANNA, BEN]
    metadata, source = (open_table(store.location, each).metadata() for each in (CLONE, NAME))
    assert (metadata.partition_columns, metadata.configuration) == (source.partition_columns, source.configuration)
    assert metadata.id != source.id


@KINDS
def test_no_byte_is_copied(store: Store, tables: DeltaTables, tmp_path: Path, kind: CloneKind) -> None:
    def on_disk() -> int:
        return sum({found.stat().st_ino: found.stat().st_size for found in tmp_path.rglob("*.parquet")}.values())

    before = on_disk()
    clone(store, kind, 2)

    assert on_disk() == before


@KINDS
def test_vacuum_leaves_a_clone_whole_and_frees_its_files_once_it_is_dropped(
    store: Store, tables: DeltaTables, kind: CloneKind
) -> None:
    clone(store, kind, 2)
    compact(store)
    [held] = Clones(store).held()

    kept = vacuum(store)

    assert players_of_clone(store) == [ANNA, BEN, CARL]
    is_shallow = kind is CloneKind.SHALLOW
    assert (kept.kept_for_clones, kept.replaced_files) == ((3, 0) if is_shallow else (0, 3))
    assert held.held_bytes == (held.clone.tables[0].bytes if is_shallow else 0)
    Clones(store).drop(held.clone)
    assert (vacuum(store).replaced_files, Clones(store).all()) == (3 if is_shallow else 0, [])
    assert not list(store.paths("clones"))
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1, CARL: 1}


def test_a_clone_that_is_made_after_vacuum_has_planned_stays_complete(store: Store, tables: DeltaTables) -> None:
    compact(store)
    looking = TableVacuum(store, NAME, datetime.now(UTC) + timedelta(minutes=1))
    assert looking.plan().replaced_files == 3
    clone(store, CloneKind.SHALLOW, 2)

    assert looking.run().kept_for_clones == 3
    assert players_of_clone(store) == [ANNA, BEN, CARL]


def test_vacuum_keeps_the_files_of_a_clone_whose_log_is_on_its_way(store: Store, tables: DeltaTables) -> None:
    """A clone that stalls after it has written its record may continue when its leases have been taken over."""
    compact(store)
    cloning = Cloning(store=store, name="slow", sources=[NAME], moment=lambda _: 2, kind=CloneKind.SHALLOW)
    planned = cloning.plan()
    Clones(store).begin(planned)

    vacuumed = vacuum(store)

    assert (vacuumed.replaced_files, vacuumed.kept_for_clones) == (0, 3)
    Clones(store).drop(planned)
    assert vacuum(store).replaced_files == 3


def test_vacuum_deletes_nothing_if_the_version_of_such_a_clone_is_there_and_can_not_be_read(
    store: Store, tables: DeltaTables
) -> None:
    compact(store)
    planned = Cloning(store=store, name="slow", sources=[NAME], moment=lambda _: 2, kind=CloneKind.SHALLOW).plan()
    Clones(store).begin(planned)
    entry = store.get(entry_path(NAME, 2))
    assert entry is not None
    store.put(entry_path(NAME, 2), b"{")

    with pytest.raises(DeltaError):
        Clones(store).named_files(NAME)

    store.delete(entry_path(NAME, 2))
    assert Clones(store).named_files(NAME) == {}


def test_streams_maintenance_and_reconciliation_ignore_clones(store: Store, tables: DeltaTables) -> None:
    before = reconcile(store)
    clone(store, CloneKind.SHALLOW, 2)

    assert appended_tables(store) == own_tables(store) == [NAME]
    assert player_tables(store) == [SILVER]
    assert reconcile(store) == before
    assert table_names(store) == {"silver.kart_rumble_events", "clones.before_kart_rumble_events"}


@pytest.mark.parametrize("kind", list(CloneKind))
def test_rows_that_an_erasure_took_out_come_back_in_no_clone(
    store: Store, tables: DeltaTables, kind: CloneKind
) -> None:
    RowEraser(store, SILVER, PlayerFilter(frozenset([ANNA])), "run-1").erase()

    with pytest.raises(CloneError, match="still has rows that an erasure deleted in version 3"):
        clone(store, kind, 2)
    clone(store, kind, 3)
    assert players_of_clone(store) == [BEN, CARL]


@pytest.mark.parametrize("kind", list(CloneKind))
def test_an_erasure_reaches_clones_too(tmp_path: Path, kind: CloneKind) -> None:
    jobs = PrivacyJobs.furnish(tmp_path)
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)
    clone(jobs.store, kind, 1)
    with DeltaTables(jobs.store.location) as tables:
        append(tables, jobs.store, SILVER, 2, [ben])
    anna_s = ("--game", GAME, "--player", "anna", "--purge", "--grace-seconds", "0", "--force")

    would = jobs.result(*anna_s, "--dry-run")["would"]
    done = jobs.result(*anna_s, "--yes")["done"]

    assert would["clones"] == done["clones"] == ["before"]
    assert Clones(jobs.store).all() == []
    left = b"".join(file.read_bytes() for file in (jobs.folder / "lake").rglob("*.parquet"))
    assert anna.encode() not in left
    assert players_in(jobs.store, SILVER) == {ben: 5}


def test_a_clone_without_their_rows_outlives_an_erasure(store: Store, tables: DeltaTables) -> None:
    clone(store, CloneKind.SHALLOW, 0)

    assert Clones(store).with_rows_of(PlayerFilter(frozenset([BEN]))) == []
    assert [each.name for each in Clones(store).with_rows_of(PlayerFilter(frozenset([ANNA])))] == ["before"]


def test_two_clones_of_one_name_are_refused(store: Store, tables: DeltaTables) -> None:
    clone(store, CloneKind.SHALLOW, 0)

    with pytest.raises(CloneError, match="there is a clone 'before' already"):
        clone(store, CloneKind.SHALLOW, 1)
    assert players_of_clone(store) == [ANNA]


def test_a_version_whose_files_were_vacuumed_can_not_be_cloned(store: Store, tables: DeltaTables) -> None:
    compact(store)
    vacuum(store)

    with pytest.raises(CloneError, match="3 of the files of version 2 are missing"):
        clone(store, CloneKind.SHALLOW, 2)
    assert Clones(store).all() == []


def test_all_tables_of_a_game_are_those_of_no_game_with_a_longer_name(store: Store) -> None:
    names = ("silver/chess_events", "silver/chess_pro_events", "gold/chess_player_agg", "gold/chess_pro_player_agg")
    for table in names:
        store.put(f"{table}/_delta_log/00000000000000000000.json", b"")

    assert tables_of(store, "chess") == ["gold/chess_player_agg", "silver/chess_events"]
    assert tables_of(store, "chess_pro") == ["gold/chess_pro_player_agg", "silver/chess_pro_events"]


def test_the_job_makes_lists_and_drops(store: Store, tables: DeltaTables) -> None:
    here = store.location.uri.replace("%20", " ")
    would = result(here, "before", NAME, "--version", "1", "--dry-run")
    assert Clones(store).all() == []

    made = result(here, "before", "--game", "kart_rumble")
    [listed] = result(here, "--list")
    dropped = result(here, "--drop", "before")

    assert [each["rows"] for each in (*would["tables"], *made["tables"])] == [2, 3]
    assert made["tables"][0]["kind"] == "copy"  # a link, on a local disk
    assert (listed["clone"], listed["held_bytes"]) == (dropped, 0)
    assert result(here, "--list") == []


def test_the_newest_version_is_cloned_though_the_clocks_of_writers_are_ahead(store: Store, tables: DeltaTables) -> None:
    for version in range(3):
        path = entry_path(NAME, version)
        entry = [json.loads(line) for line in (store.get(path) or b"").splitlines()]
        for action in entry:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] += 600_000
        store.put(path, b"\n".join(json.dumps(action).encode() for action in entry))

    would = result(store.location.uri.replace("%20", " "), "before", NAME, "--dry-run")

    assert [each["version"] for each in would["tables"]] == [2]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("before", "bronze/events"), "'bronze/events' can't be cloned; the tables are: silver/kart_rumble"),
        (("before", "--game", "chess"), "there is no table of a game 'chess'"),
        (("Before!", NAME), "'Before!' is not a name for a clone"),
        (("before", NAME, "--version", "9"), "has versions 0 to 2, not 9"),
        (("before", NAME, "--time", "2000-01-01"), "was created at"),
        (("before", "--game", "kart_rumble", "--version", "1"), "--version requires a single table"),
        (("before",), "name the clone and its tables"),
        (("--drop", "after"), "there is no clone 'after'; the clones are: none"),
    ],
)
def test_what_can_not_be_cloned_is_refused_with_its_reason(
    store: Store, tables: DeltaTables, options: tuple[str, ...], problem: str
) -> None:
    refused = job(store.location.uri.replace("%20", " "), *options)

    assert refused.returncode == 2
    assert problem in refused.stderr
    assert Clones(store).all() == []


def job(lakehouse: str, *options: str) -> "subprocess.CompletedProcess[str]":
    return run_job("clone", *options, GAMELAKE_LAKEHOUSE=lakehouse)


def result(lakehouse: str, *options: str) -> Any:  # noqa: ANN401 # a job's JSON
    ended = job(lakehouse, *options)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)

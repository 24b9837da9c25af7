"""The job that forgets: the vault at once, rows and old files on request, whatever it was killed at."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.delta.log.codec import (
    Action,
    commit_info,
    contents_of,
    decode_entry,
    encode_entry,
    entry_path,
    now_milliseconds,
)
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.tables import DeltaTables
from gamelake.model.errors import TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.objects.store import Store
from gamelake.privacy.erasure import PlayerErasure
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from gamelake.scans.player_rows import PlayerTable
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh
from tests.support.player_tables import BRONZE, SILVER, append, append_rows, players_in
from tests.unit.privacy.privacy_jobs import GAME, PrivacyJobs

ANNA = ("--game", GAME, "--player", "anna")
AT_ONCE = ("--purge", "--grace-seconds", "0", "--force", "--yes")
STEPS = (
    Failpoint.AFTER_ERASURE_REQUEST, Failpoint.AFTER_FORGETTING, Failpoint.AFTER_ERASED_FILES,
    Failpoint.AFTER_ERASED_TABLE, Failpoint.AFTER_PURGE_PLAN, Failpoint.AFTER_PURGED_FILE,
)  # fmt: skip


@pytest.fixture
def jobs(tmp_path: Path) -> PrivacyJobs:
    return PrivacyJobs.furnish(tmp_path)


def test_a_player_is_erased_by_name_and_the_record_has_no_names(jobs: PrivacyJobs) -> None:
    pseudonym = jobs.add_player("anna", "anna@example.org")
    ben = jobs.add_player("ben", "ben@example.org")

    result = jobs.result(*ANNA, "--by", "support", "--yes")

    vault = jobs.vault
    (erasure,) = vault.erasures_after(0)
    assert (erasure.pseudonym, erasure.erased_by, result["done"]["forgotten"]) == (pseudonym, "support", [1])
    assert vault.named(pseudonym) is None
    assert vault.named(ben) is not None
    vault.close()
    account = b"".join(file.read_bytes() for file in (jobs.folder / "lake/_gamelake/erasures").rglob("*.json"))
    assert pseudonym.encode() in account
    assert b"anna" not in account


def test_rows_and_old_files_go_on_request_and_the_account_says_how_many(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)

    would = jobs.result(*ANNA, "--purge", "--dry-run")["would"]
    done = jobs.result("--game", GAME, "--player", "-", *AT_ONCE, reported="anna\n")["done"]

    assert [(each["table"], each["rows"], each["files"]) for each in would["tables"]] == [
        (BRONZE.name, 4, 2),
        (SILVER.name, 4, 2),
    ]
    assert [(each["rows"], each["files"], len(each["purged"]), each["versions"]) for each in done["tables"]] == [
        (4, 2, 2, [2]),
        (4, 2, 2, [2]),
    ]
    assert players_in(jobs.store, SILVER) == players_in(jobs.store, BRONZE) == Counter({ben: 4})
    left = b"".join(file.read_bytes() for file in (jobs.folder / "lake").rglob("*.parquet"))
    assert anna.encode() not in left


def test_a_dry_run_changes_nothing(jobs: PrivacyJobs) -> None:
    anna = jobs.add_player("anna", "anna@example.org")
    jobs.fill_tables(anna)

    would = jobs.result(*ANNA, "--also-rows", "--dry-run")["would"]

    assert (would["keys"], would["sealed_data"]) == (1, 1)
    assert players_in(jobs.store, SILVER) == Counter({anna: 4})
    assert ErasureRecords(jobs.store).requests() == []
    assert jobs.vault.named(anna) is not None


def test_a_job_that_is_killed_at_any_step_is_finished_by_the_next_one(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna", "anna@example.org"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)

    for step in STEPS:
        jobs.killed(*ANNA, *AT_ONCE, at=step)
    finished = jobs.result(*ANNA, *AT_ONCE)["finished_before"]

    records = ErasureRecords(jobs.store)
    assert finished
    assert records.unfinished() == []
    assert [each.pseudonym for each in jobs.vault.erasures_after(0)] == [anna]
    assert players_in(jobs.store, SILVER) == players_in(jobs.store, BRONZE) == Counter({ben: 4})
    assert TableLog.read(jobs.store, SILVER.name).erased_rows == 4
    left = b"".join(file.read_bytes() for file in (jobs.folder / "lake").rglob("*.parquet"))
    # What a killed attempt wrote and did not commit never had the rows.
    assert anna.encode() not in left


def test_rows_that_a_restore_brings_back_before_the_purge_go_again_and_their_readers_get_a_grace(
    jobs: PrivacyJobs,
) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)
    waits: list[timedelta] = []

    def restored_once(time: timedelta) -> bool:
        waits.append(time)
        if len(waits) == 1:
            restore(jobs.store)
        return True

    vault = jobs.vault
    request = ErasureRequest.new("support", GAME, (anna,), Reach.FILES)
    erasure = PlayerErasure(vault, jobs.store, timedelta(seconds=60), restored_once)
    erasure.begin(request)
    done = erasure.carry_out(request)
    vault.close()

    assert done is not None
    assert done.left == ()
    assert len(waits) == 2
    assert players_in(jobs.store, SILVER)[anna] == 0


def test_a_purge_deletes_no_file_that_a_restore_made_live_again(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)

    class Restoring(Store):
        """Restores silver when the purge is about to delete its files."""

        def put_new(self, path: str, content: bytes) -> bool:
            if "/deleting/" in path and self.get(path) is None:
                restore(jobs.store)
            return super().put_new(path, content)

    vault = jobs.vault
    request = ErasureRequest.new("support", GAME, (anna,), Reach.FILES)
    erasure = PlayerErasure(vault, Restoring(jobs.store.location), timedelta(0), lambda _: True)
    erasure.begin(request)
    with pytest.raises(TransientError, match=r"2 of the 2 files of .* are in use again"):
        erasure.carry_out(request)
    assert players_in(jobs.store, SILVER)[anna] == 4

    assert replace(erasure, store=jobs.store).carry_out(request) is not None
    assert players_in(jobs.store, SILVER)[anna] == 0
    vault.close()


def restore(store: Store) -> None:
    """Restore the files that the erasure replaced."""
    removed = set(TableLog.read(store, SILVER.name).removed)
    adds = [each for version in range(2) for each in adds_of(store, version) if each["path"] in removed]
    actions = [commit_info(now_milliseconds(), "RESTORE", {}), *({"add": each} for each in adds)]
    assert len(adds) == 2
    assert store.put_new(entry_path(SILVER.name, 3), encode_entry(actions))


def adds_of(store: Store, version: int) -> list[Action]:
    return list(contents_of(decode_entry(store.get(entry_path(SILVER.name, version)) or b""), "add"))


def test_rows_that_come_later_under_the_old_pseudonym_are_swept_out(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)
    jobs.result(*ANNA, "--also-rows", "--yes")
    with DeltaTables(jobs.store.location) as tables:
        append(tables, jobs.store, SILVER, 7, [anna, ben])

    done = jobs.result("--sweep", "--also-rows", "--yes")["done"]

    assert sum(each["rows"] for each in done["tables"]) == 1
    assert players_in(jobs.store, SILVER) == Counter({ben: 5})


def test_rows_of_a_player_whom_support_has_forgotten_go_by_the_pseudonym(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)
    vault = jobs.vault
    vault.forget(jobs.keys.token(GAME, "anna"), "support-1")
    vault.close()

    done = jobs.result("--game", GAME, "--pseudonym", anna, "--also-rows", "--yes")["done"]

    assert done["forgotten"] == [1]
    account = {(each.requested_by, each.pseudonyms, each.reach) for each in ErasureRecords(jobs.store).requests()}
    assert account == {("support-1", (anna,), Reach.VAULT), ("operator", (anna,), Reach.ROWS)}
    assert players_in(jobs.store, SILVER) == Counter({ben: 4})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--game", GAME, "--player", "nobody", "--yes"), "UnknownPlayerError"),
        (("--game", "archery", "--player", "anna", "--yes"), "UnknownPlayerError"),
        (("--game", "chess", "--player", "anna", "--yes"), "SettingsError"),
        (("--game", GAME, "--player", "anna"), "--yes"),
        (("--game", GAME, "--player", "anna", "--purge", "--grace-seconds", "5", "--yes"), "--force"),
    ],
)
def test_what_can_not_be_done_is_reported_before_anything_is_done(
    jobs: PrivacyJobs, arguments: tuple[str, ...], said: str
) -> None:
    anna = jobs.add_player("anna")

    ended = jobs.run(*arguments)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert jobs.vault.named(anna) is not None


def test_an_erasure_that_still_finds_the_pseudonym_says_where_and_fails(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)
    moment = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    with DeltaTables(jobs.store.location) as tables:
        named = pa.table({"event_time": moment, "gamer_id": [ben], "session_id": [f"with {anna}"]})
        append_rows(tables, jobs.store, 7, named)

    ended = jobs.run(*ANNA, "--also-rows", "--yes")

    assert ended.returncode == 1
    assert json.loads(ended.stdout)["done"]["left"] == [{"table": SILVER.name, "files": 1}]
    assert "player_still_found" in ended.stderr
    assert anna not in ended.stderr
    # A row of Ben's stays, and the erasure is not tried for ever.
    assert players_in(jobs.store, SILVER) == Counter({ben: 5})
    assert ErasureRecords(jobs.store).unfinished() == []


def test_no_file_has_an_erased_player_though_the_gold_job_went_on(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)
    store, aggregate = jobs.store, define(AggregateSpec(
        name="player_agg", group_by=("gamer_id",), refresh=Refresh.MERGE, columns={"events": "count(*)"}
    ))  # fmt: skip
    refresh = GoldRefresh(store.location, SILVER.name, "gold/kart_rumble_player_agg", aggregate)
    refresh()

    class GoldGoesOn(Failpoints):
        """The gold job refreshes after each table that loses rows."""

        def reach(self, point: Failpoint) -> None:
            if point is Failpoint.AFTER_ERASED_TABLE:
                refresh()

    vault = jobs.vault
    request = ErasureRequest.new("support", GAME, (anna,), Reach.FILES)
    erasure = PlayerErasure(vault, store, timedelta(0), lambda _: True, GoldGoesOn())
    erasure.begin(request)
    done = erasure.carry_out(request)
    refresh()
    vault.close()

    assert done is not None
    assert done.left == ()
    left = [file for file in (jobs.folder / "lake").rglob("*.parquet") if anna.encode() in file.read_bytes()]
    assert left == []
    assert players_in(store, PlayerTable("gold/kart_rumble_player_agg", "gamer_id")) == Counter({ben: 1})

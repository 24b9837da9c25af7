"""The job that forgets: the vault at once, rows and old files on request, whatever it was killed at."""

from collections import Counter
from pathlib import Path

import pytest

from gamelake.model.failpoints import Failpoint
from gamelake.privacy.erasure_records import ErasureRecords, Reach
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import DeltaTables
from tests.unit.maintenance.desk import GAME, Desk
from tests.unit.maintenance.people import BRONZE, SILVER, append, players_in

ANNA = ("--game", GAME, "--player", "anna")
AT_ONCE = ("--purge", "--grace-seconds", "0", "--force", "--yes")
STEPS = (
    Failpoint.AFTER_ERASURE_REQUEST,
    Failpoint.AFTER_FORGETTING,
    Failpoint.AFTER_ERASED_FILES,
    Failpoint.AFTER_ERASED_TABLE,
    Failpoint.AFTER_PURGE_PLAN,
    Failpoint.AFTER_PURGED_FILE,
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.furnish(tmp_path)


def test_a_player_is_forgotten_by_name_and_the_account_names_nobody(desk: Desk) -> None:
    pseudonym = desk.add_player("anna", "anna@example.org")
    ben = desk.add_player("ben", "ben@example.org")

    result = desk.result(*ANNA, "--by", "support", "--yes")

    vault = desk.vault
    (erasure,) = vault.erasures_after(0)
    assert (erasure.pseudonym, erasure.erased_by, result["done"]["forgotten"]) == (pseudonym, "support", [1])
    assert vault.named(pseudonym) is None
    assert vault.named(ben) is not None
    vault.close()
    account = b"".join(file.read_bytes() for file in (desk.folder / "lake/_gamelake/erasures").iterdir())
    assert pseudonym.encode() in account
    assert b"anna" not in account


def test_rows_and_old_files_go_on_request_and_the_account_says_how_many(desk: Desk) -> None:
    anna, ben = desk.add_player("anna"), desk.add_player("ben")
    desk.fill_tables(anna, ben)

    would = desk.result(*ANNA, "--purge", "--dry-run")["would"]
    done = desk.result("--game", GAME, "--player", "-", *AT_ONCE, told="anna\n")["done"]

    assert [(each["table"], each["rows"], each["files"]) for each in would["tables"]] == [
        (BRONZE.name, 4, 2),
        (SILVER.name, 4, 2),
    ]
    assert [(each["rows"], each["files"], len(each["purged"]), each["versions"]) for each in done["tables"]] == [
        (4, 2, 2, [2]),
        (4, 2, 2, [2]),
    ]
    assert players_in(desk.store, SILVER) == players_in(desk.store, BRONZE) == Counter({ben: 4})
    left = b"".join(file.read_bytes() for file in (desk.folder / "lake").rglob("*.parquet"))
    assert anna.encode() not in left


def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    anna = desk.add_player("anna", "anna@example.org")
    desk.fill_tables(anna)

    would = desk.result(*ANNA, "--also-rows", "--dry-run")["would"]

    assert (would["keys"], would["sealed_data"]) == (1, 1)
    assert players_in(desk.store, SILVER) == Counter({anna: 4})
    assert ErasureRecords(desk.store).requests() == []
    assert desk.vault.named(anna) is not None


def test_a_job_that_is_killed_at_any_step_is_finished_by_the_next_one(desk: Desk) -> None:
    anna, ben = desk.add_player("anna", "anna@example.org"), desk.add_player("ben")
    desk.fill_tables(anna, ben)

    for step in STEPS:
        desk.killed(*ANNA, *AT_ONCE, at=step)
    finished = desk.result(*ANNA, *AT_ONCE)["finished_before"]

    records = ErasureRecords(desk.store)
    assert finished
    assert records.unfinished() == []
    assert [each.pseudonym for each in desk.vault.erasures_after(0)] == [anna]
    assert players_in(desk.store, SILVER) == players_in(desk.store, BRONZE) == Counter({ben: 4})
    assert TableLog.read(desk.store, SILVER.name).erased_rows == 4
    left = b"".join(file.read_bytes() for file in (desk.folder / "lake").rglob("*.parquet"))
    # What a killed attempt wrote and did not commit never had the rows.
    assert anna.encode() not in left


def test_rows_that_come_later_under_the_old_pseudonym_are_swept_out(desk: Desk) -> None:
    anna, ben = desk.add_player("anna"), desk.add_player("ben")
    desk.fill_tables(anna, ben)
    desk.result(*ANNA, "--also-rows", "--yes")
    with DeltaTables(desk.store.location) as tables:
        append(tables, desk.store, SILVER, 7, [anna, ben])

    done = desk.result("--sweep", "--also-rows", "--yes")["done"]

    assert sum(each["rows"] for each in done["tables"]) == 1
    assert players_in(desk.store, SILVER) == Counter({ben: 5})


def test_rows_of_a_player_whom_support_has_forgotten_go_by_the_pseudonym(desk: Desk) -> None:
    anna, ben = desk.add_player("anna"), desk.add_player("ben")
    desk.fill_tables(anna, ben)
    vault = desk.vault
    vault.forget(desk.keys.token(GAME, "anna"), "support-1")
    vault.close()

    done = desk.result("--game", GAME, "--pseudonym", anna, "--also-rows", "--yes")["done"]

    assert done["forgotten"] == [1]
    account = {(each.requested_by, each.pseudonyms, each.reach) for each in ErasureRecords(desk.store).requests()}
    assert account == {("support-1", (anna,), Reach.VAULT), ("operator", (anna,), Reach.ROWS)}
    assert players_in(desk.store, SILVER) == Counter({ben: 4})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--game", GAME, "--player", "nobody", "--yes"), "NobodyError"),
        (("--game", "archery", "--player", "anna", "--yes"), "NobodyError"),
        (("--game", "chess", "--player", "anna", "--yes"), "SettingsError"),
        (("--game", GAME, "--player", "anna"), "--yes"),
        (("--game", GAME, "--player", "anna", "--purge", "--grace-seconds", "5", "--yes"), "--force"),
    ],
)
def test_what_can_not_be_done_is_told_before_anything_is(desk: Desk, arguments: tuple[str, ...], said: str) -> None:
    anna = desk.add_player("anna")

    ended = desk.run(*arguments)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert desk.vault.named(anna) is not None

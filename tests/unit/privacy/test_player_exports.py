"""A player gets the data that is kept of them, and no other user can read it."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gamelake.delta.tables import DeltaTables
from gamelake.model.naming import QUARANTINE
from tests.support.player_tables import append_rows
from tests.unit.privacy.privacy_jobs import GAME, PrivacyJobs

ANNA = ("--game", GAME, "--player", "-")


@pytest.fixture
def jobs(tmp_path: Path) -> PrivacyJobs:
    return PrivacyJobs.furnish(tmp_path)


def test_a_person_gets_the_vaults_data_and_the_rows_in_a_file_of_their_own(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna", "anna@example.org", "anna@work.example"), jobs.add_player("ben")
    jobs.fill_tables(anna, ben)
    file = jobs.folder / "anna.jsonl"

    ended = jobs.run(*ANNA, "--events", "--output", str(file), job="export_player", reported="anna\n")

    assert (ended.returncode, ended.stdout) == (0, "")
    assert "anna@" not in ended.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    export, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert (export["game"], export["pseudonym"]) == (GAME, anna)
    # Kept at one moment: in any order.
    assert {each["personal"]["email"] for each in export["data"]} == {"anna@example.org", "anna@work.example"}
    assert [(row["gamer_id"], row["event_date"]) for row in rows] == [(anna, "2026-01-01")] * 4


def test_a_persons_quarantined_rows_are_exported_with_the_rules_that_they_broke(jobs: PrivacyJobs) -> None:
    anna, ben = jobs.add_player("anna"), jobs.add_player("ben")
    row = {"broken": ["amount_is_plausible"], "row": '{"amount": 1e9}', "value": b"\x00\x01"}
    rows = pa.Table.from_pylist([{"gamer_id": player, **row, "event_date": "2026-01-01"} for player in (anna, ben)])
    write_deltalake(jobs.store.location.child(QUARANTINE), rows, partition_by=["event_date"])

    ended = jobs.run(*ANNA, "--events", job="export_player", reported="anna\n")

    _, *lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines == [
        {"gamer_id": anna, "broken": ["amount_is_plausible"], "row": '{"amount": 1e9}', "event_date": "2026-01-01"}
    ]


def test_a_file_that_is_there_is_not_overwritten(jobs: PrivacyJobs) -> None:
    jobs.add_player("anna")
    (jobs.folder / "file").write_text("precious")

    ended = jobs.run(*ANNA, "--output", str(jobs.folder / "file"), job="export_player", reported="anna\n")

    assert (ended.returncode, (jobs.folder / "file").read_text()) == (2, "precious")


def test_an_erased_player_has_nothing_to_export(jobs: PrivacyJobs) -> None:
    anna = jobs.add_player("anna", "anna@example.org")
    vault = jobs.vault
    vault.forget(jobs.keys.token(GAME, "anna"), "support")
    vault.close()

    ended = jobs.run("--game", GAME, "--pseudonym", anna, job="export_player")

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "UnknownPlayerError" in ended.stderr


def test_an_event_of_a_far_time_is_exported_with_the_others(jobs: PrivacyJobs) -> None:
    anna = jobs.add_player("anna")
    times = pa.array([0, 2**63 - 1], pa.int64()).view(pa.timestamp("us", "UTC"))
    rows = pa.table(
        {"gamer_id": [anna, anna], "event_time": times.slice(0, 1).take([0, 0]), "client_event_time": times}
    )
    with DeltaTables(jobs.store.location) as tables:
        append_rows(tables, jobs.store, 0, rows)

    ended = jobs.run(*ANNA, "--events", job="export_player", reported="anna\n")

    _, *lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["client_event_time"] for line in lines] == [
        "1970-01-01T00:00:00Z",
        "9223372036854775807 microseconds since 1970",
    ]

"""A sender waits until `make dev` runs with the contracts as they are now, and finds its ports."""

import threading
from pathlib import Path

import pytest

from tools.dev.options import DevError
from tools.dev.running import Readiness, RunningDev, fingerprint, forget, wait_for_contracts


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    folder = tmp_path / "contracts"
    (folder / "proto").mkdir(parents=True)
    (folder / "games.yaml").write_text("games: []\n")
    return folder


def test_a_sender_waits_until_a_change_is_in_force(tmp_path: Path, contracts: Path) -> None:
    lines: list[str] = []
    readiness = Readiness(18_000, tmp_path, contracts, lines.append)
    assert readiness.announce()
    (contracts / "games.yaml").write_text("games: [changed]\n")
    sender = threading.Thread(target=wait_for_contracts, args=(tmp_path, contracts, 60))

    with pytest.raises(DevError, match="still runs without the last change of"):
        wait_for_contracts(tmp_path, contracts, 0)
    sender.start()
    readiness.will_change({contracts / "games.yaml"})
    assert sender.is_alive()
    assert not readiness.announce()
    sender.join(60)

    assert not sender.is_alive()
    assert [line.partition(" after ")[0] for line in lines] == [
        "All programs run",
        "Ready with games.yaml: all programs run",
    ]


def test_a_sender_waits_for_nothing_where_make_dev_does_not_run_or_starts(tmp_path: Path, contracts: Path) -> None:
    wait_for_contracts(tmp_path, contracts, 0)
    Readiness(18_000, tmp_path, contracts, print)
    wait_for_contracts(tmp_path, contracts, 0)


def test_the_note_has_the_ports_until_make_dev_ends(tmp_path: Path, contracts: Path) -> None:
    Readiness(18_000, tmp_path, contracts, print)
    running = RunningDev.read(tmp_path)
    forget(tmp_path)

    assert (running.first_port, RunningDev.read(tmp_path).first_port) == (18_000, 17_000)


def test_only_the_content_of_the_contracts_counts(contracts: Path) -> None:
    before = fingerprint(contracts)
    (contracts / "games.yaml").touch()
    (contracts / ".games.yaml.swp").write_text("an editor's")
    same = fingerprint(contracts)
    (contracts / "games.yaml").rename(contracts / "other.yaml")

    assert same == before != fingerprint(contracts)

"""A whole platform is lost except its tables, and comes back from a backup on an empty machine, with new processes."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from tests.embedded.gateway import Gateway, body_of, events
from tests.embedded.lakehouse import Lakehouse
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.service import REPOSITORY

GAME, PLAYERS = "archery_duel", 20
LAYERS = ("bronze", "silver", "dead_letters")


class Machine:
    """One machine: a gateway with its vault, a registry and a lakehouse; Kafka is on another machine."""

    def __init__(self, folder: Path, registry_url: str, kafka: EmbeddedKafka, topic: str) -> None:
        self.lakehouse = Lakehouse(folder / "lakehouse", kafka.bootstrap_servers, registry_url, topic)
        self.lakehouse.games_file.write_text("games: [{name: archery_duel, match: [Archery Duel]}]\n")
        self.gateway_folder = folder / "gateway"
        self.sent: list[str] = []

    @contextmanager
    def running(self) -> Iterator[Gateway]:
        """The ingest job and the gateway, for as long as the block lasts."""
        lake = self.lakehouse
        gateway = Gateway.open(
            self.gateway_folder,
            bootstrap_servers=lake.bootstrap_servers,
            registry_url=lake.registry_url,
            topic=lake.topic,
        )
        try:
            with lake.ingesting():
                yield gateway
        finally:
            gateway.process.stop()

    def play(self, gateway: Gateway) -> dict[str, str]:
        """Each player sends an event and an address. Return what the players are called once the events are rows."""
        sent = [events(1, gamer_id=f"p{n}", personal={"email": f"p{n}@example.org"})[0] for n in range(PLAYERS)]
        assert gateway.send(body_of(sent)).result.accepted == PLAYERS
        self.sent += [str(event["event_id"]) for event in sent]
        self.lakehouse.await_rows("silver/events", self.sent)
        return self.pseudonyms()

    def pseudonyms(self) -> dict[str, str]:
        """What the players are called, by their names."""
        vault, keys = (
            SqliteVault(self.gateway_folder / "vault.db"),
            VaultKeys.read(self.gateway_folder / "vault-keys.yaml"),
        )
        tokens = {keys.token(GAME, f"p{number}"): f"p{number}" for number in range(PLAYERS)}
        found = {tokens[token]: row.pseudonym for token, row in vault.find(list(tokens)).items()}
        vault.close()
        return found

    def personal_data(self) -> list[int]:
        """Return how many pieces of data each player has in the vault."""
        vault = SqliteVault(self.gateway_folder / "vault.db")
        counts = [len(vault.data_of(each)) for each in self.pseudonyms().values()]
        vault.close()
        return counts

    def run(self, module: str, *arguments: str) -> str:
        """Run a program that ends well. Return what it printed."""
        variables = {
            "GAMELAKE_VAULT": str(self.gateway_folder / "vault.db"),
            "GAMELAKE_VAULT_KEYS_FILE": str(self.gateway_folder / "vault-keys.yaml"),
        }
        command = [sys.executable, "-m", module, *arguments]
        environment = self.lakehouse.environment() | variables
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def empty_registry(tmp_path: Path) -> Iterator[EmbeddedRegistry]:
    """The registry of a new machine."""
    with EmbeddedRegistry(tmp_path / "empty") as empty:
        yield empty


@pytest.mark.slow
def test_a_platform_with_only_its_tables_left_is_restored_and_continues(
    tmp_path: Path,
    kafka: EmbeddedKafka,
    topic: Callable[[int], str],
    registry: EmbeddedRegistry,
    empty_registry: EmbeddedRegistry,
) -> None:
    lost = Machine(tmp_path / "lost", registry.url, kafka, topic(2))
    with lost.running() as gateway:
        before = lost.play(gateway)
        folder = lost.run("tools.backup", "make", "--to", str(tmp_path / "backups")).strip()
        # The stream continues, with batches that no backup knows of.
        lost.play(gateway)

    new = Machine(tmp_path / "new", empty_registry.url, kafka, lost.lakehouse.topic)
    for layer in LAYERS:
        if (lost.lakehouse.directory / "lake" / layer).is_dir():
            shutil.copytree(lost.lakehouse.directory / "lake" / layer, new.lakehouse.directory / "lake" / layer)
    new.gateway_folder.mkdir()
    shutil.copy(lost.gateway_folder / "vault-keys.yaml", new.gateway_folder)
    shutil.rmtree(tmp_path / "lost")

    restored: Any = json.loads(new.run("tools.backup", "restore", folder, "--yes"))

    assert sum(batch["records"] for batch in restored["recollected"]) == PLAYERS
    assert new.pseudonyms() == before
    with new.running() as gateway:
        assert new.play(gateway) == before
    assert new.personal_data() == [1] * PLAYERS
    assert new.lakehouse.event_ids() == Counter([*lost.sent, *new.sent])
    assert new.lakehouse.event_ids("silver/archery_duel_events") == Counter([*lost.sent, *new.sent])
    assert new.lakehouse.reconciliation().problems == []
    assert new.lakehouse.reconciliation().records == 3 * PLAYERS
    # The doctor finds nothing wrong, and has asked Kafka.
    findings: Any = json.loads(new.run("jobs.doctor", "--json"))
    [retentions] = [finding["found"] for finding in findings if finding["need"] == "retentions"]
    assert "kafka" in retentions
    assert any("0 records wait" in finding["found"] for finding in findings)

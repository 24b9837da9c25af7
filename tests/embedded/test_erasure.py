"""A player's way from the gateway to the tables and out again: nothing personal stays, or comes back."""

import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from tests.embedded.gateway import Gateway, body_of, events
from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka

GAME, TABLE = "archery_duel", "silver/archery_duel_events"
PLAYERS = 12
_ROWS_SECONDS = 300
_JOB_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Person:
    """A player, and all personal data of the player."""

    name: str = field(default_factory=lambda: f"player-{uuid.uuid4().hex}")
    device: str = field(default_factory=lambda: f"device-{uuid.uuid4().hex}")
    mail: str = field(default_factory=lambda: f"{uuid.uuid4().hex}@example.org")
    text: str = field(default_factory=lambda: f"I am Ünal {uuid.uuid4().hex}")

    @property
    def secrets(self) -> list[str]:
        return [self.name, self.device, self.mail, self.text]

    def events(self, count: int) -> list[dict[str, object]]:
        personal = {"email": self.mail, "free_text": self.text}
        return events(count, gamer_id=self.name, event_params={"device_id": self.device}, personal=personal)


@dataclass(frozen=True, slots=True)
class Platform:
    """Gateway, stream and tables, with the operators' jobs."""

    gateway: Gateway
    lakehouse: Lakehouse
    kafka: EmbeddedKafka

    def play(self, *people: Person, count: int = 5) -> list[str]:
        """Send events and wait until they are rows. Return their ids."""
        sent = [event for person in people for event in person.events(count)]
        assert self.gateway.send(body_of(sent)).result.accepted == len(sent)
        ids = [str(event["event_id"]) for event in sent]
        for table in (TABLE, "silver/events"):
            self.await_rows(table, ids)
        return ids

    def await_rows(self, table: str, ids: list[str]) -> None:
        eventually(lambda: set(ids) <= self.lakehouse.event_ids(table).keys(), timeout=_ROWS_SECONDS)

    def pseudonym_of(self, event_id: str) -> str:
        rows = self.lakehouse.rows(TABLE, "event_id", "gamer_id").to_pylist()
        (found,) = {row["gamer_id"] for row in rows if row["event_id"] == event_id}
        return str(found)

    def job(self, name: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one of the jobs about persons to its end."""
        vault = {
            "GAMELAKE_VAULT": str(self.gateway.service.vault_file),
            "GAMELAKE_VAULT_KEYS_FILE": str(self.gateway.service.vault_keys_file),
            "GAMELAKE_GAMES_FILE": str(ROOT / "contracts/games.yaml"),
        }
        return subprocess.run(
            [sys.executable, "-m", f"jobs.{name}", *arguments],
            cwd=ROOT,
            env=self.lakehouse.environment() | vault,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_JOB_SECONDS,
            check=False,
        )

    def comes_back_as_another(self, *people: Person) -> bool:
        """Send an event of each; whether the vault has them as players again."""
        assert self.gateway.send(body_of([event for person in people for event in person.events(1)])).status == 200
        return len(self.known_pseudonyms(*people)) == len(people)

    def known_pseudonyms(self, *people: Person) -> dict[str, str]:
        """Whom the vault has of these people, under which pseudonyms."""
        keys, vault = VaultKeys.read(self.gateway.service.vault_keys_file), SqliteVault(self.gateway.service.vault_file)
        names = {keys.token(GAME, person.name): person.name for person in people}
        found = {names[token]: stored.pseudonym for token, stored in vault.find(list(names)).items()}
        vault.close()
        return found

    def forget(self, *arguments: str, name: str = "") -> dict[str, list[dict[str, int]]]:
        """Erase a player, or repeat erasures. Return the record of it."""
        who = ("--game", GAME, "--player", "-") if name else ()
        ended = self.job("forget_player", *who, *arguments, "--yes", stdin=name)
        assert ended.returncode == 0, ended.stderr
        done: dict[str, list[dict[str, int]]] = json.loads(ended.stdout)["done"]
        return done

    def prove(self, texts: list[str], *copies: Path) -> subprocess.CompletedProcess[str]:
        """Search texts in tables, topic, the broker's disk, the vault, all logs, and copies."""
        disk = [*(self.kafka.directory / "data").glob(f"{self.lakehouse.topic}-*"), *self.kafka.directory.glob("*.log")]
        places = [*disk, self.gateway.folder, self.lakehouse.directory, *copies]
        return self.job(
            "prove_erasure",
            *map(str, places),
            "--lakehouse",
            "--kafka",
            "--topic",
            self.lakehouse.topic,
            stdin="\n".join(texts),
        )

    def replay_bronze(self) -> None:
        """Send what bronze has to Kafka again, byte for byte."""
        rows = self.lakehouse.rows("bronze/events", "key", "value").to_pylist()
        producer = Producer({"bootstrap.servers": self.lakehouse.bootstrap_servers})
        for row in rows:
            producer.produce(self.lakehouse.topic, row["value"], row["key"])
        producer.flush(30)


@pytest.fixture
def platform(tmp_path: Path, lakehouse: Lakehouse, kafka: EmbeddedKafka) -> Iterator[Platform]:
    lakehouse.games_file.write_text((ROOT / "contracts/games.yaml").read_text())
    gateway = Gateway.open(
        tmp_path / "gateway",
        bootstrap_servers=lakehouse.bootstrap_servers,
        registry_url=lakehouse.registry_url,
        topic=lakehouse.topic,
    )
    yield Platform(gateway, lakehouse, kafka)
    gateway.process.stop()


# Unit tests and Spark's erase players too, and a stack's test forgets one.
@pytest.mark.slow
def test_erased_data_is_nowhere_and_nothing_restores_it(platform: Platform, tmp_path: Path) -> None:
    people = [Person() for _ in range(PLAYERS)]
    gone, also_gone, stays = people[:3]
    secrets = [secret for person in people for secret in person.secrets]
    lake, old, backup = tmp_path / "lake", tmp_path / "old", tmp_path / "vault-backup"

    with platform.lakehouse.ingesting():
        first = platform.play(*people)
        pseudonyms = [platform.pseudonym_of(first[number * 5]) for number in range(PLAYERS)]
        shutil.copytree(lake / TABLE, old)
        assert platform.job("backup_vault", str(backup)).returncode == 0
        # While the stream continues: one player's rows, and of another one also the files that older versions need.
        rows = platform.forget("--also-rows", name=gone.name)["tables"]
        files = platform.forget("--purge", "--grace-seconds", "0", "--force", name=also_gone.name)["tables"]
        eventually(lambda: platform.comes_back_as_another(gone, also_gone), timeout=_ROWS_SECONDS)
        again = platform.play(gone, also_gone, stays)
        platform.replay_bronze()
        platform.play(stays)
    # Until the gateway knows of an erasure, events still come under the old pseudonym.
    platform.forget("--sweep", "--also-rows")

    assert {each["rows"] for each in rows if each["rows"]} == {5}
    assert all(each["purged"] for each in files if each["rows"])
    new = {platform.pseudonym_of(again[0]), platform.pseudonym_of(again[5])}
    assert not new & set(pseudonyms)
    assert platform.pseudonym_of(again[10]) == pseudonyms[2]
    for table in (TABLE, "silver/events"):
        assert set(platform.lakehouse.rows(table, "gamer_id")["gamer_id"].to_pylist()) == {*pseudonyms[2:], *new}
    keys = platform.lakehouse.rows("bronze/events", "key")["key"].to_pylist()
    assert {key.decode() for key in keys} == {*pseudonyms[2:], *new}
    assert platform.lakehouse.reconciliation().problems == []

    # An old copy has the rows, under names that lead nowhere; an old version has not even those.
    assert set(pseudonyms) == set(DeltaTable(old).to_pyarrow_table(columns=["gamer_id"])["gamer_id"].to_pylist())
    with pytest.raises(DeltaError):
        DeltaTable(lake / TABLE).restore(0)
    exported = platform.job("export_player", "--game", GAME, "--player", "-", stdin=stays.name)
    assert exported.returncode == 0, exported.stderr
    assert all(secret in exported.stdout for secret in (stays.mail, stays.device))

    # An old backup of a lost vault restores the players that were not erased.
    platform.gateway.process.stop()
    for file in platform.gateway.folder.glob("vault.db*"):
        file.unlink()
    assert platform.job("restore_vault", str(backup)).returncode == 0
    restored = platform.known_pseudonyms(*people)
    assert set(restored) == {person.name for person in people[2:]}
    assert set(restored.values()) == set(pseudonyms[2:])

    proof = platform.prove(secrets)
    control = platform.prove([first[5 * 2], pseudonyms[2]])
    assert (proof.returncode, json.loads(proof.stdout)["found"]) == (0, []), proof.stdout + proof.stderr
    assert json.loads(proof.stdout)["records"] > len(first)
    assert {each["term"] for each in json.loads(control.stdout)["found"]} == {1, 2}

"""No secret of ten thousand that were sent to the gateway is in a table, topic, database, log or response."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable

from tests.embedded.gateway import SECRET, Gateway
from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.embedded.planted_secrets import ACCEPTED, EVALUATED, GAME, REFUSED, REJECTED, Person
from tests.embedded.topic_records import ids_in
from tests.support.process_table import command_lines, descendants_of
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic
from tools.embedded.service import REPOSITORY

TOPIC = "events"
# The name arrives through standard input, which is not visible to others.
ASKED = ("--player", "-", "--game", GAME)
BEFORE = 1  # the version of a table that has all rows
PEOPLE, EACH = 1_700, 20
FORGOTTEN = 2
PROOF_SECONDS = 240


@dataclass(slots=True)
class Platform:
    """All components that an event passes, with their files."""

    kafka: EmbeddedKafka
    gateway: Gateway
    lake: Lakehouse
    people: list[Person] = field(default_factory=list)

    @property
    def places(self) -> list[Path]:
        """All files that are written, except for the key files, which only the service reads."""
        folder = self.gateway.folder
        return [self.kafka.directory, self.lake.directory, folder / "seen", folder / "ingest.log", *self.vault_files]

    @property
    def vault_files(self) -> list[Path]:
        """The vault, and SQLite's other files."""
        return sorted(self.gateway.folder.glob("vault.db*"))

    def sealed(self) -> set[bytes]:
        """All wrapped player keys, and all data encrypted with them."""
        with closing(sqlite3.connect(self.gateway.service.vault_file)) as vault:
            rows = vault.execute("SELECT wrapped_key FROM players UNION ALL SELECT sealed FROM personal_data")
            return {sealed for (sealed,) in rows}

    def record_outputs(self) -> None:
        """Write the service's pages and its processes' command lines to files."""
        seen = self.gateway.folder / "seen"
        seen.mkdir(exist_ok=True)
        (seen / "metrics").write_bytes(self.gateway.metrics())
        for path in ("/readyz", "/"):
            (seen / f"page{path.replace('/', '-')}").write_bytes(self.gateway.get(path).body)
        pids = {self.gateway.process.pid} | descendants_of(self.gateway.process.pid)
        (seen / "processes").write_text(command_lines(pids))

    def run(self, job: str, *arguments: str, typed: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
        """Run a job on the platform, with text on its standard input."""
        vault = {
            "GAMELAKE_VAULT": str(self.gateway.service.vault_file),
            "GAMELAKE_VAULT_KEYS_FILE": str(self.gateway.service.vault_keys_file),
        }
        return subprocess.run(
            [sys.executable, "-m", f"jobs.{job}", *arguments],
            input="\n".join(typed).encode() + b"\n",
            cwd=ROOT,
            env=self.lake.environment() | vault,
            capture_output=True,
            timeout=PROOF_SECONDS,
            check=False,
        )

    def findings(self, texts: Sequence[str], *more: Path) -> list[str]:
        """The places in which one of the texts is found."""
        places = [str(place) for place in (*self.places, *more)]
        proof = self.run("prove_erasure", "--kafka", "--topic", self.lake.topic, *places, typed=texts)
        result = json.loads(proof.stdout)
        assert result["terms"] == len(texts)
        assert result["records"] > 0
        assert result["unscanned"] == []
        assert proof.returncode == (1 if result["found"] else 0)
        return [found["place"] for found in result["found"]]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, registry: EmbeddedRegistry) -> Iterator[Platform]:
    """A platform that has processed ten thousand secrets."""
    folder = tmp_path_factory.mktemp("planted")
    with EmbeddedKafka(folder / "kafka") as kafka:
        create_topic(kafka.bootstrap_servers, TOPIC, 3)
        gateway = Gateway.open(
            folder / "gateway", bootstrap_servers=kafka.bootstrap_servers, registry_url=registry.url, topic=TOPIC
        )
        platform = Platform(kafka, gateway, lake_of(folder / "lake", kafka, registry), plant(gateway))
        platform.lake.ingest()
        platform.record_outputs()
        yield platform
        gateway.process.stop()


def lake_of(folder: Path, kafka: EmbeddedKafka, registry: EmbeddedRegistry) -> Lakehouse:
    """An empty lakehouse of the real games."""
    lake = Lakehouse(folder, kafka.bootstrap_servers, registry.url, TOPIC)
    lake.settings["GAMELAKE_GAMES_FILE"] = str(REPOSITORY / "contracts/games.yaml")
    return lake


def plant(gateway: Gateway) -> list[Person]:
    """Send all people's data in all ways; each response has the expected status and none of the data."""
    people = [Person.unique() for _ in range(PEOPLE)]
    groups = [people[start : start + EACH] for start in range(0, PEOPLE, EACH)]
    for group, way in zip(groups, cycle([*ACCEPTED, *REJECTED, *REFUSED])):
        reply = way(gateway, group)
        if way in REFUSED:
            assert reply.status in {400, 401, 413}
        else:
            assert (reply.result.accepted, len(reply.result.rejected)) == ((EACH, 0) if way in ACCEPTED else (0, EACH))
        assert not [secret for person in group for secret in person.secrets if secret.encode() in reply.body]
    for group, way in zip(groups, cycle(EVALUATED)):
        reply = way(gateway, group)
        assert reply.status in {200, 400, 404}
        assert not [secret for person in group for secret in person.secrets if secret.encode() in reply.body]
    with closing(sqlite3.connect(gateway.service.vault_file, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        assert ACCEPTED[0](gateway, groups[-1][:1]).status in {200, 503}
        people.append(Person.unique())
        assert ACCEPTED[0](gateway, people[-1:]).status == 503
    return people


@pytest.mark.slow
def test_none_of_ten_thousand_secrets_is_found(platform: Platform) -> None:
    secrets = [secret for person in platform.people for secret in person.secrets]

    assert len(set(secrets)) == len(secrets) > 10_000
    assert platform.findings(secrets) == []


def test_the_scan_finds_a_text_in_each_place(platform: Platform, tmp_path: Path) -> None:
    event_id, *_ = ids_in(platform.kafka, TOPIC)
    pseudonym = str(platform.lake.rows("silver/events", "gamer_id")["gamer_id"][0].as_py())
    secret = platform.people[0].email
    (tmp_path / "careless.log").write_text(f"a traceback with {secret} in it")

    found = "\n".join(platform.findings([event_id, pseudonym, secret], tmp_path))

    for place in (
        "kafka/data/events-",
        "topic events",
        "bronze/events",
        "silver/archery_duel_events",
        "vault.db",
        "careless.log",
    ):
        assert place in found


def test_no_secret_of_the_platform_is_in_a_log_a_command_line_or_an_environment(platform: Platform) -> None:
    keys = yaml.safe_load(platform.gateway.service.vault_keys_file.read_text())

    assert platform.findings([SECRET, keys["index"], *keys["keys"].values()]) == []


@pytest.mark.slow
def test_a_forgotten_player_does_not_return_with_an_old_version_or_a_replay(
    platform: Platform, registry: EmbeddedRegistry, tmp_path: Path
) -> None:
    forgotten, before = platform.people[:FORGOTTEN], platform.sealed()
    for person in forgotten:
        done = platform.run("forget_player", *ASKED, "--also-rows", "--yes", typed=[person.gamer_id])
        assert done.returncode == 0, done.stderr

    DeltaTable(platform.lake.directory / "lake/silver/events").restore(BEFORE)
    replayed = lake_of(tmp_path / "replayed", platform.kafka, registry)
    replayed.ingest()

    destroyed = before - platform.sealed()
    assert len(destroyed) == 2 * FORGOTTEN
    assert not [each for each in destroyed for file in platform.vault_files if each in file.read_bytes()]
    assert platform.findings([secret for person in forgotten for secret in person.secrets], replayed.directory) == []
    for person in forgotten:
        export = platform.run("export_player", *ASKED, typed=[person.gamer_id])
        assert (export.returncode, export.stdout) == (2, b"")

"""The gateway with a vault in PostgreSQL, which is killed, suspended, and has its keys rotated under load."""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gamelake.privacy.vault.access import VaultAccess
from gamelake.privacy.vault.key_file import read_key_file
from gamelake.privacy.vault.postgres_vault import PostgresVault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.vault import StoredPlayer, Vault
from tests.embedded.gateway import Gateway, body_of, events
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.postgres import EmbeddedPostgres
from tools.embedded.service import REPOSITORY

GAME = "archery_duel"
_CLIENTS = 4
_KNOWN = 5
# Counted with the statuses of responses: a 200 that does not accept all good events.
_GOOD_EVENTS_REJECTED = 0


@pytest.fixture
def access(postgres: EmbeddedPostgres) -> Iterator[VaultAccess]:
    name = f"vault_{uuid.uuid4().hex}"
    yield VaultAccess(postgres.uri(name), postgres.make_database(name))
    postgres.drop_database(name)


@pytest.fixture
def gateway(
    tmp_path: Path, access: VaultAccess, kafka: EmbeddedKafka, registry: EmbeddedRegistry, topic: Callable[[int], str]
) -> Iterator[Gateway]:
    """The service in two processes."""
    assert access.credentials is not None
    credentials = tmp_path / "vault-credentials"
    credentials.write_text(f"username={access.credentials.username}\npassword={access.credentials.password}\n")
    opened = Gateway.open(
        tmp_path,
        bootstrap_servers=kafka.bootstrap_servers,
        registry_url=registry.url,
        topic=topic(3),
        INGEST_PROCESSES="2",
        GAMELAKE_VAULT=access.place,
        GAMELAKE_VAULT_CREDENTIALS_FILE=str(credentials),
    )
    yield opened
    opened.process.stop()


@pytest.fixture
def vault(access: VaultAccess) -> Iterator[Vault]:
    opened = PostgresVault(access)
    yield opened
    opened.close()


def status_of_new_player(gateway: Gateway) -> int:
    return gateway.send(body_of(events(1, gamer_id=uuid.uuid4().hex, personal={"email": "new@example.org"}))).status


@pytest.mark.slow
def test_while_the_vault_is_down_new_players_get_503_and_afterwards_200(
    gateway: Gateway, postgres: EmbeddedPostgres
) -> None:
    assert status_of_new_player(gateway) == 200
    postgres.kill()
    try:
        assert {status_of_new_player(gateway) for _ in range(6)} == {503}
    finally:
        postgres.start()

    eventually(lambda: {status_of_new_player(gateway) for _ in range(6)} == {200})
    assert b"example.org" not in gateway.log()


def test_a_suspended_vault_is_503_within_seconds(gateway: Gateway, postgres: EmbeddedPostgres) -> None:
    assert status_of_new_player(gateway) == 200
    postgres.pause()
    try:
        with playing(gateway) as statuses:
            eventually(lambda: statuses[503] >= _CLIENTS)
    finally:
        postgres.resume()

    assert set(statuses) <= {200, 503}
    eventually(lambda: {status_of_new_player(gateway) for _ in range(6)} == {200})


@pytest.mark.slow
def test_vault_keys_are_rotated_under_load_and_no_request_fails(
    gateway: Gateway, vault: Vault, access: VaultAccess
) -> None:
    old = read_key_file(gateway.service.vault_keys_file).current
    with playing(gateway) as statuses:
        eventually(lambda: statuses[200] >= 20)
        new = job(gateway, access, "jobs.vault_keys", "add").strip()
        result = json.loads(job(gateway, access, "jobs.rotate_vault_keys"))
        rewrapped = statuses[200]
        eventually(lambda: statuses[200] >= rewrapped + 20)

    assert set(statuses) == {200}
    assert result["rotation"]["rewrapped"] > 0
    assert result["no_longer_needed"] == [old]
    assert set(vault.players_by_key()) == {new}

    job(gateway, access, "jobs.vault_keys", "remove", old)
    keys = VaultKeys.read(gateway.service.vault_keys_file)
    assert all(keys.unwrap(row).pseudonym == row.pseudonym for row in all_players(vault))
    # The cache is empty now: each player is read with the new key.
    gateway.process.stop()
    gateway.restart()
    before = len(all_players(vault))
    assert gateway.send(body_of(events(_KNOWN))).result.accepted == _KNOWN
    assert len(all_players(vault)) == before


@contextmanager
def playing(gateway: Gateway) -> Iterator[Counter[int]]:
    """Clients that send continuously: events of known players, a wrong one, one of a new player.

    Yields the counts of responses by status.
    """
    stop, statuses = threading.Event(), Counter[int]()

    def play() -> None:
        while not stop.is_set():
            known = events(_KNOWN, personal={"email": f"{uuid.uuid4().hex}@example.org"})
            new = events(1, gamer_id=uuid.uuid4().hex)
            reply = gateway.send(body_of([*known, {"not": "an event"}, *new]))
            statuses[reply.status] += 1
            if reply.status == 200 and reply.result.accepted != len(known + new):
                statuses[_GOOD_EVENTS_REJECTED] += 1

    clients = [threading.Thread(target=play) for _ in range(_CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield statuses
    finally:
        stop.set()
        for client in clients:
            client.join()


def job(gateway: Gateway, access: VaultAccess, *command: str) -> str:
    variables = {
        "GAMELAKE_VAULT": access.place,
        "GAMELAKE_VAULT_CREDENTIALS_FILE": str(gateway.folder / "vault-credentials"),
        "GAMELAKE_VAULT_KEYS_FILE": str(gateway.service.vault_keys_file),
    }
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=REPOSITORY, env=os.environ | variables, check=True, stdout=subprocess.PIPE
    ).stdout.decode()


def all_players(vault: Vault) -> list[StoredPlayer]:
    return list(vault.wrapped_otherwise("no such key", 1_000_000))

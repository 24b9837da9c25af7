"""The vault is lost: with a backup everybody is found again but the erased, without one only personal data is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from tests.embedded.gateway import Gateway, body_of, events
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.service import REPOSITORY

GAME, PLAYERS = "archery_duel", 20
Given = TypeVar("Given")


@pytest.fixture
def gateway(
    tmp_path: Path, kafka: EmbeddedKafka, registry: EmbeddedRegistry, topic: Callable[[int], str]
) -> Iterator[Gateway]:
    opened = Gateway.open(
        tmp_path, bootstrap_servers=kafka.bootstrap_servers, registry_url=registry.url, topic=topic(3)
    )
    yield opened
    opened.process.stop()


@pytest.mark.slow
def test_a_lost_vault_loses_only_personal_data_and_its_backup_restores_all_but_the_erased(
    gateway: Gateway, tmp_path: Path
) -> None:
    before = pseudonyms_after_playing(gateway)
    job(gateway, "jobs.backup_vault", "backup")
    with_vault(gateway, lambda vault, keys: vault.forget(keys.token(GAME, "p7"), "support"))
    job(gateway, "jobs.backup_vault", "erasures", "--erasures-only")

    # While it is gone nothing passes that it would have to keep; what it kept before needs no keeping.
    lose_the_vault(gateway)
    assert gateway.send(a_body(mail_at="new.example.org")).status == 503

    # Started without it, the service continues with new pseudonyms.
    gateway.process.stop()
    gateway.restart()
    anew = pseudonyms_after_playing(gateway)
    assert not set(anew.values()) & set(before.values())

    gateway.process.stop()
    lose_the_vault(gateway)
    result = json.loads(job(gateway, "jobs.restore_vault", "backup", "--erasures", "erasures", "--without-lakehouse"))
    assert result["restored"] == {"restored": PLAYERS - 1, "skipped": 1, "unreadable": 0, "erased_again": 0}
    gateway.restart()
    after = pseudonyms_after_playing(gateway)
    assert {name for name in before if after[name] != before[name]} == {"p7"}
    assert (
        with_vault(gateway, lambda vault, _keys: [len(vault.data_of(each)) for each in after.values()]) == [1] * PLAYERS
    )


def a_body(mail_at: str = "example.org") -> bytes:
    return body_of([events(1, gamer_id=f"p{n}", personal={"email": f"p{n}@{mail_at}"})[0] for n in range(PLAYERS)])


def pseudonyms_after_playing(gateway: Gateway) -> dict[str, str]:
    """What the players are called once each has sent an event."""
    assert gateway.send(a_body()).result.accepted == PLAYERS

    def names(vault: SqliteVault, keys: VaultKeys) -> dict[str, str]:
        tokens = {keys.token(GAME, f"p{number}"): f"p{number}" for number in range(PLAYERS)}
        return {tokens[token]: row.pseudonym for token, row in vault.find(list(tokens)).items()}

    return with_vault(gateway, names)


def with_vault(gateway: Gateway, work: Callable[[SqliteVault, VaultKeys], Given]) -> Given:
    vault = SqliteVault(gateway.service.vault_file)
    try:
        return work(vault, VaultKeys.read(gateway.service.vault_keys_file))
    finally:
        vault.close()


def lose_the_vault(gateway: Gateway) -> None:
    for file in gateway.folder.glob(f"{gateway.service.vault_file.name}*"):
        file.unlink()


def job(gateway: Gateway, name: str, file: str, *options: str) -> str:
    files = {file: str(gateway.folder / file)} | {
        each: str(gateway.folder / each) for each in options if each[0] != "-"
    }
    command = [sys.executable, "-m", name, *(files.get(each, each) for each in (file, *options))]
    variables = {
        "GAMELAKE_VAULT": str(gateway.service.vault_file),
        "GAMELAKE_VAULT_KEYS_FILE": str(gateway.service.vault_keys_file),
    }
    return subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | variables, check=True, stdout=subprocess.PIPE
    ).stdout.decode()

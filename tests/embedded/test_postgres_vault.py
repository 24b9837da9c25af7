"""The vault in a real PostgreSQL, and what becomes of it when the server is killed or stands still."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from gamelake.model.credentials import ServerCredentials
from gamelake.privacy.vault.access import VaultAccess
from gamelake.privacy.vault.postgres_connections import Connection, Connections
from gamelake.privacy.vault.postgres_remains import destroy
from gamelake.privacy.vault.postgres_vault import PostgresVault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.vault import SealedData, Vault, VaultRefusedError, VaultUnavailableError
from tests.support.vault_behaviour import OpenVault, VaultBehaviour, rows
from tests.support.vault_keys import key_file
from tools.embedded.postgres import EmbeddedPostgres


@pytest.fixture
def access(postgres: EmbeddedPostgres) -> Iterator[VaultAccess]:
    """An empty database of its own."""
    name = f"vault_{uuid.uuid4().hex}"
    yield VaultAccess(postgres.uri(name), postgres.make_database(name))
    postgres.drop_database(name)


@pytest.fixture
def open_again(access: VaultAccess) -> Iterator[OpenVault]:
    """Opens the vault once more, as another process would."""
    opened: list[PostgresVault] = []

    def open_it() -> PostgresVault:
        opened.append(PostgresVault(access))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


@pytest.fixture
def vault(open_again: OpenVault) -> Vault:
    return open_again()


@pytest.fixture
def lost_and_new(access: VaultAccess, vault: Vault, open_again: OpenVault) -> OpenVault:
    """Loses all tables of the vault, and opens what is there now."""

    def lose() -> Vault:
        vault.close()
        with connected(access) as connection:
            connection.execute("DROP TABLE personal_data, players, erasures, used_signatures, vault_steps")
        return open_again()

    return lose


@pytest.fixture
def keys(tmp_path: Path) -> VaultKeys:
    return VaultKeys.read(key_file(tmp_path))


@pytest.fixture
def bytes_on_disk(postgres: EmbeddedPostgres, access: VaultAccess) -> Callable[[], bytes]:
    """All that stands in the server's files: tables, indexes, and the log of changes."""

    def read() -> bytes:
        with connected(access) as connection:
            connection.execute("CHECKPOINT")
        return b"".join(file.read_bytes() for file in sorted(postgres.data.rglob("*")) if file.is_file())

    return read


def connected(access: VaultAccess) -> psycopg.Connection:
    assert access.credentials is not None
    user, password = access.credentials.username, access.credentials.password
    return psycopg.connect(make_conninfo(access.place, user=user, password=password), autocommit=True)


class TestPostgresVault(VaultBehaviour):
    """It does what every vault does."""


def test_a_wrong_password_is_reported_and_no_password_is_in_the_message(access: VaultAccess) -> None:
    assert access.credentials is not None
    wrong = VaultAccess(access.place, ServerCredentials(access.credentials.username, "hidden-as-well"))

    with pytest.raises(VaultUnavailableError, match="password authentication failed") as refusal:
        PostgresVault(wrong).find([b"t"])

    assert "hidden" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_a_row_that_can_not_be_is_refused_without_a_word_of_what_is_in_it(vault: Vault) -> None:
    player = rows(1)[0]
    vault.add([player])

    with pytest.raises(VaultRefusedError) as refusal:
        vault.keep([SealedData(pseudonym=f"{player.pseudonym}\0", fingerprint=b"f", sealed=b"hidden")])

    assert "hidden" not in str(refusal.value)
    vault.keep([SealedData(pseudonym=player.pseudonym, fingerprint=b"f", sealed=b"s")])
    assert vault.data_of(player.pseudonym) == [b"s"]


def test_a_server_that_was_killed_is_found_again_by_the_same_vault(postgres: EmbeddedPostgres, vault: Vault) -> None:
    before, after = rows(2)
    vault.add([before])
    postgres.kill()

    with pytest.raises(VaultUnavailableError):
        vault.add([after])
    postgres.start()

    assert vault.find([before.token]) == {before.token: before}
    assert vault.add([after]) == {after.token: after}


def test_a_server_that_stands_still_is_unavailable_within_seconds_and_found_again(
    postgres: EmbeddedPostgres, vault: Vault
) -> None:
    before, after = rows(2)
    vault.add([before])
    postgres.pause()
    try:
        started = time.monotonic()
        with pytest.raises(VaultUnavailableError):
            vault.add([after])
        assert time.monotonic() - started < 12
    finally:
        postgres.resume()

    assert vault.add([after]) == {after.token: after}
    assert vault.find([before.token]) == {before.token: before}


def test_an_erasure_whose_remains_a_transaction_could_still_read_is_finished_later(
    access: VaultAccess, vault: Vault, bytes_on_disk: Callable[[], bytes]
) -> None:
    player = rows(1)[0]
    vault.add([player])
    with connected(access) as reader:
        # Sees the database as it is now, and holds no lock on the players' table.
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM erasures")

        assert vault.forget(player.token, "support") is not None
        assert not vault.destroy_remains()
        assert player.wrapped_key in bytes_on_disk()

        reader.execute("COMMIT")

    assert vault.destroy_remains()
    assert player.wrapped_key not in bytes_on_disk()


def test_an_erasure_does_not_wait_for_readers_of_the_players(access: VaultAccess, vault: Vault) -> None:
    player = rows(1)[0]
    vault.add([player])
    with connected(access) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM players")

        assert vault.forget(player.token, "support") is not None
        with pytest.raises(VaultUnavailableError, match="lock"):
            vault.destroy_remains()

    assert vault.destroy_remains()


def test_a_destruction_that_failed_does_not_hinder_the_next_one_although_its_connection_is_still_open(
    access: VaultAccess, vault: Vault
) -> None:
    player = rows(1)[0]
    vault.add([player])
    with connected(access) as reader, closing(LingeringConnections(access)) as lingering:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM players")
        erasure = vault.forget(player.token, "support")
        assert erasure is not None

        for connections in (lingering, Connections(access)):
            with pytest.raises(VaultUnavailableError, match="lock"):
                destroy(connections, erasure.number)


class LingeringConnections(Connections):
    """Closes its connections late, because a busy server notices closed connections late."""

    def __init__(self, access: VaultAccess) -> None:
        super().__init__(access)
        self._open_ones = ExitStack()

    @contextmanager
    def patient(self, patience: timedelta) -> Iterator[Connection]:
        held = ExitStack()
        try:
            yield held.enter_context(super().patient(patience))
        except psycopg.Error as error:
            raise VaultUnavailableError(str(error)) from None
        finally:
            self._open_ones.push(held)

    def close(self) -> None:
        self._open_ones.close()
        super().close()

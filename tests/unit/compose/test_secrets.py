"""The stack's secrets: created once, protected from other users, never weak."""

import re
import stat
from pathlib import Path

import pytest

from gamelake.contract.access import load_access
from gamelake.contract.games import load_games
from gamelake.model.credentials import read_credentials
from gamelake.objects.store import shared_credentials
from gamelake.privacy.vault.secrecy import VaultKeys
from services.gateway.authentication import read_keys
from tests.support.programs import Outcome, run_alone
from tests.unit.compose.configured import COMPOSE, ON_A_FULL_DISK

GAMES = COMPOSE.parent / "contracts" / "games.yaml"

KAFKA = (
    "kafka-admin", "kafka-ingest", "kafka-ingest-events", "kafka-live-ops", "kafka-offers", "kafka-simulator",
    "kafka-maintenance", "kafka-object-store", "kafka-delivery", "kafka-trino", "kafka-audit",
)  # fmt: skip
OBJECT_STORE = (
    "object-store-root", "object-store-ingest-events", "object-store-serving", "object-store-privacy",
    "object-store-trino", "object-store-catalog", "object-store-maintenance", "object-store-delivery",
    "object-store-uploads", "object-store-audit", "object-store-metrics",
)  # fmt: skip
POSTGRES = ("postgres-registry", "postgres-vault")
KEYS = ("ingest-keys/keys.yaml", "vault-keys")
SECRET = re.compile(r"[0-9a-f]{48}|[A-Za-z0-9+/]{43}=")
REGISTRY = ("registry-writer",)
BARE = ("postgres-password", "grafana-password", "kafka-metrics", "spark-rpc", "trino-prometheus", "trino-internal")
ACCESS = COMPOSE.parent / "contracts" / "access.yaml"
TRINO = tuple(
    f"trino-{user.name}" for user in load_access(ACCESS, load_games(GAMES)).users if user.name != "prometheus"
)


class Secrets:
    """A directory that the script keeps secrets in."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *arguments: str, command: tuple[str, ...] = (), **variables: str) -> Outcome:
        """Run the script, by another command if there is one."""
        command = (*command, str(COMPOSE / "secrets.sh"), *arguments)
        return run_alone(command, SECRETS_DIRECTORY=self.directory, **variables)

    def replace(self, name: str, content: str) -> None:
        """Write a secret by hand, as a person might."""
        file = self.directory / name
        file.unlink()
        file.write_text(content)

    def contents(self) -> dict[str, str]:
        return {str(file.relative_to(self.directory)): file.read_text() for file in self.files()}

    def files(self) -> list[Path]:
        return [path for path in self.directory.rglob("*") if path.is_file()]


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    """Secrets as a first `make up` makes them."""
    made = Secrets(tmp_path / "secrets")
    outcome = made.run()
    assert outcome.returncode == 0, outcome.stderr
    return made


def test_each_secret_is_made_in_the_form_that_its_readers_take(secrets: Secrets) -> None:
    assert secrets.contents().keys() == {*KAFKA, *OBJECT_STORE, *POSTGRES, *REGISTRY, *TRINO, *BARE, *KEYS}
    for name in (*POSTGRES, *KAFKA, *REGISTRY, *TRINO):
        assert read_credentials(secrets.directory / name, "it").username == name.split("-", 1)[1]
    for name in OBJECT_STORE:
        key = shared_credentials(secrets.directory / name, "default")
        assert key["AWS_ACCESS_KEY_ID"] == f"gamelake-{name.removeprefix('object-store-')}"
    for name in BARE:
        assert re.fullmatch(r"[0-9a-f]{48}", (secrets.directory / name).read_text())


def test_every_game_of_the_contract_has_a_key_and_the_service_takes_the_file(secrets: Secrets) -> None:
    contract = load_games(GAMES)

    keys = read_keys(secrets.directory / "ingest-keys/keys.yaml", contract)

    assert {key.game for key in keys.values()} == {game.name for game in contract.games}
    assert len(keys) == len(contract.games)


def test_the_vault_takes_its_keys(secrets: Secrets) -> None:
    assert VaultKeys.read(secrets.directory / "vault-keys").current == "first"


def test_a_game_that_comes_later_gets_its_key_and_the_others_keep_theirs(tmp_path: Path, secrets: Secrets) -> None:
    before = (secrets.directory / "ingest-keys/keys.yaml").read_text()
    games = tmp_path / "games.yaml"
    games.write_text(GAMES.read_text() + "  - name: a_new_one\n    match: [A New One]\n")

    assert secrets.run(GAMES_FILE=str(games)).stdout == "made ingest-keys/keys.yaml\n"

    after = (secrets.directory / "ingest-keys/keys.yaml").read_text()
    assert after.startswith(before)
    assert "game: a_new_one," in after.removeprefix(before)


def test_a_full_disk_leaves_the_keys_as_they_were(tmp_path: Path, secrets: Secrets) -> None:
    before = secrets.contents()
    games = tmp_path / "games.yaml"
    games.write_text(GAMES.read_text() + "  - name: a_new_one\n    match: [A New One]\n")

    outcome = secrets.run(GAMES_FILE=str(games), command=ON_A_FULL_DISK)

    assert outcome.returncode != 0
    assert {name: secrets.contents().get(name) for name in before} == before


def test_a_user_of_trino_that_comes_later_gets_a_password(tmp_path: Path, secrets: Secrets) -> None:
    access = tmp_path / "access.yaml"
    access.write_text(ACCESS.read_text() + "  - {name: analyst-new, role: game_analyst, games: [yeti_ski]}\n")

    assert secrets.run(ACCESS_FILE=str(access)).stdout == "made trino-analyst-new\n"


def test_no_two_secrets_are_alike(secrets: Secrets) -> None:
    texts = {name: SECRET.findall(text) for name, text in secrets.contents().items()}

    assert {name for name, found in texts.items() if len(found) != 1} == set(KEYS)
    everything = [secret for found in texts.values() for secret in found]
    assert len(set(everything)) == len(everything)


def test_only_their_owner_gets_to_the_files_and_containers_can_read_them(secrets: Secrets) -> None:
    assert stat.S_IMODE(secrets.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets.files()} == {0o444}
    assert stat.S_IMODE((secrets.directory / "ingest-keys").stat().st_mode) == 0o755


def test_a_second_run_changes_nothing_and_says_nothing(secrets: Secrets) -> None:
    before = secrets.contents()

    outcome = secrets.run()

    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    assert secrets.contents() == before


def test_only_a_missing_secret_is_made_again(secrets: Secrets) -> None:
    before = secrets.contents()
    (secrets.directory / "kafka-ingest-events").unlink()

    outcome = secrets.run()

    assert outcome.stdout == "made kafka-ingest-events\n"
    after = secrets.contents()
    assert after.pop("kafka-ingest-events") != before.pop("kafka-ingest-events")
    assert after == before


def test_no_secret_is_ever_printed(tmp_path: Path) -> None:
    fresh = Secrets(tmp_path / "secrets")

    printed = fresh.run().stdout + fresh.run("--check").stdout

    for text in fresh.contents().values():
        for value in SECRET.findall(text):
            assert value not in printed


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("object-store-root", "[default]\naws_access_key_id = minioadmin\naws_secret_access_key = minioadmin\n",
         "the aws_access_key_id is well known"),
        ("object-store-root", "[default]\naws_access_key_id = gamelake-root\naws_secret_access_key = MinioAdmin\n",
         "the aws_secret_access_key is well known"),
        ("object-store-trino", "[default]\naws_access_key_id = gamelake-trino\naws_secret_access_key = k3kd93jd\n",
         "the aws_secret_access_key has less than 16 characters"),
        ("kafka-admin", "username=admin\npassword=changeme\n", "the password is well known"),
        ("kafka-admin", "username=boss\npassword=0123456789abcdef\n", "it must contain username=admin"),
        ("kafka-ingest-events", "username=ingest-events\n", "there is no password"),
        ("kafka-simulator", 'username=simulator\npassword=0123456789"abcdef\n', "the password has characters"),
        ("postgres-vault", "username=postgres\npassword=0123456789abcdef\n", "it must contain username=vault"),
        ("postgres-password", "postgres", "the password is well known"),
        ("trino-admin", "username=admin\npassword=trino\n", "the password is well known"),
        ("trino-admin", "username=boss\npassword=0123456789abcdef\n", "it must contain username=admin"),
        ("trino-prometheus", "prometheus", "the password is well known"),
        ("grafana-password", "admin", "the password is well known"),
    ],
)  # fmt: skip
def test_a_weak_or_unreadable_secret_is_rejected_with_the_remedy(
    secrets: Secrets, name: str, content: str, problem: str
) -> None:
    secrets.replace(name, content)

    for outcome in (secrets.run("--check"), secrets.run()):
        assert outcome.returncode == 1
        (sentence,) = outcome.stderr.splitlines()
        assert f"{name}: {problem}" in sentence
        assert "remove that file and run 'make up'" in sentence


def test_a_directory_that_other_users_can_read_is_rejected(secrets: Secrets) -> None:
    secrets.directory.chmod(0o755)

    outcome = secrets.run("--check")

    assert outcome.returncode == 1
    assert "is accessible for other users of this machine: run 'chmod 700" in outcome.stderr


def test_a_check_before_the_first_start_says_how_to_create_them(tmp_path: Path) -> None:
    outcome = Secrets(tmp_path / "secrets").run("--check")

    assert outcome.returncode == 1
    assert "there are no secrets yet: run 'make up'" in outcome.stderr
    assert not (tmp_path / "secrets").exists()


def test_the_provider_to_try_logins_with_gets_a_client_secret_and_a_visitor(secrets: Secrets) -> None:
    assert secrets.run(OIDC="keycloak").stdout.splitlines() == ["made oidc-client", "made keycloak-visitor"]
    assert SECRET.fullmatch((secrets.directory / "oidc-client").read_text())
    assert read_credentials(secrets.directory / "keycloak-visitor", "it").username == "visitor"


def test_superset_gets_a_database_user_and_a_key(secrets: Secrets) -> None:
    assert secrets.run(BI="1").stdout.splitlines() == ["made postgres-superset", "made superset-key"]
    assert SECRET.fullmatch((secrets.directory / "superset-key").read_text())
    assert read_credentials(secrets.directory / "postgres-superset", "it").username == "superset"


def test_the_secret_that_a_provider_has_issued_is_asked_for_and_left_as_it_is(secrets: Secrets) -> None:
    file = secrets.directory / "oidc-client"

    assert "oidc-client is missing or empty: write the secret into it" in secrets.run(OIDC="1").stderr
    file.write_text("7~x.Z")
    file.chmod(0o600)
    assert f"run 'chmod 444 {file}'" in secrets.run(OIDC="1").stderr
    file.chmod(0o444)
    assert secrets.run(OIDC="1").returncode == 0
    assert file.read_text() == "7~x.Z"

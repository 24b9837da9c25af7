"""Keys and signatures: which requests are authenticated."""

from datetime import timedelta
from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from services.gateway.authentication import Authenticator, Keyring, SignatureHeaders, read_keys, sign
from services.gateway.errors import AuthenticationError
from tests.unit.gateway.events import contract

NOW = 1_800_000_000.0
OLD, NEW = "an-old-secret-of-more-than-32-characters", "a-new-secret-of-more-than-32-characters!"
BODY = b'{"events": []}'


def key_file(folder: Path, *, secrets: str = f"{OLD}, {NEW}", game: str = "archery_duel") -> Path:
    file = folder / "keys.yaml"
    file.write_text(f"keys:\n  - id: archery-1\n    game: {game}\n    secrets: [{secrets}]\n")
    return file


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return Keyring(key_file(tmp_path), contract())


@pytest.fixture
def authenticator(keyring: Keyring) -> Authenticator:
    return Authenticator(keyring, timedelta(seconds=300))


def signed(*, key: str = "archery-1", at: float = NOW, secret: str = NEW, body: bytes = BODY) -> SignatureHeaders:
    timestamp = str(int(at))
    return SignatureHeaders(key, timestamp, sign(secret.encode(), timestamp, body))


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_both_secrets_of_a_key_are_valid_while_one_is_replaced(authenticator: Authenticator, secret: str) -> None:
    mine = signed(secret=secret)

    authenticator.verify(authenticator.find_game_key(mine, NOW), mine, BODY)


def test_the_signature_is_that_of_rfc_2104() -> None:
    # What `printf '1700000000.{}' | openssl dgst -sha256 -hmac key` prints.
    assert sign(b"key", "1700000000", b"{}") == "9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"


@pytest.mark.parametrize(
    "wrong",
    [
        signed(body=b"another"),
        signed(secret="x" * 40),
        SignatureHeaders("archery-1", str(int(NOW)), ""),
        SignatureHeaders("archery-1", str(int(NOW)), "ä" * 64),
        SignatureHeaders("archery-1", str(int(NOW) + 1), signed().signature),
    ],
)
def test_a_signature_of_another_body_or_timestamp_is_refused(
    authenticator: Authenticator, wrong: SignatureHeaders
) -> None:
    with pytest.raises(AuthenticationError):
        authenticator.verify(authenticator.find_game_key(wrong, NOW), wrong, BODY)


@pytest.mark.parametrize("at", [NOW - 301, NOW + 302])
def test_a_timestamp_outside_the_window_is_refused_before_the_body_is_read(
    authenticator: Authenticator, at: float
) -> None:
    with pytest.raises(AuthenticationError):
        authenticator.find_game_key(signed(at=at), NOW)


@pytest.mark.parametrize("key", ["archery-1", "unknown"])
@pytest.mark.parametrize(
    ("at", "said"), [(NOW - 720, "720 s behind the gateway's clock"), (NOW + 600, "600 s ahead of the gateway's clock")]
)
def test_a_sender_whose_clock_is_wrong_gets_the_difference_and_a_remedy_whatever_its_key(
    authenticator: Authenticator, key: str, at: float, said: str
) -> None:
    with pytest.raises(AuthenticationError, match=f"{said}, more than the 300 s .* set the sender's clock"):
        authenticator.find_game_key(signed(key=key, at=at), NOW)


@pytest.mark.parametrize("timestamp", ["", "now", "-5", "1e9", "٣", "9" * 40])
def test_a_malformed_timestamp_is_refused(authenticator: Authenticator, timestamp: str) -> None:
    with pytest.raises(AuthenticationError):
        authenticator.find_game_key(SignatureHeaders("archery-1", timestamp, ""), NOW)


def test_an_unknown_key_is_refused(authenticator: Authenticator) -> None:
    with pytest.raises(AuthenticationError):
        authenticator.find_game_key(signed(key="unknown"), NOW)


def test_a_changed_key_file_is_read_again(keyring: Keyring, tmp_path: Path) -> None:
    key_file(tmp_path, secrets=NEW)

    keyring.refresh()

    key = keyring.find("archery-1")
    assert key is not None
    assert key.secrets == (NEW,)


def test_an_invalid_key_file_leaves_the_keys_as_they_were(keyring: Keyring, tmp_path: Path) -> None:
    key_file(tmp_path, secrets="short")

    keyring.refresh()

    assert keyring.find("archery-1") is not None


@pytest.mark.parametrize("secrets", ["short", "", f"{OLD}, {NEW}, {OLD}x", "[", "4711"])
def test_an_invalid_key_file_is_refused_without_showing_its_content(tmp_path: Path, secrets: str) -> None:
    file = key_file(tmp_path, secrets=secrets)

    with pytest.raises(SettingsError) as refused:
        read_keys(file, contract())

    assert str(file) in str(refused.value)
    assert not secrets or secrets not in str(refused.value).replace(str(file), "").replace("$.keys[...]", "")


def test_a_key_of_a_game_that_the_contract_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="chess_club"):
        read_keys(key_file(tmp_path, game="chess_club"), contract())

"""Who may send, how much, and in what packing."""

import gzip
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import zstandard

from gamelake.model.errors import SettingsError
from services.gateway.authentication import Authenticator, Claim, Keyring, read_keys, sign
from services.gateway.errors import TooLargeError, TooManyEventsError, UnknownSenderError, UnreadableBodyError
from services.gateway.limits import RateLimits
from services.gateway.request_body import unpack
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


def claim(*, key: str = "archery-1", at: float = NOW, secret: str = NEW, body: bytes = BODY) -> Claim:
    timestamp = str(int(at))
    return Claim(key, timestamp, sign(secret.encode(), timestamp, body))


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_both_secrets_of_a_key_are_good_while_one_is_replaced(authenticator: Authenticator, secret: str) -> None:
    mine = claim(secret=secret)

    authenticator.check(authenticator.recognise(mine, NOW), mine, BODY)


def test_the_signature_is_that_of_rfc_2104() -> None:
    # What `printf '1700000000.{}' | openssl dgst -sha256 -hmac key` prints.
    assert sign(b"key", "1700000000", b"{}") == "9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"


@pytest.mark.parametrize(
    "wrong",
    [
        claim(body=b"another"),
        claim(secret="x" * 40),
        Claim("archery-1", str(int(NOW)), ""),
        Claim("archery-1", str(int(NOW)), "ä" * 64),
        Claim("archery-1", str(int(NOW) + 1), claim().signature),
    ],
)
def test_a_signature_that_is_not_of_this_body_and_moment_is_refused(authenticator: Authenticator, wrong: Claim) -> None:
    with pytest.raises(UnknownSenderError):
        authenticator.check(authenticator.recognise(wrong, NOW), wrong, BODY)


@pytest.mark.parametrize("at", [NOW - 301, NOW + 302])
def test_a_request_of_another_time_is_refused_before_its_body_is_there(authenticator: Authenticator, at: float) -> None:
    with pytest.raises(UnknownSenderError):
        authenticator.recognise(claim(at=at), NOW)


@pytest.mark.parametrize("timestamp", ["", "now", "-5", "1e9", "٣", "9" * 40])
def test_a_timestamp_that_is_none_is_refused(authenticator: Authenticator, timestamp: str) -> None:
    with pytest.raises(UnknownSenderError):
        authenticator.recognise(Claim("archery-1", timestamp, ""), NOW)


def test_a_key_that_nobody_has_is_refused(authenticator: Authenticator) -> None:
    with pytest.raises(UnknownSenderError):
        authenticator.recognise(claim(key="nobody"), NOW)


def test_a_key_file_that_changes_is_read_again(keyring: Keyring, tmp_path: Path) -> None:
    key_file(tmp_path, secrets=NEW)

    keyring.refresh()

    key = keyring.find("archery-1")
    assert key is not None
    assert key.secrets == (NEW,)


def test_a_key_file_that_breaks_leaves_the_keys_as_they_were(keyring: Keyring, tmp_path: Path) -> None:
    key_file(tmp_path, secrets="short")

    keyring.refresh()

    assert keyring.find("archery-1") is not None


@pytest.mark.parametrize("secrets", ["short", "", f"{OLD}, {NEW}, {OLD}x", "[", "4711"])
def test_a_bad_key_file_is_refused_without_a_word_of_what_it_holds(tmp_path: Path, secrets: str) -> None:
    file = key_file(tmp_path, secrets=secrets)

    with pytest.raises(SettingsError) as refused:
        read_keys(file, contract())

    assert str(file) in str(refused.value)
    assert not secrets or secrets not in str(refused.value).replace(str(file), "").replace("$.keys[...]", "")


def test_a_key_of_a_game_that_the_contract_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="chess_club"):
        read_keys(key_file(tmp_path, game="chess_club"), contract())


def test_a_game_over_its_rate_is_told_when_to_come_back_and_holds_up_no_other() -> None:
    rates = RateLimits(timedelta(seconds=2))
    rates.take("archery_duel", 100, 200, now=0.0)

    with pytest.raises(TooManyEventsError) as refused:
        rates.take("archery_duel", 100, 50, now=0.0)
    rates.take("bingo_harbor", 100, 200, now=0.0)
    rates.take("archery_duel", 100, 50, now=0.5)

    assert refused.value.retry_after == timedelta(seconds=0.5)


def test_a_game_that_sends_without_end_gets_its_rate() -> None:
    rates, taken = RateLimits(timedelta(seconds=1)), 0
    for tick in range(10_000):
        try:
            rates.take("archery_duel", 100, 7, now=tick / 100)
        except TooManyEventsError:
            continue
        taken += 7

    assert 100 * 100 <= taken <= 100 * 100 + 100 + 7


@pytest.mark.parametrize("processes", [1, 4])
def test_a_batch_larger_than_the_bucket_goes_when_it_is_full_and_leaves_it_owing(processes: int) -> None:
    rates = RateLimits(timedelta(seconds=1), processes)
    rates.take("archery_duel", 100 * processes, 500, now=0.0)

    with pytest.raises(TooManyEventsError):
        rates.take("archery_duel", 100 * processes, 1, now=3.9)
    rates.take("archery_duel", 100 * processes, 1, now=4.1)


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "zstd"])
def test_a_body_comes_out_as_it_was_packed(encoding: str) -> None:
    packings: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}
    pack = packings.get(encoding, bytes)

    assert unpack(pack(BODY), encoding, 100) == BODY


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_bomb_is_refused_at_the_limit(pack: Callable[[bytes], bytes]) -> None:
    encoding = "gzip" if pack is gzip.compress else "zstd"
    bomb: bytes = pack(bytes(50_000_000))

    with pytest.raises(TooLargeError):
        unpack(bomb, encoding, 1_000_000)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (BODY, "gzip"),
        (gzip.compress(BODY)[:-1], "gzip"),
        (gzip.compress(BODY) + b"more", "gzip"),
        (zlib.compress(BODY), "gzip"),
        (BODY, "zstd"),
        (zstandard.compress(BODY)[:-1], "zstd"),
        (zstandard.compress(BODY) + b"more", "zstd"),
        (zstandard.compress(bytes(range(256)) * 40)[:-1], "zstd"),
        (zstandard.compress(BODY) + bytes(1000), "zstd"),
        (b"", "zstd"),
    ],
    # What gzip packs has the time in it: no name of a test may change from second to second.
    ids=["plain", "cut", "longer", "zlib", "plain", "cut", "longer", "cut later", "much longer", "empty"],
)
def test_a_packing_that_is_broken_is_told(body: bytes, encoding: str) -> None:
    with pytest.raises(UnreadableBodyError):
        unpack(body, encoding, 100)

"""Signed files of experiments: published by the command line, loaded and checked by the SDK."""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.experiments import ExperimentSpec
from gamelake.contract.published_experiments import SigningKey, Validity, create_key, publish, read_key
from gamelake.contract.time_zones import TimeZone
from gamelake.model.errors import SettingsError
from services.sdk import Experiment, ExperimentFile, ExperimentFileError
from services.sdk.ed25519 import is_signature
from tests.unit.properties import examples

GAME = "kart_rumble"
KEY, OTHER_KEY = SigningKey.of(bytes(range(32))), SigningKey.of(bytes(32))
PUBLISHED = datetime(2026, 11, 30, tzinfo=UTC)
NOW = PUBLISHED.timestamp()
VALIDITY = Validity(PUBLISHED, timedelta(days=30))
VECTORS = json.loads(Path("contracts/experiment_vectors.json").read_text(encoding="utf-8"))["signed_file"]
KEYS = {KEY.id: KEY.public}


def spec(name: str, game: str = GAME, **changes: object) -> ExperimentSpec:
    return msgspec.convert(
        {
            "name": name,
            "game": game,
            "description": "?",
            "variants": [{"name": "control", "share": 0.5}, {"name": "offer", "share": 0.5}],
            "start": "2026-11-01",
            "end": "2026-12-10",
            "eligibility": {"share": 0.5, "platforms": ["ios"]},
            "primary": "bookings",
        }
        | changes,
        ExperimentSpec,
    )


SPECS = [
    spec("new_shop"),
    spec("over", start="2026-10-01", end="2026-11-29"),
    spec("future", start="2026-12-01"),
    spec("of_another_game", "archery_duel"),
]
FILE = publish(SPECS, GAME, KEY, VALIDITY)


def test_a_published_file_has_the_experiments_of_the_game_that_are_not_over() -> None:
    loaded = ExperimentFile.load(FILE, KEYS, NOW)

    assert (loaded.game, set(loaded.experiments)) == (GAME, {"new_shop", "future"})


def test_a_player_gets_the_variant_that_a_declared_experiment_gives() -> None:
    loaded = ExperimentFile.load(FILE, KEYS, NOW)
    declared = Experiment("new_shop", "new_shop", 5_000, [("control", 5_000), ("offer", 5_000)], {"platform": ["ios"]})

    for player in map("player-{}".format, range(100)):
        for context in ({"platform": "ios"}, {"platform": "web"}):
            expected = declared.variant_of(player, context)
            assert loaded.variant_of("new_shop", player, context, now=NOW) == expected


def test_an_experiment_has_players_only_on_its_days_in_the_games_time_zone() -> None:
    zone = TimeZone("Asia/Tokyo")
    file = publish([spec("new_shop", eligibility={})], GAME, KEY, VALIDITY, zone.name)
    loaded = ExperimentFile.load(file, KEYS, NOW)
    dated = loaded.experiments["new_shop"]

    for moment in (dated.starts_at, dated.starts_at - 1, dated.ends_at - 1, dated.ends_at):
        day = zone.day(datetime.fromtimestamp(moment, UTC)).isoformat()
        is_in = loaded.variant_of("new_shop", "player-1", now=moment) is not None
        assert is_in == ("2026-11-01" <= day <= "2026-12-10")


def test_an_expired_file_is_refused_and_a_loaded_one_assigns_no_player() -> None:
    loaded = ExperimentFile.load(FILE, KEYS, loaded_at := NOW + 30 * 86_400 - 1)

    assert loaded.variant_of("future", "player-1", {"platform": "ios"}, now=loaded_at + 1) is None
    with pytest.raises(ExperimentFileError, match="expired"):
        ExperimentFile.load(FILE, KEYS, loaded_at + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"payload": "{}"}, "signature .* is wrong"),
        ({"signature": OTHER_KEY.sign(json.loads(FILE)["payload"])}, "signature .* is wrong"),
        ({"signature": base64.b64encode(bytes(64)).decode()}, "signature .* is wrong"),
        ({"key": OTHER_KEY.id}, "does not know"),
        ({"key": ["x"]}, "does not know"),
        ({"signature": "?"}, "damaged"),
        ({"payload": None}, "damaged"),
        ({"payload": "{}", "signature": KEY.sign("{}")}, "update the SDK"),
    ],
)
def test_a_changed_file_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ExperimentFileError, match=message):
        ExperimentFile.load(json.dumps(json.loads(FILE) | change).encode(), KEYS, NOW)


@examples(100)
@given(st.binary() | st.integers(0, len(FILE) - 1).map(lambda end: FILE[:end].rstrip()))
def test_any_other_bytes_are_refused_with_the_same_error(content: bytes) -> None:
    if content == FILE.rstrip():
        return
    with pytest.raises(ExperimentFileError):
        ExperimentFile.load(content, KEYS, NOW)


def test_two_keys_are_valid_while_one_replaces_the_other() -> None:
    keys = {KEY.id: KEY.public, OTHER_KEY.id: OTHER_KEY.public}

    for key in (KEY, OTHER_KEY):
        assert ExperimentFile.load(publish(SPECS, GAME, key, VALIDITY), keys, NOW).game == GAME


@pytest.mark.parametrize("public", ["?", "AAAA", "", "A" * 44 + "\u00fc"])
def test_a_public_key_that_is_not_one_is_an_error_that_names_its_id(public: str) -> None:
    with pytest.raises(ExperimentFileError, match=f"public key '{KEY.id}' is not"):
        ExperimentFile.load(FILE, {KEY.id: public}, NOW)


@examples(25)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200), st.integers(0, 63), st.integers(1, 255))
def test_signatures_are_verified_as_cryptography_verifies_them(
    seed: bytes, message: bytes, place: int, change: int
) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = private.public_key().public_bytes_raw(), private.sign(message)
    damaged = bytearray(signature)
    damaged[place] ^= change

    assert is_signature(public, message, signature)
    assert not is_signature(public, message, bytes(damaged))
    assert not is_signature(public, message + b"x", signature)


def test_a_signature_with_a_scalar_above_the_order_is_refused() -> None:
    public, signature = base64.b64decode(KEY.public), KEY.private.sign(b"x")
    scalar = int.from_bytes(signature[32:], "little") + 2**252 + 27742317777372353535851937790883648493

    assert is_signature(public, b"x", signature)
    assert not is_signature(public, b"x", signature[:32] + scalar.to_bytes(32, "little"))
    assert not is_signature(public[:31], b"x", signature)


def test_a_new_key_is_readable_by_its_owner_only_and_replaces_none(tmp_path: Path) -> None:
    file = tmp_path / "key"
    key = create_key(file)

    assert (read_key(file).id, file.stat().st_mode & 0o777) == (key.id, 0o600)
    with pytest.raises(SettingsError, match="exists"):
        create_key(file)
    for content in (b"{}", b"\xff", b'{"private": "' + b"?" * 44 + b'"}'):
        file.write_bytes(content)
        with pytest.raises(SettingsError, match="is not a signing key"):
            read_key(file)
    with pytest.raises(SettingsError, match="can't be read"):
        read_key(tmp_path / "missing")


def test_the_published_file_of_the_vectors_is_what_the_code_signs_and_loads() -> None:
    specs = [spec("new_shop", eligibility={"share": 0.5, "platforms": ["ios"]})]
    content = publish(specs, GAME, KEY, VALIDITY)
    assert json.loads(content) == VECTORS["file"], content.decode()

    loaded = ExperimentFile.load(json.dumps(VECTORS["file"]).encode(), VECTORS["public_keys"], VECTORS["now"])
    assert [
        loaded.variant_of(each["experiment"], each["player"], each["context"], now=each["now"])
        for each in VECTORS["variants"]
    ] == [each["variant"] for each in VECTORS["variants"]]
    for refused in VECTORS["refused"]:
        with pytest.raises(ExperimentFileError):
            ExperimentFile.load(json.dumps(refused["file"]).encode(), VECTORS["public_keys"], refused["now"])

"""`gamelake experiments` creates a signing key, and signs a game's experiments; it needs no stack."""

import json
import time
from pathlib import Path

import pytest

from services.sdk import ExperimentFile
from tools.cli.__main__ import main


def test_a_published_file_is_valid_with_the_public_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, out = tmp_path / "key", tmp_path / "experiments.json"
    assert main(["experiments", "new-key", "--key", str(key), "--json"]) == 0
    created = json.loads(capsys.readouterr().out)
    assert main(["experiments", "public-key", "--key", str(key)]) == 0
    assert capsys.readouterr().out == f"{created['key']}: {created['public']}\n"

    assert main(["experiments", "publish", "kart_rumble", "--key", str(key), "--out", str(out), "--days", "7"]) == 0

    now = time.time()
    loaded = ExperimentFile.load(out.read_bytes(), {created["key"]: created["public"]}, now)
    assert loaded.game == "kart_rumble"
    assert 6.9 * 86_400 < loaded.expires_at - now <= 7 * 86_400
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("publish", "no_game", "--key", "{key}", "--out", "{folder}/x"), "does not have the game 'no_game'"),
        (("publish", "kart_rumble", "--key", "{folder}/none", "--out", "{folder}/x"), "can't be read"),
        (("publish", "kart_rumble", "--key", "{key}", "--out", "{folder}/none/x"), "can't be written"),
        (("new-key", "--key", "{key}"), "exists"),
    ],
)
def test_an_error_names_the_cause_and_writes_nothing(
    arguments: tuple[str, ...], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    main(["experiments", "new-key", "--key", str(key)])

    assert main(["experiments", *(each.format(key=key, folder=tmp_path) for each in arguments)]) == 2
    assert problem in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["key"]

"""`python -m tools.dev.send` says what is wrong before it sends anything."""

from pathlib import Path

import pytest

from gamelake.schemas.event_schemas import newest_submitted
from tools.dev.send import main, unknown_fields
from tools.embedded.service import REPOSITORY


def test_a_game_without_a_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "keys.yaml").write_text("keys: []\n")

    assert main(["chess", "{}", "--directory", str(tmp_path)]) == 1
    assert "there is no key for the game 'chess'" in capsys.readouterr().err


def test_without_make_dev_the_missing_file_of_keys_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chess", "{}", "--directory", str(tmp_path)]) == 1
    assert "keys.yaml can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]", "1"])
def test_what_is_no_json_object_is_not_sent(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["chess", text])
    assert "is not a JSON object" in capsys.readouterr().err


def test_a_field_that_the_contract_lacks_is_named_with_the_nearest_one() -> None:
    contract = newest_submitted(REPOSITORY / "contracts").message
    event = {"event_nme": "tap", "gamer_id": "ada", "event_params": {"levle": 7}, "attributes": {"anything": "1"}}

    found = list(unknown_fields(contract, event))

    assert [line.partition(": ")[0] for line in found] == [
        "the contract has no field event_nme",
        "the contract has no field event_params.levle",
    ]
    assert found[0].endswith("did you mean event_name?")
    assert found[1].endswith("did you mean level?")


def test_a_game_that_is_misspelt_is_named_with_the_nearest_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "keys.yaml").write_text(
        f"keys:\n  - {{id: kart_rumble, game: kart_rumble, secrets: [{'ab' * 32}]}}\n"
    )

    assert main(["kart_rumbel", "{}", "--directory", str(tmp_path)]) == 1
    assert "did you mean kart_rumble?" in capsys.readouterr().err

"""`python -m tools.dev.send` says what is wrong before it sends anything."""

from pathlib import Path

import pytest

from tools.dev.send import main


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
    assert "is no JSON object" in capsys.readouterr().err

"""A command asks before it changes something, and prints its result as one JSON document."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from gamelake.command import (
    add_confirmation,
    command_parser,
    day,
    is_confirmed,
    number,
    one_of,
    print_result,
    require_answer,
    whole,
)

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("answer", "agrees"), [("y\n", True), ("yes\n", True), ("no\n", False), ("\n", False), ("", False)]
)
def test_only_a_yes_confirms_and_no_answer_is_a_no(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, agrees: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))

    assert is_confirmed("Delete it?", {"files": 3}) is agrees

    printed = capsys.readouterr()
    assert "Delete it?" in printed.out
    assert json.loads(printed.err) == {"files": 3}


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_a_command_that_no_person_can_answer_needs_yes_or_a_dry_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    parser = command_parser("Deletes everything.")
    add_confirmation(parser, "print what would be deleted, and delete nothing")

    require_answer(parser, parser.parse_args([option]))
    with pytest.raises(SystemExit, match="2"):
        require_answer(parser, parser.parse_args([]))

    assert "use --yes or --dry-run" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["jobs.vault_keys", "services.notifier"])
def test_the_help_of_a_command_shows_how_an_operator_starts_it(module: str) -> None:
    shown = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)

    assert shown.stdout.startswith(f"usage: python -m {module} ")


def test_a_result_is_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_result([{"table": "silver/events", "files": 2}]) == 0

    assert json.loads(capsys.readouterr().out) == [{"table": "silver/events", "files": 2}]


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (whole(0, 1_000_000), "abc", "'abc' is not a whole number from 0 to 1,000,000"),
        (whole(0, 1_000_000), "-1", "'-1' is not a whole number from 0 to 1,000,000"),
        (whole(1), "1.5", "'1.5' is not a whole number of at least 1"),
        (number(0, 10), "nan", "'nan' is not a number from 0 to 10"),
        (day, "yesterday", "'yesterday' is not a day, such as 2026-11-29"),
        (one_of(("duckdb", "spark")), "duck", "'duck' is unknown; it must be duckdb or spark; did you mean duckdb?"),
    ],
)
def test_a_wrong_argument_is_named_with_what_it_may_be(
    kind: Callable[[str], object], text: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = command_parser("Does something.")
    parser.add_argument("--what", type=kind)

    with pytest.raises(SystemExit, match="2"):
        parser.parse_args([f"--what={text}"])

    assert f"argument --what: {problem}\n" in capsys.readouterr().err


def test_right_arguments_are_values_of_their_kind() -> None:
    assert (whole(1)("7"), number(0, 1)("0.5"), day("2026-11-29"), one_of(("a", "b"))("b")) == (
        7,
        0.5,
        date(2026, 11, 29),
        "b",
    )


# What argparse says where a `type` raises another error than its own: the name of a private function or an address.
_BAD_TYPES = re.compile(r"type=(?:_[a-z]\w*|\w+\.fromisoformat)\b")


@pytest.mark.parametrize("folder", ["gamelake", "jobs", "services", "tools"])
def test_no_type_of_an_argument_shows_its_own_name_for_a_typo(folder: str) -> None:
    files = {file: file.read_text(encoding="utf-8") for file in sorted((REPOSITORY / folder).rglob("*.py"))}

    shown = {
        str(file): _BAD_TYPES.findall(text)
        for file, text in files.items()
        if "ArgumentTypeError" not in text and _BAD_TYPES.search(text)
    }

    assert shown == {}

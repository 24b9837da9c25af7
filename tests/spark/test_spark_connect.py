"""The snippet of docs/connecting.md for Spark Connect runs as it stands there."""

import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.pages import REPOSITORY, snippets

PYTHON = REPOSITORY / "build/engines/bin/python"
pytestmark = pytest.mark.slow


def test_the_snippet_of_spark_connect_counts_the_events_of_each_game(
    tmp_path: Path, missing_service: Callable[[str], NoReturn]
) -> None:
    if not PYTHON.exists():
        missing_service("Sail is not installed: run make engines")
    [code] = [each.text for each in snippets("docs/connecting.md") if "SparkConnectServer" in each.text]
    days = pa.array([date(2026, 11, 26)] * 3)
    rows = pa.table({"game_name": ["Archery", "Archery", "Bingo"], "event_date": days})
    write_deltalake(tmp_path / "build/demo/lakehouse/silver/events", rows, partition_by=["event_date"])

    # PySpark takes a program without a file for its own doctests.
    script = tmp_path / "snippet.py"
    script.write_text(code, encoding="utf-8")
    run = subprocess.run((PYTHON, script), cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    counted = [line.strip("|").split("|") for line in run.stdout.splitlines() if line.startswith("|")]
    assert [[cell.strip() for cell in line] for line in counted[1:]] == [["Archery", "2"], ["Bingo", "1"]]

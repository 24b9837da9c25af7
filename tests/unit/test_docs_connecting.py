"""The snippets of docs/connecting.md for engines that need no JVM run as they stand there."""

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

PAGE = Path(__file__).parents[2] / "docs/connecting.md"


def snippet(title: str) -> str:
    """The code under a heading of the page."""
    [section] = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    [code] = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(code)


@pytest.mark.parametrize(("title", "shown"), [("DuckDB", "Archery"), ("Polars", "Archery"), ("delta-rs", "0 3")])
def test_the_snippet_of_an_engine_runs_as_it_stands_in_the_page(title: str, shown: str, tmp_path: Path) -> None:
    games = ["Archery", "Archery", "Bingo"]
    days = pa.array([date(2026, 11, 26)] * 3)
    rows = pa.table({"game_name": games, "event_name": ["start"] * 3, "event_date": days})
    write_deltalake(tmp_path / "build/demo/lakehouse/silver/events", rows, partition_by=["event_date"])

    command = (sys.executable, "-c", snippet(title))
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert shown in run.stdout

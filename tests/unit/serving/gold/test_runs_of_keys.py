"""A merged gold table lies in runs of keys, each of which is merged by itself."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.serving.gold import runs
from gamelake.serving.gold.merging import Merge
from gamelake.serving.gold.runs import KeyRange, PartitionRun, split, touched
from gamelake.storage.delta_log import FileEntry, live_files
from gamelake.storage.store import Location
from tests.unit.serving.gold.histories import PLAYERS, append, gold, gold_handle, recomputed, refresh

# What a text can be: empty, ending with NUL, beyond the first plane.
KEYS = ["", "a", "a\0", "b", "b\0", "c", "m", "z", "\U0001f600", None]


def a_run(name: str, least: object, greatest: object) -> PartitionRun:
    return PartitionRun(FileEntry(name, 1, {}), least, greatest)


def names(ranges: list[KeyRange]) -> list[list[str]]:
    return [[file.relative_path for file in each.files] for each in ranges]


def test_each_key_is_in_one_range_and_nulls_are_in_the_last() -> None:
    ranges = touched([a_run("1", "a", "a"), a_run("2", "a\0", "b"), a_run("3", "c", "y")], pa.chunked_array([KEYS]))
    places = [each.has(pa.chunked_array([KEYS])).to_pylist() for each in ranges]

    assert names(ranges) == [["1"], ["2"], ["3"]]
    assert [sum(found) for found in zip(*places, strict=True)] == [1] * len(KEYS)
    assert [key for key, found in zip(KEYS, places[0], strict=True) if found] == ["", "a"]
    assert [key for key, found in zip(KEYS, places[2], strict=True) if found] == ["c", "m", "z", "\U0001f600", None]


def test_runs_without_a_changed_key_are_left_alone() -> None:
    found = touched([a_run("1", "a", "b"), a_run("2", "c", "d"), a_run("3", "e", "f")], pa.chunked_array([["cc"]]))

    assert names(found) == [["2"]]


@pytest.mark.parametrize(
    "unordered",
    [
        [a_run("1", None, None), a_run("2", "a", "b")],
        [a_run("1", "a", "c"), a_run("2", "b", "d")],
        [a_run("1", 0.5, 1.5), a_run("2", 2.5, 3.5)],
    ],
    ids=["unknown", "overlapping", "numbers that may be no number"],
)
def test_runs_whose_order_is_not_known_are_merged_together(unordered: list[PartitionRun]) -> None:
    assert names(touched(unordered, pa.chunked_array([["x"]]))) == [["1", "2"]]


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 11, 20, 21, 99])
def test_a_run_that_became_too_long_is_split_evenly(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROWS_PER_RUN", 10)
    lengths = [len(each) for each in split(pa.table({"key": range(rows)}), "key")]

    assert sum(lengths) == rows
    assert all(0 < length <= 10 for length in lengths)
    assert all(abs(before - after) <= len(lengths) for before, after in pairwise(lengths))
    assert all(length >= 5 for length in lengths) or len(lengths) == 1


def test_rows_of_one_first_key_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROWS_PER_RUN", 2)
    found = split(pa.table({"key": ["a", "b", "b", "b", "c", None, None, None]}), "key")

    keys = [set(each.column("key").to_pylist()) for each in found]
    assert sum(len(each) for each in keys) == len(set().union(*keys))


def test_a_refresh_reads_one_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROWS_PER_RUN", 10)
    lake = Location(uri=f"file://{tmp_path}")
    append(lake, [(f"player-{number:03}", number % 60, 1.0) for number in range(95)])
    refresh(lake)
    append(lake, [(f"player-{number:03}x", number % 60, None) for number in range(95)] + [(None, 3, 0.5)])
    read = []

    def rows(merge: Merge, old: pa.Table, concerned: KeyRange) -> pa.Table:
        read.append(len(old))
        return merged(merge, old, concerned)

    merged = Merge.rows
    monkeypatch.setattr(Merge, "rows", rows)
    refresh(lake)

    assert max(read) <= 10
    assert sum(read) == 95
    assert gold(lake) == recomputed(lake)
    assert 20 <= len(live_files(gold_handle(lake, PLAYERS))) <= 30

"""A merged gold table lies in runs of keys, each of which is merged by itself."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from gamelake.delta.log.codec import live_files
from gamelake.objects.store import Location
from gamelake.serving.gold import runs
from gamelake.serving.gold.merging import Merge
from gamelake.serving.gold.runs import KeyRange, runs_of, sorted_by_key, split, touched
from tests.unit.properties import examples
from tests.unit.serving.gold.histories import PLAYERS, append, gold, gold_handle, recomputed, refresh

ROWS_PER_RUN = 4
# What a text can be: empty, ending with NUL, longer than the log's bounds, beyond the first plane.
TEXTS = ["", "a", "a\0", "b", "x" * 33, "x" * 33 + "y", "\U0001f600", None]
COLUMNS = ("game", "player", "session")
KEYS = st.lists(st.tuples(*(st.sampled_from(TEXTS) for _ in COLUMNS)), unique=True, min_size=1, max_size=40)
Key = tuple[str | None, ...]


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROWS_PER_RUN", ROWS_PER_RUN)


def sorted_rows(keys: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of these keys, sorted as a refresh sorts them."""
    rows = pa.table(
        {column: pa.array([key[place] for key in keys], pa.string()) for place, column in enumerate(COLUMNS)}
    )
    return sorted_by_key(rows, COLUMNS)


def keys_of(rows: pa.Table) -> list[Key]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def write(folder: Path, written: Sequence[pa.Table]) -> dict[str, list[Key]]:
    """Write a table with one file for each of these. Return the keys in each file."""
    content = dict[str, list[Key]]()
    for each in written:
        write_deltalake(folder, each, mode="append")
        [path] = set(DeltaTable(folder).file_uris()) - set(content)
        content[path] = keys_of(each)
    return content


def files(folder: Path, ranges: Sequence[KeyRange]) -> list[str]:
    return [f"{folder}/{file.relative_path}" for each in ranges for file in each.files]


@examples(60)
@given(keys=KEYS)
def test_each_run_is_short_and_each_key_is_in_the_range_of_its_file(keys: list[Key]) -> None:
    written = list(split(sorted_rows(keys), COLUMNS))
    with TemporaryDirectory() as folder:
        content = write(Path(folder), written)
        all_runs = runs_of(DeltaTable(folder), COLUMNS)

        ranges = touched(all_runs, sorted_rows(keys))

        assert all(len(each) <= ROWS_PER_RUN for each in written)
        assert sorted(files(Path(folder), ranges)) == sorted(content)
        found = [keys_of(each.of(sorted_rows(keys), COLUMNS)) for each in ranges]
        in_files = [
            sorted_rows([key for path in files(Path(folder), [each]) for key in content[path]]) for each in ranges
        ]
        assert found == [keys_of(each) for each in in_files]


@examples(60)
@given(keys=KEYS, others=KEYS)
def test_any_other_key_is_in_one_range_and_only_ranges_with_a_changed_key_are_touched(
    keys: list[Key], others: list[Key]
) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder), list(split(sorted_rows(keys), COLUMNS)))
        all_runs = runs_of(DeltaTable(folder), COLUMNS)

        ranges = touched(all_runs, sorted_rows(others))

        found = [keys_of(each.of(sorted_rows(others), COLUMNS)) for each in ranges]
        assert all(found)
        assert [key for each in found for key in each] == keys_of(sorted_rows(others))


@examples(60)
@given(first=KEYS, second=KEYS)
def test_files_that_overlap_are_merged_together(first: list[Key], second: list[Key]) -> None:
    with TemporaryDirectory() as folder:
        content = write(Path(folder), [*split(sorted_rows(first), COLUMNS), *split(sorted_rows(second), COLUMNS)])
        both = sorted_rows(list({*first, *second}))

        ranges = touched(runs_of(DeltaTable(folder), COLUMNS), both)

        for each in ranges:
            of_range = set(keys_of(each.of(both, COLUMNS)))
            assert {key for path in files(Path(folder), [each]) for key in content[path]} == of_range


def test_a_change_of_one_game_touches_no_file_of_another(tmp_path: Path) -> None:
    keys = [(game, f"player-{number:02}", "1") for game in ("archery", "bingo", "chess") for number in range(20)]
    content = write(tmp_path, list(split(sorted_rows(keys), COLUMNS)))

    ranges = touched(runs_of(DeltaTable(tmp_path), COLUMNS), sorted_rows([("bingo", "player-07", "2")]))

    [touched_file] = files(tmp_path, ranges)
    assert ("bingo", "player-07", "1") in content[touched_file]
    assert len(content[touched_file]) <= ROWS_PER_RUN


@pytest.mark.parametrize("keys", [[0.5, 1.5, 2.5], [b"a", b"b", b"c"]], ids=["numbers that may be NaN", "bytes"])
def test_files_whose_order_is_not_known_are_merged_together(tmp_path: Path, keys: list[object]) -> None:
    for key in keys:
        write_deltalake(tmp_path, pa.table({"key": [key]}), mode="append")

    [only] = touched(runs_of(DeltaTable(tmp_path), ["key"]), pa.table({"key": keys[:1]}))

    assert len(only.files) == len(keys)


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 8, 9, 99])
def test_a_run_that_became_too_long_is_split_evenly(rows: int) -> None:
    lengths = [len(each) for each in split(pa.table({"key": range(rows)}), ["key"])]

    assert sum(lengths) == rows
    assert all(lengths)
    assert all(abs(before - after) <= len(lengths) for before, after in pairwise(lengths))
    assert all(length >= ROWS_PER_RUN // 2 for length in lengths) or len(lengths) <= 1


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

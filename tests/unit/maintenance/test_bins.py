"""Which files a run compacts together, and which it skips."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from gamelake.delta.log.codec import FileEntry
from gamelake.maintenance.compaction import CompactionRule, bins
from tests.unit.properties import examples

TODAY = date(2026, 11, 22)
RULE = CompactionRule(target_bytes=1_000, hot_files=3, today=TODAY)


def files(day: str | None, *sizes: int) -> list[FileEntry]:
    partition = {} if day is None else {"event_date": day}
    return [FileEntry(f"{day}/{number}-{size}.parquet", size, partition) for number, size in enumerate(sizes)]


def sizes_of(found: list[FileEntry], rule: CompactionRule = RULE) -> list[list[int]]:
    return [[file.size for file in each.files] for each in bins(found, rule)]


def test_small_files_of_a_day_that_is_over_become_one() -> None:
    assert sizes_of(files("2026-11-21", 300, 100, 200)) == [[100, 200, 300]]


def test_a_file_that_is_good_is_left_alone() -> None:
    assert sizes_of(files("2026-11-21", 750, 1_000, 4_000)) == []


def test_one_small_file_alone_is_left_alone() -> None:
    assert sizes_of(files("2026-11-21", 10, 900)) == []


def test_files_of_different_days_stay_apart() -> None:
    assert sizes_of([*files("2026-11-20", 10, 20), *files("2026-11-21", 30, 40)]) == [[10, 20], [30, 40]]


def test_a_day_that_is_still_written_waits_until_it_has_many_files() -> None:
    assert sizes_of(files("2026-11-22", 1, 2, 3)) == []
    assert sizes_of(files("2026-11-22", 1, 2, 3, 4)) == [[1, 2, 3, 4]]


def test_days_that_are_over_come_before_the_one_that_is_written() -> None:
    found = bins([*files("2026-11-22", 1, 2, 3, 4, 5), *files("2026-11-21", 6, 7)], RULE)

    assert [each.partition["event_date"] for each in found] == ["2026-11-21", "2026-11-22"]


def test_a_table_without_days_is_taken_for_one_that_is_written() -> None:
    assert sizes_of(files(None, 1, 2, 3)) == []
    assert sizes_of(files(None, 1, 2, 3, 4)) == [[1, 2, 3, 4]]


@examples(100)
@given(st.lists(st.integers(1, 1_500), max_size=60))
def test_a_bin_is_filled_up_to_the_size_aimed_at_and_no_file_is_in_two(sizes: list[int]) -> None:
    found = bins(files("2026-11-21", *sizes), RULE)

    compacted = [file.path for each in found for file in each.files]
    assert len(compacted) == len(set(compacted))
    assert all(each.bytes < RULE.target_bytes * 1.75 for each in found)
    assert all(each.bytes >= RULE.target_bytes for each in found[:-1])


@examples(100)
@given(st.lists(st.integers(1, 1_500), max_size=60))
def test_repeated_runs_come_to_an_end(sizes: list[int]) -> None:
    left = files("2026-11-21", *sizes)
    for number in range(20):
        found = bins(left, RULE)
        if not found:
            return
        compacted = {file.path for each in found for file in each.files}
        # Compacted rows take less than they did: they are sorted, and share their dictionaries.
        made = [FileEntry(f"{number}-{place}", each.bytes // 2, each.partition) for place, each in enumerate(found)]
        left = [*made, *(file for file in left if file.path not in compacted)]
    raise AssertionError(f"20 runs were not enough; {sizes_of(left)} is left")

"""Earlier versions of a table in Trino, by number and by time, also together with the newest one."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.stack.platform import Stack
from tests.stack.trino_users import ANALYST, ENGINEER, NewTable, fill, new_lakehouse, new_table, rows_of

HOURS_AGO = (3, 2, 1)
NO_SUCH_VERSION = "INVALID_ARGUMENTS"


@pytest.fixture(scope="module")
def versions(stack: Stack) -> Iterator[NewTable]:
    """A table that got a row three, two and one hour ago; the third row has a column more."""
    with new_lakehouse(stack) as place, new_table(place) as table:
        for number, hours in enumerate(HOURS_AGO):
            table.append(number=[number], **({"colour": ["red"]} if number == 2 else {}))
            table.back_date(number, timedelta(hours=hours))
        table.register()
        yield table


def numbers(table: NewTable, as_of: str) -> list[int]:
    return sorted(row[0] for row in ANALYST.ask(f"{rows_of(table.sql)} {as_of}"))


def at(minutes: int) -> str:
    """Return the clause for a number of minutes ago."""
    return f"FOR TIMESTAMP AS OF (current_timestamp - INTERVAL '{minutes}' MINUTE)"


def test_the_history_names_every_version_and_its_time(versions: NewTable) -> None:
    schema, name = versions.sql.split(".")
    history = rows_of(f'{schema}."{name}$history"').replace(
        "*", "version, date_diff('minute', timestamp, current_timestamp)"
    )

    rows = dict(ANALYST.ask(history))

    assert sorted(rows) == [0, 1, 2]
    assert [rows[version] // 10 for version in range(3)] == [18, 12, 6]


def test_a_version_is_what_the_table_held_then(versions: NewTable) -> None:
    assert [numbers(versions, f"FOR VERSION AS OF {version}") for version in range(3)] == [[0], [0, 1], [0, 1, 2]]
    assert numbers(versions, "") == [0, 1, 2]


def test_a_version_has_the_columns_of_then(versions: NewTable) -> None:
    assert ANALYST.ask(f"{rows_of(versions.sql)} FOR VERSION AS OF 0") == [[0]]
    assert [2, "red"] in ANALYST.ask(f"{rows_of(versions.sql)} FOR VERSION AS OF 2")
    assert ANALYST.refusal(f"{rows_of(versions.sql)} FOR VERSION AS OF 0 WHERE colour = 'red'") == "COLUMN_NOT_FOUND"


def test_a_time_is_the_last_version_that_was_committed_by_then(versions: NewTable) -> None:
    assert numbers(versions, at(170)) == [0]
    assert numbers(versions, at(110)) == [0, 1]
    assert numbers(versions, at(50)) == [0, 1, 2]


def test_what_never_was_is_refused(versions: NewTable) -> None:
    assert ANALYST.refusal(f"{rows_of(versions.sql)} FOR VERSION AS OF 3") == NO_SUCH_VERSION
    assert ANALYST.refusal(f"{rows_of(versions.sql)} {at(200)}") == NO_SUCH_VERSION


@pytest.mark.parametrize("newest_first", [True, False])
def test_two_versions_in_one_question_are_two_versions_if_both_are_named(
    newest_first: bool, versions: NewTable
) -> None:
    """Trino 476 gives a table that names no version the one that the query has named for it before."""
    newest = f"(SELECT count(*) FROM {versions.sql} {at(1)})"  # noqa: S608 # our own
    oldest = f"(SELECT count(*) FROM {versions.sql} FOR VERSION AS OF 0)"  # noqa: S608 # our own
    asked = [newest, oldest] if newest_first else [oldest, newest]

    [answer] = ANALYST.ask(f"SELECT {', '.join(asked)}")

    assert answer == ([3, 1] if newest_first else [1, 3])


def test_the_pipelines_own_table_travels_too(stack: Stack) -> None:
    assert stack.is_healthy("trino")
    fill(["silver.events"])
    versions = [row[0] for row in ANALYST.ask(rows_of('silver."events$history"').replace("*", "version"))]

    counts = [
        ANALYST.one(rows_of("silver.events").replace("*", "count(*)") + f" FOR VERSION AS OF {version}")
        for version in (min(versions), max(versions))
    ]

    assert 0 < counts[0] <= counts[1] <= ENGINEER.one(rows_of("silver.events").replace("*", "count(*)"))

"""Trino reads a table after long maintenance as other engines do, and a clone whose files are in another table."""

from collections.abc import Iterator

import pytest

from gamelake.model.naming import SILVER_EVENTS
from tests.stack.platform import Stack
from tests.stack.trino_users import ENGINEER, known_by_another_name, new_lakehouse
from tests.support.maintained_tables import CLONE, COLUMNS, MaintainedSilver, as_read, new_maintained_table, rows


@pytest.fixture(scope="module")
def table(stack: Stack) -> Iterator[MaintainedSilver]:
    with new_lakehouse(stack) as place:
        yield new_maintained_table(place)


@pytest.mark.slow
def test_a_table_that_has_lived_long_and_its_clone_are_the_same_to_trino(table: MaintainedSilver) -> None:
    paths = {path.replace("/", "."): path for path in (SILVER_EVENTS, CLONE)}
    with known_by_another_name(table.location, paths) as names:
        asked = {paths[own]: f"SELECT {', '.join(COLUMNS)} FROM {name}" for own, name in names.items()}  # noqa: S608
        found = {path: as_read([tuple(row) for row in ENGINEER.ask(sql)]) for path, sql in asked.items()}

    assert found == {SILVER_EVENTS: rows(table.events), CLONE: rows(table.cloned)}

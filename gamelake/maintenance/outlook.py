"""What an erasure would reach, counted and not changed."""

from collections.abc import Sequence

import msgspec

from gamelake.lake.log import TableLog
from gamelake.lake.store import Store
from gamelake.maintenance.clones import Clones
from gamelake.maintenance.erasure_records import Reach
from gamelake.maintenance.persons import Person
from gamelake.maintenance.player_rows import People, PlayerTable, count_rows, player_tables, rows_in_file
from gamelake.vault.vault import Vault


class TableOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """What a table has of the persons: rows now, their files (to be written anew), older files with such rows."""

    table: str
    rows: int
    files: int
    bytes: int
    older_files: int


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What the vault has of the persons (keys, pieces of data), what the tables have, and which clones would go."""

    keys: int
    sealed_data: int
    tables: tuple[TableOutlook, ...]
    clones: tuple[str, ...] = ()


def outlook(store: Store, vault: Vault, persons: Sequence[Person], reach: Reach) -> Outlook:
    """Count what an erasure of this reach would take away."""
    people = People(frozenset(person.pseudonym for person in persons))
    stored = [person.stored for person in persons if person.stored is not None]
    tables = [] if reach is Reach.VAULT else player_tables(store)
    return Outlook(
        keys=len(stored),
        sealed_data=sum(len(vault.data_of(each.pseudonym)) for each in stored),
        tables=tuple(_of_table(store, table, people) for table in tables),
        clones=() if reach is Reach.VAULT else tuple(each.name for each in Clones(store).with_rows_of(people)),
    )


def _of_table(store: Store, table: PlayerTable, people: People) -> TableOutlook:
    found = count_rows(store, table, people)
    removed = TableLog.read(store, table.name).removed
    older = sum(1 for path in removed if rows_in_file(store, table, path, people))
    return TableOutlook(table=table.name, rows=found.rows, files=found.files, bytes=found.bytes, older_files=older)

"""Deletes files that no version of a table needs any more and that hold rows of people who were forgotten.

An older version of the table that named such a file can't be read any more; that is the purpose.
"""

from datetime import UTC, datetime, timedelta

from gamelake.lake.log import TableLog
from gamelake.lake.store import Store
from gamelake.maintenance.erasure_records import PlannedFiles, PurgePlan
from gamelake.maintenance.player_rows import People, PlayerTable, rows_in_file


def plan_purge(store: Store, run: str, tables: list[PlayerTable], people: People, grace: timedelta) -> PurgePlan:
    """The files that a commit took out of a table, that are still there, and in which one of the people has a row.

    Not only those of this run: an OPTIMIZE, or an earlier erasure, leaves files with the same rows behind.
    """
    newest, planned = 0, []
    for table in tables:
        removed = TableLog.read(store, table.name).removed
        paths = tuple(path for path in sorted(removed) if rows_in_file(store, table, path, people))
        if paths:
            planned.append(PlannedFiles(table=table.name, paths=paths))
            newest = max(newest, *(removed[path] for path in paths))
    not_before = datetime.fromtimestamp(newest / 1000, UTC) + grace
    return PurgePlan(run=run, not_before=not_before, tables=tuple(planned))

"""Is each table readable, is its log without holes, and are the files there that its newest version names?

No data is read: the log is replayed, and the table's folder listed.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Checkpoints".
"""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from deltalake.exceptions import DeltaError

from gamelake.errors import GamelakeError
from gamelake.lake.appends import entry_path
from gamelake.lake.file_entries import live_files
from gamelake.lake.listing import LOG_FOLDER
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.maintenance.findings import Finding, failed, passed

_AT_ONCE = 8
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*\.parquet")
_NEED = "tables"
_NAMED = 3
_CORRUPTED = "docs/operations.md, heading 'Drills', says how a damaged log is mended"
_DELETED = (
    "look who deletes beside jobs/vacuum.py; docs/operations.md, heading 'Drills', says how a table is made again"
)


@dataclass(frozen=True, slots=True)
class TableLooks:
    """What a look at one table found: how many live files it has, or what is wrong with it."""

    table: str
    files: int = 0
    trouble: str = ""
    remedy: str = ""


def examine_tables(store: Store, tables: Sequence[str]) -> list[Finding]:
    """All tables; one line for those that are well, one for each other."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looks = list(pool.map(lambda table: look_at(store, table), tables))
    bad = [look for look in looks if look.trouble]
    well = passed(_NEED, f"{len(looks) - len(bad)} are readable and whole, {sum(look.files for look in looks):,} files")
    return [well, *(failed(_NEED, f"{look.table}: {look.trouble}", look.remedy) for look in bad)]


def look_at(store: Store, table: str) -> TableLooks:
    """One table: its log, then the files that the newest version names."""
    objects = store.paths(table)
    names = [path.rsplit("/", 1)[-1] for path in objects if path.startswith(f"{table}/{LOG_FOLDER}/")]
    entries, checkpoint = _numbers(_ENTRY, names), max(_numbers(_CHECKPOINT, names), default=-1)
    read = [version for version in entries if version > checkpoint]
    trouble = _hole(checkpoint, read) or _damage(store, table, read)
    if trouble:
        return TableLooks(table, trouble=trouble, remedy=_CORRUPTED)
    try:
        live = live_files(open_table(store.location, table))
    except (DeltaError, GamelakeError, ValueError) as error:
        return TableLooks(table, trouble=f"it can't be opened ({str(error).splitlines()[0]})", remedy=_CORRUPTED)
    there = set(objects)
    # A clone names files of other tables, by their whole addresses.
    own = [file.place for file in live if ":" not in file.place.split("/", 1)[0]]
    gone = sorted(place for place in own if f"{table}/{place}" not in there)
    if gone and _is_replaced(store, table, gone):
        gone = []
    told = f"{len(gone)} of its files are gone, such as {', '.join(gone[:_NAMED])}" if gone else ""
    return TableLooks(table, len(live), told, _DELETED)


def _is_replaced(store: Store, table: str, gone: Sequence[str]) -> bool:
    """Whether a file was there all the time: listed before it came, or deleted after it was no longer needed."""
    there = set(store.paths(table))
    live = {file.place for file in live_files(open_table(store.location, table))}
    return all(f"{table}/{place}" in there or place not in live for place in gone)


def _numbers(pattern: re.Pattern[str], names: Sequence[str]) -> list[int]:
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))


def _hole(checkpoint: int, entries: Sequence[int]) -> str:
    """What the log lacks since the newest checkpoint, or since the beginning."""
    missing = [before + 1 for before, after in pairwise([checkpoint, *entries]) if after != before + 1]
    return f"its log lacks version {missing[0]}" if missing else ""


def _damage(store: Store, table: str, entries: Sequence[int]) -> str:
    """The first of some entries that is not what an entry is."""
    for version in entries:
        content = store.get(entry_path(table, version)) or b""
        try:
            actions = [json.loads(line) for line in content.splitlines()]
        except ValueError:
            return f"the entry of version {version} is damaged"
        if not actions:
            return f"the entry of version {version} is empty"
    return ""

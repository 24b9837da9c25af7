"""Proves from manifests and transaction logs that every record of a lakehouse was taken once, and where it went.

Reads GAMELAKE_LAKEHOUSE (and the S3 settings of docs/settings.md). Exits with 0 if the books reconcile,
1 if not, 2 if there are none.
"""

import argparse
import json

from gamelake.model.errors import StoreError
from gamelake.program import FAILED, OK, run
from gamelake.storage.reconciliation import Reconciliation, reconcile, streams_of
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store


def main() -> int:
    """Print the reconcile, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    arguments = parser.parse_args()
    store = Store(LakehouseSettings.from_env().location)
    if not streams_of(store):
        raise StoreError(f"no stream has written to {store.location.uri} yet: there is nothing to verify")
    books = reconcile(store)
    print(_as_json(books) if arguments.json else _as_text(books))
    return FAILED if books.problems else OK


def _as_text(books: Reconciliation) -> str:
    lines = [f"{'table':<44}{'rows':>12}{'files':>8}{'MiB':>9}"]
    lines += [f"{t.table:<44}{t.rows:>12,}{t.files:>8,}{t.bytes / 2**20:>9.1f}" for t in books.tables]
    lines += [f"dead letters, {reason:<30}{count:>12,}" for reason, count in sorted(books.dead_letters.items())]
    lines += [f"duplicates, {game:<32}{count:>12,}" for game, count in sorted(books.duplicates.items())]
    lines += [f"quarantined, {rule:<31}{count:>12,}" for rule, count in sorted(books.quarantined.items())]
    lines += [f"dropped, {rule:<35}{count:>12,}" for rule, count in sorted(books.dropped.items())]
    dead = sum(books.dead_letters.values())
    lines.append(
        f"{books.batches:,} batches: {books.records:,} records read = {books.silver_rows:,} silver rows "
        f"+ {dead:,} dead letters + {sum(books.duplicates.values()):,} duplicates "
        f"+ {sum(books.quarantined.values()):,} quarantined + {sum(books.dropped.values()):,} dropped"
    )
    if books.replayed:
        lines.append(f"{books.replayed:,} of the dead letters were replayed since, and are settled")
    if books.released:
        lines.append(f"{books.released:,} of the quarantined rows were replayed since, and are settled")
    if books.empty_offsets:
        lines.append(f"{books.empty_offsets:,} offsets held no record (of transactions, or compacted)")
    if books.lost_offsets:
        lines.append(f"{books.lost_offsets:,} offsets were given up: Kafka had deleted them before they were read")
    if erased := sum(table.erased for table in books.tables):
        lines.append(f"{erased:,} rows were taken out by erasures, in all tables together")
    lines += [f"PROBLEM {problem}" for problem in books.problems]
    lines.append("the books do not balance" if books.problems else "every offset was taken once; the books balance")
    return "\n".join(lines)


def _as_json(books: Reconciliation) -> str:
    tables = [
        {"table": t.table, "rows": t.rows, "files": t.files, "bytes": t.bytes, "erased": t.erased} for t in books.tables
    ]
    document = {
        "batches": books.batches,
        "records": books.records,
        "silver_rows": books.silver_rows,
        "dead_letters": dict(books.dead_letters),
        "duplicates": dict(books.duplicates),
        "quarantined": dict(books.quarantined),
        "dropped": dict(books.dropped),
        "replayed": books.replayed,
        "released": books.released,
        "empty_offsets": books.empty_offsets,
        "lost_offsets": books.lost_offsets,
        "tables": tables,
        "problems": books.problems,
    }
    return json.dumps(document, indent=2)


if __name__ == "__main__":
    run(main)

"""Reconciles manifests and transaction logs: proves that every record was ingested once, and where it went.

Reads GAMELAKE_LAKEHOUSE (and the S3 settings of docs/settings.md). Exits with 0 if there are no differences, 1
if there are, 2 if no stream has written yet.
"""

from gamelake.command import as_json, command_parser
from gamelake.ledger.reconciliation import Reconciliation, reconcile, streams_of
from gamelake.model.errors import StoreError
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, OK, run


def main() -> int:
    """Print the reconciliation, as a table or as JSON."""
    parser = command_parser(__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    arguments = parser.parse_args()
    store = Store(LakehouseSettings.from_env().location)
    if not streams_of(store):
        raise StoreError(f"no stream has written to {store.location.uri} yet: there is nothing to verify")
    found = reconcile(store)
    print(_as_json(found) if arguments.json else _as_text(found))
    return FAILED if found.problems else OK


def _as_text(found: Reconciliation) -> str:
    lines = [f"{'table':<44}{'rows':>12}{'files':>8}{'MiB':>9}"]
    lines += [f"{t.table:<44}{t.rows:>12,}{t.files:>8,}{t.bytes / 2**20:>9.1f}" for t in found.tables]
    lines += [f"dead letters, {reason:<30}{count:>12,}" for reason, count in sorted(found.dead_letters.items())]
    lines += [f"duplicates, {game:<32}{count:>12,}" for game, count in sorted(found.duplicates.items())]
    lines += [f"quarantined, {rule:<31}{count:>12,}" for rule, count in sorted(found.quarantined.items())]
    lines += [f"dropped, {rule:<35}{count:>12,}" for rule, count in sorted(found.dropped.items())]
    dead = sum(found.dead_letters.values())
    lines.append(
        f"{found.batches:,} batches: {found.records:,} records read = {found.silver_rows:,} silver rows "
        f"+ {dead:,} dead letters + {sum(found.duplicates.values()):,} duplicates "
        f"+ {sum(found.quarantined.values()):,} quarantined + {sum(found.dropped.values()):,} dropped"
    )
    if found.replayed:
        lines.append(f"{found.replayed:,} dead letters were replayed since, and are settled")
    if found.released:
        lines.append(f"{found.released:,} quarantined rows were replayed since, and are settled")
    if found.empty_offsets:
        lines.append(f"{found.empty_offsets:,} offsets held no record (of transactions, or compacted)")
    if found.lost_offsets:
        lines.append(f"{found.lost_offsets:,} offsets are lost: Kafka deleted them before they were read")
    if erased := sum(table.erased for table in found.tables):
        lines.append(f"{erased:,} rows were erased, in all tables together")
    lines += [f"HELD BACK {held}" for held in found.held]
    lines += [f"PROTOCOL UPGRADE {upgrade}" for upgrade in found.upgrades]
    lines += [f"PROBLEM {problem}" for problem in found.problems]
    lines.append("reconciliation failed" if found.problems else "every offset was ingested once; no differences")
    return "\n".join(lines)


def _as_json(found: Reconciliation) -> str:
    tables = [
        {"table": t.table, "rows": t.rows, "files": t.files, "bytes": t.bytes, "erased": t.erased} for t in found.tables
    ]
    document = {
        "batches": found.batches,
        "records": found.records,
        "silver_rows": found.silver_rows,
        "dead_letters": dict(found.dead_letters),
        "duplicates": dict(found.duplicates),
        "quarantined": dict(found.quarantined),
        "dropped": dict(found.dropped),
        "replayed": found.replayed,
        "released": found.released,
        "empty_offsets": found.empty_offsets,
        "lost_offsets": found.lost_offsets,
        "tables": tables,
        "held": found.held,
        "upgrades": found.upgrades,
        "problems": found.problems,
    }
    return as_json(document)


if __name__ == "__main__":
    run(main, is_command=True)

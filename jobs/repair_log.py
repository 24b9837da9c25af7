"""Repairs a table's log: damaged entries from the manifests of their batches, then what delta-rs can't read.

Columns that are nested too deeply are left out by a new entry. Bounds and partition values that delta-rs reads as other
texts (docs/upstream/surrogate-pairs.md) are replaced by one commit. The streams continue. Prints one JSON document with
an object for each entry, and for that commit. Settings come from GAMELAKE_* variables (docs/settings.md). No Spark, no
Kafka. Exits with 2 and changes nothing if an entry belongs to no batch.
"""

import argparse
import sys
from typing import TypeAlias

import msgspec

from gamelake.program import FAILED, OK, run
from gamelake.recovery.bounds_repair import BoundsRepair, RepairedBounds
from gamelake.recovery.log_repair import LogRepair, RepairedEntry
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store

Repaired: TypeAlias = RepairedEntry | RepairedBounds


def main() -> int:
    """Repair, or print the dry run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", metavar="TABLE", help="such as silver/kart_rumble_events")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    arguments = parser.parse_args()
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        parser.error("no terminal to ask for confirmation: use --yes or --dry-run")
    store = Store(LakehouseSettings.from_env().location)
    repair, bounds = LogRepair(store, arguments.table), BoundsRepair(store, arguments.table)
    # While entries are damaged the table can't be opened.
    planned: list[Repaired] = [*repair.dry_run()] or [*bounds.dry_run()]
    if arguments.dry_run or not planned:
        return _print(planned)
    if not (arguments.yes or _confirmed(planned)):
        return FAILED
    return _print([*repair.repair(), *bounds.repair()])


def _confirmed(planned: list[Repaired]) -> bool:
    print(msgspec.json.format(msgspec.json.encode(planned)).decode(), file=sys.stderr)
    return input("Type yes to write these entries: ").strip() == "yes"


def _print(results: list[Repaired]) -> int:
    print(msgspec.json.format(msgspec.json.encode(results)).decode())
    return OK


if __name__ == "__main__":
    run(main)

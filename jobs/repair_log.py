"""Rebuilds damaged log entries of a table from the manifests of their batches.

The streams continue. Prints one JSON document with an object for each entry. Settings come from GAMELAKE_* variables
(docs/settings.md). No Spark, no Kafka. Exits with 2 and changes nothing if an entry belongs to no batch.
"""

import argparse
import sys

import msgspec

from gamelake.program import FAILED, OK, run
from gamelake.recovery.log_repair import LogRepair, RepairedEntry
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store


def main() -> int:
    """Repair, or print the dry run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", metavar="TABLE", help="such as silver/kart_rumble_events")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    arguments = parser.parse_args()
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        parser.error("no terminal to ask for confirmation: use --yes or --dry-run")
    repair = LogRepair(Store(LakehouseSettings.from_env().location), arguments.table)
    planned = repair.dry_run()
    if arguments.dry_run or not planned:
        return _print(planned)
    if not (arguments.yes or _confirmed(planned)):
        return FAILED
    return _print(repair.repair())


def _confirmed(planned: list[RepairedEntry]) -> bool:
    print(msgspec.json.format(msgspec.json.encode(planned)).decode(), file=sys.stderr)
    return input("Type yes to write these entries: ").strip() == "yes"


def _print(results: list[RepairedEntry]) -> int:
    print(msgspec.json.format(msgspec.json.encode(results)).decode())
    return OK


if __name__ == "__main__":
    run(main)

"""Writes damaged entries of a table's log anew, from the manifests of the batches that they were of.

The streams go on meanwhile. Prints one JSON document, a line for each entry. Settings come from GAMELAKE_* variables
(docs/settings.md). No Spark, no Kafka. Ends with 2 where an entry was of no batch, and changes nothing.
"""

import argparse
import sys

import msgspec

from gamelake.program import FAILED, OK, run
from gamelake.recovery.log_repair import LogRepair, RepairedEntry
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store


def main() -> int:
    """Mend, or say what would be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", metavar="TABLE", help="such as silver/kart_rumble_events")
    parser.add_argument("--dry-run", action="store_true", help="say exactly what would be written, and change nothing")
    parser.add_argument("--yes", action="store_true", help="don't ask")
    arguments = parser.parse_args()
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        parser.error("nobody is there to ask: say --yes or --dry-run")
    mending = LogRepair(Store(LakehouseSettings.from_env().location), arguments.table)
    planned = mending.dry_run()
    if arguments.dry_run or not planned:
        return _print(planned)
    if not (arguments.yes or _confirmed(planned)):
        return FAILED
    return _print(mending.repair())


def _confirmed(planned: list[RepairedEntry]) -> bool:
    print(msgspec.json.format(msgspec.json.encode(planned)).decode(), file=sys.stderr)
    return input("Type yes to write the entries anew: ").strip() == "yes"


def _print(results: list[RepairedEntry]) -> int:
    print(msgspec.json.format(msgspec.json.encode(results)).decode())
    return OK


if __name__ == "__main__":
    run(main)

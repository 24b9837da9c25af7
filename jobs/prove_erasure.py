"""Looks for texts in every byte of tables, topics, databases and logs, packed ones too: proves that they are nowhere.

The texts come one per line from a file or, better, from the input; never from the command line, which all can see. What
is printed says where which one stands, by its number, and never the text. Ends with 0 if none was found, 1 if one was,
2 if not everything could be looked at.
"""

import argparse
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from gamelake.kafka import KafkaSettings
from gamelake.model.errors import SettingsError
from gamelake.privacy.scan import Scanner
from gamelake.privacy.scanned_topics import scan_topics
from gamelake.privacy.search_terms import SearchTerms
from gamelake.program import FAILED, OK, run
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store

_INCOMPLETE = 2


def main() -> int:
    """Look through all that is named; print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--needles", default="-", metavar="FILE", help="the texts, one per line; - is the input")
    parser.add_argument("--lakehouse", action="store_true", help="all objects of GAMELAKE_LAKEHOUSE")
    parser.add_argument("--kafka", action="store_true", help="all records of GAMELAKE_BOOTSTRAP_SERVERS")
    parser.add_argument(
        "--topic", action="append", default=[], help="with --kafka: this topic, and no other unnamed one"
    )
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders: logs, databases, the broker's disks")
    arguments = parser.parse_args()
    if not (arguments.lakehouse or arguments.kafka or arguments.paths):
        parser.error("say where to look: --lakehouse, --kafka, or paths")
    scanner = Scanner(SearchTerms(_needles(arguments.needles)))
    if arguments.lakehouse:
        _scan_lakehouse(scanner)
    for path in arguments.paths:
        scanner.folder(path)
    if arguments.kafka:
        scan_topics(scanner, KafkaSettings.from_env().access, arguments.topic)
    print(msgspec.json.format(msgspec.json.encode(scanner.scan)).decode())
    if scanner.scan.findings:
        return FAILED
    return _INCOMPLETE if scanner.scan.unscanned else OK


def _needles(name: str) -> list[str]:
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return [line for line in text.decode().split("\n") if line]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--needles {name} can't be read: {type(error).__name__}") from None


def _scan_lakehouse(scanner: Scanner) -> None:
    location = LakehouseSettings.from_env().location
    if location.uri.startswith("file://"):
        # As files, so that those are seen too which no reader of a store would list.
        scanner.folder(Path(unquote(urlsplit(location.uri).path)))
    else:
        scanner.store(Store(location))


if __name__ == "__main__":
    run(main)

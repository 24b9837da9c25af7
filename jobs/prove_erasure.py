"""Scans tables, topics, databases and logs for search terms, compressed data included: proves an erasure.

The terms come one per line from a file or, better, from standard input; never from the command line, which other users
can see. The output names the place and the number of a term, never the term. Exits with 0 if nothing was found, 1 if a
term was found, 2 if not everything could be scanned.
"""

import os
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gamelake.command import command_parser, print_result
from gamelake.kafka import kafka_access
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Store
from gamelake.privacy.scan import Scanner
from gamelake.privacy.scanned_topics import scan_topics
from gamelake.program import FAILED, OK, run
from gamelake.scans.search_terms import SearchTerms

_INCOMPLETE = 2


def main() -> int:
    """Scan everything that the options name; print one JSON document."""
    parser = command_parser(__doc__)
    parser.add_argument(
        "--terms", default="-", metavar="FILE", help="the search terms, one per line; - is standard input"
    )
    parser.add_argument("--lakehouse", action="store_true", help="all objects of GAMELAKE_LAKEHOUSE")
    parser.add_argument("--kafka", action="store_true", help="all records of GAMELAKE_BOOTSTRAP_SERVERS")
    parser.add_argument(
        "--topic", action="append", default=[], help="with --kafka: only this topic; may be given several times"
    )
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders: logs, databases, the broker's disks")
    arguments = parser.parse_args()
    if not (arguments.lakehouse or arguments.kafka or arguments.paths):
        parser.error("name what to scan: --lakehouse, --kafka, or paths")
    scanner = Scanner(SearchTerms(_terms(arguments.terms)))
    if arguments.lakehouse:
        _scan_lakehouse(scanner)
    for path in arguments.paths:
        scanner.folder(path)
    if arguments.kafka:
        scan_topics(scanner, kafka_access(Environment(os.environ)), arguments.topic)
    print_result(scanner.scan)
    if scanner.scan.findings:
        return FAILED
    return _INCOMPLETE if scanner.scan.unscanned else OK


def _terms(name: str) -> list[str]:
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return [line for line in text.decode().split("\n") if line]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--terms {name} can't be read: {type(error).__name__}") from None


def _scan_lakehouse(scanner: Scanner) -> None:
    location = LakehouseSettings.from_env().location
    if location.uri.startswith("file://"):
        # As files, since the listing of a store leaves some files out.
        scanner.folder(Path(unquote(urlsplit(location.uri).path)))
    else:
        scanner.store(Store(location))


if __name__ == "__main__":
    run(main)

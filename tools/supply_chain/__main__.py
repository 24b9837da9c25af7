"""Lists the project's components and checks them: `python -m tools.supply_chain sbom|licences|vulnerabilities`.

`sbom` writes CycloneDX files to build/sbom; the other two read them.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model.bom import Bom

from gamelake.command import command_parser
from gamelake.model.errors import StartupError
from gamelake.program import FAILED, OK, run
from tools.embedded.service import REPOSITORY
from tools.stack import settings
from tools.supply_chain import vulnerabilities
from tools.supply_chain.licence_check import AllowList, Verdict, check, unused
from tools.supply_chain.maven_poms import MavenPoms
from tools.supply_chain.sbom import NothingToReadError, Sources, project_version, read, write
from tools.supply_chain.vulnerabilities import Ignored

SBOMS = REPOSITORY / "build/sbom"
FOUND, NO_DATABASE = 1, 2
_ALLOW_LIST = Path(__file__).with_name("licences.yaml")
_IGNORED = Path(__file__).with_name("ignored_vulnerabilities.yaml")
_DOWNLOAD = "make vulnerability-database"
_OLD_DAYS = 7


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands."""
    options = _parser().parse_args(arguments)
    return int(options.command(options))


def _sbom(options: argparse.Namespace) -> int:
    sources = Sources(REPOSITORY, settings(), MavenPoms.of_the_user(SBOMS / "poms"))
    readers = sources.readers()
    unknown = set(options.names) - set(readers)
    if unknown:
        print(f"there is no SBOM {', '.join(sorted(unknown))}; there are {', '.join(readers)}", file=sys.stderr)
        return FAILED
    missing = 0
    print(f"{'SBOM':<22} {'components':>10} {'no licence':>10} {'KiB':>7} {'seconds':>7}")
    for name in options.names or readers:
        started = time.monotonic()
        path = SBOMS / f"{name}.cdx.json"
        try:
            bom = write(name, readers[name](), project_version(REPOSITORY), path)
        except NothingToReadError as reason:
            path.unlink(missing_ok=True)
            missing += 1
            print(f"{name:<22} not written: {reason}")
            continue
        unlicensed = sum(not one.licenses for one in bom.components)
        size, seconds = path.stat().st_size / 1024, time.monotonic() - started
        print(f"{name:<22} {len(bom.components):>10,} {unlicensed:>10,} {size:>7,.0f} {seconds:>7.1f}")
    if options.complete and missing:
        print(f"{missing} SBOMs are missing", file=sys.stderr)
        return FAILED
    return OK


def _licences(_options: argparse.Namespace) -> int:
    sboms = _read_sboms()
    allow_list = AllowList.read(_ALLOW_LIST)
    findings = list(check(sboms, allow_list))
    for finding in sorted({(one.verdict, one.purl, one.licence) for one in findings if one.fails}):
        print("{}: {} ({})".format(*finding[:2], finding[2] or "no licence in its metadata"))
    for pattern in unused(sboms, allow_list):
        print(f"unused exception: {pattern}; remove it from {_ALLOW_LIST.name}")
    verdicts = Counter({one.purl: one.verdict for one in findings}.values())
    print(f"{len(sboms)} SBOMs: " + ", ".join(f"{verdicts[verdict]:,} {verdict}" for verdict in Verdict))
    return FAILED if any(one.fails for one in findings) else OK


def _vulnerabilities(options: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    result = vulnerabilities.check(_read_sboms(), options.database, Ignored.read(_IGNORED), now.date())
    _report(result, options.database, now)
    if result.found:
        return FOUND
    return NO_DATABASE if result.missing else OK


def _report(result: vulnerabilities.Result, folder: Path, now: datetime) -> None:
    for ecosystem, newest in result.database.newest.items():
        age = vulnerabilities.age_in_days(newest, now)
        advice = f"; download a newer one: {_DOWNLOAD}" if age > _OLD_DAYS else ""
        print(f"{ecosystem}: the newest advisory of the database is {age} days old ({newest:%Y-%m-%d}){advice}")
    for line in (*vulnerabilities.table(result.found), *vulnerabilities.remarks(result)):
        print(line)
    print(f"{len(result.found)} vulnerabilities in {result.checked:,} packages, {len(result.ignored)} ignored")
    if result.without_package:
        print(f"{result.without_package} components are of no ecosystem of OSV")
    for ecosystem in result.missing:
        print(f"there is no database of {ecosystem} in {folder}; download it: {_DOWNLOAD}", file=sys.stderr)


def _read_sboms() -> list[tuple[str, Bom]]:
    paths = sorted(SBOMS.glob("*.cdx.json"))
    if not paths:
        raise StartupError(f"there is no SBOM in {SBOMS}; run make sbom")
    return [(path.name.removesuffix(".cdx.json"), read(path)) for path in paths]


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("sbom", help="write the SBOMs")
    listing.add_argument("names", nargs="*", help="which; default: all")
    listing.add_argument("--complete", action="store_true", help="fail if one can't be written")
    listing.set_defaults(command=_sbom)
    licences = commands.add_parser("licences", help="check the licences of the SBOMs' components")
    licences.set_defaults(command=_licences)
    known = commands.add_parser(
        "vulnerabilities", help="look the SBOMs' components up; exit code 0: none, 1: some are known, 2: no database"
    )
    known.add_argument("--database", type=Path, default=REPOSITORY / "build/osv", help="a folder of OSV's files")
    known.set_defaults(command=_vulnerabilities)
    return parser


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))

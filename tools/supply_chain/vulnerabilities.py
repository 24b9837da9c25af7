"""Finds known vulnerabilities of SBOMs' components in a downloaded OSV database, except those that are ignored."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from cvss import CVSS2, CVSS3, CVSS4
from cvss.exceptions import CVSSError
from cyclonedx.model.bom import Bom
from packageurl import PackageURL

from gamelake.model.errors import SettingsError
from tools.supply_chain.osv import Advisory, Database, Match, PackageName

_ECOSYSTEMS = {"pypi": "PyPI", "maven": "Maven", "deb": "Debian", "cargo": "crates.io", "golang": "Go"}
_CVSS = {"CVSS_V4": CVSS4, "CVSS_V3": CVSS3, "CVSS_V2": CVSS2}
# The order of the table.
_RATINGS = ("critical", "high", "medium", "low", "none", "unknown")


class Ignored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A vulnerability that does not fail the check until a day."""

    id: str
    package: str
    reason: str
    until: date

    @classmethod
    def read(cls, path: Path) -> list["Ignored"]:
        """Read a list of them.

        Raises:
            SettingsError: the file has other or missing fields, or a reason is empty.
        """
        try:
            entries = msgspec.yaml.decode(path.read_bytes(), type=list[Ignored])
        except msgspec.ValidationError as error:
            raise SettingsError(f"{path.name}: {error}") from error
        for entry in entries:
            if not entry.reason.strip():
                raise SettingsError(f"{path.name}: {entry.id} has no reason")
        return entries


class Lookup(NamedTuple):
    """A component's name and version in OSV."""

    package: PackageName
    version: str
    release: str


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A known vulnerability of a version of a package."""

    id: str
    aliases: frozenset[str]
    severity: str
    package: PackageName
    version: str
    fixed_in: tuple[str, ...]
    sboms: tuple[str, ...]

    def is_of(self, ignored: Ignored) -> bool:
        """Return True if an entry of the ignore list means it."""
        return ignored.id in self.aliases and ignored.package == self.package.name


@dataclass(slots=True)
class Result:
    """The vulnerabilities that a check found, and the components that it could not check."""

    database: Database
    found: list[Vulnerability] = field(default_factory=list)
    ignored: list[tuple[Vulnerability, Ignored]] = field(default_factory=list)
    expired: list[Ignored] = field(default_factory=list)
    unused: list[Ignored] = field(default_factory=list)
    without_package: int = 0  # components that OSV has no ecosystem for
    checked: int = 0
    missing: list[str] = field(default_factory=list)  # ecosystems without a database


def check(sboms: Iterable[tuple[str, Bom]], folder: Path, ignored: Sequence[Ignored], today: date) -> Result:
    """Look the components of SBOMs up in a database.

    Args:
        sboms: SBOMs with their names.
        folder: the database.
        ignored: vulnerabilities that don't count, until their day.
        today: the day that their days are compared with.
    """
    where: dict[Lookup, set[str]] = {}
    without_package = set()
    for name, bom in sboms:
        for component in bom.components:
            lookup = looked_up(component.purl) if component.purl else None
            if lookup is None:
                without_package.add(component.bom_ref.value)
            else:
                where.setdefault(lookup, set()).add(name)
    database = Database.read(folder, {lookup.package for lookup in where})
    result = Result(database, without_package=len(without_package))
    result.missing = sorted({one.package.ecosystem for one in where} - set(database.newest))
    result.checked = sum(one.package.ecosystem in database.newest for one in where)
    for lookup, names in sorted(where.items()):
        result.found += _vulnerabilities(lookup, list(database.matches(*lookup)), tuple(sorted(names)))
    _set_ignored_apart(result, ignored, today)
    result.found.sort(key=lambda one: (_RATINGS.index(one.severity), one.package, one.id))
    return result


def looked_up(purl: PackageURL) -> Lookup | None:
    """Return OSV's name of a component; None if OSV has no such ecosystem."""
    ecosystem = _ECOSYSTEMS.get(purl.type)
    if ecosystem is None or not purl.version:
        return None
    name, version, release = purl.name, purl.version, ""
    if ecosystem == "Maven":
        name = f"{purl.namespace}:{purl.name}"
    elif ecosystem == "Go":
        name = f"{purl.namespace}/{purl.name}" if purl.namespace else purl.name
    elif ecosystem == "Debian":
        # Debian tracks source packages.
        qualifiers = purl.qualifiers if isinstance(purl.qualifiers, dict) else {}
        source, _, source_version = qualifiers.get("upstream", "").partition("@")
        name, version = source or name, source_version or version
        release = qualifiers.get("distro", "").rpartition("-")[2]
    return Lookup(PackageName(ecosystem, name), version, release)


def severity(advisory: Advisory) -> str:
    """Return the rating of an advisory: its database's word, else that of its newest CVSS vector, else `unknown`."""
    stated = str((advisory.database_specific or {}).get("severity", "")).lower().replace("moderate", "medium")
    if stated in _RATINGS:
        return stated
    for kind, read in _CVSS.items():
        for score in (one.score for one in advisory.severity if one.type == kind):
            try:
                return str(read(score).severities()[0]).lower()
            except CVSSError:
                continue
    return "unknown"


def age_in_days(newest: datetime, now: datetime) -> int:
    """Return the age of a database's newest advisory in whole days."""
    return max((now - newest).days, 0)


def table(found: Sequence[Vulnerability]) -> Iterator[str]:
    """Return vulnerabilities as the lines of a table, with a line of headings if there are any."""
    rows = [
        (one.id, one.severity, one.package.name, one.version, ", ".join(one.fixed_in) or "-", " ".join(one.sboms))
        for one in found
    ]
    if rows:
        rows.insert(0, ("id", "severity", "package", "version", "fixed in", "SBOMs"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def remarks(result: Result) -> Iterator[str]:
    """Return a line for each ignored vulnerability, outdated entry of the ignore list, and advisory not compared."""
    for one, entry in result.ignored:
        yield f"ignored until {entry.until}: {one.id} of {one.package.name} ({entry.reason})"
    for entry in result.expired:
        yield f"no longer ignored since {entry.until}: {entry.id} of {entry.package}"
    for entry in result.unused:
        yield f"found in no component: {entry.id} of {entry.package}; remove it from the list of ignored ones"
    for text in result.database.not_comparable:
        yield f"not compared: {text}"


def _vulnerabilities(lookup: Lookup, matches: Sequence[Match], sboms: tuple[str, ...]) -> Iterator[Vulnerability]:
    """Return a vulnerability for each group of advisories with a common alias, under the first of its names."""
    groups: list[tuple[set[str], list[Match]]] = []
    for match in matches:
        names = {match.advisory.id, *match.advisory.aliases}
        same = [group for group in groups if group[0] & names]
        merged = (names.union(*(group[0] for group in same)), [*(one for group in same for one in group[1]), match])
        groups = [group for group in groups if group not in same] + [merged]
    for names, members in groups:
        ratings = sorted((severity(one.advisory) for one in members), key=_RATINGS.index)
        fixes = next((one.fixed_in for one in members if one.fixed_in), ())
        identifier = min(one.advisory.id for one in members)
        yield Vulnerability(identifier, frozenset(names), ratings[0], lookup.package, lookup.version, fixes, sboms)


def _set_ignored_apart(result: Result, ignored: Sequence[Ignored], today: date) -> None:
    remaining = []
    for one in result.found:
        entry = next((entry for entry in ignored if one.is_of(entry)), None)
        if entry is None or entry.until < today:
            remaining.append(one)
        else:
            result.ignored.append((one, entry))
    everything = [*remaining, *(one for one, _ in result.ignored)]
    result.expired = [entry for entry in ignored if entry.until < today]
    result.unused = [entry for entry in ignored if not any(one.is_of(entry) for one in everything)]
    result.found = remaining

"""A downloaded OSV database: known vulnerabilities by package, and the versions that each affects.

The database is a folder with `<ecosystem>/all.zip` for each ecosystem, as OSV publishes it: an advisory is a JSON file.
Source: https://ossf.github.io/osv-schema/, https://google.github.io/osv.dev/data/
"""

import zipfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from univers.versions import (
    DebianVersion,
    GolangVersion,
    InvalidVersion,
    MavenVersion,
    PypiVersion,
    SemverVersion,
    Version,
)

# Versions by ecosystem. Maven's compare by the rules before Maven 3.9, in which `1.foo` is less than `1-foo`.
_VERSIONS: Mapping[str, Callable[[str], Version]] = {
    "PyPI": PypiVersion,
    "Maven": MavenVersion,
    "Debian": DebianVersion,
    "crates.io": SemverVersion,
    "Go": GolangVersion,
}
_FROM_THE_START = "0"


class PackageName(NamedTuple):
    """A package as OSV names it: its ecosystem without a release, and its name there."""

    ecosystem: str
    name: str


class _Package(msgspec.Struct):
    ecosystem: str
    name: str


class _Range(msgspec.Struct):
    type: str
    events: list[dict[str, str]] = []


class _Affected(msgspec.Struct):
    package: _Package | None = None
    ranges: list[_Range] = []
    versions: list[str] = []
    ecosystem_specific: dict[str, Any] | None = None


class _Severity(msgspec.Struct):
    type: str
    score: str


class Advisory(msgspec.Struct):
    """An advisory of OSV, with the fields that the check needs."""

    id: str
    modified: datetime
    aliases: list[str] = []
    withdrawn: datetime | None = None
    affected: list[_Affected] = []
    severity: list[_Severity] = []
    database_specific: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """An advisory that affects a version, and the later versions that correct it, the lowest first."""

    advisory: Advisory
    fixed_in: tuple[str, ...]


class VersionError(ValueError):
    """A version does not follow the rules of its ecosystem and can't be compared."""


@dataclass(slots=True)
class Database:
    """The advisories on the requested packages, and the date of each ecosystem's newest advisory."""

    newest: dict[str, datetime] = field(default_factory=dict)
    advisories: Mapping[PackageName, list[Advisory]] = field(default_factory=lambda: defaultdict(list))
    not_comparable: list[str] = field(default_factory=list)  # what `matches` had to leave out, and why

    @classmethod
    def read(cls, folder: Path, packages: Collection[PackageName]) -> "Database":
        """Read the advisories on some packages; an ecosystem without a file is not in `newest`."""
        wanted = frozenset(packages)
        database = cls()
        for ecosystem in sorted({package.ecosystem for package in wanted}):
            path = folder / ecosystem / "all.zip"
            if path.is_file():
                database._read(path, ecosystem, wanted)
        return database

    def _read(self, path: Path, ecosystem: str, wanted: frozenset[PackageName]) -> None:
        decoder = msgspec.json.Decoder(Advisory)
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                advisory = decoder.decode(archive.read(name))
                self.newest[ecosystem] = max(self.newest.get(ecosystem, advisory.modified), advisory.modified)
                if advisory.withdrawn is None:
                    for package in _packages(advisory) & wanted:
                        self.advisories[package].append(advisory)

    def matches(self, package: PackageName, version: str, release: str = "") -> Iterator[Match]:
        """Return the advisories that affect a version of a package; notes in `not_comparable` which can't be compared.

        Args:
            package: the package.
            version: its version.
            release: the release of its operating system, for example `13` of Debian.
        """
        for advisory in self.advisories.get(package, ()):
            applying = [one for one in advisory.affected if _applies(one, package, release)]
            ranges = [one for part in applying for one in part.ranges if one.type in ("SEMVER", "ECOSYSTEM")]
            try:
                listed = any(version in part.versions for part in applying)
                if listed or any(_contains(one, package.ecosystem, version) for one in ranges):
                    yield Match(advisory, _fixes(ranges, package.ecosystem, version))
            except VersionError as error:
                self.not_comparable.append(f"{package.name} {version} with {advisory.id}: {error}")


def _packages(advisory: Advisory) -> frozenset[PackageName]:
    return frozenset(_name(one.package) for one in advisory.affected if one.package is not None)


def _name(package: _Package) -> PackageName:
    return PackageName(package.ecosystem.partition(":")[0], package.name)


def _applies(affected: _Affected, package: PackageName, release: str) -> bool:
    if affected.package is None or _name(affected.package) != package:
        return False
    of_release = affected.package.ecosystem.partition(":")[2]
    return not of_release or not release or of_release == release


def _contains(affected: _Range, ecosystem: str, version: str) -> bool:
    """Return True if a version is in a range. The last event at or before it decides, as the schema says."""
    mine = parsed(ecosystem, version)
    vulnerable = False
    for kind, at in _events(affected, ecosystem):
        if at is None or (mine > at if kind == "last_affected" else mine >= at):
            vulnerable = kind == "introduced"
    return vulnerable


def _events(affected: _Range, ecosystem: str) -> list[tuple[str, Version | None]]:
    """Return the events of a range by version; None is before each version."""
    events = [(kind, at) for event in affected.events for kind, at in event.items() if (kind, at) != ("limit", "*")]
    later = [(kind, parsed(ecosystem, at)) for kind, at in events if at != _FROM_THE_START]
    first: list[tuple[str, Version | None]] = [(kind, None) for kind, at in events if at == _FROM_THE_START]
    return first + sorted(later, key=lambda event: event[1])


def _fixes(ranges: list[_Range], ecosystem: str, version: str) -> tuple[str, ...]:
    mine = parsed(ecosystem, version)
    fixes = {at for one in ranges for event in one.events for kind, at in event.items() if kind == "fixed"}
    return tuple(sorted((at for at in fixes if parsed(ecosystem, at) > mine), key=lambda at: parsed(ecosystem, at)))


def parsed(ecosystem: str, version: str) -> Version:
    """Return a version that compares by the rules of its ecosystem.

    Raises:
        VersionError: it does not follow these rules.
    """
    try:
        return _VERSIONS[ecosystem](version.removeprefix("v") if ecosystem == "Go" else version)
    except (InvalidVersion, ValueError) as error:
        raise VersionError(f"{version!r} is not a version of {ecosystem}") from error

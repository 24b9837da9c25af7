"""Checks the licences of all components of SBOMs against an allow-list with reasons.

A component passes if one way to comply with its licence has allowed identifiers only, or if an exception names it.
Every other component is reported, one without a known licence too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope
from cyclonedx.model.license import DisjunctiveLicense, License, LicenseExpression

from gamelake.model.errors import SettingsError
from tools.supply_chain.images import SECTION
from tools.supply_chain.names_of_licences import expression, identifiers


class Allowed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Licences that components may have, and why."""

    licences: list[str]
    reason: str


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Components that are allowed whatever their metadata says, by package URLs in which `*` stands for anything."""

    components: list[str]
    licence: str
    reason: str


class AllowList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of `licences.yaml`."""

    allowed: list[Allowed]
    exceptions: list[Rule]

    @classmethod
    def read(cls, path: Path) -> "AllowList":
        """Read an allow-list.

        Raises:
            SettingsError: the file has other or missing fields.
        """
        try:
            return msgspec.yaml.decode(path.read_bytes(), type=cls)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{path.name}: {error}") from error


class Verdict(StrEnum):
    """Result of the check for a component."""

    ALLOWED = "allowed"
    BY_EXCEPTION = "by exception"
    NOT_INSTALLED = "not installed here"
    NOT_ALLOWED = "not allowed"
    UNKNOWN = "unknown"


_FAILED = frozenset({Verdict.NOT_ALLOWED, Verdict.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on a component of an SBOM."""

    sbom: str
    purl: str
    licence: str
    verdict: Verdict

    @property
    def fails(self) -> bool:
        """True if the check fails because of it."""
        return self.verdict in _FAILED


def check(sboms: Iterable[tuple[str, Bom]], allow_list: AllowList) -> Iterator[Finding]:
    """Return the verdict on each component of SBOMs, which come with their names."""
    allowed = frozenset(licence for group in allow_list.allowed for licence in group.licences)
    for name, bom in sboms:
        for component in bom.components:
            purl = component.purl.to_string() if component.purl else component.name
            written = [_text(one) for one in component.licenses]
            verdict = _verdict(component, purl, written, allowed, allow_list.exceptions)
            yield Finding(name, purl, ", ".join(written), verdict)


def unused(sboms: Iterable[tuple[str, Bom]], allow_list: AllowList) -> list[str]:
    """Return the exceptions that no component needs any more."""
    purls = {one.purl.to_string() for _, bom in sboms for one in bom.components if one.purl}
    patterns = (pattern for rule in allow_list.exceptions for pattern in rule.components)
    return [pattern for pattern in patterns if not any(fnmatchcase(purl, pattern) for purl in purls)]


def _verdict(
    component: Component, purl: str, written: list[str], allowed: frozenset[str], exceptions: list[Rule]
) -> Verdict:
    if any(fnmatchcase(purl, pattern) for rule in exceptions for pattern in rule.components):
        return Verdict.BY_EXCEPTION
    if component.scope is ComponentScope.EXCLUDED and not written:
        return Verdict.NOT_INSTALLED
    if purl.startswith("pkg:deb/"):
        return _of_debian(component)
    spdx = [expression(one) for one in written]
    if not spdx or None in spdx:
        return Verdict.UNKNOWN
    complies = all(any(way <= allowed for way in identifiers(one)) for one in spdx if one)
    return Verdict.ALLOWED if complies else Verdict.NOT_ALLOWED


def _of_debian(component: Component) -> Verdict:
    """Judge by the section of Debian's archive: its team checks that `main` meets the Free Software Guidelines.

    Debian's copyright files list the licences of all files of the source, also of those that are not in the package.
    """
    sections = [one.value or "" for one in component.properties if one.name == SECTION]
    free = bool(sections) and not any(one.startswith(("non-free", "contrib")) for one in sections)
    return Verdict.ALLOWED if free else Verdict.NOT_ALLOWED


def _text(licence: License) -> str:
    if isinstance(licence, LicenseExpression):
        return licence.value
    if isinstance(licence, DisjunctiveLicense):
        return licence.id or licence.name or ""
    return str(licence)

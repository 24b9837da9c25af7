"""Python packages: the pins of a lock file, and the licences that installed packages state.

Source: https://packaging.python.org/en/latest/specifications/core-metadata/
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.component import Component, ComponentScope
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, canonicalize_version

from tools.supply_chain.names_of_licences import expression, expression_of_text, leaves_open, license_of

_PINNED = re.compile(r"^(\S+==[^\\]+?)\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_LICENCE_FILE = re.compile(r"(?:licen[cs]e|copying)", re.IGNORECASE)
_CLASSIFIER = "License :: "


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """The metadata of an installed package."""

    name: str
    version: str
    licence: str | None  # an SPDX expression, or what its metadata has instead

    @property
    def key(self) -> tuple[str, str]:
        """The normalised name and the version."""
        return canonicalize_name(self.name), canonicalize_version(self.version, strip_trailing_zero=False)


def locked(lock: Path, installed: Mapping[tuple[str, str], InstalledPackage]) -> Iterator[Component]:
    """Return the packages that a lock file pins, with the hashes of their files and the licences of installed ones.

    Pins for other systems or versions of Python have the scope `excluded`.
    """
    hashes: list[str] = []
    requirement: Requirement | None = None
    for line in lock.read_text(encoding="utf-8").splitlines():
        if pinned := _PINNED.match(line):
            if requirement is not None:
                yield _locked(requirement, hashes, installed)
            requirement, hashes = Requirement(pinned[1]), []
        hashes += _HASH.findall(line)
    if requirement is not None:
        yield _locked(requirement, hashes, installed)


def _locked(
    requirement: Requirement, hashes: Sequence[str], installed: Mapping[tuple[str, str], InstalledPackage]
) -> Component:
    pinned = InstalledPackage(requirement.name, next(iter(requirement.specifier)).version, None)
    applies = requirement.marker is None or requirement.marker.evaluate()
    return component(
        installed.get(pinned.key, pinned),
        hashes,
        ComponentScope.REQUIRED if applies else ComponentScope.EXCLUDED,
    )


def component(
    package: InstalledPackage, hashes: Sequence[str] = (), scope: ComponentScope = ComponentScope.REQUIRED
) -> Component:
    """Return a package as a component; `hashes` are the SHA-256 of its files in the index, in hexadecimal."""
    name, version = package.key
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(f"https://pypi.org/project/{name}/{version}/"),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one) for one in hashes],
    )
    purl = PackageURL("pypi", name=name, version=version)
    return Component(
        name=name,
        version=version,
        purl=purl,
        bom_ref=purl.to_string(),
        scope=scope,
        licenses=[license_of(package.licence)] if package.licence else [],
        external_references=[files] if hashes else [],
    )


def installed_in(*site_packages: Path) -> dict[tuple[str, str], InstalledPackage]:
    """Return the packages in folders `site-packages`, by normalised name and version."""
    found = {}
    for metadata in (path for folder in site_packages for path in folder.glob("*.dist-info/METADATA")):
        texts = [
            path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(metadata.parent.rglob("*"))
            if path.is_file() and _LICENCE_FILE.search(path.name)
        ]
        package = described(metadata.read_text(encoding="utf-8"), texts)
        found[package.key] = package
    return found


def described(metadata: str, licence_texts: Sequence[str]) -> InstalledPackage:
    """Return a package from the text of its METADATA file and its licence files."""
    fields = Parser().parsestr(metadata, headersonly=True)
    return InstalledPackage(str(fields["Name"]), str(fields["Version"]), _licence(fields, licence_texts))


def _licence(fields: Message, texts: Sequence[str]) -> str | None:
    """Return the SPDX expression if there is one, else the package's own words.

    In this order: the field of today, the older free field, a classifier that is unambiguous, the texts.
    """
    stated = [str(fields[name]) for name in ("License-Expression", "License") if fields[name]]
    classifiers = [
        str(value).rpartition(" :: ")[2]
        for value in fields.get_all("Classifier", [])
        if str(value).startswith(_CLASSIFIER)
    ]
    candidates = [*map(expression, [*stated, *classifiers])]
    # A text must not outweigh what the package says: texts of other licences come with code that a package has copied.
    if all(map(leaves_open, [*stated, *classifiers])):
        candidates += map(expression_of_text, [*stated, *texts])
    recognised = next((found for found in candidates if found), None)
    return recognised or next((text for text in [*stated, *classifiers] if text.strip()), None)

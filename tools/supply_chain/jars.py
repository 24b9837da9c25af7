"""Jars as components: finds the Maven artifact by the jar's own metadata, its file name, or the list of groups."""

import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.component import Component
from packageurl import PackageURL

from tools.supply_chain.maven_poms import Coordinates, MavenPoms
from tools.supply_chain.names_of_licences import any_of, expression_of_text, leaves_open, license_of

COPIED_INTO = "gamelake:copied-into"
_GROUPS_FILE = Path(__file__).with_name("groups_of_jars.yaml")
_PROPERTIES = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_MANIFEST = "META-INF/MANIFEST.MF"
_BUNDLE_LICENCE = re.compile(r"^Bundle-License: *(.+)$", re.MULTILINE)
_LICENCE_TEXT = re.compile(r"(?:META-INF/)?LICENSE(?:\.txt|\.md)?")
_VERSION_STARTS = re.compile(r"-(?=\d)")
# Trino's distribution writes the group before the artifact, and `...` for a part of a long one.
_GROUP_IN_NAME = re.compile(r"([a-z][a-z0-9-]*(?:\.+[a-z0-9-]+)*)_(.+-\d.*)")
_QUARKUS_LIST = "quarkus-app-dependencies.txt"
_QUARKUS_DEPENDENCY = re.compile(r"([^:\s]+):([^:]+):([^:]*):jar:(\S+)")


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar: its file name without `.jar`, its SHA-256 in hexadecimal, and its metadata, as far as it has any."""

    name: str
    sha256: str
    coordinates: Coordinates | None
    pom: bytes | None = None
    licence: str | None = None  # of its manifest or its licence's text
    # Other artifacts that were copied into it, with their poms.
    copied: tuple[tuple[Coordinates, bytes | None], ...] = ()


def read(name: str, content: bytes) -> Jar:
    """Return a jar from its file name and its bytes."""
    stem = name.rpartition("/")[2].removesuffix(".jar")
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = [one for one in _artifacts(archive) if one is not None]
            own = _named(stem, found)
            copied = tuple((one, _pom(archive, one)) for one in found if one != own)
            pom = _pom(archive, own) if own else None
            return Jar(stem, sha256, own or _by_name(stem), pom, _licence(archive), copied)
    except zipfile.BadZipFile:
        return Jar(stem, sha256, _by_name(stem))


def components(folder: Path, poms: MavenPoms) -> Iterator[Component]:
    """Return the jars in a folder and its subfolders as components, then the artifacts that were copied into them."""
    listed = dict(chain.from_iterable(map(_listed_by_quarkus, folder.rglob(_QUARKUS_LIST))))
    found = sorted((read(path.name, path.read_bytes()) for path in folder.rglob("*.jar")), key=lambda jar: jar.name)
    found = [replace(jar, coordinates=listed.get(jar.name, jar.coordinates)) for jar in found]
    artifacts = [one for jar in found for one in ((jar.coordinates, jar.pom), *jar.copied)]
    parents = (poms.parent(pom) for _, pom in artifacts if pom)
    poms.fetch(sorted({*filter(None, (one for one, _ in artifacts)), *filter(None, parents)}))
    yield from (of_jar(jar, poms) for jar in found)
    for jar in found:
        for one, pom in jar.copied:
            copied_into = Property(name=COPIED_INTO, value=jar.name)
            yield _component(PackageURL("maven", *one), poms.licence(one, pom), properties=[copied_into])


def of_jar(jar: Jar, poms: MavenPoms) -> Component:
    """Return a jar as a component; one without coordinates can't be looked up in a list of vulnerabilities."""
    if jar.coordinates is None:
        purl = PackageURL("generic", name=jar.name, qualifiers={"checksum": f"sha256:{jar.sha256}"})
        licence = jar.licence
    else:
        purl = PackageURL("maven", *jar.coordinates)
        of_poms = poms.licence(jar.coordinates, jar.pom)
        licence = jar.licence if jar.licence and leaves_open(of_poms or "") else of_poms
    return _component(purl, licence, hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)])


def _component(purl: PackageURL, licence: str | None, **fields: Any) -> Component:  # noqa: ANN401 # of Component
    return Component(
        group=purl.namespace,
        name=purl.name,
        version=purl.version,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=[license_of(licence)] if licence else [],
        **fields,
    )


def _listed_by_quarkus(dependencies: Path) -> Iterator[tuple[str, Coordinates]]:
    """Return the artifacts that a distribution of Quarkus lists, by the file names of their jars without `.jar`."""
    for match in _QUARKUS_DEPENDENCY.finditer(dependencies.read_text(encoding="utf-8")):
        group, artifact, classifier, version = match.groups()
        yield (
            f"{group}.{artifact}-{version}{'-' + classifier if classifier else ''}",
            Coordinates(group, artifact, version),
        )


def _artifacts(jar: zipfile.ZipFile) -> Iterator[Coordinates | None]:
    return (_coordinates(jar.read(name)) for name in jar.namelist() if _PROPERTIES.fullmatch(name))


def _named(stem: str, artifacts: Iterable[Coordinates]) -> Coordinates | None:
    """Return the artifact that a file is named after, with its version or without."""
    named = [one for one in artifacts if f"{one.artifact}-{one.version}" in stem or one.artifact == stem]
    return max(named, key=lambda one: len(one.artifact), default=None)


def _pom(jar: zipfile.ZipFile, one: Coordinates) -> bytes | None:
    name = f"META-INF/maven/{one.group}/{one.artifact}/pom.xml"
    return jar.read(name) if name in jar.namelist() else None


def _licence(jar: zipfile.ZipFile) -> str | None:
    """Return the licence of a jar's manifest, else that of the licence text in it, as an SPDX expression."""
    names = set(jar.namelist())
    manifest = jar.read(_MANIFEST).decode("utf-8", errors="replace") if _MANIFEST in names else ""
    # A line of more than 72 bytes continues in the next one, after a space.
    stated = _BUNDLE_LICENCE.search(re.sub(r"\r?\n ", "", manifest))
    recognised = any_of(re.split(r'[;,"]', stated[1])) if stated else None
    texts = (
        jar.read(name).decode("utf-8", errors="replace") for name in sorted(names) if _LICENCE_TEXT.fullmatch(name)
    )
    return recognised or next(filter(None, map(expression_of_text, texts)), None)


def _coordinates(properties: bytes) -> Coordinates | None:
    lines = (line.partition("=") for line in properties.decode("utf-8", errors="replace").splitlines())
    values = {name.strip(): value.strip() for name, _, value in lines}
    try:
        return Coordinates(values["groupId"], values["artifactId"], values["version"])
    except KeyError:
        return None


def _by_name(stem: str) -> Coordinates | None:
    for name, group in _possible(stem):
        splits = [(name[: match.start()], name[match.start() + 1 :]) for match in _VERSION_STARTS.finditer(name)]
        # An artifact's name may have a number too: the longest that is in the list, else the shortest.
        for artifact, version in reversed(splits):
            if artifact in _groups():
                return Coordinates(_groups()[artifact], artifact, version)
        if group and splits:
            return Coordinates(group, *splits[0])
    return None


def _possible(stem: str) -> Iterator[tuple[str, str | None]]:
    """Return the possible pairs of artifact-version and group in a file name; no group unless it is complete."""
    yield stem, None
    if found := _GROUP_IN_NAME.fullmatch(stem):
        yield found[2], None
        yield found[2], found[1] if "." in found[1] and ".." not in found[1] else None


@cache
def _groups() -> Mapping[str, str]:
    """Return the groups of artifacts whose jars don't name them."""
    read: Mapping[str, list[str]] = yaml.safe_load(_GROUPS_FILE.read_text(encoding="utf-8"))
    return {artifact: group for group, artifacts in read.items() for artifact in artifacts}

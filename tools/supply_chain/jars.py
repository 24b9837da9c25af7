"""Jars: which artifact of Maven each is, by what it says itself, by its file name, or by its group in a list."""

import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path

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
_QUARKUS_DEPENDENCY = re.compile(r"([^:\s]+):([^:]+):([^:]*):jar:(\S+)")


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar: its file name without `.jar`, its SHA-256 in hexadecimal, and what it says about itself, where it does."""

    name: str
    sha256: str
    coordinates: Coordinates | None
    pom: bytes | None = None
    licence: str | None = None  # of its manifest or its licence's text
    contents: tuple[
        tuple[Coordinates, bytes | None], ...
    ] = ()  # other artifacts that were copied into it, with their poms

    @property
    def purl(self) -> PackageURL:
        """Its package URL; one without an artifact cannot be looked up in a list of vulnerabilities."""
        if self.coordinates is None:
            return PackageURL("generic", name=self.name, qualifiers={"checksum": f"sha256:{self.sha256}"})
        return PackageURL("maven", *self.coordinates)


def read(name: str, content: bytes) -> Jar:
    """A jar from its file name and its bytes."""
    stem = name.rpartition("/")[2].removesuffix(".jar")
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = [one for one in _artifacts(archive) if one is not None]
            own = _named(stem, found)
            contents = tuple((one, _pom(archive, one)) for one in found if one != own)
            pom = _pom(archive, own) if own else None
            return Jar(stem, sha256, own or _by_name(stem), pom, _licence(archive), contents)
    except zipfile.BadZipFile:
        return Jar(stem, sha256, _by_name(stem))


def read_folder(folder: Path) -> Iterator[Jar]:
    """The jars of a folder and of those in it."""
    for path in sorted(folder.rglob("*.jar")):
        yield read(path.name, path.read_bytes())


def artifacts(jars: Iterable[Jar], poms: MavenPoms) -> Iterator[Coordinates]:
    """The artifacts whose poms tell the licences of jars: they themselves, what they contain, and its parents."""
    for jar in jars:
        for one, pom in ((jar.coordinates, jar.pom), *jar.contents):
            parent = poms.parent(pom) if pom else None
            yield from (found for found in (one, parent) if found is not None)


def components(jars: Iterable[Jar], poms: MavenPoms) -> Iterator[Component]:
    """Jars as components of an SBOM, and the artifacts that were copied into them, each once."""
    every = sorted(jars, key=lambda jar: jar.name)
    seen: set[str] = set()
    for one in (*(_of_jar(jar, poms) for jar in every), *chain.from_iterable(_copied(jar, poms) for jar in every)):
        if one.bom_ref.value not in seen:
            seen.add(one.bom_ref.value or "")
            yield one


def _of_jar(jar: Jar, poms: MavenPoms) -> Component:
    of_poms = poms.licence(jar.coordinates, jar.pom) if jar.coordinates else None
    licence = jar.licence if jar.licence and leaves_open(of_poms or "") else of_poms
    return Component(
        group=jar.coordinates.group if jar.coordinates else None,
        name=jar.coordinates.artifact if jar.coordinates else jar.name,
        version=jar.coordinates.version if jar.coordinates else None,
        purl=jar.purl,
        bom_ref=jar.purl.to_string(),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)],
        licenses=[license_of(licence)] if licence else [],
    )


def _copied(jar: Jar, poms: MavenPoms) -> Iterator[Component]:
    """The artifacts in a jar; without a hash, because a copy has none of its own."""
    for one, pom in jar.contents:
        purl = PackageURL("maven", *one)
        licence = poms.licence(one, pom)
        yield Component(
            group=one.group,
            name=one.artifact,
            version=one.version,
            purl=purl,
            bom_ref=purl.to_string(),
            properties=[Property(name=COPIED_INTO, value=jar.name)],
            licenses=[license_of(licence)] if licence else [],
        )


def named_by_quarkus(jars: Iterable[Jar], dependencies: str) -> Iterator[Jar]:
    """Jars with the artifacts that a distribution of Quarkus lists, in its `quarkus-app-dependencies.txt`."""
    listed = {
        f"{match[1]}.{match[2]}-{match[4]}{'-' + match[3] if match[3] else ''}": Coordinates(
            match[1], match[2], match[4]
        )
        for match in _QUARKUS_DEPENDENCY.finditer(dependencies)
    }
    for jar in jars:
        yield replace(jar, coordinates=listed.get(jar.name, jar.coordinates))


def _artifacts(jar: zipfile.ZipFile) -> Iterator[Coordinates | None]:
    return (_coordinates(jar.read(name)) for name in jar.namelist() if _PROPERTIES.fullmatch(name))


def _named(stem: str, artifacts: Iterable[Coordinates]) -> Coordinates | None:
    """The artifact that a file is named after, with its version or without."""
    named = [one for one in artifacts if f"{one.artifact}-{one.version}" in stem or one.artifact == stem]
    return max(named, key=lambda one: len(one.artifact), default=None)


def _pom(jar: zipfile.ZipFile, one: Coordinates) -> bytes | None:
    name = f"META-INF/maven/{one.group}/{one.artifact}/pom.xml"
    return jar.read(name) if name in jar.namelist() else None


def _licence(jar: zipfile.ZipFile) -> str | None:
    """The licence of a jar's manifest, else of the licence's text in it, as an SPDX expression."""
    names = set(jar.namelist())
    manifest = jar.read(_MANIFEST).decode("utf-8", errors="replace") if _MANIFEST in names else ""
    # A line of more than 72 bytes goes on in the next one, after a space.
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
    """What may be artifact and version in a file name, with the group if the name has it in full."""
    yield stem, None
    if found := _GROUP_IN_NAME.fullmatch(stem):
        yield found[2], None
        yield found[2], found[1] if "." in found[1] and ".." not in found[1] else None


@cache
def _groups() -> Mapping[str, str]:
    """Groups by the artifacts whose jars don't name them."""
    read: Mapping[str, list[str]] = yaml.safe_load(_GROUPS_FILE.read_text(encoding="utf-8"))
    return {artifact: group for group, artifacts in read.items() for artifact in artifacts}

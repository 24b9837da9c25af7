"""Licences of Java artifacts, from their poms and their parents' poms in the local Maven repository.

A jar often has no pom, or one that leaves the licence to its parent. `MavenPoms.fetch` lets Maven download all
poms that are missing, with their parents, in one run.
"""

import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import ParseError, fromstring

from tools.supply_chain.names_of_licences import any_of, expression

_MAVEN_SECONDS = 1_200
_MOST_PARENTS = 12
_NAMES = ("groupId", "artifactId", "version")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:resolve"


class Coordinates(NamedTuple):
    """What names an artifact of Maven."""

    group: str
    artifact: str
    version: str

    @property
    def folder(self) -> str:
        """The artifact's folder in a repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}"

    @property
    def pom(self) -> str:
        """The path of its pom in a repository."""
        return f"{self.folder}/{self.artifact}-{self.version}.pom"


@dataclass(frozen=True, slots=True)
class MavenPoms:
    """The poms of a local Maven repository."""

    repository: Path

    @classmethod
    def of_the_user(cls) -> "MavenPoms":
        """Those of the repository that Maven uses by default."""
        return cls(Path.home() / ".m2/repository")

    def licence(self, coordinates: Coordinates, inside: bytes | None = None) -> str | None:
        """The SPDX expression of an artifact's licence, or the names in its pom; None without a pom or a licence.

        Of several licences a user may choose one: https://maven.apache.org/pom.html#Licenses

        Args:
            coordinates: the artifact.
            inside: the pom that its jar contains, for an artifact whose pom is not in the repository.
        """
        stated = self._stated(coordinates, inside)
        written = [next((text for text in one if expression(text)), one[0]) for one in stated if one]
        return any_of(written) or " OR ".join(written) or None

    def parent(self, pom: bytes) -> Coordinates | None:
        """The parent that a pom names."""
        read = _parsed(pom)
        return _parent(read) if read is not None else None

    def missing(self, artifacts: Iterable[Coordinates]) -> list[Coordinates]:
        """The artifacts whose pom is not in the repository."""
        return [one for one in artifacts if not (self.repository / one.pom).is_file()]

    def fetch(self, artifacts: Iterable[Coordinates], folder: Path) -> list[Coordinates]:
        """Download the poms of artifacts and their parents by Maven; returns the artifacts whose pom is still missing.

        Args:
            artifacts: what to download; poms that are there are kept.
            folder: a folder for the project that Maven resolves; it is replaced.
        """
        missing = self.missing(artifacts)
        maven = shutil.which("mvn")
        if missing and maven is not None:
            _write_project(missing, folder)
            command = (maven, "--quiet", "--batch-mode", "--fail-at-end", "--file", str(folder / "pom.xml"), _PLUGIN)
            # Its exit code says that one of hundreds was not found; what was found is there all the same.
            subprocess.run(command, capture_output=True, timeout=_MAVEN_SECONDS, check=False, env=os.environ)
        return self.missing(missing)

    def _stated(self, coordinates: Coordinates, inside: bytes | None) -> list[list[str]]:
        """For each licence its name and address, of the nearest pom that has any."""
        pom = _parsed(inside) if inside else None
        for _ in range(_MOST_PARENTS):
            found_here = self._read(coordinates)
            pom = found_here if found_here is not None else pom
            if pom is None:
                return []
            if found := [_texts(one) for one in pom.findall("licenses/license")]:
                return found
            parent = _parent(pom)
            if parent is None:
                return []
            coordinates, pom = parent, None
        return []

    def _read(self, coordinates: Coordinates) -> Element | None:
        path = self.repository / coordinates.pom
        return _parsed(path.read_bytes()) if path.is_file() else None


def _parsed(xml: bytes) -> Element | None:
    """A pom whose elements have their names alone, without a namespace; None if it is no XML."""
    try:
        root: Element = fromstring(xml)
    except ParseError:
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def _parent(pom: Element) -> Coordinates | None:
    parent = pom.find("parent")
    return None if parent is None else Coordinates(*((parent.findtext(name) or "").strip() for name in _NAMES))


def _texts(licence: Element) -> list[str]:
    texts = (" ".join((licence.findtext(name) or "").split()) for name in ("name", "url"))
    return [text for text in texts if text]


def _write_project(artifacts: Iterable[Coordinates], folder: Path) -> None:
    """A project with a module for each version of an artifact, because a module can have only one of them."""
    shutil.rmtree(folder, ignore_errors=True)
    modules: dict[int, list[Coordinates]] = defaultdict(list)
    seen: Counter[tuple[str, str]] = Counter()
    for one in artifacts:
        modules[seen[one.group, one.artifact]].append(one)
        seen[one.group, one.artifact] += 1
    for number, dependencies in modules.items():
        (folder / str(number)).mkdir(parents=True)
        body = "".join(map(_dependency, dependencies))
        (folder / str(number) / "pom.xml").write_text(
            _project(f"poms-{number}", f"<dependencies>{body}</dependencies>"), encoding="utf-8"
        )
    names = "".join(f"<module>{number}</module>" for number in modules)
    (folder / "pom.xml").write_text(_project("poms", f"<modules>{names}</modules>"), encoding="utf-8")


def _project(name: str, body: str) -> str:
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>gamelake.sbom</groupId><artifactId>{name}</artifactId><version>1</version>"
        f"<packaging>pom</packaging>{body}</project>\n"
    )


def _dependency(one: Coordinates) -> str:
    group, artifact, version = (re.sub(r"[^\w.+-]", "", part) for part in one)
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        "<type>pom</type><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        "</dependency>"
    )

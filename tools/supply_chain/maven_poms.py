"""Licences of Java artifacts, from their poms and their parents' poms in the local Maven repository.

A jar often has no pom, or one that leaves the licence to its parent. `MavenPoms.fetch` lets Maven download all
poms that are missing, with their parents, in one run.
"""

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
    """Group, artifact and version of a Maven artifact."""

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
    """The poms of a local Maven repository.

    Attributes:
        repository: the repository's folder.
        project: where `fetch` writes the project that Maven resolves, which is replaced; without it nothing is fetched.
    """

    repository: Path
    project: Path | None = None

    @classmethod
    def of_the_user(cls, project: Path) -> "MavenPoms":
        """Return those of the repository that Maven uses by default."""
        return cls(Path.home() / ".m2/repository", project)

    def licence(self, coordinates: Coordinates, inside: bytes | None = None) -> str | None:
        """Return the SPDX expression of an artifact's licence, or the names in its pom; None without a pom or licence.

        A user may choose one of several licences: https://maven.apache.org/pom.html#Licenses

        Args:
            coordinates: the artifact.
            inside: the pom that its jar contains, for an artifact whose pom is not in the repository.
        """
        stated = self._stated(coordinates, inside)
        written = [next((text for text in one if expression(text)), one[0]) for one in stated if one]
        return any_of(written) or " OR ".join(written) or None

    def parent(self, pom: bytes) -> Coordinates | None:
        """Return the parent that a pom names."""
        read = _parsed(pom)
        return _parent(read) if read is not None else None

    def fetch(self, artifacts: Iterable[Coordinates]) -> None:
        """Download the poms of artifacts, with their parents, by Maven; existing ones are kept."""
        missing = [one for one in artifacts if not (self.repository / one.pom).is_file()]
        maven = shutil.which("mvn")
        if missing and maven is not None and self.project is not None:
            _write_project(missing, self.project)
            pom = str(self.project / "pom.xml")
            command = (maven, "--quiet", "--batch-mode", "--fail-at-end", "--file", pom, _PLUGIN)
            # Its exit code says that one of hundreds was not found; what was found is there all the same.
            subprocess.run(command, capture_output=True, timeout=_MAVEN_SECONDS, check=False)

    def _stated(self, coordinates: Coordinates, inside: bytes | None) -> list[list[str]]:
        """Return name and address of each licence in the nearest pom that has any."""
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
    """Return a pom whose elements have names without a namespace; None if it is not XML."""
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
    """Write a project with a module for each version of an artifact, because a module can have only one of them."""
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

"""Software bills of materials in CycloneDX 1.6: one for each lock, each group of jars, the crates, and each image."""

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from tools.supply_chain import images, jars
from tools.supply_chain.compiled_code import crates, go_modules
from tools.supply_chain.maven_poms import MavenPoms
from tools.supply_chain.names_of_licences import license_of
from tools.supply_chain.python_packages import component, installed_in, locked

_VERSION = SchemaVersion.V1_6
IMAGES = (
    "base",
    "java",
    "postgres",
    "object-store",
    "kafka",
    "registry",
    "spark",
    "trino",
    "prometheus",
    "alertmanager",
)
# What a container is made of that the project does not build.
_GRAFANA = "GRAFANA_IMAGE"
_KEYCLOAK_VERSION = re.compile(r"<keycloak\.version>(.+)</keycloak\.version>")


class NothingToReadError(Exception):
    """The sources of an SBOM are missing; the message says how to make them."""


@contextmanager
def _files_of(image: str, maker: str) -> Iterator[Path]:
    """Copy an image's lists of packages and its jars and programs to a folder, which the end of the block removes."""
    if not images.exists(image):
        raise NothingToReadError(f"the Docker engine has no image {image}; run {maker}")
    with TemporaryDirectory() as folder:
        images.copy_files(image, Path(folder))
        yield Path(folder)


def _site_packages(folder: Path) -> list[Path]:
    return sorted({metadata.parents[1] for metadata in folder.rglob("*.dist-info/METADATA")})


@dataclass(frozen=True, slots=True)
class Sources:
    """Locations of the project's dependencies: its folder, its compose settings, and Maven's repository."""

    project: Path
    settings: Mapping[str, str]
    poms: MavenPoms

    def readers(self) -> dict[str, Callable[[], Iterable[Component]]]:
        """Return the reader of each SBOM's components, by the SBOM's name.

        A reader raises NothingToReadError if its sources are missing.
        """
        tag = self.settings["GAMELAKE_TAG"]
        return {
            "python": lambda: self._lock("requirements.lock", *_own_site_packages()),
            "python-runtime": lambda: self._lock("requirements-runtime.lock", *_own_site_packages()),
            "python-engines": lambda: self._own_environment("engines", "build/engines"),
            "python-browser": lambda: self._own_environment("browser", "build/browser"),
            "python-superset": partial(self._packages_of_image, "superset", tag),
            "python-java": lambda: self._own_environment("java", "build/java/packages", ""),
            "python-docs": lambda: self._own_environment("docs", "build/docs/environment"),
            "java-kafka": lambda: self._jars("build/jars/kafka"),
            "java-model": lambda: self._jars("build/jars/model"),
            "java-registry": lambda: self._jars("build/registry"),
            "java-spark": lambda: self._jars("build/jars/spark"),
            "others": self._programs_of_others,
            "rust-native": lambda: crates(self.project / "native"),
            **{f"image-{name}": partial(self._image, f"gamelake/{name}:{tag}") for name in IMAGES},
        }

    def _lock(self, lock: str, *site_packages: Path) -> Iterator[Component]:
        return locked(self.project / lock, installed_in(*site_packages))

    def _own_environment(
        self, group: str, folder: str, packages: str = "/lib/python3*/site-packages"
    ) -> Iterable[Component]:
        """Read the lock of a dependency group, whose environment `make <group>` makes."""
        installed = [*self.project.glob(f"{folder}{packages}")]
        if not installed:
            raise NothingToReadError(f"{folder} is missing, which states the licences; run make {group}")
        return self._lock(f"requirements-{group}.lock", *installed)

    def _jars(self, folder: str) -> Iterable[Component]:
        path = self.project / folder
        if not path.is_dir():
            raise NothingToReadError(f"{folder} is missing; run make setup")
        return jars.components(path, self.poms)

    def _image(self, image: str) -> Iterable[Component]:
        with _files_of(image, "make images") as folder:
            return list(self.of_image(folder))

    def _packages_of_image(self, name: str, tag: str) -> Iterable[Component]:
        """Return the packages in the lock of an optional image; the image's files state their licences."""
        with _files_of(f"gamelake/{name}:{tag}", f"compose/images.sh {name}") as folder:
            return list(self._lock(f"requirements-{name}.lock", *_site_packages(folder)))

    def of_image(self, folder: Path) -> Iterator[Component]:
        """Return what an image is made of, from the files that `images.copy_files` has copied."""
        yield from images.debian_packages(folder)
        yield from map(component, installed_in(*_site_packages(folder)).values())
        yield from jars.components(folder, self.poms)
        for program in images.programs(folder):
            yield from go_modules(program.read_bytes())
        if any(folder.rglob(images.NATIVE)):
            yield from crates(self.project / "native")

    def _programs_of_others(self) -> Iterable[Component]:
        """Return the programs that run as their authors publish them; the authors list their contents."""
        image, _, version = self.settings[_GRAFANA].partition(":")
        purl = PackageURL("docker", *image.rpartition("/")[::2], version=version)
        yield Component(name=image, version=version, type=ComponentType.CONTAINER, purl=purl, bom_ref=purl.to_string())
        yield self._keycloak()

    def _keycloak(self) -> Component:
        (version,) = _KEYCLOAK_VERSION.findall((self.project / "compose/keycloak/pom.xml").read_text(encoding="utf-8"))
        purl = PackageURL("maven", "org.keycloak", "keycloak-quarkus-dist", version=version)
        return Component(
            name=purl.name,
            version=version,
            type=ComponentType.APPLICATION,
            purl=purl,
            bom_ref=purl.to_string(),
            licenses=[license_of("Apache-2.0")],
        )


def _own_site_packages() -> Iterator[Path]:
    return (Path(folder) for folder in sys.path if folder.endswith("site-packages"))


def write(name: str, components: Iterable[Component], version: str, path: Path) -> Bom:
    """Write an SBOM as JSON.

    Args:
        name: what it describes, for example `image-kafka`.
        components: its parts; of those with the same reference the first is written.
        version: the project's version.
        path: the file, which is replaced.
    """
    once: dict[str | None, Component] = {}
    for one in components:
        once.setdefault(one.bom_ref.value, one)
    bom = Bom(components=once.values())
    bom.metadata.component = Component(
        name=f"gamelake-{name}",
        version=version,
        type=ComponentType.CONTAINER if name.startswith("image-") else ComponentType.APPLICATION,
        bom_ref=f"gamelake-{name}",
        licenses=[license_of("Apache-2.0")],
    )
    bom.register_dependency(bom.metadata.component, bom.components)
    path.parent.mkdir(parents=True, exist_ok=True)
    make_outputter(bom, OutputFormat.JSON, _VERSION).output_to_file(str(path), allow_overwrite=True, indent=1)
    return bom


def read(path: Path) -> Bom:
    """Read an SBOM that `write` has written."""
    bom: Bom = Bom.from_json(json.loads(path.read_text(encoding="utf-8")))  # type: ignore[attr-defined] # added by a decorator
    return bom


def project_version(project: Path) -> str:
    """Return the version in pyproject.toml."""
    version: str = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version

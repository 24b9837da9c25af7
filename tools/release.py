"""Makes a release from the files that other make targets have built, for `make release`.

`python -m tools.release check` fails unless the tree is a version that can be released; `collect` puts its files into
build/release/<version>. Files of one platform have it in their name, so that the folders of two machines can be joined.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gamelake.command import command_parser
from gamelake.model.errors import StartupError
from gamelake.program import OK, run
from tools.embedded.service import REPOSITORY
from tools.supply_chain.sbom import IMAGES, project_version

_SECTION = re.compile(r"^## (.+?) *\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
# Where the version is written a second time: a file, and what stands before it.
_COPIES = (("compose/.env", "GAMELAKE_TAG="), ("deploy/helm/gamelake/Chart.yaml", "appVersion: "))


class ReleaseError(StartupError):
    """The tree can't be released; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the Docker engine: its name with the tag, `os/architecture`, and its id (sha256:...)."""

    name: str
    platform: str
    id: str


@dataclass(frozen=True, slots=True)
class Release:
    """A version of a checkout, and its section of the changelog without the heading (Markdown)."""

    project: Path
    version: str
    notes: str

    @classmethod
    def of(cls, project: Path) -> "Release":
        """Return the release of a checkout.

        Raises:
            ReleaseError: its tree differs from its commit, its version was released before, has another tag, is not the
                same everywhere, or is not the first section of the changelog.
        """
        if changed := _git(project, "status", "--porcelain"):
            raise ReleaseError(f"the tree is not what was committed; commit, or remove:\n{changed}")
        version = project_version(project)
        for file, before in _COPIES:
            if f"\n{before}{version}\n" not in f"\n{(project / file).read_text(encoding='utf-8')}\n":
                raise ReleaseError(
                    f"{file} has no line {before}{version}; the version of pyproject.toml belongs there too"
                )
        tagged = _git(project, "tag", "--list", f"v{version}", "--format", "%(objectname) %(*objectname)").split()
        head = _git(project, "rev-parse", "HEAD")
        if tagged and head not in tagged:
            raise ReleaseError(f"v{version} is the tag of another commit; raise the version in pyproject.toml")
        here = _git(project, "tag", "--points-at", "HEAD", "--list", "v*").split()
        if here and f"v{version}" not in here:
            raise ReleaseError(f"the tag of this commit is {here[0]}, the version of pyproject.toml is {version}")
        sections = dict(_SECTION.findall((project / "CHANGELOG.md").read_text(encoding="utf-8")))
        notes = sections.get(version, "").strip()
        if not notes:
            raise ReleaseError(f"CHANGELOG.md has no section `## {version}`; rename `## Unreleased` to it")
        if (newest := next(iter(sections))) != version:
            raise ReleaseError(
                f"CHANGELOG.md has `## {newest}` above `## {version}`; raise the version, or move its entries down"
            )
        return cls(project, version, notes)

    @property
    def folder(self) -> Path:
        """The folder in which its files are collected."""
        return self.project / "build/release" / self.version

    def files(self, platform: str) -> Mapping[str, Path]:
        """Return the files that were built for it, by their names in the release.

        Args:
            platform: `os-architecture` of the images.
        """
        build = self.project / "build"
        built = [
            build / f"dist/gamelake-{self.version}-py3-none-any.whl",
            *sorted(build.glob("jars/spark/gamelake-*.jar")),
            *sorted(build.glob("sbom/*.cdx.json")),
        ]
        return {_name(path, platform): path for path in built}

    def collect(self, images: list[Image]) -> list[Path]:
        """Copy its files to `folder`, which is replaced, with the notes, the list of images and the checksums of all.

        Raises:
            ReleaseError: something was not built.
        """
        (platform,) = {image.platform.replace("/", "-") for image in images}
        files = self.files(platform)
        missing = [str(path.relative_to(self.project)) for path in files.values() if not path.is_file()]
        if missing:
            raise ReleaseError(f"{', '.join(missing)} is missing; make release builds it")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, path in files.items():
            shutil.copyfile(path, self.folder / name)
        lines = (f"{image.name} {image.platform} {image.id}\n" for image in images)
        (self.folder / f"images.{platform}.txt").write_text("".join(lines), encoding="utf-8")
        (self.folder / "NOTES.md").write_text(f"# Gamelake {self.version}\n\n{self.notes}\n", encoding="utf-8")
        collected = sorted(self.folder.iterdir())
        sums = "".join(f"{_sha256(path)}  {path.name}\n" for path in collected)
        (self.folder / f"SHA256SUMS.{platform}").write_text(sums, encoding="utf-8")
        return sorted(self.folder.iterdir())


def main(arguments: list[str]) -> int:
    """Check or collect the release of this checkout."""
    parser = command_parser(__doc__)
    parser.add_argument("step", choices=["check", "collect"])
    options = parser.parse_args(arguments)
    release = Release.of(REPOSITORY)
    if options.step == "check":
        lines = len(release.notes.splitlines())
        print(f"Version {release.version} can be released: its commit is the tree, its changelog has {lines} lines")
        return OK
    for path in release.collect(list(built_images(f":{release.version}"))):
        print(f"{path.stat().st_size / 1024:>8,.0f} KiB  {path.relative_to(REPOSITORY)}")
    return OK


def built_images(suffix: str) -> Iterator[Image]:
    """Yield the stack's images of a tag, of the Docker engine.

    Raises:
        ReleaseError: the engine lacks one.
    """
    for name in IMAGES:
        image = f"gamelake/{name}{suffix}"
        command = ("docker", "image", "inspect", "--format", "{{.Os}}/{{.Architecture}} {{.Id}}", image)
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise ReleaseError(f"the Docker engine has no image {image}; run make images")
        yield Image(image, *outcome.stdout.split())


def _git(project: Path, *arguments: str) -> str:
    command = ("git", "-C", str(project), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _name(path: Path, platform: str) -> str:
    """The name in the release: with the platform, if the file is of an image."""
    return path.name.replace(".cdx.json", f".{platform}.cdx.json") if path.name.startswith("image-") else path.name


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))

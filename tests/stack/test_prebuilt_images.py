"""Images that one machine has pushed to a container registry are what another one pulls; the registry is a real one."""

import io
import re
import shutil
import subprocess
import tarfile
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

import pytest

from tests.stack.platform import ROOT
from tools.embedded.ports import HOST, free_port
from tools.embedded.process import Program, ServiceMissingError
from tools.embedded.service import EmbeddedService

CONFIGURATION = """
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "{address}"}}
"""
# As compose/prebuilt.sh has them.
NAMES = re.findall(r"\w[\w-]*", (ROOT / "compose/prebuilt.sh").read_text().partition("names=(")[2].partition(")")[0])


def docker(*arguments: str, content: bytes | None = None) -> str:
    """The output of a command of the engine, which has to succeed."""
    command = (shutil.which("docker") or "docker", *arguments)
    done = subprocess.run(command, input=content, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def tiny_image(name: str) -> str:
    """Make an image of one file, which no other image has. Return its id."""
    file, content = tarfile.TarInfo("name"), name.encode()
    file.size = len(content)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(file, io.BytesIO(content))
    return docker("import", "-", name, content=archive.getvalue())


class ContainerRegistry(EmbeddedService):
    """An empty registry of containers."""

    name: ClassVar[str] = "docker-registry"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.address = f"{HOST}:{free_port()}"

    def program(self) -> Program:
        """Debian's package, with a configuration of its own."""
        program = shutil.which("docker-registry")
        if program is None:
            raise ServiceMissingError("docker-registry is missing (Debian: apt-get install docker-registry)")
        configuration = self.directory / "configuration.yaml"
        configuration.write_text(CONFIGURATION.format(folder=self.directory / "images", address=self.address))
        command = (program, "serve", str(configuration))
        return Program(name=self.name, command=command, log_file=self.directory / "log")

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=5):
                return True
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class PrebuiltImages:
    """A checkout of a version of its own, whose images are tiny, and a registry without any image."""

    folder: Path
    registry: str
    version: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = (str(self.folder / "compose/prebuilt.sh"), *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def local(self, name: str) -> str:
        """The name by which compose runs an image."""
        return f"gamelake/{name}:{self.version}"

    def pushed(self, name: str) -> str:
        """Its name in the registry."""
        return f"{self.registry}/gamelake-{name}:v{self.version}"

    def build(self) -> dict[str, str]:
        """Make all images. Return their ids."""
        return {name: tiny_image(self.local(name)) for name in NAMES}

    def remove(self) -> None:
        found = docker("image", "ls", "--quiet", "--filter", f"reference=*/*:*{self.version}")
        found += "\n" + docker("image", "ls", "--quiet", "--filter", f"reference={self.registry}/*:*{self.version}")
        if ids := set(found.split()):
            docker("image", "rm", "--force", *ids)


@pytest.fixture
def prebuilt(tmp_path: Path, missing_service: Callable[[str], NoReturn]) -> Iterator[PrebuiltImages]:
    """A registry of the test's own; nothing of the stack need be up."""
    engine = shutil.which("docker")
    if engine is None or subprocess.run((engine, "info"), capture_output=True, check=False).returncode != 0:
        missing_service("no Docker engine answers")
    (tmp_path / "compose").mkdir()
    for name in ("prebuilt.sh", "read_env.sh"):
        shutil.copy(ROOT / "compose" / name, tmp_path / "compose")
    version = f"test-{uuid.uuid4().hex[:8]}"
    (tmp_path / "compose/.env").write_text(f"GAMELAKE_TAG={version}\n")
    registry = ContainerRegistry(tmp_path)
    try:
        registry.start()
    except ServiceMissingError as error:
        missing_service(str(error))
    images = PrebuiltImages(tmp_path, f"{registry.address}/owner", version)
    try:
        yield images
    finally:
        images.remove()
        registry.stop()


def test_what_was_pushed_is_pulled_under_the_names_that_compose_runs(prebuilt: PrebuiltImages) -> None:
    built = prebuilt.build()
    pushed = prebuilt.run("push", prebuilt.registry, f"v{prebuilt.version}")
    assert pushed.returncode == 0, pushed.stderr
    prebuilt.remove()

    pulled = prebuilt.run("pull", prebuilt.registry)

    assert pulled.returncode == 0, pulled.stderr
    assert {name: docker("image", "inspect", "--format", "{{.Id}}", prebuilt.local(name)) for name in NAMES} == built
    digests = (prebuilt.folder / "build/dist/images.sha256").read_text().splitlines()
    assert [line.rpartition("/gamelake-")[2] for line in digests] == NAMES
    for line in digests:
        digest, target = line.split()
        docker("pull", "--quiet", f"{target}@sha256:{digest}")


def test_images_that_were_built_here_stay_if_one_can_not_be_pulled(prebuilt: PrebuiltImages) -> None:
    first, second = NAMES[:2]
    built = tiny_image(prebuilt.local(first))
    tiny_image(prebuilt.pushed(first))
    docker("push", "--quiet", prebuilt.pushed(first))

    pulled = prebuilt.run("pull", prebuilt.registry)

    assert pulled.returncode == 1
    assert f"{prebuilt.pushed(second)} can't be pulled" in pulled.stderr
    assert docker("image", "inspect", "--format", "{{.Id}}", prebuilt.local(first)) == built

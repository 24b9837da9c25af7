"""What an image is made of: Debian packages, Python packages, jars and Go programs, read from a container of it."""

import re
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO

from cyclonedx.model import Property
from cyclonedx.model.component import Component
from cyclonedx.model.license import DisjunctiveLicense, License
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL

from gamelake.model.errors import StartupError
from tools.supply_chain.jars import Jar, named_by_quarkus
from tools.supply_chain.jars import read as read_jar
from tools.supply_chain.names_of_licences import expression
from tools.supply_chain.python_packages import InstalledPackage, described, is_licence

SECTION = "gamelake:debian-section"
_SECONDS = 600
_PACKAGE = r"${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Section}\n"
# What is not of Debian's packages, and the licences of those that are.
_FILES = r"""
find /opt /usr/local /usr/lib/trino -xdev -type f \( -name '*.jar' -o -path '*.dist-info/METADATA' \
  -o -path '*.dist-info/*' -iname '*licen[cs]e*' -o -path '*.dist-info/*' -iname '*copying*' \
  -o -path '/usr/local/bin/*' -size +1M \
  -o -name gamelake_native.abi3.so -o -name quarkus-app-dependencies.txt \) -print0 2>/dev/null
find /usr/share/doc -name copyright -print0
"""
_NATIVE = "gamelake_native.abi3.so"
_LICENCE_OF_DEBIAN = re.compile(r"^License: *(\S.*)$", re.MULTILINE)


class ImageError(StartupError):
    """An image could not be read."""


@dataclass(slots=True)
class ImageContents:
    """The files of an image that say what it is made of."""

    debian: list[str]  # lines of dpkg-query
    jars: list[Jar] = field(default_factory=list)
    python: list[InstalledPackage] = field(default_factory=list)
    programs: list[bytes] = field(default_factory=list)
    copyrights: dict[str, str] = field(default_factory=dict)  # by package
    quarkus: str = ""  # the list of dependencies of a distribution of Quarkus
    has_native_code: bool = False  # of native/


def exists(image: str) -> bool:
    """Whether the Docker engine has an image; False without an engine."""
    try:
        command = ("docker", "image", "inspect", image)
        return subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False).returncode == 0
    except FileNotFoundError:
        return False


def read(image: str) -> ImageContents:
    """What an image is made of.

    Raises:
        ImageError: no container of the image could be run.
    """
    listed = subprocess.run(
        (*_run(image, "dpkg-query"), "--show", f"--showformat={_PACKAGE}"),
        capture_output=True, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        raise ImageError(f"{image} can't be read: {listed.stderr.strip()}")
    contents = ImageContents(listed.stdout.splitlines())
    script = f"{{ {_FILES}\n}} | tar --create --null --files-from=- 2>/dev/null"
    command = (*_run(image, "sh"), "-c", script)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdout is None or process.stderr is None:  # never, with PIPE
            raise ImageError(f"{image} has no output")
        read_files(process.stdout, contents)
        # tar pads its output beyond the end of the archive, and must get rid of that.
        process.stdout.read()
        problems = process.stderr.read().decode().strip()
    if process.returncode != 0:
        raise ImageError(f"the files of {image} can't be read: {problems}")
    contents.jars = list(named_by_quarkus(contents.jars, contents.quarkus))
    return contents


def debian_packages(contents: ImageContents) -> Iterator[Component]:
    """The Debian packages of an image, with the licences that their copyright files name.

    Vulnerabilities are listed by source package, which the qualifier `upstream` has where it differs.
    """
    for line in contents.debian:
        name, version, architecture, source, source_version, section = line.split("\t")
        qualifiers = {"arch": architecture, "distro": "debian-13"}
        if (source, source_version) != (name, version):
            qualifiers["upstream"] = f"{source}@{source_version}"
        purl = PackageURL("deb", "debian", name, version, qualifiers)
        yield Component(
            name=name,
            version=version,
            purl=purl,
            bom_ref=purl.to_string(),
            properties=[Property(name=SECTION, value=section)],
            licenses=_licences_of_debian(contents.copyrights.get(name, "")),
        )


def _licences_of_debian(copyright_file: str) -> list[License]:
    """The licences of a copyright file of the machine-readable format, by their SPDX identifiers where they have one.

    Source: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
    """
    if "copyright-format/1.0" not in copyright_file:
        return []
    names = {" ".join(match.split()) for match in _LICENCE_OF_DEBIAN.findall(copyright_file)}
    known = {name: expression(name) or "" for name in names}
    found = {one if " " not in one and one else name for name, one in known.items()}
    # An SBOM has one expression or several single licences for a component, never both: no expressions here.
    return [
        DisjunctiveLicense(id=one) if is_supported_id(one) else DisjunctiveLicense(name=one) for one in sorted(found)
    ]


def _run(image: str, entrypoint: str) -> tuple[str, ...]:
    return ("docker", "run", "--rm", "--network", "none", "--user", "0", "--entrypoint", entrypoint, image)


def read_files(stream: IO[bytes], contents: ImageContents) -> None:
    """Add what the files of a tar archive say to the contents of an image."""
    metadata: dict[str, str] = {}
    licences: Mapping[str, list[str]] = defaultdict(list)
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.isreg() else None
            if file is None:
                continue
            folder, _, name = entry.name.rpartition("/")
            package = folder.partition(".dist-info")[0]
            if name == "METADATA":
                metadata[package] = file.read().decode("utf-8")
            elif ".dist-info" in folder and is_licence(name):
                licences[package].append(file.read().decode("utf-8", errors="replace"))
            else:
                _read_file(folder, name, file, contents)
    contents.python = [described(text, licences[package]) for package, text in metadata.items()]


def _read_file(folder: str, name: str, file: IO[bytes], contents: ImageContents) -> None:
    if name.endswith(".jar"):
        contents.jars.append(read_jar(name, file.read()))
    elif name == "copyright":
        contents.copyrights[folder.rpartition("/")[2]] = file.read().decode("utf-8", errors="replace")
    elif name == "quarkus-app-dependencies.txt":
        contents.quarkus = file.read().decode("utf-8")
    elif name == _NATIVE:
        contents.has_native_code = True
    elif "local/bin" in folder:
        contents.programs.append(file.read())

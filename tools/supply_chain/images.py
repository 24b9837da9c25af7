"""Copies the files that name what an image is made of from a container of it, and reads its Debian packages."""

import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model import Property
from cyclonedx.model.component import Component
from cyclonedx.model.license import DisjunctiveLicense, License
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL

from gamelake.model.errors import StartupError
from tools.supply_chain.names_of_licences import expression

SECTION = "gamelake:debian-section"
NATIVE = "gamelake_native.abi3.so"
_COPYRIGHTS = "usr/share/doc"
_PACKAGES = "packages.tsv"  # dpkg's list
_SECONDS = 600
_PACKAGE = r"${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Section}\n"
# The list of Debian's packages with their licences; jars, Python packages and programs that Debian did not package.
_FILES = rf"""
dpkg-query --show --showformat='{_PACKAGE}' >/{_PACKAGES} || exit
{{ printf '/{_PACKAGES}\0'
find /opt /usr/local /usr/lib/trino -xdev -type f \( -name '*.jar' -o -path '*.dist-info/METADATA' \
  -o -path '*.dist-info/*' -iname '*licen[cs]e*' -o -path '*.dist-info/*' -iname '*copying*' \
  -o -perm /111 -size +1M ! -name '*.so*' -o -name {NATIVE} -o -name quarkus-app-dependencies.txt \) -print0 2>/dev/null
find /{_COPYRIGHTS} -type f -name copyright -print0
}} | tar --create --null --files-from=- 2>/dev/null
"""
_LICENCE_OF_DEBIAN = re.compile(r"^License: *(\S.*)$", re.MULTILINE)


class ImageError(StartupError):
    """Docker can't read an image."""


def exists(image: str) -> bool:
    """Return True if the Docker engine has an image; False without an engine."""
    try:
        command = ("docker", "image", "inspect", image)
        return subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False).returncode == 0
    except FileNotFoundError:
        return False


def copy_files(image: str, folder: Path) -> None:
    """Copy the files that name an image's components to a folder, under their paths in the image.

    Raises:
        ImageError: Docker can't run a container of the image, or the copy fails.
    """
    container = ("docker", "run", "--rm", "--network", "none", "--user", "0", "--entrypoint", "sh", image, "-c", _FILES)
    unpack = ("tar", "--extract", "--directory", str(folder))
    with subprocess.Popen(container, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        unpacked = subprocess.run(unpack, stdin=reader.stdout, capture_output=True, timeout=_SECONDS, check=False)
        _, problems = reader.communicate()
    if reader.returncode or unpacked.returncode:
        raise ImageError(f"the files of {image} can't be read: {(problems + unpacked.stderr).decode().strip()}")


def programs(folder: Path) -> Iterator[Path]:
    """Return the executable files among an image's files."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_mode & stat.S_IXUSR)


def debian_packages(folder: Path) -> Iterator[Component]:
    """Return the Debian packages of an image, from its files, with the licences that their copyright files name.

    Vulnerabilities are listed by source package, which the qualifier `upstream` names where it differs.
    """
    for line in (folder / _PACKAGES).read_text(encoding="utf-8").splitlines():
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
            licenses=_licences_of_debian(folder / _COPYRIGHTS / name / "copyright"),
        )


def _licences_of_debian(copyright_file: Path) -> list[License]:
    """Return the licences of a machine-readable copyright file, by their SPDX identifiers where they have one.

    Source: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
    """
    text = copyright_file.read_text(encoding="utf-8", errors="replace") if copyright_file.is_file() else ""
    if "copyright-format/1.0" not in text:
        return []
    names = {" ".join(match.split()) for match in _LICENCE_OF_DEBIAN.findall(text)}
    known = {name: expression(name) or "" for name in names}
    found = {one if " " not in one and one else name for name, one in known.items()}
    # An SBOM has one expression or several single licences for a component, never both: no expressions here.
    return [
        DisjunctiveLicense(id=one) if is_supported_id(one) else DisjunctiveLicense(name=one) for one in sorted(found)
    ]

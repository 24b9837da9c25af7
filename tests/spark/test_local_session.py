"""A local session, as jobs have it outside of the stack."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gamelake.session import class_archive
from tools.embedded.java import spark_environment
from tools.embedded.service import REPOSITORY


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux shows what a process has mapped")
def test_its_jvm_maps_the_archived_classes(spark: SparkSession) -> None:
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - has no public name
    assert gateway is not None
    mapped = Path(f"/proc/{gateway.proc.pid}/maps").read_text()

    assert "build/jars/spark.jsa" in mapped


# It starts a JVM of its own, and loads all classes that most jobs use.
@pytest.mark.slow
def test_the_classes_are_archived_in_a_checkout_whose_path_has_spaces(tmp_path: Path) -> None:
    jars = tmp_path / "my games" / "gl 2" / "spark"
    jars.parent.mkdir(parents=True)
    jars.symlink_to(REPOSITORY / "build" / "jars" / "spark")
    settings = {**os.environ, **spark_environment(), "GAMELAKE_SPARK_JARS": str(jars)}

    ran = subprocess.run(
        (sys.executable, "-m", "jobs.archive_classes"),
        cwd=REPOSITORY, env=settings, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert class_archive(jars).stat().st_size > 2**20

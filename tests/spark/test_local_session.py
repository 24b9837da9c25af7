"""A local session, as jobs have it outside of the stack."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux shows what a process has mapped")
def test_its_jvm_maps_the_archived_classes(spark: SparkSession) -> None:
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - has no public name
    assert gateway is not None
    mapped = Path(f"/proc/{gateway.proc.pid}/maps").read_text()

    assert "build/jars/spark.jsa" in mapped

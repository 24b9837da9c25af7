"""Spark's Python workers, as tasks find them."""

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gamelake.streaming.python_daemon import without_archives

pytestmark = pytest.mark.spark


def test_a_worker_has_the_librarys_modules_before_its_first_task_and_pyspark_from_no_archive(
    spark: SparkSession,
) -> None:
    # Pickled as code: a worker that imported this module would load the library for it.
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        task = "gamelake.streaming.tasks.task" in sys.modules
        file = sys.modules["pyspark"].__file__
        yield pa.RecordBatch.from_pylist([{"task": task, "pyspark": file}])

    (row,) = spark.range(1).repartition(1).mapInArrow(loaded, "task boolean, pyspark string").collect()

    assert row.task
    assert row.pyspark == sys.modules["pyspark"].__file__


def test_archives_of_a_pyspark_that_is_not_installed_stay_on_the_path() -> None:
    archives = ["/opt/spark/python/lib/pyspark.zip", "/opt/spark/python/lib/py4j-src.zip"]

    assert without_archives(archives) == archives
    assert without_archives([*archives, *sys.path]) == [*archives, *sys.path]

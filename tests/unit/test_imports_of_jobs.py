"""Jobs start without loading packages that only a part of their runs needs."""

import subprocess
import sys
from pathlib import Path

import pytest

# None of them at the start: lineage loads its client in its own thread, and only validation loads the suites.
LATER = frozenset({"openlineage", "requests", "great_expectations"})
# What jobs without Spark and SQL never need.
NEVER = LATER | {"duckdb", "pandas", "pyspark"}
JOBS = sorted(path.stem for path in (Path(__file__).parents[2] / "jobs").glob("[a-z]*.py"))


def _loaded(*modules: str, then: str = "") -> set[str]:
    """The names of all modules that a new process has after importing some, and running a line of code."""
    code = f"import sys, {', '.join(modules)}\n{then}\nprint(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(shown.stdout.split())


def test_jobs_with_lineage_start_before_its_client_is_loaded() -> None:
    jobs = ("ingest_events", "ingest_files", "live_ops", "gold", "forget_player")

    assert LATER & _loaded(*(f"jobs.{job}" for job in jobs)) == set()


@pytest.mark.parametrize("modules", [[f"jobs.{job}" for job in JOBS], ["tools.simulator.__main__", "tools.demo.run"]])
def test_programs_do_not_load_pandas_for_their_arrays(modules: list[str]) -> None:
    assert "pandas" not in _loaded(*modules, then="import pyarrow; pyarrow.array([1])")


def test_a_conversion_to_pandas_in_a_job_loads_it() -> None:
    to_pandas = "import pyarrow; assert pyarrow.table({'a': [1]}).to_pandas().shape == (1, 1)"

    assert "pandas" in _loaded("jobs.ingest_events", then=to_pandas)


def test_jobs_without_spark_load_neither_it_nor_pandas() -> None:
    assert NEVER & _loaded("jobs.verify", "jobs.vacuum", "jobs.repair_log", "jobs.clone") == set()

"""Jobs start without loading packages that only a part of their runs needs."""

import subprocess
import sys

# None of them at the start: lineage loads its client in its own thread, and only validation loads the suites.
LATER = frozenset({"openlineage", "requests", "great_expectations"})
# What jobs without Spark and SQL never need; pandas takes a third of a second.
NEVER = LATER | {"duckdb", "pandas", "pyspark"}


def _loaded(*modules: str) -> set[str]:
    """The names of all modules that a new process has after importing some."""
    code = f"import sys, {', '.join(modules)}\nprint(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(shown.stdout.split())


def test_jobs_with_lineage_start_before_its_client_is_loaded() -> None:
    jobs = ("ingest_events", "ingest_files", "live_ops", "gold", "kpis", "forget_player")

    assert LATER & _loaded(*(f"jobs.{job}" for job in jobs)) == set()


def test_jobs_without_spark_load_neither_it_nor_pandas() -> None:
    assert NEVER & _loaded("jobs.verify", "jobs.vacuum", "jobs.repair_log", "jobs.clone") == set()

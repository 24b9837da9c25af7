"""The process from which Spark forks its Python workers, with the tasks' imports loaded before the first fork.

Spark's own daemon (`pyspark.daemon`) leaves the imports to each worker, and loads PySpark from a zip, which has no
compiled modules. A local session starts this daemon instead (`spark.python.daemon.module`): its executors have the same
import path as the driver.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

from gamelake.program import leave_pandas_out

_LOADED = ("pyspark.worker", "gamelake.streaming.kafka.batch_records", "gamelake.streaming.tasks.task")


def without_archives(paths: Sequence[str]) -> list[str]:
    """Return import paths without the archives of PySpark, if PySpark is also installed as a package.

    Args:
        paths: as in `sys.path`; Spark puts the archives of its folder first.
    """
    found = PathFinder.find_spec("pyspark", [path for path in paths if not path.endswith(".zip")])
    if found is None or found.origin is None:
        return list(paths)
    installed = Path(found.origin).parent
    return [path for path in paths if installed not in Path(path).parents]


def main() -> None:
    """Load the modules and fork workers until Spark ends the process."""
    sys.path[:] = without_archives(sys.path)
    # On macOS a fork after the loading of system libraries may crash. On Linux, loading the modules starts only threads
    # of OpenBLAS and jemalloc, and both handle forks.
    if sys.platform == "linux":
        leave_pandas_out()
        for name in _LOADED:
            import_module(name)
    # Workers share the memory of these objects as long as the garbage collection doesn't write to it.
    gc.freeze()
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()

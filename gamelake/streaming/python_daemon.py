"""The process from which Spark forks its Python workers, with what tasks import loaded before the first fork.

Spark's own (`pyspark.daemon`) leaves that to each worker, and loads PySpark from a zip, which has no compiled modules.
A local session starts this one (`spark.python.daemon.module`); its executors find the library where the driver does.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

from gamelake.program import leave_pandas_out

_LOADED = ("pyspark.worker", "gamelake.streaming.batch_records", "gamelake.streaming.task")


def without_archives(paths: Sequence[str]) -> list[str]:
    """Import paths without the archives of the PySpark that is also installed as a package.

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
    # On macOS a fork may not survive what system libraries have done. On Linux the only threads that loading modules
    # starts belong to OpenBLAS and jemalloc, which take care of forks themselves.
    if sys.platform == "linux":
        leave_pandas_out()
        for name in _LOADED:
            import_module(name)
    # Workers share these objects' memory as long as no garbage collection writes to it.
    gc.freeze()
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()

"""The time and the memory that an attack may take."""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from tests.support.process_table import peak_mib

# Many times what an attack takes if nothing else runs. Other tests can make it wait for a core several times as long
# as it computes, so computing has a limit of its own.
_SECONDS, _CPU_SECONDS, _MEBIBYTES = 120, 40, 256
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # Source: proc_pid_clear_refs(5)


@contextmanager
def budget(mebibytes: int = _MEBIBYTES) -> Iterator[None]:
    """Fail if the block takes too much time, or if the resident memory of this process grows too much meanwhile."""
    here = {os.getpid()}
    _return_free_memory()
    if _CLEAR.exists():
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    before, started, computed = peak_mib(here), time.perf_counter(), time.process_time()
    yield
    took, cpu, grown = time.perf_counter() - started, time.process_time() - computed, peak_mib(here) - before
    assert grown <= mebibytes, f"it took {grown:.0f} MiB"
    assert took <= _SECONDS, f"it took {took:.1f} s"
    assert cpu <= _CPU_SECONDS, f"it took {cpu:.1f} CPU seconds"


def _return_free_memory() -> None:
    """Return what earlier attacks have left to the system: this one would take it again unnoticed."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).malloc_trim(0)

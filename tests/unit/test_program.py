"""A program ends with an exit code by its error."""

import subprocess
import sys
from pathlib import Path

# While the interpreter is taken apart (`Slow`), a thread inside a C++ destructor of Arrow asks for the interpreter.
_BUSY_AT_THE_END = """
import atexit, sys, threading, time
import pyarrow as pa
from gamelake.program import run

giving_back = threading.Event()

class Slow:
    def __del__(self, sleep=time.sleep):  # names are gone by then
        sleep(1)

class SlowFile:
    closed = False
    def close(self): pass
    def __del__(self, sleep=time.sleep):
        giving_back.set()
        sleep(0.5)

sys.slow = Slow()  # gone last

def main():
    atexit.register(print, "the last words")
    threading.Thread(target=lambda: pa.PythonFile(SlowFile(), mode="r") and None, daemon=True).start()
    giving_back.wait()
    print("done")
    return 3

"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    """What a program printed, and its exit code."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=root)


def test_a_program_ends_with_its_own_code_though_a_thread_of_arrow_is_still_busy() -> None:
    done = ended(_BUSY_AT_THE_END + "run(main)")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == ["done", "the last words"]


def test_leaving_by_sys_exit_would_end_that_program_by_a_signal() -> None:
    done = ended(_BUSY_AT_THE_END + "sys.exit(main())")
    assert done.returncode < 0, "CPython lets such threads be now: gamelake.program may leave by sys.exit again"

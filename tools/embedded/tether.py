"""Runs a command and ends it as soon as the process that started it is gone, even by SIGKILL.

Started as a script, `tether.py PARENT_PID COMMAND...`, so that it imports nothing of the project; its first line on
stdout is the command's process id, its exit code is the command's.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

POLL_SECONDS = 0.25
SECONDS_TO_END = 5
PR_SET_PDEATHSIG = 1


def main(parent: int, command: Sequence[str]) -> int:
    """Run the command until it ends or its parent does."""
    # Handlers and not SIG_IGN, which the command would inherit: the whole group gets the signal, the command decides.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    # No thread runs yet, so a function between fork and exec is safe here; in the parent it would not be.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=_die_with_tether(),  # noqa: PLW1509 - see above
    )
    print(child.pid, flush=True)
    threading.Thread(target=_end_when_orphaned, args=(parent, child), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _die_with_tether() -> Callable[[], None] | None:
    """On Linux, the kernel kills the command if the tether itself is killed; other systems have no such function."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def ask_the_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    return ask_the_kernel


def _end_when_orphaned(parent: int, child: "subprocess.Popen[bytes]") -> None:
    # The parent's id is polled, because a pipe to the parent stays open if a forked process has inherited it.
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    child.terminate()
    time.sleep(SECONDS_TO_END)
    child.kill()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

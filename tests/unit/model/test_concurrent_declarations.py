"""Several jobs of one process read the same declaration at once."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Each child is a new process for msgspec: its threads are the first to use the types, and change places all the time.
_CHILDREN = """
import os
import sys
import threading
from pathlib import Path

from gamelake.contract import games, located_yaml

path = Path("contracts/games.yaml")
document = located_yaml.load_located(path)
barrier = threading.Barrier(4)


def together(_):
    barrier.wait()
    return document


def load():
    located_yaml.load_located = together
    sys.setswitchinterval(1e-9)
    threads = [threading.Thread(target=games.load_games, args=(path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ended():
    child = os.fork()
    if not child:
        load()
        os._exit(0)
    return os.waitpid(child, 0)[1]


print(sum(ended() != 0 for _ in range(24)))
"""


def test_threads_that_read_a_declaration_first_do_not_crash_the_process() -> None:
    done = subprocess.run((sys.executable, "-c", _CHILDREN), cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "0"

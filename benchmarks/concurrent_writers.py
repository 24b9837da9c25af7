"""Measures commits to one table on an object store by concurrent writers: `python -m benchmarks.concurrent_writers`.

The store is the stack's, or the one that the tests' variables name (`tests/stack/object_store.py`). All requests pass
through a proxy that counts the puts that the store rejected; it adds a millisecond to each, for all engines alike.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from gamelake.model.errors import GamelakeError
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables
from tests.stack.fault_proxy import FaultProxy
from tests.stack.object_store import ObjectStore
from tests.stack.race import Writer, race
from tests.stack.rows import commits
from tests.stack.writers import TABLE, Way, append_as_the_fan_out

_REFUSED = 412
_LOG_ENTRY = re.compile(r"_delta_log/\d{20}\.json$")
# Without pauses the fast writers would end before Spark has made its first commit.
_PAUSE = 0.5
_HEAD = ("engine", "writers", "commits", "commits/s", "rejected per commit", "median s", "95 % s")


@dataclass(frozen=True, slots=True)
class Field:
    """A set of concurrent writers."""

    name: str
    writers: tuple[Writer, ...]

    @property
    def loops(self) -> int:
        """Number of concurrent writers."""
        return sum(writer.loops for writer in self.writers)


def _alone(way: Way, name: str, processes: int, total: int, loops: int = 1) -> Field:
    each = total // (processes * loops)
    return Field(name, tuple(Writer(f"{way}{number}", way, each, loops) for number in range(processes)))


_MIXED = Field(
    "all three",
    (
        *(Writer(f"spark{number}", Way.SPARK, commits=15, loops=2) for number in range(2)),
        *(Writer(f"delta_rs{number}", Way.DELTA_RS, commits=130, longest_pause=_PAUSE) for number in range(2)),
        *(Writer(f"fan_out{number}", Way.FAN_OUT, commits=130, longest_pause=_PAUSE) for number in range(2)),
    ),
)
FIELDS = (
    *(_alone(Way.FAN_OUT, "fan-out", processes, 560) for processes in (1, 2, 4, 8)),
    *(_alone(Way.DELTA_RS, "delta-rs", processes, 160) for processes in (1, 2, 4, 8)),
    _MIXED,
    _alone(Way.SPARK, "Spark, 1 driver", 1, 20),
    _alone(Way.SPARK, "Spark, 1 driver", 1, 40, loops=2),
    _alone(Way.SPARK, "Spark, 2 drivers", 2, 60, loops=2),
)


def measure(field: Field, store: ObjectStore, proxy: FaultProxy) -> Sequence[str]:
    """Measure one set of writers; returns a row of the table.

    Raises:
        GamelakeError: commits were lost.
    """
    with store.new_bucket() as bucket, tempfile.TemporaryDirectory() as logs:
        uri = f"s3://{bucket}/lake"
        location = store.location(uri)
        with DeltaTables(location) as tables:
            append_as_the_fan_out(tables, location, "setup", 0)
        proxy.forget()
        result = race(field.writers, store.at(proxy.url).variables(uri), Path(logs))
        made = len(commits(Store(location), TABLE)) - 1
    if made != (wanted := sum(len(writer.rows) for writer in field.writers)):
        raise GamelakeError(f"{field.name}: {made} commits instead of {wanted}")
    refused = sum(each.status == _REFUSED and bool(_LOG_ENTRY.search(each.path)) for each in proxy.exchanges)
    seconds = [each for loop in result.seconds.values() for each in loop]
    figures = (len(seconds) / result.wall_seconds, refused / made, median(seconds), quantiles(seconds, n=20)[-1])
    return field.name, str(field.loops), str(made), *(f"{figure:.2f}" for figure in figures)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.concurrent_writers", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="only rows whose name contains this")
    only = parser.parse_args().only
    try:
        store = ObjectStore.of_the_tests()
        with FaultProxy(store.endpoint).running() as proxy:
            for cells in (_HEAD, ["---"] * len(_HEAD)):
                _print_line(cells)
            for field in FIELDS:
                if only in field.name:
                    _print_line(measure(field, store, proxy))
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return 1
    return 0


def _print_line(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
